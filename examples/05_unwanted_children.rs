//! Each Team has a ConfigMap for each of its members. `ctx.apply_all` is given all that there is to be, and deletes what it made before
//! and is not in the list any more. `docs/patterns.md` explains it.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{CustomResource, ResourceExt};
use kubewright::{
    Context, Controller, Desired, Error, Key, Outcome, Reconciler, command::Operator, testing::Cluster,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Team", namespaced)]
struct TeamSpec {
    members: Vec<String>,
}

struct Teams;

impl Reconciler for Teams {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(team) = ctx.get::<Team>(key) else { return Ok(Outcome::Done) };
        let of_member = |member: &String| ConfigMap {
            metadata: key.sibling(format!("{}-{member}", key.name)).into(),
            ..ConfigMap::default()
        };
        let maps = team.spec.members.iter().map(of_member);
        ctx.apply_all(&*team, Desired::new().with_all(maps)).await?;
        Ok(Outcome::Done)
    }
}

fn operator() -> Operator {
    let controller = || Controller::new("team", Teams).for_kind::<Team>().applies::<ConfigMap>();
    Operator::new("team", "0.1.0").definition::<Team>().controller(controller)
}

#[kubewright::test]
async fn who_leaves_the_team_loses_the_config_map(cluster: Cluster) {
    cluster.run(operator).await;
    let members = ["ada", "alan"].map(str::to_owned).into();
    let team = cluster.create(&Team::new("core", TeamSpec { members })).await;
    let names = async || {
        cluster.settle().await;
        let maps = cluster.owned_by::<ConfigMap>(&team).await;
        maps.iter().map(ResourceExt::name_any).collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["core-ada", "core-alan"]);
    cluster.patch::<Team>("core", json!({"spec": {"members": ["alan", "grace"]}})).await;
    assert_eq!(names().await, ["core-alan", "core-grace"]);
}
