//! In which order an operator is installed, and what says that it was.

use anyhow::{Context, bail};
use kube::{
    api::DynamicObject,
    core::{GroupVersionKind, TypeMeta},
};

use super::MANAGER;
use crate::access::called;

/// The label that says who installed something.
pub(super) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// What an object is in an installation, in the order in which they are applied. Webhooks are the last: nobody answers them
/// before the operator runs, and until then they could refuse its own pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// A CustomResourceDefinition.
    Kind,
    /// A Namespace.
    Namespace,
    /// Who the operator is, and what it may do.
    Right,
    /// All else.
    Other,
    /// What runs the operator.
    Program,
    /// What sends requests to it.
    Webhook,
}

/// An object of an installation.
#[derive(Clone, Debug)]
pub(super) struct Manifest {
    pub(super) role: Role,
    pub(super) object: DynamicObject,
    pub(super) name: String,
    /// Empty for what is in none.
    pub(super) namespace: String,
}

/// All that is installed, in its order.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    manifests: Vec<Manifest>,
}

impl Plan {
    /// Orders what an operator says that it needs, and labels it.
    ///
    /// # Errors
    /// When an object has no kind or name, or none runs a program.
    pub(super) fn new(objects: Vec<DynamicObject>) -> anyhow::Result<Self> {
        let mut manifests = objects.into_iter().map(Manifest::new).collect::<anyhow::Result<Vec<_>>>()?;
        manifests.sort_by_key(|manifest| manifest.role);
        if !manifests.iter().any(|manifest| manifest.role == Role::Program) {
            bail!(
                "the manifests have no Deployment, so there is nothing to deploy; leave out --crds-only and --rights-only"
            );
        }
        Ok(Self { manifests })
    }

    pub(super) fn manifests(&self) -> &[Manifest] {
        &self.manifests
    }

    /// What runs the operator.
    pub(super) fn programs(&self) -> impl Iterator<Item = &Manifest> {
        self.of(Role::Program)
    }

    pub(super) fn of(&self, role: Role) -> impl Iterator<Item = &Manifest> {
        self.manifests.iter().filter(move |manifest| manifest.role == role)
    }
}

impl Manifest {
    fn new(mut object: DynamicObject) -> anyhow::Result<Self> {
        let types: &TypeMeta = object.types.as_ref().context("an object has no apiVersion and kind")?;
        let kind = GroupVersionKind::try_from(types)?;
        let name = object.metadata.name.clone().with_context(|| format!("a {} has no name", kind.kind))?;
        let namespace = object.metadata.namespace.clone().unwrap_or_default();
        let labels = object.metadata.labels.get_or_insert_default();
        labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
        Ok(Self { role: role(&kind), object, name, namespace })
    }

    /// As people write it, such as `deployment.apps/operator`.
    pub(super) fn called(&self) -> String {
        called(&self.object)
    }

    /// What is the matter when the cluster does not show it.
    pub(super) fn unread(&self) -> String {
        format!("{} cannot be read", self.called())
    }
}

fn role(kind: &GroupVersionKind) -> Role {
    match (&*kind.group, &*kind.kind) {
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Role::Kind,
        ("", "Namespace") => Role::Namespace,
        ("", "ServiceAccount") | ("rbac.authorization.k8s.io", _) => Role::Right,
        ("apps", "Deployment") => Role::Program,
        ("admissionregistration.k8s.io", _) => Role::Webhook,
        _ => Role::Other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(api_version: &str, kind: &str) -> DynamicObject {
        let object =
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": kind.to_lowercase()}});
        kubewright_objects::from_value(object).expect("an object")
    }

    #[test]
    fn kinds_are_first_and_webhooks_last() {
        let plan = Plan::new(vec![
            object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
            object("apps/v1", "Deployment"),
            object("v1", "Service"),
            object("rbac.authorization.k8s.io/v1", "ClusterRole"),
            object("v1", "ServiceAccount"),
            object("v1", "Namespace"),
            object("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ])
        .expect("a plan");
        let kind = |manifest: &'_ Manifest| manifest.object.types.clone().expect("it has one").kind;
        let order: Vec<String> = plan.manifests().iter().map(kind).collect();
        assert_eq!(
            order,
            [
                "CustomResourceDefinition",
                "Namespace",
                "ClusterRole",
                "ServiceAccount",
                "Service",
                "Deployment",
                "ValidatingWebhookConfiguration"
            ]
        );
        assert!(plan.manifests().iter().all(|manifest| {
            manifest.object.metadata.labels.as_ref().is_some_and(|labels| labels[MANAGED_BY] == MANAGER)
        }));
        assert_eq!(plan.manifests()[2].called(), "clusterrole.rbac.authorization.k8s.io/clusterrole");
        assert_eq!(plan.manifests()[3].called(), "serviceaccount/serviceaccount");
    }

    #[test]
    fn without_a_program_there_is_nothing_to_deploy() {
        let error = Plan::new(vec![object("v1", "Namespace")]).expect_err("no Deployment").to_string();
        assert!(error.contains("no Deployment") && error.contains("--crds-only"), "{error}");
        assert!(
            Plan::new(vec![kubewright_objects::from_value(json!({"metadata": {}})).expect("an object")])
                .is_err()
        );
    }
}
