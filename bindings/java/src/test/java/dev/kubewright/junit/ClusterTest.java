package dev.kubewright.junit;

import static dev.kubewright.junit.Fixtures.clientOf;
import static dev.kubewright.junit.Fixtures.configMap;
import static dev.kubewright.junit.Fixtures.deploymentGetsPods;
import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fabric8.kubernetes.client.KubernetesClient;
import java.io.BufferedReader;
import java.io.IOException;
import java.net.Socket;
import java.net.SocketException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(120)
class ClusterTest {
    @Test
    void aDeploymentGetsPodsThatRun() throws IOException {
        try (KubewrightCluster cluster = KubewrightCluster.start(); KubernetesClient client = clientOf(cluster)) {
            deploymentGetsPods(client);
        }
    }

    @Test
    void aDeploymentGetsPodsThatRunAfterAReset() throws IOException {
        try (KubewrightCluster cluster = KubewrightCluster.start(); KubernetesClient client = clientOf(cluster)) {
            deploymentGetsPods(client);
            cluster.reset();
            deploymentGetsPods(client);
        }
    }

    @Test
    void aResetRemovesWhatATestMade() throws IOException {
        try (KubewrightCluster cluster = KubewrightCluster.start(); KubernetesClient client = clientOf(cluster)) {
            client.resource(configMap("left")).create();
            cluster.addFault(FaultRule.of(new Fault.Conflict()));
            cluster.reset();
            assertNull(client.configMaps().inNamespace("default").withName("left").get());
            assertTrue(cluster.faults().isEmpty());
        }
    }

    @Test
    void clustersDoNotSeeEachOther() throws IOException {
        try (KubewrightCluster one = KubewrightCluster.start();
                KubewrightCluster other = KubewrightCluster.builder().nodes(0).controllers().kubernetesVersion("1.35").start();
                KubernetesClient client = clientOf(one);
                KubernetesClient otherClient = clientOf(other)) {
            assertNotEquals(one.server(), other.server());
            client.resource(configMap("mine")).create();
            assertNull(otherClient.configMaps().inNamespace("default").withName("mine").get());
            assertEquals("35", otherClient.getKubernetesVersion().getMinor());
            assertTrue(otherClient.nodes().list().getItems().isEmpty());
        }
    }

    @Test
    void aStoppedClusterIsGoneWithItsFile() {
        KubewrightCluster cluster = KubewrightCluster.start();
        assertTrue(Files.exists(cluster.kubeconfig()));
        cluster.stop();
        cluster.stop();
        assertFalse(Files.exists(cluster.kubeconfig()));
        assertFalse(answers(cluster.server()));
        KubewrightException error = assertThrows(KubewrightException.class, cluster::reset);
        assertTrue(error.getMessage().contains("the cluster is gone"), error.getMessage());
    }

    @Test
    void noServerIsLeftWhenTheTestProcessIsKilled() throws Exception {
        Process jvm = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-cp", System.getProperty("java.class.path"), Holder.class.getName())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        String[] told;
        try (BufferedReader output = jvm.inputReader()) {
            told = output.readLine().split(" ");
            assertTrue(answers(URI.create(told[0])));
        } finally {
            jvm.destroyForcibly().waitFor();
        }
        Path kubeconfig = Path.of(told[1]);
        for (long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30); System.nanoTime() < end; Thread.sleep(10)) {
            if (!answers(URI.create(told[0])) && !Files.exists(kubeconfig)) {
                return;
            }
        }
        throw new AssertionError("the server is still there");
    }

    /** Starts a cluster, and waits to be killed. */
    static final class Holder {
        private Holder() {}

        public static void main(String[] arguments) throws InterruptedException {
            KubewrightCluster cluster = KubewrightCluster.start();
            System.out.println(cluster.server() + " " + cluster.kubeconfig());
            Thread.currentThread().join();
        }
    }

    @Test
    void aClusterThatDoesNotStartSaysWhy() {
        for (var wrong : Map.of(
                "1.37", KubewrightCluster.builder().kubernetesVersion("1.30"),
                "gardening", KubewrightCluster.builder().controllers("gardening"),
                "--nodes", KubewrightCluster.builder().nodes(-1),
                "speed=slowly", KubewrightCluster.builder().clock("speed=slowly")).entrySet()) {
            KubewrightException error = assertThrows(KubewrightException.class, () -> wrong.getValue().start());
            assertTrue(error.getMessage().contains("did not start"), error.getMessage());
            assertTrue(error.getMessage().contains(wrong.getKey()), error.getMessage());
        }
    }

    @Test
    void withoutAProgramTheErrorSaysWhereItIsLookedFor(@TempDir Path empty) {
        KubewrightException error =
                assertThrows(KubewrightException.class, () -> Program.find(Map.of("PATH", empty.toString())));
        for (String way : new String[] {"KUBEWRIGHT", "PATH", "install"}) {
            assertTrue(error.getMessage().contains(way), error.getMessage());
        }
        String nowhere = empty.resolve("nothing").toString();
        error = assertThrows(KubewrightException.class, () -> Program.find(Map.of("KUBEWRIGHT", nowhere, "PATH", "/bin")));
        assertTrue(error.getMessage().contains(nowhere), error.getMessage());
    }

    @Test
    void theProgramOfTheVariableComesBeforeThatOfThePath(@TempDir Path folder) throws IOException {
        Path named = Files.createFile(folder.resolve("named"));
        Path found = Files.createFile(folder.resolve("kubewright"));
        assertTrue(named.toFile().setExecutable(true) && found.toFile().setExecutable(true));
        assertEquals(named, Program.find(Map.of("KUBEWRIGHT", named.toString(), "PATH", folder.toString())));
        assertEquals(found, Program.find(Map.of("PATH", "/nowhere::" + folder)));
    }

    @Test
    void anInterruptedStartLeavesNothing() {
        Thread.currentThread().interrupt();
        try {
            assertThrows(KubewrightException.class, KubewrightCluster::start);
            assertTrue(Thread.currentThread().isInterrupted());
        } finally {
            Thread.interrupted();
        }
        assertDoesNotThrow(() -> KubewrightCluster.start().stop());
    }

    private static boolean answers(URI server) {
        try (Socket socket = new Socket(server.getHost(), server.getPort())) {
            return socket.isConnected();
        } catch (SocketException refused) {
            // Refused, or reset where it ends just now.
            return false;
        } catch (IOException error) {
            throw new AssertionError(error);
        }
    }
}
