//! The names in an installation.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{super::Operator, Installation};
use crate::Error;

/// What the objects of an installation are called.
pub(super) struct Layout {
    pub(super) name: String,
    /// The namespace of the operator.
    pub(super) home: String,
    pub(super) image: String,
    /// Which namespaces it looks at; none for all.
    pub(super) watched: Vec<String>,
    pub(super) labels: BTreeMap<String, String>,
    /// Whether its replicas share keys, in place of electing a leader.
    pub(super) sharded: bool,
    /// Whether it serves webhooks, and with which certificate.
    #[cfg(feature = "webhook")]
    pub(super) webhooks: Option<super::WebhookCertificate>,
}

impl Layout {
    pub(super) fn new(operator: &Operator, installation: &Installation) -> Result<Self, Error> {
        let name = operator.name.clone();
        let is_label = |name: &str| {
            let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            !name.is_empty() && !name.starts_with('-') && !name.ends_with('-') && name.chars().all(inner)
        };
        // The longest suffix, and what names of services may have.
        if !is_label(&name) || name.len() > 50 {
            return Err(Error::Misconfigured(format!(
                "{name:?} is no name for an operator: lower case letters, digits and dashes, at most 50"
            )));
        }
        let image = installation.image.clone().unwrap_or_else(|| format!("{name}:{}", operator.version));
        let labels = BTreeMap::from([("app.kubernetes.io/name".to_owned(), name.clone())]);
        let mut watched = installation.namespaces.clone();
        watched.sort();
        watched.dedup();
        Ok(Self {
            home: operator.home(installation),
            name,
            image,
            watched,
            labels,
            sharded: operator.sharded,
            #[cfg(feature = "webhook")]
            webhooks: operator.webhooks.as_ref().map(|_| installation.webhook_certificate),
        })
    }

    /// Metadata of an object without namespace.
    pub(super) fn global(&self, name: &str) -> ObjectMeta {
        ObjectMeta { name: Some(name.to_owned()), labels: Some(self.labels.clone()), ..ObjectMeta::default() }
    }

    /// Metadata of an object in the operator's namespace.
    pub(super) fn local(&self, name: &str) -> ObjectMeta {
        self.inside(&self.home, name)
    }

    pub(super) fn inside(&self, namespace: &str, name: &str) -> ObjectMeta {
        ObjectMeta { namespace: Some(namespace.to_owned()), ..self.global(name) }
    }

    /// `<operator>-<what>`.
    pub(super) fn named(&self, what: &str) -> String {
        format!("{}-{what}", self.name)
    }
}
