//! Kinds that only some versions of Kubernetes serve, and one that is not stored.

use http::Method;
use kubewright_engine::Settings;
use kubewright_identity::authn::User;
use kubewright_spec::Version;
use serde_json::{Value, json};

use crate::support::{Answer, Api};

const BUNDLES: &str = "/apis/certificates.k8s.io/v1/clustertrustbundles";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/namespaces/default/podcertificaterequests";
const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";
const CSI_NODES: &str = "/apis/storage.k8s.io/v1/csinodes";
const COMPONENTS: &str = "/api/v1/componentstatuses";

async fn of(version: Version) -> Api {
    Api::start_with(Settings { kubernetes: version, ..Settings::default() }).await
}

/// A user who may do all with the kinds of some groups, and nothing for signers.
async fn clerk(api: &Api) -> Api {
    let groups = ["certificates.k8s.io", "storagemigration.k8s.io"];
    let kinds = ["clustertrustbundles", "podcertificaterequests", "podcertificaterequests/status"];
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({"metadata": {"name": "clerk"},
        "rules": [{"apiGroups": groups, "resources": kinds, "verbs": ["*"]}]});
    api.post(&format!("{rbac}/clusterroles"), role).await.expect(201);
    let binding = json!({"metadata": {"name": "clerk"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "clerk"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "clerk"}]});
    api.post(&format!("{rbac}/clusterrolebindings"), binding).await.expect(201);
    api.as_user(User::new("clerk", ["system:authenticated"]))
}

fn authority() -> String {
    let mut parameters = rcgen::CertificateParams::default();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    parameters.self_signed(&rcgen::KeyPair::generate().expect("a key")).expect("a certificate").pem()
}

fn warning(answer: &Answer) -> &str {
    answer.headers.get("warning").and_then(|warning| warning.to_str().ok()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn components_are_told_and_nothing_else_can_be_done_with_them() {
    for version in Version::ALL {
        let api = of(version).await;
        let list = api.get(COMPONENTS).await;
        assert_eq!(warning(&list), "299 - \"v1 ComponentStatus is deprecated in v1.19+\"");
        let list = list.expect(200);
        assert_eq!((&list["kind"], &list["metadata"]), (&json!("ComponentStatusList"), &json!({})));
        let refused = |port: u16| {
            format!(
                "Get \"https://127.0.0.1:{port}/healthz\": dial tcp 127.0.0.1:{port}: connect: connection refused"
            )
        };
        let component = |name: &str, status: &str, message: &str| {
            json!({"metadata": {"name": name},
                "conditions": [{"type": "Healthy", "status": status, "message": message}]})
        };
        let all = [
            component("controller-manager", "False", &refused(10257)),
            component("etcd-0", "True", "ok"),
            component("scheduler", "False", &refused(10259)),
        ];
        assert_eq!(list["items"], json!(all));

        let one = api.get(&format!("{COMPONENTS}/etcd-0")).await.expect(200);
        assert_eq!((&one["kind"], &one["apiVersion"]), (&json!("ComponentStatus"), &json!("v1")));
        assert_eq!(one["conditions"], all[1]["conditions"]);
        let selected =
            api.get(&format!("{COMPONENTS}?fieldSelector=metadata.name%3Detcd-0")).await.expect(200);
        assert_eq!(selected["items"].as_array().map(Vec::len), Some(1));
        let labelled = api.get(&format!("{COMPONENTS}?labelSelector=a%3Db")).await.expect(200);
        assert_eq!(labelled["items"], json!([]));
        let said = api.get(&format!("{COMPONENTS}/etcd-1")).await.refused(404, "NotFound");
        assert_eq!(said, "componentstatus \"etcd-1\" not found");
        for method in [Method::POST, Method::DELETE] {
            let answer = api.send(method, COMPONENTS, &[], "{}").await;
            assert_eq!(warning(&answer), "");
            answer.refused(405, "MethodNotAllowed");
        }
        for method in [Method::PUT, Method::DELETE] {
            let one = format!("{COMPONENTS}/etcd-0");
            api.send(method, &one, &[], "{}").await.refused(405, "MethodNotAllowed");
        }
        let said = api.get(&format!("{COMPONENTS}?watch=1")).await.refused(405, "MethodNotAllowed");
        assert_eq!(said, "watch is not supported on resources of kind \"componentstatuses\"");

        api.get("/api/v1/watch/componentstatuses").await.refused(404, "NotFound");

        let table = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
        let table = api.send(Method::GET, COMPONENTS, &table, "").await.expect(200);
        assert_eq!(table["rows"][1]["cells"], json!(["etcd-0", "Healthy", "ok", ""]));
        assert_eq!(table["metadata"], json!({}));
    }
}

#[tokio::test(start_paused = true)]
async fn what_v1_37_added_is_served_by_no_version_before() {
    let old = of(Version::V1_36).await;
    for path in [BUNDLES, REQUESTS, MIGRATIONS] {
        assert_eq!(old.get(path).await.code, 404, "{path}");
    }
    let node = json!({"metadata": {"name": "n"}, "spec": {"drivers": []}});
    let made = old.post(CSI_NODES, node.clone()).await.expect(201);
    assert_eq!(made.get("status"), None);
    assert_eq!(old.get(&format!("{CSI_NODES}/n/status")).await.code, 404);

    let new = of(Version::V1_37).await;
    for path in [BUNDLES, REQUESTS, MIGRATIONS] {
        assert_eq!(new.get(path).await.expect(200)["items"], json!([]), "{path}");
    }
    let mut healthy = node.clone();
    healthy["status"] = json!({"storageHealth": [{"name": "a.b"}]});
    let made = new.post(CSI_NODES, healthy.clone()).await.expect(201);
    assert_eq!(made["status"], json!({}));
    healthy["metadata"]["labels"] = json!({"a": "b"});
    healthy["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"].clone();
    let written = new.put(&format!("{CSI_NODES}/n/status"), healthy).await.expect(200);
    assert_eq!((&written["status"], written["metadata"].get("labels")), (&json!({}), None));
}

#[tokio::test(start_paused = true)]
async fn a_trust_bundle_of_a_signer_is_for_those_who_may_attest_for_it() {
    let api = of(Version::V1_37).await;
    let clerk = clerk(&api).await;
    let bundle = |name: &str, signer: &str| json!({"metadata": {"name": name}, "spec": {"signerName": signer, "trustBundle": authority()}});
    clerk.post(BUNDLES, bundle("mine", "")).await.expect(201);
    let said = clerk.post(BUNDLES, bundle("a.b:c:d", "a.b/c")).await.refused(403, "Forbidden");
    assert_eq!(
        said,
        "clustertrustbundles.certificates.k8s.io \"a.b:c:d\" is forbidden: user not permitted to attest for signerName \"a.b/c\""
    );
    let made = api.post(BUNDLES, bundle("a.b:c:d", "a.b/c")).await.expect(201);
    let one = format!("{BUNDLES}/a.b:c:d");
    clerk.patch(&one, "merge", json!({"metadata": {"labels": {"a": "b"}}})).await.refused(403, "Forbidden");
    clerk.patch(&one, "merge", json!({"metadata": {"finalizers": ["a.b/c"]}})).await.expect(200);
    let selected = format!("{BUNDLES}?fieldSelector=spec.signerName%3Da.b/c");
    assert_eq!(api.get(&selected).await.expect(200)["items"].as_array().map(Vec::len), Some(1));
    let mut unconditional = made.clone();
    unconditional["metadata"] = json!({"name": "a.b:c:d"});
    let said = api.put(&one, unconditional).await.refused(422, "Invalid");
    assert!(
        said.ends_with("metadata.resourceVersion: Invalid value: 0: must be specified for an update"),
        "{said}"
    );
}

/// A request for a certificate of a pod.
fn request(name: &str) -> Value {
    let key = rcgen::KeyPair::generate().expect("a key");
    let stub = rcgen::CertificateParams::default().serialize_request(&key).expect("a request");
    let stub = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, stub.der());
    json!({"metadata": {"name": name}, "spec": {
        "signerName": "a.b/c",
        "podName": "p", "podUID": "1",
        "serviceAccountName": "s", "serviceAccountUID": "2",
        "nodeName": "n", "nodeUID": "3",
        "stubPKCS10Request": stub,
    }})
}

#[tokio::test(start_paused = true)]
async fn a_request_of_a_pod_is_decided_by_those_who_may_sign() {
    let api = of(Version::V1_37).await;
    let clerk = clerk(&api).await;
    let made = clerk.post(REQUESTS, request("r")).await.expect(201);
    assert_eq!(made["spec"]["maxExpirationSeconds"], 86400);
    let status = format!("{REQUESTS}/r/status");
    let denied = json!({"status": {"conditions": [{
        "type": "Denied", "status": "True", "reason": "No", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]}});
    let said = clerk.patch(&status, "merge", denied.clone()).await.refused(422, "Invalid");
    assert_eq!(
        said,
        "PodCertificateRequest.certificates.k8s.io \"r\" is invalid: spec.signerName: Forbidden: User \"clerk\" is not permitted to \"sign\" for signer \"a.b/c\""
    );
    let decided = api.patch(&status, "merge", denied).await.expect(200);
    assert_eq!(decided["status"]["conditions"][0]["type"], "Denied");
    let said =
        api.patch(&status, "merge", json!({"status": {"conditions": []}})).await.refused(422, "Invalid");
    assert!(said.ends_with("immutable after PodCertificateRequest is issued, denied, or failed"), "{said}");
    let selected =
        format!("{REQUESTS}?fieldSelector=spec.nodeName%3Dn,spec.podName%3Dp,spec.signerName%3Da.b/c");
    assert_eq!(api.get(&selected).await.expect(200)["items"].as_array().map(Vec::len), Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_migration_says_what_is_migrated_once_and_for_all() {
    let api = of(Version::V1_37).await;
    let migration = json!({"metadata": {"name": "m"},
        "spec": {"resource": {"group": "apps", "resource": "deployments"}},
        "status": {"resourceVersion": "1"}});
    let made = api.post(MIGRATIONS, migration).await.expect(201);
    assert_eq!(made["status"], json!({}));
    let one = format!("{MIGRATIONS}/m");
    let other = json!({"spec": {"resource": {"resource": "replicasets"}}});
    let said = api.patch(&one, "merge", other).await.refused(422, "Invalid");
    assert_eq!(
        said,
        "StorageVersionMigration.storagemigration.k8s.io \"m\" is invalid: spec: Invalid value: {\"Resource\":{\"group\":\"apps\",\"resource\":\"replicasets\"}}: field is immutable"
    );
    let noted = json!({"status": {"resourceVersion": "7"}});
    assert_eq!(
        api.patch(&format!("{one}/status"), "merge", noted).await.expect(200)["status"]["resourceVersion"],
        "7"
    );
    let table = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let table = api.send(Method::GET, MIGRATIONS, &table, "").await.expect(200);
    assert_eq!(table["rows"][0]["cells"], json!(["m", "deployments.apps", "Unknown"]));
}
