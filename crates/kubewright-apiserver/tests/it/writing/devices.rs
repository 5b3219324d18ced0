//! Claims of devices: what the server does with them beyond their rules.

use kubewright_identity::authn::User;
use kubewright_spec::Version;
use serde_json::{Value, json};

use crate::support::Api;

const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
const TEMPLATES: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates";
const SLICES: &str = "/apis/resource.k8s.io/v1/resourceslices";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";

fn claim(more: &Value) -> Value {
    let mut exactly = json!({"deviceClassName": "gpu"});
    for (field, value) in more.as_object().into_iter().flatten() {
        exactly[field] = value.clone();
    }
    json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}})
}

fn allocation() -> Value {
    let result = json!({"request": "r", "driver": "gpu.example.com", "pool": "p", "device": "d"});
    json!({"status": {"allocation": {"devices": {"results": [result]}}}})
}

#[tokio::test(start_paused = true)]
async fn admin_access_is_for_namespaces_that_say_so() {
    let api = Api::start().await;
    let asks = claim(&json!({"adminAccess": true}));
    let why = "spec.devices.requests[0].adminAccess: Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace";
    let message = api.post(CLAIMS, asks.clone()).await.refused(422, "Invalid");
    assert_eq!(message, format!("ResourceClaim.resource.k8s.io \"c\" is invalid: {why}"));
    let template = json!({"metadata": {"name": "t"}, "spec": {"spec": asks["spec"]}});
    let message = api.post(TEMPLATES, template).await.refused(422, "Invalid");
    assert_eq!(message, format!("ResourceClaimTemplate.resource.k8s.io \"t\" is invalid: {why}"));
    let label = json!({"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}});
    api.patch("/api/v1/namespaces/default", "merge", label).await.expect(200);
    api.post(CLAIMS, asks).await.expect(201);
}

#[tokio::test(start_paused = true)]
async fn who_may_write_a_claims_status_may_not_allocate_for_that() {
    let api = Api::start().await;
    api.post(CLAIMS, claim(&json!({}))).await.expect(201);
    let rule =
        json!({"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims/status"], "verbs": ["*"]});
    api.post(&format!("{ROLES}/roles"), json!({"metadata": {"name": "r"}, "rules": [rule]}))
        .await
        .expect(201);
    let binding = json!({"metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]});
    api.post(&format!("{ROLES}/rolebindings"), binding).await.expect(201);
    let alice = api.as_user(User::new("alice", ["system:authenticated"]));
    let status = format!("{CLAIMS}/c/status");
    let message = alice.patch(&status, "merge", allocation()).await.refused(422, "Invalid");
    assert_eq!(
        message,
        "ResourceClaim.resource.k8s.io \"c\" is invalid: status.allocation: Forbidden: changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", verb=\"patch\" permission: resourceclaims.resource.k8s.io is forbidden: User \"alice\" cannot patch resource \"resourceclaims/binding\" in API group \"resource.k8s.io\" at the cluster scope"
    );
    api.patch(&status, "merge", allocation()).await.expect(200);
    let device = json!({"driver": "gpu.example.com", "pool": "p", "device": "d"});
    let told = json!({"status": {"devices": [device]}});
    let message = alice.patch(&status, "merge", told.clone()).await.refused(422, "Invalid");
    assert!(
        message.contains("changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[arbitrary-node:patch]\" permission: resourceclaims.resource.k8s.io \"gpu.example.com\" is forbidden: User \"alice\" cannot arbitrary-node:patch resource \"resourceclaims/driver\" in API group \"resource.k8s.io\" in the namespace \"default\""),
        "{message}"
    );
    api.patch(&status, "merge", told).await.expect(200);
    let freed = api.patch(&status, "merge", json!({"status": {"allocation": null}})).await.expect(200);
    assert_eq!(freed["status"].get("devices"), None, "what was told of devices that are gone is dropped");
}

#[tokio::test(start_paused = true)]
async fn slices_are_selected_by_node_and_driver_and_taints_say_since_when() {
    let api = Api::start().await;
    let slice = |name: &str, node: &str| {
        json!({"metadata": {"name": name}, "spec": {"driver": "gpu.example.com", "nodeName": node,
            "pool": {"name": node, "resourceSliceCount": 1},
            "devices": [{"name": "d", "taints": [{"key": "a", "effect": "NoSchedule"}]}]}})
    };
    let made = api.post(SLICES, slice("a", "one")).await.expect(201);
    assert!(made["spec"]["devices"][0]["taints"][0]["timeAdded"].is_string());
    assert_eq!(made["metadata"]["generation"], 1);
    api.post(SLICES, slice("b", "two")).await.expect(201);
    let path = format!("{SLICES}?fieldSelector=spec.nodeName%3Dtwo,spec.driver%3Dgpu.example.com");
    let found = api.get(&path).await.expect(200);
    assert_eq!(found["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(found["items"][0]["metadata"]["name"], "b");
    let by_pool = format!("{SLICES}?fieldSelector=spec.pool.name%3Dtwo");
    assert_eq!(api.get(&by_pool).await.expect(200)["items"].as_array().map(Vec::len), Some(1));
    let settings =
        kubewright_engine::Settings { kubernetes: Version::V1_36, ..kubewright_engine::Settings::default() };
    let message = Api::start_with(settings).await.get(&by_pool).await.refused(400, "BadRequest");
    assert!(
        message.ends_with(
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.pool.name"
        ),
        "{message}"
    );
}
