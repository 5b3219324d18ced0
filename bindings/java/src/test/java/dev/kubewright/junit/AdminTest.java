package dev.kubewright.junit;

import static dev.kubewright.junit.Fixtures.configMap;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.batch.v1.CronJobBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Kubewright
@Timeout(120)
class AdminTest {
    @Test
    @Kubewright(clock = "2030-01-01T00:00:00Z,speed=0")
    void timeThatIsAdvancedRunsACronJob(KubewrightCluster cluster, KubernetesClient client) {
        Clock clock = cluster.clock();
        Instant started = clock.instant();
        assertTrue(Duration.between(Instant.parse("2030-01-01T00:00:00Z"), started).compareTo(Duration.ofMinutes(1)) < 0);
        client.resource(new CronJobBuilder()
                .withNewMetadata().withNamespace("default").withName("report").endMetadata()
                .withNewSpec().withSchedule("0 * * * *")
                .withNewJobTemplate().withNewSpec().withNewTemplate().withNewSpec().withRestartPolicy("Never")
                .addNewContainer().withName("main").withImage("busybox").endContainer()
                .endSpec().endTemplate().endSpec().endJobTemplate().endSpec()
                .build()).create();

        Instant after = cluster.advance(Duration.ofHours(24).plusMinutes(1));

        assertEquals(Duration.ofHours(24).plusMinutes(1), Duration.between(started, after));
        assertEquals(after, clock.instant());
        // Three successful jobs are kept.
        assertEquals(3, client.batch().v1().jobs().inNamespace("default").list().getItems().size());
        assertEquals("2030-01-02T00:00:00Z",
                client.batch().v1().cronjobs().inNamespace("default").withName("report").get().getStatus().getLastScheduleTime());
    }

    @Test
    void theMachinesClockIsNotAdvancedAndTheErrorSaysWhy(KubewrightCluster cluster) {
        KubewrightException error = assertThrows(KubewrightException.class, () -> cluster.advance(Duration.ofHours(1)));
        assertEquals(409, error.code());
        assertTrue(error.getMessage().contains("clock"), error.getMessage());
        assertTrue(Duration.between(cluster.now(), Instant.now()).abs().compareTo(Duration.ofMinutes(1)) < 0);
    }

    @Test
    void aConflictStrikesAsOftenAsItIsTold(KubewrightCluster cluster, KubernetesClient client) {
        ConfigMap made = client.resource(configMap("settings")).create();
        long id = cluster.addFault(FaultRule.of(new Fault.Conflict())
                .on(Match.any().verbs("update").group("").resource("configmaps")).times(2));
        made.setData(Map.of("color", "green"));
        for (int attempt = 0; attempt < 2; attempt++) {
            assertEquals(409, assertThrows(KubernetesClientException.class, () -> client.resource(made).update()).getCode());
        }
        client.resource(made).update();

        FaultState state = cluster.faults().get(0);
        assertEquals(List.of(id, 2L, true), List.of(state.id(), state.hits(), state.spent()));
        RequestLog.Request first = cluster.requests(Match.any().verbs("update").resource("configmaps")).requests().get(0);
        assertEquals(List.of(409, id), List.of(first.code(), first.fault()));
        cluster.removeFault(id);
        assertEquals(404, assertThrows(KubewrightException.class, () -> cluster.removeFault(id)).code());
    }

    @Test
    void aFaultThatIsRemovedStrikesNoMore(KubewrightCluster cluster, KubernetesClient client) {
        cluster.addFault(FaultRule.of(new Fault.ErrorStatus(403, "Full", "the disk is full"))
                .on(Match.any().resource("secrets")).forever());
        KubernetesClientException error =
                assertThrows(KubernetesClientException.class, () -> client.secrets().inNamespace("default").list());
        assertTrue(error.getMessage().contains("the disk is full"), error.getMessage());
        cluster.clearFaults();
        client.secrets().inNamespace("default").list();
    }

    @Test
    void everyFaultIsTakenAndTold(KubewrightCluster cluster) {
        // Nobody matches.
        Match match = Match.any().group("").resource("configmaps").subresource("").namespace("nowhere").name("none").user("nobody*")
                .userAgent("none");
        List<FaultRule> rules = List.<Fault>of(
                        new Fault.Conflict(),
                        new Fault.TooManyRequests(3),
                        new Fault.ErrorStatus(503),
                        new Fault.ErrorStatus(503, "Down", "later"),
                        new Fault.Timeout(true, Fault.NoAnswer.GATEWAY_TIMEOUT),
                        new Fault.Timeout(false, Fault.NoAnswer.CUT),
                        new Fault.Latency(Duration.ofMillis(90_500)),
                        new Fault.DropWatch(Fault.WatchEnd.RESET),
                        new Fault.ExpireWatch(),
                        new Fault.RepeatWatch(),
                        new Fault.SkipWatch(),
                        new Fault.HoldWatch(Duration.ofHours(1)),
                        new Fault.HoldWatch(null),
                        new Fault.OldList(7))
                .stream()
                .map(fault -> FaultRule.of(fault).on(match).times(4).after(1).every(2).probability(0.5, 7))
                .collect(Collectors.toList());
        rules.add(FaultRule.of(new Fault.ErrorStatus(500)).on(Match.any().verbs("get", "deletecollection"))
                .forever().after(0).every(1).probability(1, 1));
        rules.forEach(cluster::addFault);
        assertEquals(rules, cluster.faults().stream().map(FaultState::rule).toList());
    }

    @Test
    void aRuleThatMakesNoSenseIsRefusedWithTheReason(KubewrightCluster cluster) {
        for (var wrong : Map.of(
                "not the code", FaultRule.of(new Fault.ErrorStatus(200)),
                "expected one of `get`", FaultRule.of(new Fault.Conflict()).on(Match.any().verbs("put")),
                "is negative", FaultRule.of(new Fault.Latency(Duration.ofSeconds(-1)))).entrySet()) {
            KubewrightException error = assertThrows(KubewrightException.class, () -> cluster.addFault(wrong.getValue()));
            assertTrue(error.getMessage().contains(wrong.getKey()), error.getMessage());
            assertEquals(400, error.code());
        }
        assertThrows(NullPointerException.class, () -> FaultRule.of(null));
    }

    @Test
    void theLogTellsWhoCalledWhat(KubewrightCluster cluster, KubernetesClient client) {
        client.resource(configMap("one")).create();
        for (String color : List.of("green", "blue")) {
            client.configMaps().inNamespace("default").withName("one")
                    .patch(PatchContext.of(PatchType.JSON_MERGE), "{\"data\":{\"color\":\"" + color + "\"}}");
        }
        Match match = Match.any().verbs("create", "patch").group("").resource("configmaps").subresource("").namespace("default")
                .userAgent("fabric8");

        RequestLog log = cluster.requests(match);

        assertEquals(Map.of("create configmaps", 1L, "patch configmaps", 2L), log.counts().stream()
                .collect(Collectors.toMap(count -> count.verb() + " " + count.resource(), RequestLog.Count::count)));
        RequestLog.Request last = log.requests().get(2);
        assertEquals(List.of("one", "merge", 200, "v1"), List.of(last.name(), last.patch(), last.code(), last.version()));
        assertTrue(last.duration().toNanos() > 0 && last.userAgent().startsWith("fabric8"), last.toString());
        assertEquals(1, cluster.requests(match, 1).requests().size());
        cluster.clearRequests();
        assertEquals(List.of(), cluster.requests(match).counts());
    }
}
