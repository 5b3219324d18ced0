//! Each App has a ConfigMap that says which version of a Secret it uses. The Secret is the user's: the App names it, and an index finds the
//! Apps of a Secret that has changed. Of Secrets the operator keeps their metadata alone.
#![expect(unreachable_pub, reason = "the derive of KubeSchema repeats each struct inside a function")]

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{CustomResource, KubeSchema, ResourceExt, core::PartialObjectMeta};
use kubewright::{Context, Controller, Error, Index, Key, Outcome, Reconciler, command::Operator};
use serde::{Deserialize, Serialize};

/// What an app is to be.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "App", namespaced)]
#[serde(rename_all = "camelCase")]
pub struct AppSpec {
    /// The Secret that it uses.
    pub secret_name: String,
}

/// Keeps the ConfigMap of each App as it is wanted.
struct Apps;

impl Reconciler for Apps {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(app) = ctx.get::<App>(key) else { return Ok(Outcome::Done) };
        let secret = ctx.get::<PartialObjectMeta<Secret>>(&secret_of(&app));
        let version = secret.and_then(|secret| secret.metadata.resource_version.clone());
        let metadata = key.into();
        // Without the Secret there is no such key; one that is there already goes.
        let data = version.map(|version| [("secretVersion".to_owned(), version)].into());
        ctx.apply(&ConfigMap { metadata, data, ..ConfigMap::default() }).owned_by(&*app).await?;
        Ok(Outcome::Done)
    }
}

fn secret_of(app: &App) -> Key {
    Key::new(app.namespace(), &app.spec.secret_name)
}

fn controller() -> Controller {
    let by_secret = Index::new("by-secret", |app: &App| vec![secret_of(app).to_string()]);
    let apps = by_secret.clone();
    let users = move |secret: &PartialObjectMeta<Secret>| apps.keys(&Key::of(secret).to_string());
    Controller::new("app", Apps)
        .for_kind::<App>()
        .indexed(&by_secret)
        .applies::<ConfigMap>()
        .watches_metadata::<Secret>(users)
}

/// The operator.
pub fn operator() -> Operator {
    Operator::new("app", "0.1.0").definition::<App>().controller(controller)
}

#[tokio::main]
async fn main() -> std::process::ExitCode {
    operator().main().await
}
