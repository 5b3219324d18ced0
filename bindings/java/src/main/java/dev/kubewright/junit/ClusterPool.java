package dev.kubewright.junit;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The clusters that no test uses, by their settings; they are stopped when it is closed. */
final class ClusterPool implements AutoCloseable {
    private final Map<List<String>, Deque<KubewrightCluster>> idle = new HashMap<>();
    private boolean closed;

    /** A cluster as it was when it started. */
    KubewrightExtension.Lease lease(KubewrightCluster.Builder settings) {
        if (!settings.canBeShared()) {
            KubewrightCluster cluster = settings.start();
            return new KubewrightExtension.Lease(cluster, cluster::stop);
        }
        List<String> key = settings.arguments();
        KubewrightCluster cluster = take(key);
        if (cluster == null) {
            cluster = settings.start();
        } else {
            try {
                cluster.reset();
            } catch (RuntimeException failed) {
                cluster.stop();
                throw failed;
            }
        }
        KubewrightCluster taken = cluster;
        return new KubewrightExtension.Lease(taken, () -> put(key, taken));
    }

    private synchronized KubewrightCluster take(List<String> key) {
        Deque<KubewrightCluster> clusters = idle.getOrDefault(key, new ArrayDeque<>());
        // One that a test has stopped, or that has crashed, is of no use to another.
        clusters.removeIf(cluster -> !cluster.isRunning());
        return clusters.pollLast();
    }

    private void put(List<String> key, KubewrightCluster cluster) {
        synchronized (this) {
            if (!closed) {
                idle.computeIfAbsent(key, none -> new ArrayDeque<>()).add(cluster);
                return;
            }
        }
        cluster.stop();
    }

    @Override
    public void close() {
        List<KubewrightCluster> all = new ArrayList<>();
        synchronized (this) {
            closed = true;
            idle.values().forEach(all::addAll);
            idle.clear();
        }
        all.forEach(KubewrightCluster::stop);
    }
}
