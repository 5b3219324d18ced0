//! An error brings the key back, later each time; a terminal error waits for the next event. The reasons for both are shown on the object
//! by `on_error`. `docs/production.md` explains retries and `docs/faults.md` what may fail in a test.

use std::sync::{Arc, atomic::AtomicUsize, atomic::Ordering::Relaxed};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use kubewright::{
    Context, Controller, Error, ErrorPolicy, Key, Outcome, Reconciler, command::Operator, testing::Cluster,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Upload", namespaced, status = "UploadStatus")]
struct UploadSpec {
    url: String,
}

#[derive(JsonSchema, Clone, Debug, Default, Serialize, Deserialize)]
struct UploadStatus {
    #[serde(default)]
    conditions: Vec<Condition>,
}

/// Counts the tries; the server does not answer the first four.
struct Uploads(Arc<AtomicUsize>);

impl Reconciler for Uploads {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(upload) = ctx.get::<Upload>(key) else { return Ok(Outcome::Done) };
        let tries = self.0.fetch_add(1, Relaxed) + 1;
        match (upload.spec.url.starts_with("https://"), tries) {
            (false, _) => Err(Error::terminal("the URL is not of https").reason("InvalidUrl")),
            (true, 5..) => Ok(Outcome::Done),
            (true, _) => Err(Error::new("the server does not answer").reason("NoAnswer")),
        }
    }
}

fn operator(tries: Arc<AtomicUsize>) -> Operator {
    Operator::new("upload", "0.1.0").definition::<Upload>().controller(move || {
        let controller = Controller::new("upload", Uploads(tries.clone())).for_kind::<Upload>();
        controller.on_error(ErrorPolicy::default())
    })
}

#[kubewright::test]
async fn what_no_retry_can_cure_is_left_until_the_spec_changes(cluster: Cluster) {
    let tries = Arc::new(AtomicUsize::new(0));
    cluster.run(operator(tries.clone())).await;
    cluster.create(&Upload::new("film", UploadSpec { url: "ftp://film".to_owned() })).await;
    for (url, reason, most) in [("ftp://film", "InvalidUrl", 1), ("https://film", "ReconcileSucceeded", 5)] {
        cluster.patch::<Upload>("film", json!({"spec": {"url": url}})).await;
        cluster.settle().await;
        let stalled = cluster.condition::<Upload>("film", "Stalled").await.expect("it is told");
        assert_eq!((&*stalled.reason, tries.load(Relaxed)), (reason, most));
    }
}
