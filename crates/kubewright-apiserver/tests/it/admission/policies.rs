//! Policies: what they find, what they change, and what their status says. Texts were compared with kube-apiserver v1.36.

use http::Method;
use serde_json::{Value, json};

use super::support::{Cluster, at_once, patch};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn rules(operations: &[&str]) -> Value {
    json!({"resourceRules": [{
        "apiGroups": [""], "apiVersions": ["v1"], "operations": operations, "resources": ["configmaps"]
    }]})
}

fn with(mut object: Value, members: &Value) -> Value {
    for (name, value) in members.as_object().expect("members") {
        object[name] = value.clone();
    }
    object
}

impl Cluster {
    /// A validating policy `p` with these members of its spec, and a binding that denies.
    async fn validating(&self, spec: &Value, binding: &Value) {
        let spec = with(json!({"matchConstraints": rules(&["CREATE", "UPDATE", "DELETE"])}), spec);
        let binding = with(json!({"policyName": "p", "validationActions": ["Deny"]}), binding);
        self.made("validatingadmissionpolicies", &json!({"metadata": {"name": "p"}, "spec": spec})).await;
        let binding = json!({"metadata": {"name": "b"}, "spec": binding});
        self.made("validatingadmissionpolicybindings", &binding).await;
    }

    /// A mutating policy with these members of its spec, and a binding.
    async fn mutating(&self, name: &str, spec: &Value) {
        let usual = json!({"matchConstraints": rules(&["CREATE"]), "reinvocationPolicy": "Never"});
        let policy = json!({"metadata": {"name": name}, "spec": with(usual, spec)});
        self.made("mutatingadmissionpolicies", &policy).await;
        let binding = json!({"metadata": {"name": name}, "spec": {"policyName": name}});
        self.made("mutatingadmissionpolicybindings", &binding).await;
    }

    /// Code and message of a refused creation; the message is empty where it was not refused.
    async fn answer_to(&self, name: &str) -> (u16, String) {
        let (code, body, _) = self.create(name, "?dryRun=All").await;
        (code, body["message"].as_str().unwrap_or_default().to_owned())
    }
}

fn denied(why: &str) -> (u16, String) {
    let start =
        r#"configmaps "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "#;
    (422, format!("{start}{why}"))
}

#[tokio::test(start_paused = true)]
async fn the_message_is_the_expressions_or_the_plain_one_or_the_expression_itself() {
    for (validation, why) in [
        (json!({"expression": " object.data.k == 'w' "}), "failed expression: object.data.k == 'w'"),
        (json!({"expression": "false", "message": " plain "}), "plain"),
        (
            json!({"expression": "false", "message": "plain", "messageExpression": "' got ' + object.data.k"}),
            "got v",
        ),
        (
            json!({"expression": "false", "message": "plain", "messageExpression": "object.data.zz + ''"}),
            "plain",
        ),
        (json!({"expression": "false", "message": "plain", "messageExpression": "'two\\nlines'"}), "plain"),
        (
            json!({"expression": "object.zz == 1"}),
            "expression 'object.zz == 1' resulted in error: no such key: zz",
        ),
    ] {
        let cluster = Cluster::start().await;
        cluster.validating(&json!({"validations": [validation]}), &json!({})).await;
        assert_eq!(cluster.answer_to("x").await, denied(why));
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_may_fail_still_denies_what_it_can_judge() {
    let cluster = Cluster::start().await;
    let validations =
        json!([{"expression": "object.zz == 1"}, {"expression": "object.data.k == 'w'", "message": "m"}]);
    cluster.validating(&json!({"failurePolicy": "Ignore", "validations": validations}), &json!({})).await;
    assert_eq!(cluster.answer_to("x").await, denied("m"));
}

#[tokio::test(start_paused = true)]
async fn a_binding_that_only_warns_lets_pass() {
    let cluster = Cluster::start().await;
    let binding = json!({"validationActions": ["Warn", "Audit"]});
    cluster.validating(&json!({"validations": [{"expression": "false", "message": "m"}]}), &binding).await;
    let (code, _, warnings) = cluster.create("x", "").await;
    let warning = "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': m\"";
    assert_eq!((code, warnings.as_slice()), (201, [warning.to_owned()].as_slice()));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_without_a_binding() {
    let cluster = Cluster::start().await;
    let spec = json!({"matchConstraints": rules(&["CREATE"]), "validations": [{"expression": "false"}]});
    cluster.made("validatingadmissionpolicies", &json!({"metadata": {"name": "p"}, "spec": spec})).await;
    assert_eq!(cluster.answer_to("x").await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn variables_build_on_one_another_and_only_fail_when_they_are_used() {
    let cluster = Cluster::start().await;
    let spec = json!({
        "variables": [
            {"name": "unused", "expression": "object.zz"}, {"name": "a", "expression": "object.data.k"},
            {"name": "b", "expression": "variables.a + '!'"}
        ],
        "validations": [{"expression": "variables.b == 'x'", "messageExpression": "'b is ' + variables.b"}]
    });
    cluster.validating(&spec, &json!({})).await;
    assert_eq!(cluster.answer_to("x").await, denied("b is v!"));
}

#[tokio::test(start_paused = true)]
async fn match_conditions_leave_requests_out() {
    let cluster = Cluster::start().await;
    let condition = json!([{"name": "c", "expression": "object.metadata.name == 'x'"}]);
    cluster
        .validating(
            &json!({"matchConditions": condition, "validations": [{"expression": "false"}]}),
            &json!({}),
        )
        .await;
    assert_eq!((cluster.answer_to("x").await.0, cluster.answer_to("y").await.0), (422, 201));
}

#[tokio::test(start_paused = true)]
async fn deletions_are_judged_by_what_goes() {
    let cluster = Cluster::start().await;
    cluster.create("x", "").await;
    let keep =
        json!({"expression": "object != null", "messageExpression": "'deleting ' + oldObject.metadata.name"});
    cluster.validating(&json!({"validations": [keep]}), &json!({})).await;
    let (_, one, _) = cluster.send(Method::DELETE, &format!("{MAPS}/x"), &Value::Null).await;
    assert_eq!(one["message"], denied("deleting x").1);
    let (_, all, _) = cluster.send(Method::DELETE, MAPS, &Value::Null).await;
    assert!(
        all["message"]
            .as_str()
            .is_some_and(|told| told.starts_with(r#"configmaps "Unknown" is forbidden: "#))
    );
}

#[tokio::test(start_paused = true)]
async fn every_parameter_that_a_binding_selects_is_applied() {
    let cluster = Cluster::start().await;
    for (name, most) in [("p1", "3"), ("p2", "1")] {
        let object = json!({"metadata": {"name": name, "labels": {"limits": "yes"}}, "data": {"max": most}});
        cluster.send(Method::POST, MAPS, &object).await;
    }
    let spec = json!({
        "matchConstraints": rules(&["CREATE"]),
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{
            "expression": "object.data.size() < int(params.data.max)",
            "messageExpression": "'max ' + params.data.max + ' of ' + params.metadata.name"
        }]
    });
    let selected = json!({"selector": {"matchLabels": {"limits": "yes"}}, "parameterNotFoundAction": "Deny"});
    cluster.validating(&spec, &json!({"paramRef": selected})).await;
    assert_eq!(cluster.answer_to("x").await, denied("max 1 of p2"));
    cluster
        .send(Method::PATCH, &format!("{MAPS}/p1"), &json!({"metadata": {"labels": {"limits": "no"}}}))
        .await;
    cluster
        .send(Method::PATCH, &format!("{MAPS}/p2"), &json!({"metadata": {"labels": {"limits": "no"}}}))
        .await;
    let why =
        "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
    assert_eq!(cluster.answer_to("x").await, denied(why));
}

#[tokio::test(start_paused = true)]
async fn what_costs_too_much_denies() {
    let cluster = Cluster::start().await;
    let ten = "[1,2,3,4,5,6,7,8,9,10]";
    let deep = ["a", "b", "c", "d", "e", "f"]
        .iter()
        .rev()
        .fold("a + b + c + d + e + f > 0".to_owned(), |inner, name| format!("{ten}.all({name}, {inner})"));
    cluster.validating(&json!({"validations": [{"expression": deep}]}), &json!({})).await;
    let (code, told) = cluster.answer_to("x").await;
    assert_eq!(code, 422);
    assert!(told.ends_with("resulted in error: operation cancelled: actual cost limit exceeded"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn the_status_tells_of_types_that_do_not_fit() {
    let cluster = Cluster::start().await;
    let spec =
        json!({"validations": [{"expression": "object.foo == 1"}, {"expression": "has(object.data)"}]});
    cluster.validating(&spec, &json!({})).await;
    let (_, policy, _) = cluster.send(Method::GET, &format!("{POLICIES}/p"), &Value::Null).await;
    let warning =
        "/v1, Kind=ConfigMap: ERROR: <input>:1:7: undefined field 'foo'\n | object.foo == 1\n | ......^\n";
    assert_eq!(
        policy["status"],
        json!({"observedGeneration": 1, "typeChecking": {"expressionWarnings": [
            {"fieldRef": "spec.validations[0].expression", "warning": warning}
        ]}})
    );
}

#[tokio::test(start_paused = true)]
async fn expressions_that_do_not_compile_are_refused() {
    let cluster = Cluster::start().await;
    let spec = json!({
        "matchConstraints": rules(&["CREATE"]),
        "matchConditions": [{"name": "c", "expression": "1"}],
        "validations": [{"expression": "'x'"}, {"expression": "objekt.x"}]
    });
    let (code, refused, _) =
        cluster.send(Method::POST, POLICIES, &json!({"metadata": {"name": "p"}, "spec": spec})).await;
    let told: Vec<_> = refused["details"]["causes"].as_array().expect("causes").iter().collect();
    let cause = |field: &str, message: &str| json!({"reason": "FieldValueInvalid", "field": field, "message": message});
    assert_eq!(code, 422);
    assert_eq!(
        told,
        [
            &cause(
                "spec.matchConditions[0].expression",
                r#"Invalid value: "1": must evaluate to bool but got int"#
            ),
            &cause(
                "spec.validations[0].expression",
                r#"Invalid value: "'x'": must evaluate to bool but got string"#
            ),
            &cause(
                "spec.validations[1].expression",
                "Invalid value: \"objekt.x\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'objekt' (in container '')\n | objekt.x\n | ^"
            ),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn json_patches_of_a_policy_are_applied_in_order_and_a_failed_test_changes_nothing() {
    let cluster = Cluster::start().await;
    let mutation =
        |expression: &str| json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}});
    let mutations = json!([
        mutation(r#"[JSONPatch{op: "add", path: "/data/new", value: object.data.k + "1"}]"#),
        mutation(r#"[JSONPatch{op: "replace", path: "/data/new", value: object.data.new + "2"}]"#),
        mutation(
            r#"[JSONPatch{op: "add", path: "/data/no", value: "x"}, JSONPatch{op: "test", path: "/data/k", value: ""}]"#
        ),
    ]);
    cluster.mutating("p", &json!({"mutations": mutations})).await;
    let (code, made, _) = cluster.create("x", "").await;
    assert_eq!((code, &made["data"]), (201, &json!({"k": "v", "new": "v12"})), "{made}");
}

/// Who creates by a write to the status writes to the status (`k8s.io/apiserver/pkg/endpoints/handlers/update.go`).
#[tokio::test(start_paused = true)]
async fn a_policy_about_an_object_is_not_asked_when_its_status_creates_it() {
    let cluster = Cluster::start().await;
    let rules = json!({"resourceRules": [{
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["services"]
    }]});
    let spec = json!({"matchConstraints": rules, "validations": [{"expression": "false"}]});
    cluster.validating(&spec, &json!({})).await;
    let services = "/api/v1/namespaces/default/services";
    let service = |name: &str| json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}});
    assert_eq!(cluster.send(Method::PUT, &format!("{services}/a"), &service("a")).await.0, 422);
    assert_eq!(cluster.send(Method::PUT, &format!("{services}/a/status"), &service("a")).await.0, 201);
}

/// A new generation is what else a list without entries would make (`reflect.DeepEqual` of a NetworkPolicy's specs).
#[tokio::test(start_paused = true)]
async fn what_a_policy_was_asked_of_has_no_lists_without_entries_though_nothing_changes() {
    const NETWORK: &str = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies";
    let cluster = Cluster::start().await;
    let rules = json!({"resourceRules": [{
        "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["networkpolicies"]
    }]});
    let expression = r#"Object{metadata: Object.metadata{labels: {"a": "b"}}}"#;
    let mutation =
        json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}});
    let object = json!({"metadata": {"name": "n", "labels": {"a": "b"}}, "spec": {"podSelector": {}}});
    let empty = json!({"spec": {"podSelector": {"matchExpressions": []}}});
    let path = format!("{NETWORK}/n");
    cluster.send(Method::POST, NETWORK, &object).await;
    let (_, patched, _) = cluster.send(Method::PATCH, &path, &empty).await;
    assert_eq!(patched["metadata"]["generation"], 2);
    cluster.mutating("p", &json!({"matchConstraints": rules, "mutations": [mutation]})).await;
    let (code, patched, _) = cluster.send(Method::PATCH, &path, &empty).await;
    assert_eq!((code, &patched["metadata"]["generation"]), (200, &json!(2)));
}

#[tokio::test(start_paused = true)]
async fn a_mutation_that_fails_refuses_unless_it_may() {
    for (failure_policy, outcome) in [("Fail", 403), ("Ignore", 201)] {
        let cluster = Cluster::start().await;
        let expression = r#"[JSONPatch{op: "add", path: "/data/x", value: object.zz}]"#;
        let mutations = json!([{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}]);
        cluster.mutating("p", &json!({"failurePolicy": failure_policy, "mutations": mutations})).await;
        let (code, body, _) = cluster.create("x", "").await;
        assert_eq!(code, outcome, "{body}");
        if code == 403 {
            let why = format!(
                "policy 'p' with binding 'p' denied request: expression '{expression}' resulted in error: no such key: zz"
            );
            assert_eq!((&body["message"], &body["reason"]), (&json!(why), &json!("Invalid")));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_wants_to_is_asked_again_after_a_webhook() {
    let cluster = Cluster::start().await;
    let count = r#"[JSONPatch{op: "add", path: "/data/seen", value: string(object.data.size())}]"#;
    let mutations = json!([{"patchType": "JSONPatch", "jsonPatch": {"expression": count}}]);
    cluster.mutating("p", &json!({"reinvocationPolicy": "IfNeeded", "mutations": mutations})).await;
    let add = json!([{"op": "add", "path": "/data/hook", "value": "x"}]);
    cluster.hook(true, "a", json!({}), move |_| at_once(patch(&add))).await;
    let (_, made, _) = cluster.create("x", "").await;
    assert_eq!(made["data"], json!({"hook": "x", "k": "v", "seen": "3"}));
}

#[tokio::test(start_paused = true)]
async fn webhooks_have_match_conditions_too() {
    let cluster = Cluster::start().await;
    let only_x = json!({"matchConditions": [{"name": "c", "expression": "object.metadata.name == 'x'"}]});
    cluster.hook(false, "a", only_x, |_| at_once(json!({"allowed": false}))).await;
    assert_eq!((cluster.answer_to("x").await.0, cluster.answer_to("y").await.0), (400, 201));
    let failing = json!({"matchConditions": [{"name": "c", "expression": "object.zz == 1"}]});
    cluster.hook(false, "b", failing, |_| at_once(json!({}))).await;
    let why =
        r#"configmaps "y" is forbidden: expression 'object.zz == 1' resulted in error: no such key: zz"#;
    assert_eq!(cluster.answer_to("y").await, (403, why.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn who_writes_a_policy_must_be_able_to_read_its_parameters() {
    let cluster = Cluster::start().await;
    let role = json!({
        "metadata": {"name": "author"},
        "rules": [{"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["create"]}]
    });
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    cluster.send(Method::POST, &format!("{rbac}/clusterroles"), &role).await;
    let binding = json!({
        "metadata": {"name": "author"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "author"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]
    });
    cluster.send(Method::POST, &format!("{rbac}/clusterrolebindings"), &binding).await;
    let alice = cluster.as_user("alice");
    let policy = |kind: &Value| {
        let spec = json!({"matchConstraints": rules(&["CREATE"]), "validations": [{"expression": "true"}]});
        json!({"metadata": {"name": "p"}, "spec": with(spec, kind)})
    };
    let params = json!({"paramKind": {"apiVersion": "v1", "kind": "Secret"}});
    let (code, refused, _) = alice.send(Method::POST, POLICIES, &policy(&params)).await;
    let why = "Forbidden: user &{alice  [system:authenticated] map[]} must have \"get\" permission on all objects of the referenced paramKind (kind=Secret, apiVersion=v1)";
    assert_eq!((code, &refused["details"]["causes"][0]["message"]), (422, &json!(why)), "{refused}");
    assert_eq!(alice.send(Method::POST, POLICIES, &policy(&json!({}))).await.0, 201);
}
