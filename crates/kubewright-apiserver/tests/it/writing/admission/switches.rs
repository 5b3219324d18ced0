//! Plugins that are switched on and off.

use kubewright_engine::Settings;
use kubewright_engine::admission::{Plugin, Plugins};
use kubewright_identity::authn::User;
use serde_json::{Value, json};

use super::{NAMESPACE, PODS, QUOTAS, pod};
use crate::support::Api;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";

async fn started(plugins: Plugins) -> Api {
    Api::start_with(Settings { admission: plugins, ..Settings::default() }).await
}

async fn without(name: &str) -> Api {
    started(Plugins::default().disable(name).expect("a plugin")).await
}

async fn with(name: &str) -> Api {
    started(Plugins::default().enable(name).expect("a plugin")).await
}

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

#[tokio::test(start_paused = true)]
async fn a_cluster_starts_and_takes_objects_with_each_plugin_switched_the_other_way() {
    for plugin in Plugin::ALL {
        let api = match plugin.is_default() {
            true => without(plugin.name()).await,
            false => with(plugin.name()).await,
        };
        let made = api.post(&format!("{NAMESPACE}/configmaps"), map("a")).await;
        let expected = if plugin == Plugin::AlwaysDeny { 403 } else { 201 };
        assert_eq!(made.code, expected, "{plugin}: {}", made.body);
    }
}

#[tokio::test(start_paused = true)]
async fn without_service_accounts_a_pod_is_taken_as_it_is() {
    let api = without("ServiceAccount").await;
    let made = api.post(PODS, pod("a", &json!({}))).await.expect(201);
    for field in ["serviceAccountName", "serviceAccount", "volumes"] {
        assert_eq!(made["spec"].get(field), None, "{field}");
    }
    assert_eq!(made["spec"]["containers"][0].get("volumeMounts"), None);
    let mut named = pod("b", &json!({}));
    named["spec"]["serviceAccountName"] = "nobody".into();
    let made = api.post(PODS, named).await.expect(201);
    assert_eq!(
        (&made["spec"]["serviceAccountName"], &made["spec"]["serviceAccount"]),
        (&json!("nobody"), &json!("nobody"))
    );
}

#[tokio::test(start_paused = true)]
async fn without_priority_tolerations_and_limits_a_pod_gets_none() {
    let plugins = ["ServiceAccount", "Priority", "DefaultTolerationSeconds", "LimitRanger"]
        .into_iter()
        .try_fold(Plugins::default(), Plugins::disable);
    let api = started(plugins.expect("plugins")).await;
    let range = json!({"metadata": {"name": "r"}, "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "2"}}]}});
    api.post(&format!("{NAMESPACE}/limitranges"), range).await.expect(201);
    let made = api.post(PODS, pod("a", &json!({"limits": {"cpu": "3"}}))).await.expect(201);
    assert_eq!((made["spec"].get("priority"), made["spec"].get("tolerations")), (None, None));
}

#[tokio::test(start_paused = true)]
async fn without_quotas_nothing_is_charged() {
    let api = without("ResourceQuota").await;
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/configmaps": "0"}}});
    api.post(QUOTAS, quota).await.expect(201);
    api.post(&format!("{NAMESPACE}/configmaps"), map("a")).await.expect(201);
}

#[tokio::test(start_paused = true)]
async fn without_the_lifecycle_of_namespaces_objects_stand_in_none_and_none_is_immortal() {
    let api = without("NamespaceLifecycle").await;
    api.post("/api/v1/namespaces/nowhere/configmaps", map("a")).await.expect(201);
    api.delete("/api/v1/namespaces/default").await.expect(200);
    let api = started(
        Plugins::default()
            .disable("NamespaceLifecycle")
            .and_then(|plugins| plugins.enable("NamespaceExists"))
            .expect("plugins"),
    )
    .await;
    assert_eq!(
        api.post("/api/v1/namespaces/nowhere/configmaps", map("a")).await.refused(404, "NotFound"),
        "namespaces \"nowhere\" not found"
    );
}

#[tokio::test(start_paused = true)]
async fn a_missing_namespace_is_provisioned_but_not_by_a_dry_run() {
    let api = with("NamespaceAutoProvision").await;
    let place = "/api/v1/namespaces/new/configmaps";
    api.post(&format!("{place}?dryRun=All"), map("a")).await.refused(404, "NotFound");
    api.post(place, map("a")).await.expect(201);
    let namespace = api.get("/api/v1/namespaces/new").await.expect(200);
    assert_eq!(namespace["status"]["phase"], "Active");
}

#[tokio::test(start_paused = true)]
async fn webhooks_and_policies_are_asked_only_where_their_plugins_are_on() {
    let policy = json!({"metadata": {"name": "p"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["*"], "operations": ["*"], "resources": ["configmaps"]}]},
        "validations": [{"expression": "false", "message": "never"}]}});
    let binding =
        json!({"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    let hook = |name: &str| {
        json!({"metadata": {"name": name}, "webhooks": [{
        "name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail", "timeoutSeconds": 1,
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}]}]})
    };
    const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
    for (plugin, objects) in [
        (
            "ValidatingAdmissionPolicy",
            vec![("validatingadmissionpolicies", policy), ("validatingadmissionpolicybindings", binding)],
        ),
        ("MutatingAdmissionWebhook", vec![("mutatingwebhookconfigurations", hook("m"))]),
        ("ValidatingAdmissionWebhook", vec![("validatingwebhookconfigurations", hook("v"))]),
    ] {
        for (api, code) in [(Api::start().await, None), (without(plugin).await, Some(201))] {
            for (plural, object) in &objects {
                api.post(&format!("{GROUP}/{plural}"), object.clone()).await.expect(201);
            }
            let made = api.post(&format!("{NAMESPACE}/configmaps"), map("a")).await;
            match code {
                Some(code) => assert_eq!(made.code, code, "{plugin}: {}", made.body),
                None => assert!(made.code.as_u16() >= 400, "{plugin}: {}", made.body),
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn images_are_always_pulled() {
    let plugins = Plugins::default()
        .enable("AlwaysPullImages")
        .and_then(|plugins| plugins.disable("ServiceAccount"))
        .expect("plugins");
    let api = started(plugins).await;
    let mut wanted = pod("a", &json!({}));
    wanted["spec"]["containers"][0]["imagePullPolicy"] = "Never".into();
    wanted["spec"]["volumes"] = json!([{"name": "v", "image": {"reference": "r", "pullPolicy": "Never"}}]);
    let made = api.post(PODS, wanted).await.expect(201);
    assert_eq!(made["spec"]["containers"][0]["imagePullPolicy"], "Always");
    assert_eq!(made["spec"]["volumes"][0]["image"]["pullPolicy"], "Always");
}

#[tokio::test(start_paused = true)]
async fn no_service_gets_a_new_external_address() {
    let api = with("DenyServiceExternalIPs").await;
    let services = format!("{NAMESPACE}/services");
    let service = |addresses: &[&str]| json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "externalIPs": addresses}});
    assert_eq!(
        api.post(&services, service(&["1.2.3.4"])).await.refused(403, "Forbidden"),
        "services \"s\" is forbidden: Use of external IPs is denied by admission control"
    );
    api.post(&services, service(&[])).await.expect(201);
}

#[tokio::test(start_paused = true)]
async fn a_pod_stands_the_taints_of_the_devices_that_it_asks_for() {
    let plugins = Plugins::only(["ExtendedResourceToleration"]).expect("a plugin");
    let api = started(plugins).await;
    let resources = json!({"requests": {"example.com/b": "1", "example.com/a": "1", "cpu": "1"}, "limits": {"example.com/b": "1", "example.com/a": "1"}});
    let made = api.post(PODS, pod("a", &resources)).await.expect(201);
    let toleration = |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoSchedule"});
    assert_eq!(
        made["spec"]["tolerations"],
        json!([toleration("example.com/a"), toleration("example.com/b")])
    );
}

#[tokio::test(start_paused = true)]
async fn a_hard_anti_affinity_is_by_node() {
    let api = started(Plugins::only(["LimitPodHardAntiAffinityTopology"]).expect("a plugin")).await;
    let with_key = |key: &str| {
        let mut pod = pod("a", &json!({}));
        pod["spec"]["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            [{"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": key}]}});
        pod
    };
    assert_eq!(
        api.post(PODS, with_key("zone")).await.refused(403, "Forbidden"),
        "pods \"a\" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key kubernetes.io/hostname is allowed"
    );
    api.post(PODS, with_key("kubernetes.io/hostname")).await.expect(201);
}

#[tokio::test(start_paused = true)]
async fn owners_are_set_by_those_who_may_delete_and_held_by_those_who_may_finalize() {
    let admin = with("OwnerReferencesPermissionEnforcement").await;
    let role = |verbs: &[&str], resources: &[&str]| json!({"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": resources, "verbs": verbs}]});
    admin
        .post(&format!("{RBAC}/roles"), role(&["get", "create", "patch"], &["configmaps"]))
        .await
        .expect(201);
    let binding = json!({"metadata": {"name": "r"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}]});
    admin.post(&format!("{RBAC}/rolebindings"), binding).await.expect(201);
    let jane = admin.as_user(User::new("jane", ["system:authenticated"]));
    let maps = format!("{NAMESPACE}/configmaps");
    let owner = |kind: &str, held: bool| json!({"apiVersion": "v1", "kind": kind, "name": "o", "uid": "u", "blockOwnerDeletion": held});
    let owned = |name: &str, owner: Value| json!({"metadata": {"name": name, "ownerReferences": [owner]}});

    jane.post(&maps, owned("a", owner("ConfigMap", false))).await.expect(201);
    assert_eq!(
        jane.post(&maps, owned("b", owner("ConfigMap", true))).await.refused(403, "Forbidden"),
        "configmaps \"b\" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"
    );
    assert_eq!(
        jane.post(&maps, owned("b", owner("Nothing", true))).await.refused(403, "Forbidden"),
        "configmaps \"b\" is forbidden: cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion v1 Kind Nothing: no matches for kind \"Nothing\" in version \"v1\""
    );
    let changed = json!({"metadata": {"ownerReferences": [owner("ConfigMap", false), {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p"}]}});
    let place = format!("{maps}/a");
    assert_eq!(
        jane.patch(&place, "merge", changed.clone()).await.refused(403, "Forbidden"),
        "configmaps \"a\" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>"
    );
    jane.patch(&place, "merge", json!({"data": {"k": "v"}})).await.expect(200);
    let roles = format!("{RBAC}/roles/r");
    admin
        .put(
            &roles,
            role(&["get", "create", "patch", "delete", "update"], &["configmaps", "configmaps/finalizers"]),
        )
        .await
        .expect(200);
    jane.patch(&place, "merge", changed).await.expect(200);
    jane.post(&maps, owned("b", owner("ConfigMap", true))).await.expect(201);
}
