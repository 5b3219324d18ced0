//! One program serves several versions of Kubernetes.

use kubewright_cluster::{Cluster, KubernetesVersion};
use serde_json::{Value, json};

async fn started(version: KubernetesVersion) -> Cluster {
    Cluster::builder().kubernetes_version(version).controllers("").nodes(0).start().await.expect("a cluster")
}

async fn asked(cluster: &Cluster, method: &str, path: &str, body: Value) -> Result<Value, kube::Error> {
    let request =
        http::Request::builder().method(method).uri(path).header("content-type", "application/json");
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    cluster.client().request(request.body(body).expect("a request")).await
}

#[tokio::test(start_paused = true)]
async fn a_cluster_says_which_version_it_serves() {
    for version in KubernetesVersion::ALL {
        let cluster = started(version).await;
        let said = asked(&cluster, "GET", "/version", Value::Null).await.expect("an answer");
        assert_eq!(said["minor"], version.minor().to_string());
        let release = said["gitVersion"].as_str().unwrap_or_default();
        assert!(release.starts_with(&format!("v{}+kubewright", version.release())), "{release}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_field_is_known_from_the_version_on_that_has_it() {
    let condition = json!({"type": "AbleToScale", "status": "True", "observedGeneration": 1});
    let autoscaler = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 3},
        "status": {"conditions": [condition], "desiredReplicas": 0}});
    let path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers?fieldValidation=Strict";
    for (version, known) in [(KubernetesVersion::V1_36, false), (KubernetesVersion::V1_37, true)] {
        let cluster = started(version).await;
        match asked(&cluster, "POST", path, autoscaler.clone()).await {
            Ok(_) => assert!(known, "{version}"),
            Err(error) => {
                let told = error.to_string();
                assert!(
                    !known && told.contains("unknown field \"status.conditions[0].observedGeneration\""),
                    "{version}: {told}"
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn documents_and_roles_are_of_the_version() {
    for (version, has) in [(KubernetesVersion::V1_36, false), (KubernetesVersion::V1_37, true)] {
        let cluster = started(version).await;
        let document =
            asked(&cluster, "GET", "/openapi/v3/apis/batch/v1", Value::Null).await.expect("a document");
        let job = &document["components"]["schemas"]["io.k8s.api.batch.v1.JobSpec"]["properties"];
        assert!(job["parallelism"].is_object());
        assert_eq!(job["scheduling"].is_object(), has, "{version}");
        let roles = asked(&cluster, "GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles", Value::Null)
            .await
            .expect("roles");
        let names =
            roles["items"].as_array().into_iter().flatten().map(|role| role["metadata"]["name"].as_str());
        let lines = version.tables().roles.lines().filter(|line| line.starts_with("clusterroles "));
        assert_eq!(names.count(), lines.count(), "{version}");
    }
}
