package dev.kubewright.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.openapi.models.V1ConfigMap;
import io.kubernetes.client.openapi.models.V1ObjectMeta;
import java.util.Map;
import org.junit.jupiter.api.Test;

@Kubewright
class OfficialClientTest {
    @Test
    void whatIsCreatedIsThere(ApiClient client) throws Exception {
        CoreV1Api api = new CoreV1Api(client);
        api.createNamespacedConfigMap("default", new V1ConfigMap()
                .metadata(new V1ObjectMeta().name("settings")).data(Map.of("color", "green"))).execute();
        assertEquals("green", api.readNamespacedConfigMap("settings", "default").execute().getData().get("color"));
    }
}
