//! An App names a Secret that is not its own. An index finds the Apps of a Secret that has changed, so that only these are reconciled, and
//! each notes the version of the Secret that it uses. `docs/patterns.md` explains indexes.

use k8s_openapi::api::core::v1::Secret;
use kube::{CustomResource, ResourceExt};
use kubewright::{
    Context, Controller, Error, Index, Key, Outcome, Reconciler, command::Operator, testing::Cluster,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "App", namespaced, status = "AppStatus")]
struct AppSpec {
    secret: String,
}

#[derive(JsonSchema, Clone, Debug, Default, Serialize, Deserialize)]
struct AppStatus {
    version: Option<String>,
}

struct Apps;

impl Reconciler for Apps {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(app) = ctx.get::<App>(key) else { return Ok(Outcome::Done) };
        let secret = ctx.get::<Secret>(&key.sibling(&app.spec.secret));
        let version = secret.and_then(|secret| secret.resource_version());
        ctx.status(&*app).set(|status| status.version = version).await?;
        Ok(Outcome::Done)
    }
}

fn secret_of(app: &App) -> String {
    Key::of(app).sibling(&app.spec.secret).to_string()
}

fn controller() -> Controller {
    let apps = Index::new("by-secret", |app: &App| vec![secret_of(app)]);
    let controller = Controller::new("app", Apps).for_kind::<App>().indexed(&apps);
    let users = move |secret: &Secret| apps.keys(&Key::of(secret).to_string());
    controller.watches(users).writes_status::<App>()
}

#[kubewright::test]
async fn an_app_follows_the_secret_that_it_names(cluster: Cluster) {
    cluster.run(|| Operator::new("app", "0.1.0").definition::<App>().controller(controller)).await;
    cluster.create(&App::new("web", AppSpec { secret: "login".to_owned() })).await;
    cluster.apply::<Secret>("{apiVersion: v1, kind: Secret, metadata: {name: login}}").await;
    cluster.settle().await;
    let changed = cluster.patch::<Secret>("login", json!({"stringData": {"password": "y"}})).await;
    cluster.settle().await;
    let status = cluster.get::<App>("web").await.status.unwrap_or_default();
    assert_eq!(status.version, changed.resource_version());
}
