//! A Template has in its spec an object of any kind, which no Rust type of this program is of. `ctx.discover` finds the kind at run time, and
//! `ctx.kind` reads and writes its objects. `docs/clusters.md` explains it.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{CustomResource, api::DynamicObject};
use kubewright::{
    Context, Controller, Error, Key, Outcome, Reconciler, command::Operator, rbac::Verb, testing::Cluster,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Template", namespaced)]
#[serde(rename_all = "camelCase")]
struct TemplateSpec {
    kind: String,
    api_version: String,
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    fields: Value,
}

struct Templates;

impl Reconciler for Templates {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(template) = ctx.get::<Template>(key) else { return Ok(Outcome::Done) };
        let TemplateSpec { kind, api_version, fields } = &template.spec;
        let Some(kind) = ctx.discover(api_version, kind).await? else {
            return Err(Error::terminal(format!("there is no kind {kind} in {api_version}")));
        };
        let mut wanted = DynamicObject::new(&key.name, kind.resource()).data(fields.clone());
        wanted.metadata.namespace = key.namespace.clone();
        ctx.kind(&kind).apply(&wanted).owned_by(&*template).await?;
        Ok(Outcome::Done)
    }
}

fn controller() -> Controller {
    // Of the kinds that templates name, the operator may write these.
    Controller::new("template", Templates)
        .for_kind::<Template>()
        .writes::<ConfigMap>([Verb::Create, Verb::Patch])
}

#[kubewright::test]
async fn an_object_is_made_of_a_kind_that_only_the_template_names(cluster: Cluster) {
    cluster.run(|| Operator::new("template", "0.1.0").definition::<Template>().controller(controller)).await;
    let fields = json!({"data": {"text": "hello"}});
    let spec = TemplateSpec { kind: "ConfigMap".to_owned(), api_version: "v1".to_owned(), fields };
    cluster.create(&Template::new("a", spec)).await;
    cluster.settle().await;
    assert_eq!(cluster.get::<ConfigMap>("a").await.data.unwrap_or_default()["text"], "hello");
}
