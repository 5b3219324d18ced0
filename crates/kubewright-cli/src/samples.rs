//! The operators that `up --samples` runs.

use anyhow::{Context, bail};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, PostParams},
};
use kubewright_runtime::Controller;

use crate::change::Id;

/// The namespace of the samples.
const NAMESPACE: &str = "default";

/// An operator with what it needs in the cluster, and a sample of its kind.
pub(crate) struct Operator {
    pub(crate) name: &'static str,
    /// The namespace and name of its service account.
    pub(crate) account: (&'static str, &'static str),
    pub(crate) controller: fn() -> Controller,
    manifests: Vec<DynamicObject>,
    sample: DynamicObject,
}

/// All of them.
///
/// # Errors
/// When a manifest that is compiled in is none.
pub(crate) fn operators() -> anyhow::Result<Vec<Operator>> {
    use kubewright_whitelist as whitelist;
    Ok(vec![Operator {
        name: "whitelist",
        account: (whitelist::manifests::NAMESPACE, whitelist::manifests::SERVICE_ACCOUNT),
        controller: whitelist::controller,
        manifests: whitelist::manifests::manifests()?,
        sample: serde_saphyr::from_str(whitelist::manifests::SAMPLE)?,
    }])
}

impl Operator {
    /// The user that its service account is.
    pub(crate) fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.account.0, self.account.1)
    }

    /// Creates its CRD, its service account and its rights, where they are not there.
    ///
    /// # Errors
    /// When the API server refuses one.
    pub(crate) async fn install(&self, admin: &Client) -> anyhow::Result<()> {
        for object in &self.manifests {
            create(admin, object, object.metadata.namespace.as_deref()).await?;
        }
        Ok(())
    }

    /// Creates its sample, if it is not there.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub(crate) async fn apply_sample(&self, admin: &Client) -> anyhow::Result<()> {
        create(admin, &self.sample, Some(NAMESPACE)).await
    }

    /// Which object its sample is.
    pub(crate) fn sample(&self) -> Id {
        let kind = self.sample.types.as_ref().map_or_else(String::new, |types| types.kind.to_lowercase());
        Id { kind, namespace: Some(NAMESPACE.to_owned()), name: self.sample.name_any() }
    }
}

async fn create(admin: &Client, object: &DynamicObject, namespace: Option<&str>) -> anyhow::Result<()> {
    let name = object.name_any();
    let types = object.types.as_ref().with_context(|| format!("{name} has no kind"))?;
    let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(types)?);
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(admin.clone(), namespace, &kind),
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
    use super::*;

    #[test]
    fn every_operator_has_an_account_of_its_own_and_a_sample() {
        let operators = operators().expect("the manifests are compiled in");
        assert_eq!(operators[0].user(), "system:serviceaccount:whitelist-system:whitelist");
        assert_eq!(operators[0].sample().to_string(), "whitelist default/whitelist-sample");
    }
}
