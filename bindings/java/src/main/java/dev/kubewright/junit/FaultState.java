package dev.kubewright.junit;

/**
 * A rule that was added, and what has come of it.
 *
 * @param id what {@link KubewrightCluster#removeFault} takes
 * @param rule the rule, with its defaults filled in
 * @param hits how often it has struck
 * @param seen how many requests matched
 * @param spent whether it will not strike any more
 */
public record FaultState(long id, FaultRule rule, long hits, long seen, boolean spent) {}
