//! The parameters of policies: objects that bindings name or select (`.../policy/generic/policy_dispatcher.go`,
//! `CollectParams`).

use std::sync::Arc;

use kubewright_kinds::{Kind, Kinds, encode};
use kubewright_meta::selector::LabelSelector;
use serde_json::Value;

use super::super::Review;
use super::super::matching::Attributes;

/// `paramKind`.
pub(super) struct ParamKind {
    group: String,
    version: String,
    kind: String,
}

/// `paramRef`.
pub(super) struct ParamRef {
    namespace: String,
    which: Which,
    /// `parameterNotFoundAction: Deny`.
    denies_missing: bool,
}

enum Which {
    Named(String),
    Selected(Result<LabelSelector, String>),
}

impl ParamKind {
    pub(super) fn read(kind: &Value) -> Option<Self> {
        let version = kind["apiVersion"].as_str()?;
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        Some(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind["kind"].as_str().unwrap_or_default().to_owned(),
        })
    }

    /// The kind, where it is served.
    pub(super) fn find(&self, kinds: &Kinds) -> Option<Arc<Kind>> {
        kinds.in_version(&self.group, &self.version).find(|kind| kind.kind == self.kind).cloned()
    }

    /// Group, version and resource for whoever is asked about it; `*` for a resource that is not known.
    pub(super) fn resource(&self, review: &Review<'_>) -> (String, String, String) {
        let resource =
            self.find(&review.objects.kinds()).map_or_else(|| "*".to_owned(), |kind| kind.plural.clone());
        (self.group.clone(), self.version.clone(), resource)
    }

    /// Why a policy with parameters of a kind that is not served cannot be used.
    pub(super) fn missing(&self) -> String {
        format!(
            "failed to find resource referenced by paramKind: '{}/{}, Kind={}'",
            self.group, self.version, self.kind
        )
    }
}

impl ParamRef {
    pub(super) fn read(reference: &Value) -> Option<Self> {
        let text = |field: &str| reference[field].as_str().unwrap_or_default().to_owned();
        let which = match reference.as_object()?.get("selector") {
            Some(selector) if !selector.is_null() => Which::Selected(LabelSelector::from_object(selector)),
            _ => Which::Named(text("name")),
        };
        Some(Self {
            namespace: text("namespace"),
            which,
            denies_missing: reference["parameterNotFoundAction"] == "Deny",
        })
    }

    /// The objects of `kind` that are meant for a request.
    ///
    /// # Errors
    /// What is wrong with the reference, or that there are none.
    pub(super) fn collect(&self, kind: &Kind, attributes: &Attributes<'_>) -> Result<Vec<Value>, String> {
        let namespace = match (kind.namespaced(), self.namespace.as_str(), attributes.namespace) {
            (false, "", _) => "",
            (false, ..) => {
                return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".into());
            }
            (true, "", "") => {
                return Err(
                    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                        .into(),
                );
            }
            (true, "", own) => own,
            (true, given, _) => given,
        };
        let snapshot = attributes.review.objects.snapshot();
        let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        let found: Vec<Value> = match &self.which {
            Which::Named(name) => {
                let entry = snapshot.get(&kind.collection, &format!("{prefix}{name}"));
                entry.map(|entry| encode::value(kind, entry)).into_iter().collect()
            }
            Which::Selected(selector) => {
                let selector = selector.as_ref().map_err(Clone::clone)?;
                let entries = snapshot.range(&kind.collection, &prefix, None);
                let selected = entries.filter(|entry| selector.matches_by(|key| entry.tag.label(key)));
                selected.map(|entry| encode::value(kind, entry)).collect()
            }
        };
        if found.is_empty() && self.denies_missing {
            return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
        }
        Ok(found)
    }
}
