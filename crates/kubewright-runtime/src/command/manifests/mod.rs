//! `manifests`: what a cluster needs before the operator runs, and the operator itself.

mod layout;
mod pod;
mod program;
mod roles;
#[cfg(feature = "webhook")]
mod webhooks;

use clap::Args;
#[cfg(feature = "webhook")]
use clap::ValueEnum;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::DynamicObject;
use serde::Serialize;

use self::layout::Layout;
pub use self::pod::PodShape;
pub(super) use self::pod::Shape;
#[cfg(feature = "webhook")]
use super::AdmissionFlags;
use super::Operator;
use crate::{Error, rbac};

/// How an operator is installed: what the flags of `manifests` say.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// The namespace that the operator lives in; `<operator>-system` if not told
    #[arg(long, value_name = "NAME")]
    pub install_namespace: Option<String>,
    /// The image of the operator; `<operator>:<version>` if not told
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// How many replicas there are, of which one works unless they share their keys
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub replicas: u16,
    /// Let it look only at these namespaces, separated by commas, and give it no rights elsewhere
    #[arg(long = "namespace", short, value_name = "NAMES", value_delimiter = ',')]
    pub namespaces: Vec<String>,
    /// Where the certificate of its webhooks comes from
    #[cfg(feature = "webhook")]
    #[arg(long, value_enum, default_value_t = WebhookCertificate::Own)]
    pub webhook_certificate: WebhookCertificate,
    /// What its admission webhooks are asked about.
    #[cfg(feature = "webhook")]
    #[command(flatten)]
    pub admission: AdmissionFlags,
    /// Print nothing but the definitions of the operator's kinds
    #[arg(long, conflicts_with = "rights_only")]
    pub crds_only: bool,
    /// Print nothing but the account and its rights
    #[arg(long)]
    pub rights_only: bool,
    /// Print what each further cluster needs that the operator works in: the definitions of its kinds, an account and its rights there
    #[arg(long, conflicts_with_all = ["crds_only", "rights_only"])]
    pub further_cluster: bool,
}

/// Where the certificate of an installed operator's webhooks comes from.
#[cfg(feature = "webhook")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum WebhookCertificate {
    /// An authority of its own, in the Secret `<operator>-webhook-ca`, that it makes and renews.
    #[default]
    Own,
    /// cert-manager, which must be there.
    CertManager,
    /// The Secret `<operator>-webhook-cert` (`tls.crt`, `tls.key`, `ca.crt`), that somebody else makes and renews.
    Secret,
}

impl Default for Installation {
    /// What an empty command line says.
    fn default() -> Self {
        Self {
            install_namespace: None,
            image: None,
            replicas: 1,
            namespaces: Vec::new(),
            #[cfg(feature = "webhook")]
            webhook_certificate: WebhookCertificate::default(),
            #[cfg(feature = "webhook")]
            admission: AdmissionFlags::default(),
            crds_only: false,
            rights_only: false,
            further_cluster: false,
        }
    }
}

/// One object, its kind forgotten.
pub(super) fn dynamic(typed: &impl Serialize) -> Result<DynamicObject, serde_json::Error> {
    kubewright_objects::convert(typed)
}

impl Operator {
    /// What installs it, in the order in which it is to be applied: the definitions of its kinds, its namespace, account and
    /// rights, what else [belongs to it](Operator::install), its Services, its Deployment, and the configurations of its
    /// webhooks.
    ///
    /// # Errors
    /// [`Error::Misconfigured`] when the operator's name is no name of objects, or it is put together wrongly.
    pub fn manifests(&self, installation: &Installation) -> Result<Vec<DynamicObject>, Error> {
        self.check()?;
        self.check_namespaces(&installation.namespaces)?;
        let layout = Layout::new(self, installation)?;
        if installation.further_cluster {
            return self.in_further_cluster(&layout);
        }
        let mut objects = Vec::new();
        if !installation.rights_only {
            objects.extend(self.installed_definitions(&layout)?);
        }
        if installation.crds_only {
            return Ok(objects);
        }
        objects.push(dynamic(&Namespace { metadata: layout.global(&layout.home), ..Namespace::default() })?);
        let account = ServiceAccount { metadata: layout.local(&self.name), ..ServiceAccount::default() };
        objects.push(dynamic(&account)?);
        objects.extend(layout.roles(&self.rights())?);
        #[cfg(feature = "webhook")]
        objects.extend(layout.webhook_roles(self.webhooks.as_ref())?);
        if installation.rights_only {
            return Ok(objects);
        }
        objects.extend(self.objects.iter().cloned());
        objects.push(dynamic(&layout.metrics_service()?)?);
        #[cfg(feature = "webhook")]
        objects.extend(layout.webhook_objects(self.webhooks.as_ref())?);
        objects.push(dynamic(&layout.deployment(installation, &self.deployed_with, &self.shapes)?)?);
        #[cfg(feature = "webhook")]
        {
            let webhooks = self.webhooks.clone();
            let webhooks = webhooks.map(|webhooks| installation.admission.apply(webhooks)).transpose()?;
            objects.extend(layout.webhook_configurations(webhooks.as_ref())?);
        }
        Ok(objects)
    }

    /// What each further cluster needs.
    fn in_further_cluster(&self, layout: &Layout) -> Result<Vec<DynamicObject>, Error> {
        let rights = self.rights_in_clusters();
        if rights.is_empty() {
            return Err(Error::Misconfigured(format!(
                "{} works in one cluster: no controller says in_each_cluster or watches_in_each",
                self.name
            )));
        }
        let definitions = self.definitions.iter().map(dynamic).collect::<Result<Vec<_>, _>>()?;
        let mut objects = definitions;
        objects.push(dynamic(&Namespace { metadata: layout.global(&layout.home), ..Namespace::default() })?);
        let account = ServiceAccount { metadata: layout.local(&self.name), ..ServiceAccount::default() };
        objects.push(dynamic(&account)?);
        objects.extend(layout.own_roles(&rights)?);
        Ok(objects)
    }

    /// [The manifests](Operator::manifests) but the Deployment: for an operator that runs elsewhere, such as in a test.
    ///
    /// # Errors
    /// As [`Operator::manifests`].
    pub fn prerequisites(&self, installation: &Installation) -> Result<Vec<DynamicObject>, Error> {
        let mut objects = self.manifests(installation)?;
        let is_program = |object: &DynamicObject| {
            object.types.as_ref().is_some_and(|types| types.kind == "Deployment")
                && object.metadata.name.as_deref() == Some(&self.name)
        };
        objects.retain(|object| !is_program(object));
        Ok(objects)
    }

    /// The namespace that it is installed in; its service account there is called like it.
    #[must_use]
    pub fn home(&self, installation: &Installation) -> String {
        installation.install_namespace.clone().unwrap_or_else(|| format!("{}-system", self.name))
    }

    /// The definitions of its kinds, with the conversion between their versions where it has one.
    fn installed_definitions(&self, layout: &Layout) -> Result<Vec<DynamicObject>, Error> {
        #[cfg(feature = "webhook")]
        let conversions = layout.webhook_manifests(self.webhooks.as_ref());
        #[cfg(not(feature = "webhook"))]
        let _ = layout;
        let definitions = self.definitions.iter().map(|definition| {
            #[cfg(feature = "webhook")]
            let definition = &conversions.iter().fold(definition.clone(), |mut definition, manifests| {
                manifests.convert(&mut definition);
                definition
            });
            Ok(dynamic(definition)?)
        });
        definitions.collect()
    }

    /// [The manifests](Operator::manifests) as a stream of YAML documents.
    pub(super) fn yaml(&self, installation: &Installation) -> Result<String, Error> {
        rbac::yaml(&self.manifests(installation)?)
    }
}
