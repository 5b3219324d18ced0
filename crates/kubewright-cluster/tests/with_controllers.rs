//! What clients see of a control plane in which the built-in controllers and a simulated node act.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kubewright_cluster::Cluster;
use kubewright_cluster::admin::Match;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn the_log_says_who_called_what_and_nothing_of_the_built_in_controllers() {
    let cluster = Cluster::builder().admin(true).start().await.unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let map = kubewright_objects::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let _ = maps.get("a").await;
    cluster.settle().await;
    let log = cluster.admin().expect("it was asked for").requests(&Match::default(), 10);
    let seen: Vec<_> = log
        .requests
        .iter()
        .map(|request| {
            let info = &request.info;
            (&*info.user, info.verb, &*info.resource, &*info.namespace, &*info.name, request.code)
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("kubernetes-admin", "create", "configmaps", "default", "", Some(201)),
            ("kubernetes-admin", "delete", "configmaps", "default", "a", Some(200)),
            ("kubernetes-admin", "get", "configmaps", "default", "a", Some(404)),
        ]
    );
    assert_eq!(log.requests[0].time, kubewright_world::SIMULATION_START);
}

#[tokio::test(start_paused = true)]
async fn who_wants_something_of_a_pod_on_a_simulated_node_is_told_what_runs_pods() {
    const TOLD: &str = "node-0 is simulated: its pods do not run; kubewright up --runtime process runs them";
    let cluster = Cluster::start().await.expect("it starts");
    cluster.settle().await;
    let pod: Pod = kubewright_objects::from_value(
        json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}),
    )
    .expect("a pod");
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "default");
    pods.create(&PostParams::default(), &pod).await.expect("created");
    cluster.settle().await;

    let upgrade = |path: &str| {
        http::Request::get(format!("/api/v1/namespaces/default/pods/a/{path}"))
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
            .body(Vec::new())
            .expect("a request")
    };
    for path in ["log", "exec?command=ls&stdout=true", "attach?stdout=true", "portforward?ports=80"] {
        let refused = cluster.client().request_text(upgrade(path)).await.expect_err(path);
        assert!(matches!(&refused, kube::Error::Api(status) if status.message == TOLD), "{path}: {refused}");
    }
    for path in ["namespaces/default/pods/a/proxy/", "nodes/node-0/proxy/"] {
        let request = http::Request::get(format!("/api/v1/{path}")).body(Vec::new()).expect("a request");
        let refused = cluster.client().request_text(request).await.expect_err(path).to_string();
        assert!(
            refused.contains("error trying to reach service: ") && refused.contains(TOLD),
            "{path}: {refused}"
        );
    }
    let debug = json!({"spec": {"ephemeralContainers": [{"name": "d", "image": "x"}]}}).to_string();
    let request = http::Request::patch("/api/v1/namespaces/default/pods/a/ephemeralcontainers")
        .header("content-type", "application/strategic-merge-patch+json")
        .body(kube::client::Body::from(debug.into_bytes()))
        .expect("a request");
    let written = cluster.client().send(request).await.expect("it is put into the pod");
    assert_eq!(written.headers()["warning"], format!("299 - \"{TOLD}\""));

    // A node that is down is not reached, simulated or not.
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(cluster.client());
    let stop = json!({"metadata": {"annotations": {"kubewright.dev/kubelet": "stopped"}}});
    nodes.patch("node-0", &PatchParams::default(), &Patch::Merge(stop)).await.expect("stopped");
    let refused = cluster.client().request_text(upgrade("log")).await.expect_err("it is down").to_string();
    assert!(refused.contains("dial tcp node-0:10250: connect: connection refused"), "{refused}");
}
