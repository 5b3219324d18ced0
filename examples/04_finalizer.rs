//! Each Bucket has a bucket in a cloud, which Kubernetes' garbage collector knows nothing of. `ctx.guard` keeps a finalizer on the Bucket
//! until its cleanup has succeeded. The whole of it is `crates/kubewright/examples/bucket.rs`; the page is `docs/patterns.md`.

use std::{collections::BTreeSet, sync::Arc};

use kube::CustomResource;
use kubewright::{
    Context, Controller, Error, Guarded, Key, Outcome, Reconciler, command::Operator, testing::Cluster,
};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Bucket", namespaced)]
struct BucketSpec {}

/// The cloud: the names of its buckets.
type Cloud = Arc<Mutex<BTreeSet<String>>>;

struct Buckets(Cloud);

impl Reconciler for Buckets {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(bucket) = ctx.get::<Bucket>(key) else { return Ok(Outcome::Done) };
        let cleanup = async || {
            self.0.lock().remove(&key.name);
            Ok(())
        };
        if ctx.guard(&*bucket, "example.com/bucket", cleanup).await? == Guarded::Alive {
            self.0.lock().insert(key.name.clone());
        }
        Ok(Outcome::Done)
    }
}

fn operator(cloud: Cloud) -> Operator {
    Operator::new("bucket", "0.1.0").definition::<Bucket>().controller(move || {
        Controller::new("bucket", Buckets(cloud.clone())).for_kind::<Bucket>().guards::<Bucket>()
    })
}

#[kubewright::test(seeds = 5, faults)]
async fn a_bucket_lives_exactly_as_long_as_its_object(cluster: Cluster) {
    let cloud = Cloud::default();
    cluster.run(operator(cloud.clone())).await;
    cluster.create(&Bucket::new("photos", BucketSpec {})).await;
    cluster.settle().await;
    assert!(cloud.lock().contains("photos"));
    cluster.delete::<Bucket>("photos").await;
    cluster.settle().await;
    assert!(!cluster.exists::<Bucket>("photos").await);
    assert!(cloud.lock().is_empty());
}
