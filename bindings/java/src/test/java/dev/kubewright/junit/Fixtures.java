package dev.kubewright.junit;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.api.model.apps.DeploymentBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import java.io.IOException;
import java.nio.file.Files;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Objects that tests make, and clients of clusters that they start by hand. */
final class Fixtures {
    private Fixtures() {}

    static KubernetesClient clientOf(KubewrightCluster cluster) throws IOException {
        return new KubernetesClientBuilder()
                .withConfig(Config.fromKubeconfig(Files.readString(cluster.kubeconfig())))
                .build();
    }

    static ConfigMap configMap(String name) {
        return new ConfigMapBuilder()
                .withNewMetadata().withNamespace("default").withName(name).endMetadata()
                .build();
    }

    static Deployment deployment(String name, int replicas) {
        Map<String, String> labels = Map.of("app", name);
        return new DeploymentBuilder()
                .withNewMetadata().withNamespace("default").withName(name).endMetadata()
                .withNewSpec()
                .withReplicas(replicas)
                .withNewSelector().withMatchLabels(labels).endSelector()
                .withNewTemplate()
                .withNewMetadata().withLabels(labels).endMetadata()
                .withNewSpec().addNewContainer().withName("main").withImage("busybox").endContainer().endSpec()
                .endTemplate()
                .endSpec()
                .build();
    }

    static void deploymentGetsPods(KubernetesClient client) {
        client.resource(deployment("web", 2)).create();
        client.apps().deployments().inNamespace("default").withName("web").waitUntilCondition(
                read -> read != null && read.getStatus() != null && Integer.valueOf(2).equals(read.getStatus().getReadyReplicas()),
                30, TimeUnit.SECONDS);
    }
}
