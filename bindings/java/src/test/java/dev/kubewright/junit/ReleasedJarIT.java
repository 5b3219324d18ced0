package dev.kubewright.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Runs on the jar, on a class path with neither the clients nor Jackson. */
@Kubewright
class ReleasedJarIT {
    @Test
    void theJarNeedsNeitherClientsNorJackson(KubewrightCluster cluster) {
        for (String absent : List.of(
                "io.fabric8.kubernetes.client.KubernetesClient",
                "io.kubernetes.client.openapi.ApiClient",
                "com.fasterxml.jackson.databind.ObjectMapper",
                "org.yaml.snakeyaml.Yaml")) {
            assertThrows(ClassNotFoundException.class, () -> Class.forName(absent), absent);
        }
        String origin = Kubewright.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        assertTrue(origin.endsWith(".jar"), origin);

        FaultRule rule = FaultRule.of(new Fault.Latency(Duration.ofSeconds(2)))
                .on(Match.any().resource("pods")).times(1).after(0).every(1).probability(1, 7);
        cluster.addFault(rule);
        assertEquals(rule, cluster.faults().get(0).rule());
        assertEquals(List.of(), cluster.requests(Match.any().resource("pods").verbs("patch")).requests());
    }
}
