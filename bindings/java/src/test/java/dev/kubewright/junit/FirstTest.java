package dev.kubewright.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import org.junit.jupiter.api.Test;

@Kubewright
class FirstTest {
    @Test
    void whatIsCreatedIsThere(KubernetesClient client) {
        client.resource(new ConfigMapBuilder().withNewMetadata().withName("settings").endMetadata()
                .addToData("color", "green").build()).inNamespace("default").create();
        assertEquals("green", client.configMaps().inNamespace("default").withName("settings").get().getData().get("color"));
    }
}
