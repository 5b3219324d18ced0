//! The operators that `up --samples` runs.

use kube::{
    Client, ResourceExt,
    api::{DynamicObject, PostParams},
};
use kubewright_runtime::{
    Manager,
    command::{Installation, Operator, Run},
    webhook,
};
use kubewright_world::World;

use crate::{
    access::{self, Objects, called, refused},
    change::Id,
};

/// The namespace that is there anyway.
const NAMESPACE: &str = "default";
/// Gives the samples of a program.
pub type LoadSamples = fn() -> anyhow::Result<Samples>;

/// The operators that `up --samples` runs.
pub struct Samples {
    /// Each with an object of its kind.
    pub samples: Vec<Sample>,
    /// What to tell of operators that are not among them.
    pub left_out: Option<String>,
    /// What to try when all have converged.
    pub hint: Option<&'static str>,
    /// What of their logs is shown unless `RUST_LOG` says otherwise: directives of `tracing_subscriber::EnvFilter`.
    pub logs: &'static str,
}

/// An operator with an object of its kind.
pub struct Sample {
    operator: Operator,
    object: DynamicObject,
    condition: &'static str,
}

impl Sample {
    /// An operator with `sample`, an object as YAML, in `namespace`, and the type of the condition by which the operator says that all
    /// is as the sample asks.
    ///
    /// # Errors
    /// When the sample is no object.
    pub fn new(
        operator: Operator,
        sample: &str,
        namespace: &str,
        condition: &'static str,
    ) -> anyhow::Result<Self> {
        let mut object: DynamicObject = serde_saphyr::from_str(sample)?;
        object.metadata.namespace = Some(namespace.to_owned());
        Ok(Self { operator, object, condition })
    }

    /// The operator's name.
    pub(crate) fn name(&self) -> &str {
        self.operator.name()
    }

    /// The namespace and the name of the operator's service account.
    pub fn account(&self) -> (String, &str) {
        (self.operator.home(&Installation::default()), self.operator.name())
    }

    /// Installs what the operator needs: its definitions, its service account and its rights.
    ///
    /// # Errors
    /// When the API server refuses one.
    pub(crate) async fn install(&self, admin: &Client) -> anyhow::Result<()> {
        Ok(self.operator.prepare(admin, &Installation::default()).await?)
    }

    /// The operator on a client of its service account, with the name by which its webhooks are called in this process, if
    /// it has any.
    ///
    /// # Errors
    /// What the operator says against itself.
    pub(crate) fn manager(
        &self,
        client: Client,
        world: World,
    ) -> anyhow::Result<(Manager, Option<(String, webhook::Service)>)> {
        let mut manager = self.operator.manager(Manager::new(client, world), &Run::default())?;
        let webhooks = self.operator.webhooks_in_process(&Installation::default()).map(|(host, server)| {
            let service = server.service();
            manager.serve(server);
            (host, service)
        });
        Ok((manager, webhooks))
    }

    /// Creates the sample and its namespace, where they are not there.
    ///
    /// # Errors
    /// When the API server refuses one.
    pub(crate) async fn apply(&self, admin: &Client) -> anyhow::Result<()> {
        let mut objects = Objects::new(admin);
        if let Some(namespace) = self.object.namespace().filter(|namespace| namespace != NAMESPACE) {
            create(&mut objects, &access::object(namespace_object(&namespace))?).await?;
        }
        create(&mut objects, &self.object).await
    }

    /// What the sample is called in what `up` tells: its kind in lower case, its namespace and its name.
    pub fn id(&self) -> String {
        self.awaited().0.to_string()
    }

    /// Which object the sample is, and the type of the condition that says that it has converged.
    pub(crate) fn awaited(&self) -> (Id, &'static str) {
        let kind = self.object.types.as_ref().map_or_else(String::new, |types| types.kind.to_lowercase());
        let id = Id { kind, namespace: self.object.namespace(), name: self.object.name_any() };
        (id, self.condition)
    }
}

fn namespace_object(name: &str) -> serde_json::Value {
    serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

async fn create(objects: &mut Objects, object: &DynamicObject) -> anyhow::Result<()> {
    match objects.api(object).await?.create(&PostParams::default(), object).await {
        Ok(_) => Ok(()),
        // It was kept (--data).
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
        Err(error) => Err(refused(&format!("{} cannot be created", called(object)), &error)),
    }
}
