//! Compare and write: what is stored gets the fields that are desired, and nothing is written when it has them.

mod shared;

use std::sync::Arc;

use k8s_openapi::{ByteString, apimachinery::pkg::apis::meta::v1::OwnerReference};
pub use kubewright_meta::desired::Difference;
use kubewright_meta::{desired, subset};
use serde_json::{Map, Value, json};

use crate::{
    Error, Object,
    object::{split_fields, to_json, to_value},
    owner::{self, Owner},
};

/// Result of [`crate::Context::ensure`]: what it did, with the object as it is now.
#[derive(Clone, Debug)]
pub enum Ensured<K> {
    /// The object was not there and was created.
    Created(Arc<K>),
    /// The object differed and was changed.
    Updated {
        /// As it is now.
        object: Arc<K>,
        /// What differed, for a log or an event.
        changed: String,
    },
    /// The object had every field; nothing was written.
    Unchanged(Arc<K>),
}

impl<K> Ensured<K> {
    /// The object as it is now.
    #[must_use]
    pub fn object(&self) -> &Arc<K> {
        match self {
            Self::Created(object) | Self::Updated { object, .. } | Self::Unchanged(object) => object,
        }
    }

    /// Whether something was written.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        !matches!(self, Self::Unchanged(_))
    }
}

/// The merge patch that gives `current` what it lacks of `wanted`; `None` if it has everything.
#[cfg(feature = "webhook")]
pub(crate) fn lacks(wanted: &Value, current: &Value) -> Option<Value> {
    desired::between(wanted, current).map(|difference| difference.patch)
}

/// The reference that makes `owner` the controller of `desired`.
pub(crate) fn reference<K: Object>(desired: &K, owner: &(dyn Owner + Sync)) -> Result<OwnerReference, Error> {
    let reference = owner.controller_reference()?;
    // A namespaced owner is looked for in the namespace of its dependent; elsewhere it counts as gone, and the
    // dependent would be collected (`validateOwner` in controller-runtime's controllerutil).
    if owner.namespace().is_some() && owner.namespace() != desired.meta().namespace.as_deref() {
        return Err(Error::terminal(format!(
            "{} {} cannot own a {} outside of its namespace",
            reference.kind,
            reference.name,
            K::kind(&())
        )));
    }
    Ok(reference)
}

/// What `current` lacks of `desired`, and of being controlled by `reference`.
pub(crate) fn difference<K: Object>(
    desired: &K,
    current: &K,
    reference: Option<&OwnerReference>,
) -> Result<Option<Difference>, Error> {
    let mut wanted = to_value(desired)?;
    if let Value::Object(fields) = &mut wanted {
        fields.retain(|field, _| !matches!(field.as_str(), "apiVersion" | "kind" | "status"));
        fields.insert("metadata".to_owned(), wanted_metadata(desired, current, reference)?);
    }
    let (group, kind) = (K::group(&()), K::kind(&()));
    if group.is_empty() && kind == "Secret" {
        fold_string_data(&mut wanted)?;
    }
    let text = to_json(current)?;
    let fields = split_fields(&text)?;
    let mut stored = Map::new();
    if let Value::Object(wanted) = &mut wanted {
        // Most often there is nothing to do, and nothing has to be decoded to see that.
        if !shared::has_lists(&group, &kind) {
            wanted.retain(|field, wanted| match fields.get(field) {
                Some(stored) => !subset::is_in_value(wanted, stored.get()),
                None => !subset::is_nothing(wanted),
            });
        }
        for (field, text) in fields.into_iter().filter(|(field, _)| wanted.contains_key(field)) {
            stored.insert(field, serde_json::from_str(text.get())?);
        }
    }
    let stored = Value::Object(stored);
    shared::keep_others(&group, &kind, &mut wanted, &stored);
    let difference = desired::between(&wanted, &stored);
    Ok(difference.map(|mut difference| {
        // The patch of an object is an object; what indexing does not find, it makes.
        difference.patch["metadata"]["resourceVersion"] = json!(current.meta().resource_version);
        difference
    }))
}

/// Makes a Secret's `stringData` what the server makes of it: entries of `data`, in place of those of the same key
/// (`Convert_v1_Secret_To_core_Secret` in `k8s.io/kubernetes/pkg/apis/core/v1/conversion.go`).
fn fold_string_data(secret: &mut Value) -> Result<(), Error> {
    let Some(Value::Object(texts)) = secret.as_object_mut().and_then(|secret| secret.remove("stringData"))
    else {
        return Ok(());
    };
    for (key, text) in texts {
        let bytes = ByteString(text.as_str().unwrap_or_default().as_bytes().to_vec());
        secret["data"][key] = to_value(&bytes)?;
    }
    Ok(())
}

/// The metadata that the object should have: labels and annotations as desired; finalizers and owners besides those
/// that it has.
fn wanted_metadata<K: Object>(
    desired: &K,
    current: &K,
    reference: Option<&OwnerReference>,
) -> Result<Value, Error> {
    let (meta, current) = (desired.meta(), current.meta());
    let mut finalizers = current.finalizers.clone().unwrap_or_default();
    for finalizer in meta.finalizers.iter().flatten() {
        if !finalizers.contains(finalizer) {
            finalizers.push(finalizer.clone());
        }
    }
    let mut owners = current.owner_references.clone().unwrap_or_default();
    for wanted in meta.owner_references.iter().flatten().chain(reference) {
        if wanted.controller == Some(true)
            && let Some(other) = owner::controller_of(current)
            && other.uid != wanted.uid
        {
            return Err(Error::new(format!(
                "{} {} is controlled by {} {}, not by {} {}",
                K::kind(&()),
                crate::Key::of(desired),
                other.kind,
                other.name,
                wanted.kind,
                wanted.name
            )));
        }
        match owners.iter_mut().find(|owner| owner.uid == wanted.uid) {
            Some(owner) => *owner = wanted.clone(),
            None => owners.push(wanted.clone()),
        }
    }
    Ok(json!({
        "labels": meta.labels.clone().unwrap_or_default(),
        "annotations": meta.annotations.clone().unwrap_or_default(),
        "finalizers": finalizers,
        "ownerReferences": owners,
    }))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Secret;

    use super::*;

    fn secret(secret: Value) -> Secret {
        kubewright_objects::from_value(secret).expect("a Secret")
    }

    #[test]
    fn string_data_is_wanted_as_the_data_that_the_server_makes_of_it() {
        let wanted = secret(json!({"data": {"a": "b2xk", "b": "YmI="}, "stringData": {"a": "new"}}));
        let lacks = |current: Value| difference(&wanted, &secret(current), None).expect("a difference");
        assert_eq!(lacks(json!({"data": {"a": "bmV3", "b": "YmI=", "c": ""}})), None);
        let lacking = lacks(json!({"data": {"a": "b2xk", "b": "YmI="}})).expect("a difference");
        assert_eq!(lacking.patch["data"], json!({"a": "bmV3"}));
        let texts = secret(json!({"stringData": {"a": "new"}}));
        assert_eq!(difference(&texts, &secret(json!({"data": {"a": "bmV3"}})), None).expect("none"), None);
    }
}
