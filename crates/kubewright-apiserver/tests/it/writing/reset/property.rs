//! Whatever was written, a reset leaves what a new cluster has.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

use super::{CRDS, DEFAULT, WIDGETS, definition, everything, reset};
use crate::support::Api;

/// A write; whether the server takes it does not matter.
#[derive(Clone, Debug)]
enum Write {
    Create(usize, u8),
    Label(usize, u8),
    Delete(usize, u8),
    Define,
    Undefine,
    Reset,
}

/// Collections of namespaces and of the cluster, built-in and custom, with an object for each.
const PLACES: [(&str, &str); 8] = [
    ("/api/v1/namespaces", "{}"),
    ("/api/v1/namespaces/n1/configmaps", r#"{"data": {"a": "b"}}"#),
    ("/api/v1/namespaces/default/services", r#"{"spec": {"type": "NodePort", "ports": [{"port": 80}]}}"#),
    ("/apis/rbac.authorization.k8s.io/v1/clusterroles", r#"{"rules": []}"#),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", r#"{"value": 7}"#),
    (
        "/apis/apps/v1/namespaces/default/deployments",
        r#"{"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}"#,
    ),
    ("/apis/networking.k8s.io/v1/servicecidrs", r#"{"spec": {"cidrs": ["10.9.0.0/24"]}}"#),
    (WIDGETS, r#"{"apiVersion": "example.com/v1", "kind": "Widget"}"#),
];

/// Names of the first objects, and others.
const NAMES: [&str; 6] = ["n1", "n2", "default", "kubernetes", "view", "system-node-critical"];

fn write() -> impl Strategy<Value = Write> {
    let name = 0..NAMES.len() as u8;
    prop_oneof![
        4 => (0..PLACES.len(), name.clone()).prop_map(|(place, name)| Write::Create(place, name)),
        3 => (0..PLACES.len(), name.clone()).prop_map(|(place, name)| Write::Label(place, name)),
        3 => (0..PLACES.len(), name).prop_map(|(place, name)| Write::Delete(place, name)),
        1 => Just(Write::Define),
        1 => Just(Write::Undefine),
        1 => Just(Write::Reset),
    ]
}

async fn send(api: &Api, write: &Write) {
    let at = |place: &usize, name: &u8| format!("{}/{}", PLACES[*place].0, NAMES[usize::from(*name)]);
    match write {
        Write::Create(place, name) => {
            let (path, object) = PLACES[*place];
            let mut object: serde_json::Value = serde_json::from_str(object).expect("JSON");
            object["metadata"] =
                json!({"name": NAMES[usize::from(*name)], "finalizers": ["example.com/hold"]});
            drop(api.post(path, object).await);
        }
        Write::Label(place, name) => {
            let label =
                json!({"metadata": {"labels": {"touched": "yes"}, "finalizers": ["example.com/hold"]}});
            drop(api.patch(&at(place, name), "merge", label).await);
        }
        Write::Delete(place, name) => drop(api.delete(&at(place, name)).await),
        Write::Define => drop(api.post(CRDS, definition()).await),
        Write::Undefine => drop(api.delete(&format!("{CRDS}/widgets.example.com")).await),
        Write::Reset => reset(api).await,
    }
}

#[test]
fn whatever_was_written_a_reset_leaves_what_a_new_cluster_has() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let (api, fresh) = runtime.block_on(async {
        let api = Api::start().await;
        let fresh = everything(&api).await;
        (api, fresh)
    });
    let mut runner = TestRunner::new(Config { cases: 24, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&prop::collection::vec(write(), 0..24), |writes| {
        runtime.block_on(async {
            for write in &writes {
                send(&api, write).await;
            }
            reset(&api).await;
            let left = everything(&api).await;
            for (left, fresh) in left.iter().zip(&fresh) {
                prop_assert_eq!(left, fresh);
            }
            prop_assert_eq!(left.len(), fresh.len());
            // The cluster works.
            let made = api.post(&format!("{DEFAULT}/configmaps"), json!({"metadata": {"name": "a"}})).await;
            prop_assert_eq!(made.code.as_u16(), 201);
            Ok(())
        })
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
