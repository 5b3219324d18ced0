package dev.kubewright.junit;

import java.net.URI;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;

/**
 * A Kubernetes control plane that runs in a process of its own: an API server, the built-in controllers, a scheduler and
 * simulated nodes. It ends with {@link #stop()}, and with this JVM, whatever ends that. It is safe for use by several threads.
 *
 * <p>Every method that asks the server throws a {@link KubewrightException} with the server's words when it refuses, and
 * when it cannot be reached.
 */
public final class KubewrightCluster implements AutoCloseable {
    private final ServerProcess process;
    private final AdminClient admin;

    private KubewrightCluster(ServerProcess process, AdminClient admin) {
        this.process = process;
        this.admin = admin;
    }

    /**
     * Starts a cluster with all built-in controllers and one node.
     *
     * @return a cluster that serves requests
     * @throws KubewrightException as {@link Builder#start()}
     */
    public static KubewrightCluster start() {
        return builder().start();
    }

    /**
     * Begins to say what a cluster is like.
     *
     * @return a builder of a cluster with all built-in controllers and one node
     */
    public static Builder builder() {
        return new Builder();
    }

    /** What a cluster is like. */
    public static final class Builder {
        private String kubernetesVersion = "";
        private Integer nodes;
        private List<String> controllers;
        private String clock = "";

        private Builder() {}

        /**
         * Says which version of Kubernetes is served.
         *
         * @param version such as "1.36"; by default the newest
         * @return this
         */
        public Builder kubernetesVersion(String version) {
            this.kubernetesVersion = version;
            return this;
        }

        /**
         * Says how many simulated nodes there are.
         *
         * @param number by default one
         * @return this
         */
        public Builder nodes(int number) {
            this.nodes = number;
            return this;
        }

        /**
         * Says which built-in controllers run.
         *
         * @param names kube-controller-manager's; "*" is all of them, as by default, and "-name" all but that one. None
         *     runs when there are no names.
         * @return this
         */
        public Builder controllers(String... names) {
            this.controllers = List.of(names);
            return this;
        }

        /**
         * Says when cluster time starts and how fast it passes.
         *
         * @param clock "2030-01-01T00:00:00Z", "speed=60", or "2030-01-01T00:00:00Z,speed=0" for a clock that passes only
         *     by {@link KubewrightCluster#advance}. By default it is the machine's clock, which cannot be advanced.
         * @return this
         */
        public Builder clock(String clock) {
            this.clock = clock;
            return this;
        }

        /** Whether a reset makes it as it was when it started. It does not set time back. */
        boolean canBeShared() {
            return clock.isEmpty();
        }

        List<String> arguments() {
            List<String> arguments = new ArrayList<>();
            if (!kubernetesVersion.isEmpty()) {
                arguments.add("--kubernetes-version=" + kubernetesVersion);
            }
            if (nodes != null) {
                arguments.add("--nodes=" + nodes);
            }
            if (controllers != null) {
                arguments.add("--controllers=" + String.join(",", controllers));
            }
            if (!clock.isEmpty()) {
                arguments.add("--clock=" + clock);
            }
            return arguments;
        }

        /**
         * Starts the cluster.
         *
         * @return a cluster that serves requests
         * @throws KubewrightException when there is no kubewright program (in the variable KUBEWRIGHT, or on the PATH), and
         *     when it ends before it serves, with what it said
         */
        public KubewrightCluster start() {
            return start(Program.find(System.getenv()));
        }

        KubewrightCluster start(Path program) {
            ServerProcess process = ServerProcess.start(program, arguments());
            try {
                return new KubewrightCluster(process, new AdminClient(process));
            } catch (RuntimeException failed) {
                process.stop();
                throw failed;
            }
        }
    }

    /**
     * Where the kubeconfig of the cluster's administrator (a member of system:masters) is.
     *
     * @return a file that is there as long as the cluster
     */
    public Path kubeconfig() {
        return process.kubeconfig();
    }

    /**
     * Where the API server is.
     *
     * @return its URL
     */
    public URI server() {
        return admin.server();
    }

    /**
     * Makes the cluster as it was when it started: objects, faults and the log of requests. Time does not go back. Watches are
     * told what is gone.
     */
    public void reset() {
        admin.call("POST", "reset", null);
    }

    /**
     * Tells cluster time.
     *
     * @return what time it is in the cluster
     */
    public Instant now() {
        return admin.time(admin.call("GET", "clock", null));
    }

    /**
     * Cluster time as a clock to inject into what is tested.
     *
     * @return a clock in UTC that asks the server at each look
     */
    public Clock clock() {
        return new ClusterClock(this, ZoneOffset.UTC);
    }

    /**
     * Lets cluster time pass. What falls due meanwhile has happened when this returns, each thing at its own time: in a day
     * an hourly CronJob runs twenty-four times. A cluster that lives by the machine's clock refuses it (see {@link Builder#clock}).
     *
     * @param by how much
     * @return the time after it
     */
    public Instant advance(Duration by) {
        return admin.time(admin.call("POST", "clock/advance", new Advance(GoDuration.write(by))));
    }

    private record Advance(String by) {}

    /**
     * Adds a rule by which requests or watches fail.
     *
     * @param rule what goes wrong, and for which requests
     * @return the id of the rule
     */
    public long addFault(FaultRule rule) {
        return admin.call("POST", "faults", rule).path("id").asLong();
    }

    /**
     * Tells the rules that were added, and how often each has struck.
     *
     * @return the rules, by their ids
     */
    public List<FaultState> faults() {
        return admin.faults(admin.call("GET", "faults", null));
    }

    /**
     * Removes a rule, and lets go what it holds. Without a rule of that id it throws with the code 404.
     *
     * @param id what {@link #addFault} returned
     */
    public void removeFault(long id) {
        admin.call("DELETE", "faults/" + id, null);
    }

    /** Removes all rules. */
    public void clearFaults() {
        admin.call("DELETE", "faults", null);
    }

    /**
     * Tells who called what, of the last 10,000 requests; the last 1,000 that match in full.
     *
     * @param match which requests; {@link Match#any()} is all, those too that are not for objects
     * @return the log
     */
    public RequestLog requests(Match match) {
        return requests(match, 1000);
    }

    /**
     * Tells who called what, of the last 10,000 requests.
     *
     * @param match which requests; {@link Match#any()} is all, those too that are not for objects
     * @param limit how many are told in full
     * @return the log
     */
    public RequestLog requests(Match match, int limit) {
        return admin.requests(match, limit);
    }

    /** Empties the log of requests. */
    public void clearRequests() {
        admin.call("DELETE", "requests", null);
    }

    /**
     * Ends the cluster and waits for its end. What was stopped stays stopped: a second call does nothing.
     *
     * @throws KubewrightException when it took more than ten seconds and was killed
     */
    public void stop() {
        process.stop();
    }

    /** The same as {@link #stop()}. */
    @Override
    public void close() {
        stop();
    }

    boolean isRunning() {
        return process.isRunning();
    }

    private static final class ClusterClock extends Clock {
        private final KubewrightCluster cluster;
        private final ZoneId zone;

        ClusterClock(KubewrightCluster cluster, ZoneId zone) {
            this.cluster = cluster;
            this.zone = zone;
        }

        @Override
        public ZoneId getZone() {
            return zone;
        }

        @Override
        public Clock withZone(ZoneId other) {
            return new ClusterClock(cluster, other);
        }

        @Override
        public Instant instant() {
            return cluster.now();
        }
    }
}
