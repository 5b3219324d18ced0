//! An operator's program has flags of its own beside those of the SDK, and hands them to its controller. A test gives them as values.
//! `docs/production.md` explains flags, configuration files and the rest of the command line.

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::CustomResource;
use kubewright::{Context, Controller, Error, Key, Outcome, Reconciler, command::Operator, testing::Cluster};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Machine", namespaced)]
struct MachineSpec {}

#[derive(clap::Args)]
struct Cloud {
    /// The region to work in
    #[arg(long, env = "CLOUD_REGION", default_value = "eu")]
    region: String,
}

struct Machines {
    region: String,
}

impl Reconciler for Machines {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(machine) = ctx.get::<Machine>(key) else { return Ok(Outcome::Done) };
        let metadata = ObjectMeta::from(key);
        let data = Some([("region".to_owned(), self.region.clone())].into());
        ctx.apply(&ConfigMap { metadata, data, ..ConfigMap::default() }).owned_by(&*machine).await?;
        Ok(Outcome::Done)
    }
}

/// Its `main` is `operator().main().await`.
fn operator() -> Operator {
    Operator::new("machine", "0.1.0")
        .definition::<Machine>()
        .args::<Cloud>()
        .deployed_with(["--region=us"])
        .controller_with(|settings| {
            let machines = Machines { region: settings.args::<Cloud>()?.region.clone() };
            Ok(Controller::new("machine", machines).for_kind::<Machine>().applies::<ConfigMap>())
        })
}

#[kubewright::test]
async fn machines_are_in_the_region_of_the_flag(cluster: Cluster) {
    cluster.run(|| operator().with_settings(Cloud { region: "asia".to_owned() })).await;
    cluster.create(&Machine::new("a", MachineSpec {})).await;
    cluster.settle().await;
    assert_eq!(cluster.get::<ConfigMap>("a").await.data.unwrap_or_default()["region"], "asia");
}
