package dev.kubewright.junit;

import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.util.ClientBuilder;
import io.kubernetes.client.util.KubeConfig;
import java.io.IOException;
import java.io.Reader;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Optional;

/** The clients that are injected. Each touches its library only when a test asks for it. */
enum InjectedClient {
    FABRIC8("io.fabric8.kubernetes.client.KubernetesClient") {
        @Override
        Opened open(KubewrightCluster cluster) {
            return Fabric8.open(cluster);
        }
    },
    OFFICIAL("io.kubernetes.client.openapi.ApiClient") {
        @Override
        Opened open(KubewrightCluster cluster) {
            return Official.open(cluster);
        }
    };

    private final String type;

    InjectedClient(String type) {
        this.type = type;
    }

    static Optional<InjectedClient> of(Class<?> type) {
        return Arrays.stream(values()).filter(client -> client.type.equals(type.getName())).findAny();
    }

    abstract Opened open(KubewrightCluster cluster);

    /** A client of a test; closed with the test. */
    record Opened(Object client, Runnable end) implements AutoCloseable {
        @Override
        public void close() {
            end.run();
        }
    }

    private static final class Fabric8 {
        static Opened open(KubewrightCluster cluster) {
            try {
                Config config = Config.fromKubeconfig(Files.readString(cluster.kubeconfig()));
                KubernetesClient client = new KubernetesClientBuilder().withConfig(config).build();
                return new Opened(client, client::close);
            } catch (IOException error) {
                throw unreadable(error);
            }
        }
    }

    private static final class Official {
        static Opened open(KubewrightCluster cluster) {
            try (Reader kubeconfig = Files.newBufferedReader(cluster.kubeconfig())) {
                ApiClient client = ClientBuilder.kubeconfig(KubeConfig.loadKubeConfig(kubeconfig)).build();
                return new Opened(client, () -> {
                    client.getHttpClient().dispatcher().cancelAll();
                    client.getHttpClient().dispatcher().executorService().shutdown();
                    client.getHttpClient().connectionPool().evictAll();
                });
            } catch (IOException error) {
                throw unreadable(error);
            }
        }
    }

    private static KubewrightException unreadable(IOException error) {
        return new KubewrightException("The kubeconfig of the cluster cannot be read: " + error.getMessage(), error);
    }
}
