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

/// Where the samples live that mind no others.
const NAMESPACE: &str = "default";
/// Where the image police acts, which would find fault with the others' images.
#[cfg(feature = "samples")]
const POLICED: &str = "policed";

/// An operator with a sample of its kind.
pub(crate) struct Sample {
    operator: Operator,
    object: DynamicObject,
    /// The type of the condition by which the operator says that all is as the sample asks.
    condition: &'static str,
}

/// All of them.
///
/// # Errors
/// When a sample that is compiled in is no object.
#[cfg(feature = "samples")]
pub(crate) fn samples() -> anyhow::Result<Vec<Sample>> {
    use kubewright_app_service as app_service;
    use kubewright_at as at;
    use kubewright_crontab as crontab;
    use kubewright_image_police as image_police;
    use kubewright_memcached as memcached;
    use kubewright_security_group as security_group;
    use kubewright_whitelist as whitelist;

    let mut samples = vec![
        Sample::new(whitelist::operator(), whitelist::manifests::SAMPLE, NAMESPACE, "Available")?,
        Sample::new(image_police::operator(), image_police::manifests::SAMPLE, POLICED, "Enforced")?,
        Sample::new(at::operator(), at::manifests::SAMPLE, NAMESPACE, "Succeeded")?,
        Sample::new(crontab::operator(), crontab::manifests::SAMPLE, NAMESPACE, "Scheduled")?,
        Sample::new(app_service::operator(), app_service::manifests::SAMPLE, NAMESPACE, "Ready")?,
        Sample::new(memcached::operator(), memcached::manifests::SAMPLE, NAMESPACE, "Available")?,
    ];
    if security_group::is_configured() {
        let (operator, sample) = (security_group::operator(), security_group::manifests::SAMPLE);
        samples.push(Sample::new(operator, sample, NAMESPACE, "Ready")?);
    }
    Ok(samples)
}

/// What the operators need that are not among [the samples](samples).
#[cfg(feature = "samples")]
pub(crate) fn left_out() -> Option<String> {
    use kubewright_security_group as security_group;
    let needs = security_group::WHAT_IT_NEEDS;
    (!security_group::is_configured()).then(|| format!("operator security-group does not run: {needs}"))
}

/// None.
///
/// # Errors
/// Always: it says how to get them.
#[cfg(not(feature = "samples"))]
pub(crate) fn samples() -> anyhow::Result<Vec<Sample>> {
    anyhow::bail!(
        "--samples: this kubewright is built without the sample operators; build it with `--features samples`"
    )
}

/// Nothing: there are none.
#[cfg(not(feature = "samples"))]
pub(crate) fn left_out() -> Option<String> {
    None
}

impl Sample {
    #[cfg(feature = "samples")]
    fn new(
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
    pub(crate) fn account(&self) -> (String, &str) {
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

#[cfg(all(test, feature = "samples"))]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_operator_has_an_account_of_its_own_and_a_sample_that_no_other_has() {
        let samples = samples().expect("they are compiled in");
        let accounts: BTreeSet<_> = samples.iter().map(Sample::account).collect();
        assert_eq!(accounts.len(), samples.len());
        assert!(accounts.contains(&("whitelist-system".to_owned(), "whitelist")));
        let ids: Vec<String> = samples.iter().map(|sample| sample.awaited().0.to_string()).collect();
        assert!(ids.contains(&"whitelist default/whitelist-sample".to_owned()), "{ids:?}");
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
    }
}
