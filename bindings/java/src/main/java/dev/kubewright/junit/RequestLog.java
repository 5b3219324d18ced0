package dev.kubewright.junit;

import java.time.Duration;
import java.time.Instant;
import java.util.List;

/**
 * Who called what.
 *
 * @param total how many requests there were since the log was emptied, whether selected or not
 * @param forgotten how many of these are not kept any more
 * @param counts who did what to which resource how often, of those that are selected
 * @param requests the last that are selected, oldest first
 */
public record RequestLog(long total, long forgotten, List<Count> counts, List<Request> requests) {

    /**
     * How often a user agent did something to a resource.
     *
     * @param userAgent the header User-Agent
     * @param verb that of RBAC
     * @param resource one such as "deployments.apps/status"; a path for what is not for objects
     * @param count how often
     */
    public record Count(String userAgent, String verb, String resource, long count) {}

    /**
     * A request that was answered. A watch is noted when it opens. What does not apply is null.
     *
     * @param time when it came, in cluster time
     * @param user who acted; where somebody acted as another, that one
     * @param userAgent the header User-Agent
     * @param verb that of RBAC
     * @param patch the kind of a patch: json, merge, strategic or apply
     * @param group the API group; null is the core group
     * @param version the API version
     * @param resource the plural
     * @param subresource one such as "status"
     * @param namespace the namespace
     * @param name the name in the URL; a create has none there
     * @param path the path of a request that is not for objects
     * @param code the status of the answer; null where the connection was cut
     * @param milliseconds how long the answer took to begin, in cluster time
     * @param fault the id of the rule that struck it
     */
    public record Request(
            Instant time,
            String user,
            String userAgent,
            String verb,
            String patch,
            String group,
            String version,
            String resource,
            String subresource,
            String namespace,
            String name,
            String path,
            Integer code,
            double milliseconds,
            Long fault) {

        /**
         * How long the answer took to begin.
         *
         * @return the same as the milliseconds
         */
        public Duration duration() {
            return Duration.ofNanos((long) (milliseconds * 1e6));
        }
    }
}
