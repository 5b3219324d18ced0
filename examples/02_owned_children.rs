//! Each Robot has a ServiceAccount and a ConfigMap, with owner references to it. One that somebody deletes comes back, and when
//! the Robot is deleted the garbage collector deletes both. `docs/first-operator.md` explains it.

use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::CustomResource;
use kubewright::{Context, Controller, Error, Key, Outcome, Reconciler, command::Operator, testing::Cluster};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Robot", namespaced)]
struct RobotSpec {}

struct Robots;

impl Reconciler for Robots {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(robot) = ctx.get::<Robot>(key) else { return Ok(Outcome::Done) };
        let metadata = ObjectMeta::from(key);
        let account = ServiceAccount { metadata: metadata.clone(), ..ServiceAccount::default() };
        ctx.apply(&account).owned_by(&*robot).await?;
        ctx.apply(&ConfigMap { metadata, ..ConfigMap::default() }).owned_by(&*robot).await?;
        Ok(Outcome::Done)
    }
}

fn controller() -> Controller {
    Controller::new("robot", Robots).for_kind::<Robot>().applies::<ServiceAccount>().applies::<ConfigMap>()
}

fn operator() -> Operator {
    Operator::new("robot", "0.1.0").definition::<Robot>().controller(controller)
}

#[kubewright::test]
async fn a_deleted_dependent_comes_back(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&Robot::new("marvin", RobotSpec {})).await;
    cluster.settle().await;
    cluster.delete::<ConfigMap>("marvin").await;
    cluster.settle().await;
    assert!(cluster.exists::<ConfigMap>("marvin").await);
}

#[kubewright::test]
async fn deleting_the_owner_deletes_its_dependents(cluster: Cluster) {
    cluster.run(operator).await;
    let robot = cluster.create(&Robot::new("marvin", RobotSpec {})).await;
    cluster.settle().await;
    assert_eq!(cluster.owned_by::<ServiceAccount>(&robot).await.len(), 1);
    cluster.delete::<Robot>("marvin").await;
    cluster.settle().await;
    assert!(
        !cluster.exists::<ServiceAccount>("marvin").await && !cluster.exists::<ConfigMap>("marvin").await
    );
}
