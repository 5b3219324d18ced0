//! The deployment with `kubectl proxy` beside the controller (`config/proxy`), and without it. `SC-` rows are those of the
//! write-up.

use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Container, Pod},
};
use kube::{
    Api, Config,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, ValidationDirective},
    config::{KubeConfigOptions, Kubeconfig},
};
use kubewright::{Manager, testing::Cluster};
use kubewright_crontab::{CronTab, controller, operator};
use serde_json::{Value, json};

use super::lab::{crontab, jobs, until};

const MANIFEST: &str = include_str!("../../config/proxy/deployment.yaml");
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

fn documents() -> Vec<Value> {
    serde_saphyr::from_multiple(MANIFEST).expect("YAML")
}

/// Applies an object under strict validation.
async fn apply(cluster: &Cluster, object: &Value) -> Result<DynamicObject, String> {
    let object: DynamicObject = kubewright::object::from_value(object).expect("an object");
    let types = object.types.as_ref().expect("a kind");
    let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(types).expect("a kind"));
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client(), "default", &kind);
    let params =
        PatchParams { field_validation: Some(ValidationDirective::Strict), ..PatchParams::apply("test") };
    let name = object.metadata.name.clone().expect("a name");
    api.patch(&name, &params, &Patch::Apply(&object)).await.map_err(|error| match error {
        kube::Error::Api(status) => status.message,
        error => error.to_string(),
    })
}

fn mounts_token(container: &Container) -> bool {
    container.volume_mounts.iter().flatten().any(|mount| mount.mount_path == TOKEN)
}

/// SC-02, SC-04: the manifest of today is taken as it is, and its pod runs: two containers, one label.
#[kubewright::test]
async fn sc_02_sc_04_the_proxy_deployment_is_taken_under_strict_validation(cluster: Cluster) {
    for object in documents() {
        apply(&cluster, &object).await.unwrap_or_else(|error| panic!("{}: {error}", object["kind"]));
    }
    let is_available = |cluster: Cluster| async move {
        let deployment = cluster.get::<Deployment>("cron-controller").await;
        deployment.status.and_then(|status| status.available_replicas) == Some(1)
    };
    cluster.eventually(is_available).await;
    let pod = cluster.list::<Pod>().await.remove(0);
    assert_eq!(pod.metadata.labels.expect("labels")["name"], "cron-controller");
    let spec = pod.spec.expect("a spec");
    assert_eq!(spec.containers[0].image.as_deref(), Some("my.registry.com/cron-controller:0.0.1"));
    let sidecar = &spec.init_containers.expect("a sidecar")[0];
    assert_eq!((sidecar.name.as_str(), sidecar.restart_policy.as_deref()), ("kubectl", Some("Always")));
    assert_eq!(sidecar.args.as_ref().expect("arguments")[0], "proxy");
    let port = &sidecar.ports.as_ref().expect("a port")[0];
    assert_eq!((port.name.as_deref(), port.container_port), (Some("proxy"), 8001));
    // Beyond 2, 4: the controller has no token, and the proxy listens to this pod alone.
    assert!(mounts_token(sidecar) && !mounts_token(&spec.containers[0]));
    assert!(sidecar.args.iter().flatten().any(|argument| argument == "--address=127.0.0.1"));
}

/// SC-04: as the write-up has it, moved to apps/v1 and no more.
#[kubewright::test]
async fn sc_04_without_a_selector_the_deployment_is_refused(cluster: Cluster) {
    let mut deployment =
        documents().into_iter().find(|object| object["kind"] == "Deployment").expect("a Deployment");
    deployment["spec"].as_object_mut().expect("a spec").remove("selector");
    let refused = apply(&cluster, &deployment).await.expect_err("it is refused");
    assert!(refused.contains("spec.selector: Required value"), "{refused}");
    assert!(
        refused.contains("spec.template.metadata.labels: Invalid value: {\"name\":\"cron-controller\"}: `selector` does not match template `labels`"),
        "{refused}"
    );
}

/// SC-01: what the controller is given speaks plain HTTP to the proxy, and has no credentials.
#[kubewright::test]
async fn sc_01_the_controller_talks_plain_http_to_the_proxy(cluster: Cluster) {
    let map = documents().into_iter().find(|object| object["kind"] == "ConfigMap").expect("a ConfigMap");
    apply(&cluster, &map).await.expect("it is taken");
    let text = cluster
        .get::<ConfigMap>("cron-controller")
        .await
        .data
        .expect("data")
        .remove("config")
        .expect("a file");
    let (file, options) = (Kubeconfig::from_yaml(&text).expect("a kubeconfig"), KubeConfigOptions::default());
    let config = Config::from_custom_kubeconfig(file, &options).await.expect("a configuration");
    assert_eq!(config.cluster_url.to_string(), "http://localhost:8001/");
    assert!(config.auth_info.token.is_none() && config.auth_info.client_certificate.is_none());
}

/// SC-03: unless somebody says otherwise, every container finds the token of the pod's account.
#[kubewright::test]
async fn sc_03_in_a_cluster_the_token_is_mounted_into_both_containers(cluster: Cluster) {
    cluster.settle().await;
    let pod: Pod = kubewright::object::from_value(
        json!({"metadata": {"name": "cron-controller"}, "spec": {"containers": [
        {"name": "cron", "image": "cron"}, {"name": "kubectl", "image": "kubectl", "args": ["proxy"]}]}}),
    )
    .expect("a pod");
    let pod = cluster.create(&pod).await;
    assert!(pod.spec.expect("a spec").containers.iter().all(mounts_token));
}

/// SC-05: the default account may do nothing; the account of the manifest, by its Role, all that the controller does, and
/// in its namespace alone. The controller is the same program with the proxy and without.
#[kubewright::test]
async fn sc_05_the_role_of_the_manifest_is_what_the_controller_needs(cluster: Cluster) {
    cluster.run(operator).await.stop().await; // for its definition
    let by_default: Api<CronTab> =
        Api::namespaced(cluster.client_of_service_account("default", "default"), "default");
    let forbidden = by_default.list(&Default::default()).await.expect_err("it may not").to_string();
    assert!(
        forbidden.contains("crontabs.alpha.ianlewis.org is forbidden: User \"system:serviceaccount:default:default\" cannot list resource \"crontabs\""),
        "{forbidden}"
    );
    for object in documents().iter().filter(|object| object["kind"] != "Deployment") {
        apply(&cluster, object).await.expect("it is taken");
    }
    let client = cluster.client_of_service_account("default", "cron-controller");
    let mut manager = Manager::in_process(client.clone(), cluster.world().clone());
    manager.watch_namespaces(["default".to_owned()]);
    manager.add(controller());
    let running = tokio::spawn(manager.run(cluster.shutdown().clone()));
    cluster.create(&crontab("backup", json!({}))).await;
    until(&cluster, "2026-01-01T03:10:00Z").await;
    assert_eq!(jobs(&cluster, "backup").await.len(), 3);
    let elsewhere: Api<CronTab> = Api::namespaced(client, "kube-system");
    assert!(elsewhere.list(&Default::default()).await.is_err());
    assert!(!running.is_finished(), "{:?}", tokio::time::timeout(Duration::ZERO, running).await);
}
