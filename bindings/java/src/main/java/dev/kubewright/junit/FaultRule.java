package dev.kubewright.junit;

import com.fasterxml.jackson.annotation.JsonInclude;
import java.util.Objects;

/**
 * What goes wrong, and for which requests. Without the last five a fault of requests strikes the next one that matches,
 * and a fault of watches those that are open. Begin with {@link #of(Fault)}, and say more:
 * {@code FaultRule.of(new Fault.Conflict()).on(Match.any().resource("deployments")).times(2)}.
 *
 * @param match which requests
 * @param fault what goes wrong
 * @param times how often it strikes, 0 is for ever; null is once, or for ever with {@code every} or {@code probability}
 * @param after how many requests pass first; null is none
 * @param every makes it strike each so-manieth request; null is each
 * @param probability how likely it strikes, from 0 to 1; null is always
 * @param seed where the dice of the probability start; null is chosen by the server
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
public record FaultRule(Match match, Fault fault, Long times, Long after, Long every, Double probability, Long seed) {

    /** Wants a fault; without a match it is for any request. */
    public FaultRule {
        Objects.requireNonNull(fault, "a rule needs a fault, such as new Fault.Conflict()");
        match = match == null ? Match.any() : match;
    }

    /**
     * A rule for the next request, or for all open watches.
     *
     * @param fault what goes wrong
     * @return where to begin
     */
    public static FaultRule of(Fault fault) {
        return new FaultRule(Match.any(), fault, null, null, null, null, null);
    }

    /**
     * Says for which requests.
     *
     * @param match which
     * @return the same, for these requests
     */
    public FaultRule on(Match match) {
        return new FaultRule(match, fault, times, after, every, probability, seed);
    }

    /**
     * Says how often it strikes.
     *
     * @param times how often
     * @return the same, so often
     */
    public FaultRule times(long times) {
        return new FaultRule(match, fault, times, after, every, probability, seed);
    }

    /**
     * Says that it strikes until it is removed.
     *
     * @return the same, without an end
     */
    public FaultRule forever() {
        return times(0);
    }

    /**
     * Says how many requests pass first.
     *
     * @param after how many
     * @return the same, later
     */
    public FaultRule after(long after) {
        return new FaultRule(match, fault, times, after, every, probability, seed);
    }

    /**
     * Says that it strikes each so-manieth request.
     *
     * @param every 1 is each
     * @return the same, so often
     */
    public FaultRule every(long every) {
        return new FaultRule(match, fault, times, after, every, probability, seed);
    }

    /**
     * Says how likely it strikes.
     *
     * @param probability from 0 to 1
     * @param seed where the dice start: the same seed strikes the same requests
     * @return the same, so likely
     */
    public FaultRule probability(double probability, long seed) {
        return new FaultRule(match, fault, times, after, every, probability, seed);
    }
}
