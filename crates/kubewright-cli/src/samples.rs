//! The operators that `up --samples` runs.

use anyhow::{Context, bail};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, PostParams},
};
use kubewright_runtime::{
    Manager,
    command::{Installation, Operator, Run},
    webhook,
};
use kubewright_world::World;

use crate::change::Id;

/// The namespace of a sample that names none.
const NAMESPACE: &str = "default";

/// An operator with samples of its kinds.
pub(crate) struct Sample {
    operator: Operator,
    objects: Vec<DynamicObject>,
}

/// All of them.
///
/// # Errors
/// When a sample that is compiled in is no object.
pub(crate) fn samples() -> anyhow::Result<Vec<Sample>> {
    Ok(vec![Sample::new(kubewright_whitelist::operator(), &[kubewright_whitelist::manifests::SAMPLE])?])
}

impl Sample {
    fn new(operator: Operator, objects: &[&str]) -> anyhow::Result<Self> {
        let mut objects: Vec<DynamicObject> =
            objects.iter().map(|text| serde_saphyr::from_str(text)).collect::<Result<_, _>>()?;
        for object in &mut objects {
            object.metadata.namespace.get_or_insert_with(|| NAMESPACE.to_owned());
        }
        Ok(Self { operator, objects })
    }

    /// The operator's name.
    pub(crate) fn name(&self) -> &str {
        self.operator.name()
    }

    /// The namespace and the name of the operator's service account.
    pub(crate) fn account(&self) -> (String, &str) {
        (self.operator.home(&Installation::default()), self.operator.name())
    }

    /// Creates what the operator needs, where it is not there: its definitions, its service account and its rights.
    ///
    /// # Errors
    /// When the API server refuses one.
    pub(crate) async fn install(&self, admin: &Client) -> anyhow::Result<()> {
        for object in &self.operator.prerequisites(&Installation::default())? {
            create(admin, object).await?;
        }
        Ok(())
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

    /// Creates the samples, and the namespaces that they name, where they are not there.
    ///
    /// # Errors
    /// When the API server refuses one.
    pub(crate) async fn apply(&self, admin: &Client) -> anyhow::Result<()> {
        for object in &self.objects {
            let namespace = object.namespace().filter(|namespace| namespace != NAMESPACE);
            if let Some(namespace) = namespace {
                create(admin, &serde_json::from_value(namespace_object(&namespace))?).await?;
            }
            create(admin, object).await?;
        }
        Ok(())
    }

    /// Which objects the samples are.
    pub(crate) fn ids(&self) -> impl Iterator<Item = Id> {
        self.objects.iter().map(|object| {
            let kind = object.types.as_ref().map_or_else(String::new, |types| types.kind.to_lowercase());
            Id { kind, namespace: object.namespace(), name: object.name_any() }
        })
    }
}

fn namespace_object(name: &str) -> serde_json::Value {
    serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

async fn create(admin: &Client, object: &DynamicObject) -> anyhow::Result<()> {
    let name = object.name_any();
    let types = object.types.as_ref().with_context(|| format!("{name} has no kind"))?;
    let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(types)?);
    let api: Api<DynamicObject> = match object.namespace() {
        Some(namespace) => Api::namespaced_with(admin.clone(), &namespace, &kind),
        None => Api::all_with(admin.clone(), &kind),
    };
    match api.create(&PostParams::default(), object).await {
        Ok(_) => Ok(()),
        // It was kept (--data).
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
        // kube's own text repeats the whole status.
        Err(kube::Error::Api(status)) => bail!("cannot create {} {name}: {}", types.kind, status.message),
        Err(error) => Err(error).with_context(|| format!("cannot create {} {name}", types.kind)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_operator_has_an_account_of_its_own_and_samples_that_no_other_has() {
        let samples = samples().expect("they are compiled in");
        let accounts: BTreeSet<_> = samples.iter().map(Sample::account).collect();
        assert_eq!(accounts.len(), samples.len());
        assert!(accounts.contains(&("whitelist-system".to_owned(), "whitelist")));
        let ids: Vec<String> = samples.iter().flat_map(Sample::ids).map(|id| id.to_string()).collect();
        assert!(ids.contains(&"whitelist default/whitelist-sample".to_owned()), "{ids:?}");
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
    }
}
