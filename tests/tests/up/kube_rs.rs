//! kube on `kubewright up`, over TLS with the kubeconfig, as an operator outside of the process has it.

use futures::{TryStreamExt, pin_mut};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};
use kubewright_tests::Up;
use serde_json::json;

/// A client by the kubeconfig.
pub(crate) async fn client(up: &Up) -> Client {
    let kubeconfig = Kubeconfig::read_from(up.kubeconfig()).expect("a kubeconfig");
    let config =
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.expect("a context");
    Client::try_from(config).expect("a client")
}

#[tokio::test]
#[ignore = "needs the built command: cargo xtask test"]
async fn kube_creates_watches_applies_and_deletes() {
    let up = Up::start("kube-rs", &[]);
    let config_maps: Api<ConfigMap> = Api::default_namespaced(client(&up).await);
    let config_map = |step: &str| -> ConfigMap {
        kubewright_objects::from_value(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "round"}, "data": {"step": step}
        }))
        .expect("a ConfigMap")
    };

    let created = config_maps.create(&PostParams::default(), &config_map("created")).await.expect("created");
    let conflict = config_maps
        .patch("round", &PatchParams::apply("round"), &Patch::Apply(config_map("applied")))
        .await
        .expect_err("another manager owns the field");
    assert!(matches!(&conflict, kube::Error::Api(status) if status.code == 409), "{conflict}");
    let applied = config_maps
        .patch("round", &PatchParams::apply("round").force(), &Patch::Apply(config_map("applied")))
        .await
        .expect("applied");
    assert_eq!(applied.managed_fields().len(), 2, "{:?}", applied.managed_fields());
    config_maps.delete("round", &DeleteParams::default()).await.expect("deleted");

    let version = created.resource_version().expect("a version");
    let events = config_maps
        .watch(&WatchParams::default().fields("metadata.name=round").timeout(30), &version)
        .await
        .expect("a watch");
    pin_mut!(events);
    let mut seen = Vec::new();
    while let Some(event) = events.try_next().await.expect("an event") {
        match event {
            WatchEvent::Modified(object) => seen.push(format!("modified {}", object.data.unwrap()["step"])),
            WatchEvent::Deleted(object) => {
                seen.push(format!("deleted {}", object.name_any()));
                break;
            }
            other => seen.push(format!("{other:?}")),
        }
    }
    assert_eq!(seen, ["modified applied", "deleted round"]);
}
