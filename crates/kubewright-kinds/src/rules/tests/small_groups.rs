use serde_json::{Value, json};

use super::samples::of;
use super::{
    change_refused, each_change_is_refused, each_is_refused, made, messages, refused, rules, set, with,
};
use crate::rules::certificates;

const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";

#[test]
fn roles_and_bindings_are_checked() {
    let role = (RBAC, "v1", "roles");
    each_is_refused(
        role,
        &of(role),
        &[
            (
                "/rules/0/verbs",
                json!([]),
                &["rules[0].verbs: Required value: verbs must contain at least one value"],
            ),
            (
                "/rules/0/apiGroups",
                json!([]),
                &["rules[0].apiGroups: Required value: resource rules must supply at least one api group"],
            ),
            (
                "/rules/0",
                json!({"nonResourceURLs": ["/x"], "verbs": ["get"]}),
                &[
                    "rules[0].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to non-resource URLs",
                ],
            ),
        ],
    );
    let binding = (RBAC, "v1", "rolebindings");
    assert_eq!(made(binding, &of(binding))["subjects"][0]["apiGroup"], RBAC);
    each_is_refused(
        binding,
        &of(binding),
        &[
            (
                "/subjects/0/kind",
                json!("Robot"),
                &[
                    "subjects[0].kind: Unsupported value: \"Robot\": supported values: \"ServiceAccount\", \"User\", \"Group\"",
                ],
            ),
            ("/roleRef/name", json!(""), &["roleRef.name: Required value"]),
        ],
    );
    let said = change_refused(binding, &of(binding), |binding| binding["roleRef"]["name"] = json!("other"));
    assert_eq!(
        said,
        [format!(
            "roleRef: Invalid value: {{\"APIGroup\":\"{RBAC}\",\"Kind\":\"Role\",\"Name\":\"other\"}}: cannot change roleRef"
        )]
    );
    let cluster = (RBAC, "v1", "clusterrolebindings");
    each_is_refused(
        cluster,
        &of(cluster),
        &[
            (
                "/roleRef/kind",
                json!("Role"),
                &["roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\""],
            ),
            (
                "/subjects",
                json!([{"kind": "ServiceAccount", "name": "s"}]),
                &["subjects[0].namespace: Required value"],
            ),
        ],
    );
    let aggregate = with(&of((RBAC, "v1", "clusterroles")), "/aggregationRule", json!({}));
    assert_eq!(
        refused((RBAC, "v1", "clusterroles"), &aggregate),
        [
            "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil"
        ]
    );
}

#[test]
fn leases_priorities_and_runtimes_are_checked() {
    let lease = ("coordination.k8s.io", "v1", "leases");
    each_is_refused(
        lease,
        &of(lease),
        &[(
            "/spec",
            json!({"leaseDurationSeconds": 0, "leaseTransitions": -1}),
            &[
                "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
            ],
        )],
    );
    let class = ("scheduling.k8s.io", "v1", "priorityclasses");
    each_is_refused(
        class,
        &with(&of(class), "/metadata", json!({"name": "p"})),
        &[
            (
                "/value",
                json!(2_000_000_000),
                &["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
            ),
            (
                "/metadata/name",
                json!("system-x"),
                &[
                    "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-x is not a known system priority class",
                ],
            ),
        ],
    );
    let system = json!({"metadata": {"name": "system-node-critical"}, "value": 2_000_001_000_i64});
    assert!(refused(class, &system).is_empty());
    assert_eq!(
        change_refused(class, &of(class), |class| class["value"] = json!(11)),
        ["value: Forbidden: may not be changed in an update."]
    );
    let runtime = ("node.k8s.io", "v1", "runtimeclasses");
    each_is_refused(runtime, &of(runtime), &[("/handler", json!(""), &["handler: Required value"])]);
    assert_eq!(
        change_refused(runtime, &of(runtime), |class| class["handler"] = json!("other")),
        ["handler: Invalid value: \"other\": field is immutable"]
    );
}

#[test]
fn budgets_and_autoscalers_are_checked() {
    let budget = ("policy", "v1", "poddisruptionbudgets");
    each_is_refused(
        budget,
        &json!({"spec": {"minAvailable": 1}}),
        &[
            (
                "/spec/maxUnavailable",
                json!(1),
                &[
                    "spec: Invalid value: {\"MinAvailable\":1,\"Selector\":null,\"MaxUnavailable\":1,\"UnhealthyPodEvictionPolicy\":null}: minAvailable and maxUnavailable cannot be both set",
                ],
            ),
            (
                "/spec/minAvailable",
                json!("120%"),
                &["spec.minAvailable: Invalid value: \"120%\": must not be greater than 100%"],
            ),
        ],
    );
    let scaler = ("autoscaling", "v2", "horizontalpodautoscalers");
    assert_eq!(
        made(scaler, &of(scaler))["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"],
        80
    );
    each_is_refused(
        scaler,
        &of(scaler),
        &[
            (
                "/spec/maxReplicas",
                json!(0),
                &[
                    "spec.maxReplicas: Required value: must be set and greater than 0",
                    "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
                ],
            ),
            (
                "/spec/minReplicas",
                json!(0),
                &[
                    "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
                    "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas",
                ],
            ),
            ("/spec/scaleTargetRef/kind", json!(""), &["spec.scaleTargetRef.kind: Required value"]),
            (
                "/spec/metrics",
                json!([{"type": "Pods"}]),
                &[
                    "spec.metrics[0].pods: Required value: must populate information for the given metric source",
                ],
            ),
            (
                "/spec/behavior",
                json!({"scaleUp": {"policies": []}}),
                &["spec.behavior.scaleUp.policies: Required value: must specify at least one Policy"],
            ),
        ],
    );
    let first = ("autoscaling", "v1", "horizontalpodautoscalers");
    each_is_refused(
        first,
        &of(first),
        &[(
            "/spec/targetCPUUtilizationPercentage",
            json!(0),
            &["spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0"],
        )],
    );
}

#[test]
fn what_is_scaled_has_a_group_unless_it_is_a_replication_controller() {
    for version in ["v1", "v2"] {
        let scaler = ("autoscaling", version, "horizontalpodautoscalers");
        let of_version = |version: &str| with(&of(scaler), "/spec/scaleTargetRef/apiVersion", json!(version));
        let groupless = of_version("v1");
        let words =
            "spec.scaleTargetRef.apiVersion: Invalid value: \"v1\": apiVersion must specify API group";
        assert_eq!(refused(scaler, &groupless), [words]);
        let controller = json!("ReplicationController");
        assert_eq!(refused(scaler, &with(&groupless, "/spec/scaleTargetRef/kind", controller)), [""; 0]);
        let words =
            "spec.scaleTargetRef.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c";
        assert_eq!(refused(scaler, &of_version("a/b/c")), [words]);
        // What is there already may stay.
        assert_eq!(
            change_refused(scaler, &groupless, |new| set(new, "/spec/maxReplicas", json!(9))),
            [""; 0]
        );
        let other = |new: &mut Value| set(new, "/spec/scaleTargetRef/kind", json!("Pod"));
        assert_eq!(change_refused(scaler, &groupless, other).len(), 1);
    }
}

#[test]
fn events_belong_to_the_namespace_of_what_they_are_about() {
    let core = ("", "v1", "events");
    let made_event = made(core, &of(core));
    assert_eq!((&made_event["source"], &made_event["reportingComponent"]), (&json!({}), &json!("")));
    let wrong = with(&of(core), "/involvedObject/namespace", json!("other"));
    assert_eq!(
        refused(core, &wrong),
        ["involvedObject.namespace: Invalid value: \"other\": does not match event.namespace"]
    );
    let new = ("events.k8s.io", "v1", "events");
    each_is_refused(
        new,
        &of(new),
        &[
            ("/type", json!("Odd"), &["type: Invalid value: \"\": has invalid value: Odd"]),
            ("/deprecatedCount", json!(1), &["count: Invalid value: \"\": needs to be unset"]),
            ("/reportingInstance", json!(""), &["reportingInstance: Required value"]),
        ],
    );
    each_change_is_refused(
        new,
        &of(new),
        &[("/note", json!("other"), &["message: Invalid value: \"other\": field is immutable"])],
    );
    let said = change_refused(new, &of(new), |event| {
        event["deprecatedLastTimestamp"] = json!("2026-01-01T00:00:00.123456Z");
    });
    let time = "lastTimestamp: Invalid value: \"2026-01-01T00:00:00Z\": field is immutable";
    assert_eq!(said, [time], "parts of a second are not written");
    let said = change_refused(new, &of(new), |event| event["related"] = json!({}));
    assert!(said.len() == 1 && said[0].starts_with("related: Invalid value: "), "{said:?}");
}

#[test]
fn webhooks_are_checked() {
    let hooks = (ADMISSION, "v1", "validatingwebhookconfigurations");
    let made_hooks = made(hooks, &of(hooks));
    assert_eq!(made_hooks["webhooks"][0]["timeoutSeconds"], 10);
    assert_eq!(made_hooks["webhooks"][0]["clientConfig"]["service"]["port"], 443);
    let without_certificates = with(&of(hooks), "/webhooks/0/clientConfig/caBundle", json!(""));
    assert_eq!(made(hooks, &without_certificates), made_hooks, "and so it is the same when it is sent again");
    each_is_refused(
        hooks,
        &of(hooks),
        &[
            (
                "/webhooks/0/name",
                json!("short"),
                &[
                    "webhooks[0].name: Invalid value: \"short\": should be a domain with at least three segments separated by dots",
                ],
            ),
            (
                "/webhooks/0/sideEffects",
                Value::Null,
                &["webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun"],
            ),
            (
                "/webhooks/0/clientConfig",
                json!({}),
                &["webhooks[0].clientConfig: Required value: exactly one of url or service is required"],
            ),
            (
                "/webhooks/0/clientConfig",
                json!({"url": "http://example.com"}),
                &[
                    "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
                ],
            ),
            (
                "/webhooks/0/clientConfig",
                json!({"url": "https://u@example.com/x?y#z"}),
                &[
                    "webhooks[0].clientConfig.url: Invalid value: \"u\": user information is not permitted in the URL",
                    "webhooks[0].clientConfig.url: Invalid value: \"z\": fragments are not permitted in the URL",
                    "webhooks[0].clientConfig.url: Invalid value: \"y\": query parameters are not permitted in the URL",
                ],
            ),
            (
                "/webhooks/0/timeoutSeconds",
                json!(31),
                &[
                    "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
                ],
            ),
            (
                "/webhooks/0/rules/0/resources",
                json!(["*", "pods"]),
                &[
                    "webhooks[0].rules[0].resources: Invalid value: [\"*\",\"pods\"]: if '*' is present, must not specify other resources without subresources",
                ],
            ),
            (
                "/webhooks/0/admissionReviewVersions",
                json!(["v9"]),
                &[
                    "webhooks[0].admissionReviewVersions: Invalid value: [\"v9\"]: must include at least one of v1, v1beta1",
                ],
            ),
        ],
    );
    let mutating = (ADMISSION, "v1", "mutatingwebhookconfigurations");
    assert_eq!(
        refused(mutating, &with(&of(mutating), "/webhooks/0/reinvocationPolicy", json!("Sure"))),
        [
            "webhooks[0].reinvocationPolicy: Unsupported value: \"Sure\": supported values: \"IfNeeded\", \"Never\""
        ]
    );
}

#[test]
fn policies_are_checked() {
    let policy = (ADMISSION, "v1", "validatingadmissionpolicies");
    each_is_refused(
        policy,
        &of(policy),
        &[
            (
                "/spec/validations",
                json!([]),
                &[
                    "spec.validations: Required value: validations or auditAnnotations must contain at least one item",
                    "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item",
                ],
            ),
            ("/spec/matchConstraints", Value::Null, &["spec.matchConstraints: Required value"]),
            (
                "/spec/matchConstraints/matchPolicy",
                json!(""),
                &[
                    "spec.matchConstraints.matchPolicy: Unsupported value: \"\": supported values: \"Equivalent\", \"Exact\"",
                ],
            ),
            (
                "/spec/failurePolicy",
                json!(""),
                &["spec.failurePolicy: Unsupported value: \"\": supported values: \"Fail\", \"Ignore\""],
            ),
            (
                "/spec/variables",
                json!([{"name": "1x", "expression": "1"}]),
                &["spec.variables[0].name: Invalid value: \"1x\": must be a valid CEL identifier"],
            ),
        ],
    );
    let binding = (ADMISSION, "v1", "validatingadmissionpolicybindings");
    each_is_refused(
        binding,
        &of(binding),
        &[
            (
                "/spec/validationActions",
                json!([]),
                &["spec.validationActions: Required value: at least one validation action is required"],
            ),
            ("/spec/policyName", json!(""), &["spec.policyName: Required value"]),
        ],
    );
    let mutating = (ADMISSION, "v1", "mutatingadmissionpolicies");
    each_is_refused(
        mutating,
        &of(mutating),
        &[(
            "/spec/mutations",
            json!([]),
            &["spec.mutations: Required value: mutations must contain at least one item"],
        )],
    );
}

#[test]
fn signing_requests_are_decided_once() {
    let request = ("certificates.k8s.io", "v1", "certificatesigningrequests");
    each_is_refused(
        request,
        &of(request),
        &[
            ("/spec/usages", json!([]), &["spec.usages: Required value"]),
            (
                "/spec/signerName",
                json!("kubernetes.io/legacy-unknown"),
                &[
                    "spec.signerName: Invalid value: \"kubernetes.io/legacy-unknown\": the legacy signerName is not allowed via this API version",
                ],
            ),
            (
                "/spec/expirationSeconds",
                json!(60),
                &[
                    "spec.expirationSeconds: Invalid value: 60: may not specify a duration less than 600 seconds (10 minutes)",
                ],
            ),
        ],
    );
    let decided = |kind: &str| json!([{"type": kind, "status": "True"}]);
    let old = with(
        &made(request, &of(request)),
        "/status",
        json!({"conditions": decided("Approved"), "certificate": "eA=="}),
    );
    let denied = with(&old, "/status/conditions", decided("Denied"));
    let kept = "status.conditions: Forbidden: updates may not remove a condition of type \"Approved\"";
    assert_eq!(messages(&certificates::validate_approval(&denied, &old)), [kept]);
    assert_eq!(
        messages(&rules(request).errors_on_status(&denied, &old, false)),
        [kept, "status.conditions: Forbidden: updates may not add a condition of type \"Denied\""]
    );
    let reissued = with(&old, "/status/certificate", json!("eQ=="));
    assert_eq!(
        messages(&rules(request).errors_on_status(&reissued, &old, false)),
        [
            "status.certificate: Invalid value: \"<certificate data>\": must contain at least one CERTIFICATE PEM block",
            "status.certificate: Forbidden: updates may not modify existing certificate content",
        ]
    );
}

#[test]
fn a_token_review_has_a_token() {
    let tokens = rules(("authentication.k8s.io", "v1", "tokenreviews"));
    assert_eq!(messages(&(tokens.validate)(&json!({"spec": {}}))), ["spec.token: Required value"]);
}

#[test]
fn a_revision_keeps_its_data() {
    let revision = ("apps", "v1", "controllerrevisions");
    each_is_refused(
        revision,
        &of(revision),
        &[("/data", json!([1]), &["data: Required value: data must be a valid JSON object"])],
    );
    each_change_is_refused(
        revision,
        &of(revision),
        &[
            ("/revision", json!(2), &[]),
            ("/data", json!({"x": 2}), &["data: Invalid value: {\"x\":2}: field is immutable"]),
        ],
    );
}

#[test]
fn a_name_of_a_signing_request_is_told_once_that_no_object_may_have() {
    let kind = ("certificates.k8s.io", "v1", "certificatesigningrequests");
    let named = with(&of(kind), "/metadata", json!({"name": "a/b"}));
    assert_eq!(refused(kind, &named), ["metadata.name: Invalid value: \"a/b\": may not contain '/'"]);
    let old = made(kind, &of(kind));
    let new = with(&old, "/metadata/generateName", json!("a/b"));
    assert_eq!(rules(kind).errors_on_update(&new, &old, false).len(), 1);
}
