//! What is stored was checked: each check sees the object as webhooks and policies have left it.

use std::sync::Arc;

use http::Method;
use kubewright_engine::Settings;
use kubewright_engine::admission::Plugins;
use serde_json::{Value, json};

use super::support::{Cluster, Hook, at_once, patch};
use crate::support::CERTIFICATE_REQUEST;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const CORE: &str = "/api/v1/namespaces/default";

/// A cluster, and `dev` in it: who may write what these tests write, and neither `escalate` nor `bind`.
async fn cluster_of_dev() -> (Cluster, Cluster) {
    let plugins = Plugins::default().enable("OwnerReferencesPermissionEnforcement").expect("a known plugin");
    let admin = Cluster::with(Settings { admission: plugins, ..Settings::default() }).await;
    let resources = ["roles", "rolebindings", "clusterroles", "pods", "configmaps", "services"];
    let rules = json!([
        {"apiGroups": ["*"], "resources": resources, "verbs": ["create", "update", "patch", "get", "delete"]},
        {"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"], "verbs": ["create"]}
    ]);
    let role = json!({"metadata": {"name": "dev"}, "rules": rules});
    let binding = json!({"metadata": {"name": "dev"}, "subjects": [{"kind": "User", "name": "dev"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "dev"}});
    let account = json!({"metadata": {"name": "default"}});
    for (path, object) in [
        (format!("{RBAC}/clusterroles"), role),
        (format!("{RBAC}/clusterrolebindings"), binding),
        (format!("{CORE}/serviceaccounts"), account),
    ] {
        let (code, body, _) = admin.send(Method::POST, &path, &object).await;
        assert_eq!(code, 201, "{body}");
    }
    let dev = admin.as_user("dev");
    (admin, dev)
}

/// Everything, as a rule.
fn everything() -> Value {
    json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
}

fn rules_of(group: &str, resource: &str) -> Value {
    json!([{"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": [resource]}])
}

/// A mutating webhook that does this to every object of a resource, as late as it can: when it is asked again, because another
/// one has changed the object.
async fn webhook(cluster: &Cluster, name: &str, group: &str, resource: &str, operations: Value) -> Arc<Hook> {
    let members = json!({"rules": rules_of(group, resource), "reinvocationPolicy": "IfNeeded"});
    let hook = cluster.hook(true, name, members, move |request| {
        let is_last = request["object"]["metadata"]["annotations"]["touched"] == "yes";
        at_once(if is_last { patch(&operations) } else { json!({}) })
    });
    let hook = hook.await;
    let touch = json!([{"op": "add", "path": "/metadata/annotations", "value": {"touched": "yes"}}]);
    let members = json!({"rules": rules_of(group, resource)});
    cluster.hook(true, &format!("{name}-z"), members, move |_| at_once(patch(&touch))).await;
    hook
}

/// The webhook is no more.
async fn remove(cluster: &Cluster, name: &str) {
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
    for name in [name, &format!("{name}-z")] {
        assert_eq!(cluster.send(Method::DELETE, &format!("{path}/{name}"), &Value::Null).await.0, 200);
    }
}

/// A mutating policy that does this to every object of a resource, as late as it can.
async fn policy(cluster: &Cluster, name: &str, group: &str, resource: &str, operation: &str) {
    let late = format!("has(object.metadata.annotations) ? [{operation}] : []");
    let touch =
        r#"[JSONPatch{op: "add", path: "/metadata/annotations", value: {"touched": "yes"}}]"#.to_owned();
    for (name, again, expression) in
        [(name.to_owned(), "IfNeeded", late), (format!("{name}-z"), "Never", touch)]
    {
        let spec = json!({
            "matchConstraints": {"resourceRules": rules_of(group, resource)}, "reinvocationPolicy": again,
            "failurePolicy": "Fail",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}]
        });
        cluster.made("mutatingadmissionpolicies", &json!({"metadata": {"name": name}, "spec": spec})).await;
        let binding = json!({"metadata": {"name": name}, "spec": {"policyName": name}});
        cluster.made("mutatingadmissionpolicybindings", &binding).await;
    }
}

#[track_caller]
fn assert_refused(answer: &(u16, Value, Vec<String>), code: u16, why: &str) {
    let (given, body, _) = answer;
    let message = body["message"].as_str().unwrap_or_default();
    assert_eq!((*given, message.contains(why)), (code, true), "{body}");
}

/// Every way in which `dev` can write the role `r` is refused, and the role stays as it is.
async fn assert_no_way_to_escalate(admin: &Cluster, dev: &Cluster) {
    const WHY: &str = "is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}";
    let roles = format!("{RBAC}/namespaces/default/roles");
    let modest = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let role = |name: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name},
            "rules": modest})
    };
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let mut relabelled = role("r");
    relabelled["metadata"]["labels"] = json!({"c": "d"});
    let (code, before, _) = admin.send(Method::GET, &format!("{roles}/r"), &Value::Null).await;
    assert_eq!((code, &before["rules"]), (200, &modest));

    assert_refused(&dev.send(Method::POST, &roles, &role("new")).await, 403, WHY);
    assert_refused(&dev.send(Method::PUT, &format!("{roles}/new"), &role("new")).await, 403, WHY);
    assert_refused(&dev.apply(&format!("{roles}/new"), &role("new")).await, 403, WHY);
    assert_refused(&dev.send(Method::PUT, &format!("{roles}/r"), &relabelled).await, 403, WHY);
    assert_refused(&dev.send(Method::PATCH, &format!("{roles}/r"), &label).await, 403, WHY);
    assert_refused(&dev.apply(&format!("{roles}/r"), &relabelled).await, 403, WHY);

    let after = admin.send(Method::GET, &format!("{roles}/r"), &Value::Null).await.1;
    assert_eq!(after, before, "nothing is stored");
    assert_eq!(admin.send(Method::GET, &format!("{roles}/new"), &Value::Null).await.0, 404);
}

async fn modest_role(admin: &Cluster) {
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let role = json!({"metadata": {"name": "r"}, "rules": rules});
    let roles = format!("{RBAC}/namespaces/default/roles");
    assert_eq!(admin.send(Method::POST, &roles, &role).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_gives_nobody_a_right_that_they_may_not_grant() {
    let (admin, dev) = cluster_of_dev().await;
    modest_role(&admin).await;
    let give = json!([{"op": "replace", "path": "/rules", "value": everything()}]);
    webhook(&admin, "giver", "rbac.authorization.k8s.io", "roles", give).await;
    assert_no_way_to_escalate(&admin, &dev).await;
    // Who may grant everything, may have it granted.
    let role = json!({"metadata": {"name": "of-admin"}, "rules": []});
    let made = admin.send(Method::POST, &format!("{RBAC}/namespaces/default/roles"), &role).await;
    assert_eq!((made.0, &made.1["rules"]), (201, &everything()));
}

#[tokio::test(start_paused = true)]
async fn a_policy_gives_nobody_a_right_that_they_may_not_grant() {
    let (admin, dev) = cluster_of_dev().await;
    modest_role(&admin).await;
    let give = r#"JSONPatch{op: "replace", path: "/rules", value: [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}"#;
    policy(&admin, "giver", "rbac.authorization.k8s.io", "roles", give).await;
    assert_no_way_to_escalate(&admin, &dev).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_webhook_takes_away_need_not_be_held() {
    let (admin, dev) = cluster_of_dev().await;
    let take = json!([{"op": "replace", "path": "/rules", "value": []}]);
    webhook(&admin, "taker", "rbac.authorization.k8s.io", "roles", take).await;
    let role = json!({"metadata": {"name": "r"}, "rules": everything()});
    let (code, made, _) = dev.send(Method::POST, &format!("{RBAC}/namespaces/default/roles"), &role).await;
    assert_eq!((code, &made["rules"]), (201, &Value::Null), "{made}");
}

#[tokio::test(start_paused = true)]
async fn a_binding_is_asked_about_with_the_role_that_a_webhook_has_put_into_it() {
    let (admin, dev) = cluster_of_dev().await;
    modest_role(&admin).await;
    let lead = json!([{"op": "replace", "path": "/roleRef/kind", "value": "ClusterRole"},
        {"op": "replace", "path": "/roleRef/name", "value": "cluster-admin"}]);
    webhook(&admin, "leader", "rbac.authorization.k8s.io", "rolebindings", lead).await;
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "b"}, "subjects": [{"kind": "User", "name": "dev"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}});
    let why = "is attempting to grant RBAC permissions not currently held";
    assert_refused(&dev.send(Method::POST, &bindings, &binding).await, 403, why);
    assert_refused(&dev.apply(&format!("{bindings}/b"), &binding).await, 403, why);
    assert_eq!(admin.send(Method::GET, &format!("{bindings}/b"), &Value::Null).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn no_webhook_makes_a_role_aggregate_for_who_is_no_admin() {
    let (admin, dev) = cluster_of_dev().await;
    let aggregate = json!([{"op": "add", "path": "/aggregationRule",
        "value": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}]);
    webhook(&admin, "aggregator", "rbac.authorization.k8s.io", "clusterroles", aggregate).await;
    let role = json!({"metadata": {"name": "c"}, "rules": []});
    let refused = dev.send(Method::POST, &format!("{RBAC}/clusterroles"), &role).await;
    assert_refused(&refused, 403, "must have cluster-admin privileges to use aggregationRule");
    assert_eq!(admin.send(Method::GET, &format!("{RBAC}/clusterroles/c"), &Value::Null).await.0, 404);
}

/// The controllers sign for whom a request names, so that only the server may say who that is.
#[tokio::test(start_paused = true)]
async fn who_asks_for_a_certificate_is_said_by_the_server_alone() {
    let (admin, dev) = cluster_of_dev().await;
    let forge = json!([{"op": "add", "path": "/spec/username", "value": "system:node:n"},
        {"op": "add", "path": "/spec/groups", "value": ["system:masters"]}]);
    let hook = webhook(&admin, "forger", "certificates.k8s.io", "certificatesigningrequests", forge).await;
    let request = json!({"metadata": {"name": "c"}, "spec": {"signerName": "example.com/s",
        "usages": ["client auth"], "username": "system:admin", "request": CERTIFICATE_REQUEST}});
    let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let (code, made, _) = dev.send(Method::POST, path, &request).await;
    assert_eq!(code, 201, "{made}");
    assert_eq!(
        (&made["spec"]["username"], &made["spec"]["groups"]),
        (&json!("dev"), &json!(["system:authenticated"]))
    );
    // The webhook sees what the client has sent.
    assert_eq!(hook.seen.lock()[0]["object"]["spec"]["username"], "system:admin");
}

/// A webhook does this to a new object of `dev`, and a check that comes later says why not.
async fn assert_checked(
    admin: &Cluster,
    dev: &Cluster,
    resource: &str,
    object: &Value,
    operations: Value,
    (code, why): (u16, &str),
) {
    let name = format!("h{}", operations.to_string().len());
    webhook(admin, &name, "", resource, operations).await;
    let answer = dev.send(Method::POST, &format!("{CORE}/{resource}"), object).await;
    assert_refused(&answer, code, why);
    let at = format!("{CORE}/{resource}/{}", object["metadata"]["name"].as_str().unwrap_or_default());
    assert_eq!(admin.send(Method::GET, &at, &Value::Null).await.0, 404, "{why}");
    remove(admin, &name).await;
}

fn pod() -> Value {
    let secure = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
    let container = json!({"name": "c", "image": "i", "securityContext": secure,
        "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "100m"}}});
    json!({"metadata": {"name": "p"}, "spec": {"containers": [container]}})
}

#[tokio::test(start_paused = true)]
async fn each_check_of_a_pod_sees_what_a_webhook_has_made_of_it() {
    let (admin, dev) = cluster_of_dev().await;
    let label = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    assert_eq!(admin.send(Method::PATCH, "/api/v1/namespaces/default", &label).await.0, 200);
    let range =
        json!({"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}});
    assert_eq!(admin.send(Method::POST, &format!("{CORE}/limitranges"), &range).await.0, 201);
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "500m"}}});
    assert_eq!(admin.send(Method::POST, &format!("{CORE}/resourcequotas"), &quota).await.0, 201);
    let status = json!({"status": {"hard": {"requests.cpu": "500m"}, "used": {"requests.cpu": "0"}}});
    let at = format!("{CORE}/resourcequotas/q/status");
    assert_eq!(admin.send(Method::PATCH, &at, &status).await.0, 200);

    let at = |path: &str, value: Value| json!([{"op": "add", "path": path, "value": value}]);
    let cpu = |amount: &str| {
        at("/spec/containers/0/resources", json!({"requests": {"cpu": amount}, "limits": {"cpu": amount}}))
    };
    let owner =
        json!([{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "blockOwnerDeletion": true}]);
    for (operations, expected) in [
        (at("/spec/hostNetwork", json!(true)), (403, "violates PodSecurity \"restricted:latest\"")),
        (cpu("2"), (403, "maximum cpu usage per Container is 1, but limit is 2")),
        (
            cpu("600m"),
            (
                403,
                "exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=0, limited: requests.cpu=500m",
            ),
        ),
        (at("/spec/serviceAccountName", json!("other")), (403, "serviceaccount \"other\" not found")),
        (at("/metadata/ownerReferences", owner), (403, "refers to a resource you can't set finalizers on")),
        (
            at("/metadata/namespace", json!("kube-system")),
            (400, "does not match the namespace sent on the request"),
        ),
        (at("/metadata/name", json!("P")), (422, "metadata.name: Invalid value")),
        (at("/metadata/finalizers", json!(["bare"])), (422, "metadata.finalizers")),
        (
            at("/metadata/resourceVersion", json!("1")),
            (500, "resourceVersion should not be set on objects to be created"),
        ),
        (
            at("/spec/containers/0/image", json!(7)),
            (
                500,
                "cannot unmarshal number into Go struct field Container.spec.containers.image of type string",
            ),
        ),
        (at("/spec/restartPolicy", json!("Sometimes")), (422, "spec.restartPolicy: Unsupported value")),
    ] {
        assert_checked(&admin, &dev, "pods", &pod(), operations, expected).await;
    }
    assert_eq!(dev.send(Method::POST, &format!("{CORE}/pods"), &pod()).await.0, 201, "nothing else is wrong");
}

#[tokio::test(start_paused = true)]
async fn a_webhook_does_not_make_one_object_another_one() {
    let (admin, dev) = cluster_of_dev().await;
    let map = json!({"metadata": {"name": "m"}, "data": {"k": "v"}});
    assert_eq!(admin.send(Method::POST, &format!("{CORE}/configmaps"), &map).await.0, 201);
    let before = admin.send(Method::GET, &format!("{CORE}/configmaps/m"), &Value::Null).await.1;
    for (field, value) in [("name", "other"), ("namespace", "kube-system"), ("uid", "u")] {
        let change = json!([{"op": "replace", "path": format!("/metadata/{field}"), "value": value}]);
        webhook(&admin, field, "", "configmaps", change).await;
        let patch = json!({"data": {"k": "w"}});
        let (code, body, _) = dev.send(Method::PATCH, &format!("{CORE}/configmaps/m"), &patch).await;
        assert!(matches!(code, 400 | 422), "{field}: {body}");
        remove(&admin, field).await;
    }
    let after = admin.send(Method::GET, &format!("{CORE}/configmaps/m"), &Value::Null).await.1;
    assert_eq!(after, before);
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_not_made_with_other_options_than_were_admitted() {
    let admin = Cluster::start().await;
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": ["pods/exec"]}]);
    let change = json!([{"op": "replace", "path": "/command", "value": ["true"]}]);
    admin.hook(true, "a", json!({"rules": rules}), move |_| at_once(patch(&change))).await;
    let refused = admin.send(Method::POST, &format!("{CORE}/pods/p/exec?command=rm"), &Value::Null).await;
    assert_refused(&refused, 500, "the options of the connection were changed by admission");
}

#[tokio::test(start_paused = true)]
async fn the_body_of_a_subresource_is_still_one_when_a_webhook_has_changed_it() {
    let (admin, _) = cluster_of_dev().await;
    assert_eq!(admin.send(Method::POST, &format!("{CORE}/pods"), &pod()).await.0, 201);
    let change = json!([{"op": "replace", "path": "/target/name", "value": 7}]);
    webhook(&admin, "a", "", "pods/binding", change).await;
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    let refused = admin.send(Method::POST, &format!("{CORE}/pods/p/binding"), &binding).await;
    assert_refused(&refused, 500, "cannot unmarshal number");
    let pod = admin.send(Method::GET, &format!("{CORE}/pods/p"), &Value::Null).await.1;
    assert_eq!(pod["spec"].get("nodeName"), None);
}

#[tokio::test(start_paused = true)]
async fn what_a_webhook_breaks_of_metadata_is_made_good_and_told() {
    let cluster = Cluster::start().await;
    let owner = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": "u"});
    let operations = json!([
        {"op": "add", "path": "/metadata/managedFields",
            "value": [{"manager": "x", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {}}]},
        {"op": "add", "path": "/metadata/ownerReferences", "value": [owner("a"), owner("a"), owner("b")]}
    ]);
    cluster.hook(true, "breaker", json!({}), move |_| at_once(patch(&operations))).await;
    let (code, made, warnings) = cluster.create("m", "").await;
    assert_eq!(code, 201, "{made}");
    let metadata = &made["metadata"];
    assert_eq!(metadata["managedFields"][0]["manager"], "unknown", "{metadata}");
    assert_eq!(metadata["ownerReferences"], json!([owner("a"), owner("b")]), "these are not the same");
    let told = |part: &str| warnings.iter().any(|warning| warning.contains(part));
    assert!(told("managedFields was in an invalid state after admission; "), "{warnings:?}");
    assert!(told("apiVersion must not be empty"), "{warnings:?}");
    assert!(
        told("ownerReferences contains duplicate entries after mutating admission happens; "),
        "{warnings:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn who_validates_a_request_for_a_token_sees_what_is_granted() {
    let (admin, _) = cluster_of_dev().await;
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["serviceaccounts/token"]}]);
    let hook = admin.hook(false, "a", json!({"rules": rules}), |_| at_once(json!({}))).await;
    let path = format!("{CORE}/serviceaccounts/default/token");
    let (code, issued, _) = admin.send(Method::POST, &path, &json!({"spec": {}})).await;
    assert_eq!(code, 201, "{issued}");
    let seen = hook.seen.lock().remove(0);
    assert_eq!(seen["object"]["spec"], issued["spec"]);
    assert_eq!(seen["object"]["metadata"]["name"], "default");
    assert_eq!(seen["object"]["status"], json!({"token": "", "expirationTimestamp": null}));
}
