package dev.kubewright.junit;

import static dev.kubewright.junit.Fixtures.configMap;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import java.net.URI;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.testkit.engine.EngineExecutionResults;
import org.junit.platform.testkit.engine.EngineTestKit;

@Timeout(120)
class ExtensionTest {
    /** What the tests of the cases below had. */
    private static final List<KubewrightCluster> SEEN = Collections.synchronizedList(new ArrayList<>());

    @BeforeEach
    void forget() {
        SEEN.clear();
    }

    @Test
    void testsOneAfterTheOtherShareAClusterThatIsReset() {
        run(Shares.class, false).testEvents().assertStatistics(statistics -> statistics.succeeded(3));
        assertEquals(1, servers().stream().distinct().count());
    }

    @Kubewright
    static class Shares {
        private final KubewrightCluster ofConstructor;
        private KubewrightCluster ofSetUp;

        Shares(KubewrightCluster cluster) {
            ofConstructor = cluster;
        }

        @BeforeEach
        void setUp(KubewrightCluster cluster, KubernetesClient client) {
            ofSetUp = cluster;
            client.resource(configMap("same")).create();
        }

        @Test
        void first(KubewrightCluster cluster) {
            assertEquals(List.of(cluster, cluster), List.of(ofConstructor, ofSetUp));
            SEEN.add(cluster);
        }

        @Test
        void second(KubewrightCluster cluster) {
            SEEN.add(cluster);
        }

        @Nested
        class Inside {
            @Test
            void third(KubewrightCluster cluster) {
                SEEN.add(cluster);
            }
        }
    }

    @Test
    void testsAtTheSameTimeHaveClustersOfTheirOwn() {
        run(Parallel.class, true).testEvents().assertStatistics(statistics -> statistics.succeeded(2));
        assertNotEquals(servers().get(0), servers().get(1));
    }

    @Kubewright
    @Execution(ExecutionMode.CONCURRENT)
    static class Parallel {
        private static final CyclicBarrier BOTH = new CyclicBarrier(2);

        @Test
        void one(KubewrightCluster cluster) throws Exception {
            meet(cluster);
        }

        @Test
        void other(KubewrightCluster cluster) throws Exception {
            meet(cluster);
        }

        private static void meet(KubewrightCluster cluster) throws Exception {
            SEEN.add(cluster);
            BOTH.await(60, TimeUnit.SECONDS);
        }
    }

    @Test
    void aTestWithAClockHasAClusterOfItsOwnThatIsStopped() {
        run(Clocks.class, false).testEvents().assertStatistics(statistics -> statistics.succeeded(2));
        assertNotEquals(servers().get(0), servers().get(1));
        assertTrue(SEEN.stream().noneMatch(KubewrightCluster::isRunning));
    }

    @Kubewright(clock = "2030-01-01T00:00:00Z,speed=0")
    static class Clocks {
        @Test
        void first(KubewrightCluster cluster) {
            SEEN.add(cluster);
            assertTrue(cluster.now().toString().startsWith("2030-01-01T00:"));
        }

        @Test
        void second(KubewrightCluster cluster) {
            first(cluster);
        }
    }

    @Test
    void clustersEndWithTheSession() {
        run(Shares.class, false);
        assertEquals(3, SEEN.size());
        assertTrue(SEEN.stream().noneMatch(KubewrightCluster::isRunning));
    }

    @Test
    void aClusterThatATestStoppedIsNotHandedToTheNext() {
        run(Stops.class, false).testEvents().assertStatistics(statistics -> statistics.succeeded(2));
    }

    @Kubewright
    static class Stops {
        @Test
        void first(KubewrightCluster cluster) {
            cluster.stop();
        }

        @Test
        void second(KubewrightCluster cluster) {
            first(cluster);
        }
    }

    @Test
    void theKubeconfigIsInjectedAsTextAndOtherStringsAreLeftAlone() {
        run(Texts.class, false).testEvents().assertStatistics(statistics -> statistics.succeeded(2));
    }

    @Kubewright
    static class Texts {
        @ParameterizedTest
        @ValueSource(strings = {"one", "other"})
        void text(String value, @Kubeconfig String kubeconfig, KubewrightCluster cluster) {
            assertTrue(value.equals("one") || value.equals("other"), value);
            try (KubernetesClient client =
                    new KubernetesClientBuilder().withConfig(Config.fromKubeconfig(kubeconfig)).build()) {
                assertEquals(cluster.server().getPort(), client.getMasterUrl().getPort());
                client.resource(configMap(value)).create();
            }
        }
    }

    @Test
    void aKubeconfigThatIsNoStringIsRefusedWithTheRemedy() {
        run(NoText.class, false).testEvents().failed().stream().findFirst().ifPresentOrElse(
                event -> assertTrue(event.getRequiredPayload(TestExecutionResult.class)
                        .getThrowable().orElseThrow().getMessage().contains("make it a String")),
                () -> {
                    throw new AssertionError("it was not refused");
                });
    }

    @Kubewright
    static class NoText {
        @Test
        void number(@Kubeconfig Integer kubeconfig) {}
    }

    @Test
    void aClusterForAllTestsIsRefusedWithTheRemedy() {
        run(ForAll.class, false).containerEvents().failed().stream().findFirst().ifPresentOrElse(
                event -> assertTrue(event.getRequiredPayload(TestExecutionResult.class)
                        .getThrowable().orElseThrow().getMessage().contains("KubewrightCluster.start()")),
                () -> {
                    throw new AssertionError("it was not refused");
                });
    }

    @Kubewright
    static class ForAll {
        @BeforeAll
        static void setUp(KubewrightCluster cluster) {
            SEEN.add(cluster);
        }

        @Test
        void test() {}
    }

    private static EngineExecutionResults run(Class<?> tests, boolean parallel) {
        return EngineTestKit.engine("junit-jupiter")
                .configurationParameter("junit.jupiter.execution.parallel.enabled", String.valueOf(parallel))
                .configurationParameter("junit.jupiter.execution.parallel.config.strategy", "fixed")
                .configurationParameter("junit.jupiter.execution.parallel.config.fixed.parallelism", "2")
                .selectors(selectClass(tests))
                .execute();
    }

    private static List<URI> servers() {
        return SEEN.stream().map(KubewrightCluster::server).toList();
    }
}
