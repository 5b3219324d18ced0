package dev.kubewright.junit;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.DeserializationContext;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.deser.std.FromStringDeserializer;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.module.SimpleModule;
import com.fasterxml.jackson.dataformat.yaml.YAMLMapper;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.Serial;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** Asks the paths under /kubewright. */
final class AdminClient {
    private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(30);
    private static final ObjectMapper JSON = JsonMapper.builder()
            .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
            .addModule(new SimpleModule().addDeserializer(Instant.class, new InstantDeserializer()))
            .build();

    private final ServerProcess process;
    private final URI server;
    private final String token;
    private final HttpClient http;

    AdminClient(ServerProcess process) {
        this.process = process;
        try {
            JsonNode kubeconfig = new YAMLMapper().readTree(process.kubeconfig().toFile());
            JsonNode cluster = kubeconfig.at("/clusters/0/cluster");
            server = URI.create(cluster.path("server").asText());
            token = kubeconfig.at("/users/0/user/token").asText();
            byte[] authority = Base64.getDecoder().decode(cluster.path("certificate-authority-data").asText());
            http = HttpClient.newBuilder()
                    .version(HttpClient.Version.HTTP_1_1)
                    .connectTimeout(CONNECT_TIMEOUT)
                    .proxy(HttpClient.Builder.NO_PROXY)
                    .sslContext(trusting(authority))
                    .build();
        } catch (IOException | GeneralSecurityException | IllegalArgumentException error) {
            throw new KubewrightException("The kubeconfig that kubewright wrote cannot be used: " + error.getMessage(), error);
        }
    }

    private static SSLContext trusting(byte[] authority) throws GeneralSecurityException, IOException {
        KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
        trusted.load(null, null);
        CertificateFactory factory = CertificateFactory.getInstance("X.509");
        for (Certificate certificate : factory.generateCertificates(new ByteArrayInputStream(authority))) {
            trusted.setCertificateEntry("kubewright-" + trusted.size(), certificate);
        }
        TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        managers.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, managers.getTrustManagers(), null);
        return context;
    }

    URI server() {
        return server;
    }

    /** Sends a request to an admin path, and returns what is answered. The body may be null. */
    JsonNode call(String method, String path, Object body) {
        try {
            HttpRequest request = HttpRequest.newBuilder(server.resolve("/kubewright/" + path))
                    .header("Authorization", "Bearer " + token)
                    .header("Content-Type", "application/json")
                    .header("User-Agent", "kubewright-java")
                    .method(method, body == null ? BodyPublishers.noBody() : BodyPublishers.ofByteArray(JSON.writeValueAsBytes(body)))
                    .build();
            HttpResponse<String> response = http.send(request, BodyHandlers.ofString());
            if (response.statusCode() >= 400) {
                throw refusal(response);
            }
            return JSON.readTree(response.body());
        } catch (JsonProcessingException error) {
            throw notUnderstood(path, error);
        } catch (IOException error) {
            String gone = process.isRunning() ? "" : "; the cluster is gone: " + process.failure();
            throw new KubewrightException(method + " " + server + "/kubewright/" + path + ": " + error + gone, error);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new KubewrightException("Interrupted while the cluster was asked", interrupted);
        }
    }

    /** The server's words, where the answer is a Status. */
    private static KubewrightException refusal(HttpResponse<String> response) {
        String message = response.body().strip();
        try {
            message = JSON.readTree(message).path("message").asText(message);
        } catch (JsonProcessingException plainText) {
            // It is as it is.
        }
        return new KubewrightException(message, response.statusCode(), null);
    }

    private static KubewrightException notUnderstood(String path, JsonProcessingException error) {
        return new KubewrightException(
                "/kubewright/" + path + ": what was said is not understood by this version of kubewright-junit: "
                        + error.getOriginalMessage(),
                error);
    }

    Instant time(JsonNode clock) {
        return Instant.parse(clock.path("now").asText());
    }

    List<FaultState> faults(JsonNode list) {
        List<FaultState> states = new ArrayList<>();
        for (JsonNode fault : list.path("faults")) {
            try {
                states.add(new FaultState(
                        fault.path("id").asLong(),
                        JSON.treeToValue(fault, FaultRule.class),
                        fault.path("hits").asLong(),
                        fault.path("seen").asLong(),
                        fault.path("spent").asBoolean()));
            } catch (JsonProcessingException error) {
                throw notUnderstood("faults", error);
            }
        }
        return states;
    }

    RequestLog requests(Match match, int limit) {
        StringJoiner query = new StringJoiner("&", "requests?", "");
        query.add("limit=" + limit);
        Map<String, Object> fields = JSON.convertValue(match, new TypeReference<>() {});
        fields.put("verbs", match.verbs().isEmpty() ? null : String.join(",", match.verbs()));
        fields.forEach((name, value) -> {
            if (value != null) {
                query.add(name + "=" + URLEncoder.encode(value.toString(), StandardCharsets.UTF_8));
            }
        });
        try {
            return JSON.treeToValue(call("GET", query.toString(), null), RequestLog.class);
        } catch (JsonProcessingException error) {
            throw notUnderstood("requests", error);
        }
    }

    private static final class InstantDeserializer extends FromStringDeserializer<Instant> {
        @Serial
        private static final long serialVersionUID = 1;

        InstantDeserializer() {
            super(Instant.class);
        }

        @Override
        protected Instant _deserialize(String text, DeserializationContext context) {
            return Instant.parse(text);
        }
    }
}
