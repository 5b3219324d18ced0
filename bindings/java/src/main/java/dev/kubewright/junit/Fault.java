package dev.kubewright.junit;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.annotation.JsonSubTypes;
import com.fasterxml.jackson.annotation.JsonSubTypes.Type;
import com.fasterxml.jackson.annotation.JsonTypeInfo;
import com.fasterxml.jackson.databind.annotation.JsonDeserialize;
import com.fasterxml.jackson.databind.annotation.JsonSerialize;
import java.time.Duration;

/** What goes wrong. */
@JsonTypeInfo(use = JsonTypeInfo.Id.NAME, include = JsonTypeInfo.As.WRAPPER_OBJECT)
@JsonSubTypes({
    @Type(value = Fault.Conflict.class, name = "conflict"),
    @Type(value = Fault.TooManyRequests.class, name = "tooManyRequests"),
    @Type(value = Fault.ErrorStatus.class, name = "error"),
    @Type(value = Fault.Timeout.class, name = "timeout"),
    @Type(value = Fault.Latency.class, name = "latency"),
    @Type(value = Fault.DropWatch.class, name = "dropWatch"),
    @Type(value = Fault.ExpireWatch.class, name = "expireWatch"),
    @Type(value = Fault.RepeatWatch.class, name = "repeatWatch"),
    @Type(value = Fault.SkipWatch.class, name = "skipWatch"),
    @Type(value = Fault.HoldWatch.class, name = "holdWatch"),
    @Type(value = Fault.OldList.class, name = "oldList"),
})
@JsonInclude(JsonInclude.Include.NON_NULL)
public sealed interface Fault {

    /** 409 for an update, a patch or a delete, as a stale resourceVersion gets it. */
    record Conflict() implements Fault {}

    /**
     * 429 with Retry-After.
     *
     * @param retryAfter in how many seconds the client is to try again
     */
    record TooManyRequests(int retryAfter) implements Fault {}

    /**
     * An error with a Status.
     *
     * @param code from 400 to 599
     * @param reason the reason of the Status; null is that of the code
     * @param message the message of the Status; null is that of the code
     */
    record ErrorStatus(int code, String reason, String message) implements Fault {
        /**
         * An error with the reason and the message of its code.
         *
         * @param code from 400 to 599
         */
        public ErrorStatus(int code) {
            this(code, null, null);
        }
    }

    /**
     * No answer: the client cannot know whether the request was carried out.
     *
     * @param done whether it was
     * @param answer what the client gets instead
     */
    record Timeout(boolean done, NoAnswer answer) implements Fault {}

    /** What a client gets instead of an answer. */
    enum NoAnswer {
        /** The connection ends; over HTTP/2, the stream. */
        @JsonProperty("cut")
        CUT,
        /** 504. */
        @JsonProperty("504")
        GATEWAY_TIMEOUT,
    }

    /**
     * The right answer, later. Other rules still count.
     *
     * @param by how much later, in cluster time
     */
    record Latency(
            @JsonSerialize(using = GoDuration.Serializer.class) @JsonDeserialize(using = GoDuration.Deserializer.class)
                    Duration by)
            implements Fault {}

    /**
     * Watches end.
     *
     * @param how how they end
     */
    record DropWatch(WatchEnd how) implements Fault {}

    /** How a watch ends. */
    enum WatchEnd {
        /** As one whose time is over. */
        @JsonProperty("cleanly")
        CLEANLY,
        /** As one whose connection is cut. */
        @JsonProperty("reset")
        RESET,
    }

    /** Watches end with 410; until the rule is removed, so do watches and lists that go on from before. */
    record ExpireWatch() implements Fault {}

    /** Watches tell events twice. */
    record RepeatWatch() implements Fault {}

    /** Watches leave events out, and tell those behind them. */
    record SkipWatch() implements Fault {}

    /**
     * Watches tell nothing, so that their client works on old state.
     *
     * @param lasting for how long, in cluster time; null is until the rule is removed
     */
    record HoldWatch(
            @JsonProperty("for")
                    @JsonSerialize(using = GoDuration.Serializer.class)
                    @JsonDeserialize(using = GoDuration.Deserializer.class)
                    Duration lasting)
            implements Fault {}

    /**
     * Lists that take any state (resourceVersion 0, as informers ask for first) are answered with an old one.
     *
     * @param revision that of the old state
     */
    record OldList(long revision) implements Fault {}
}
