//! What is kept of the objects of one kind, and how it is made of what the API server sends.

use std::{
    any::{Any, TypeId, type_name},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use kubewright_objects::{AnyObject, Cached, Kept, Reduce};

use super::packed::Packing;

/// Takes away from an object what need not be kept.
pub(crate) type Project<K> = Arc<dyn Fn(&mut K) + Send + Sync>;

/// As [`Project`], of a type that is forgotten.
type AnyProject = Box<dyn Fn(&mut dyn Any) + Send + Sync>;

/// Makes objects of one kind of their JSON, and takes away what is not kept.
pub(super) struct Decoder {
    decode: fn(&str, Reduce<'_>) -> serde_json::Result<Arc<dyn AnyObject>>,
    project: Option<AnyProject>,
    /// How objects are kept as text, if they are.
    packing: Option<Arc<Packing>>,
    id: TypeId,
    name: &'static str,
}

impl Decoder {
    /// A decoder that keeps what `project` leaves. Objects of which all is kept are kept as text, unless `as_values` is set.
    pub(super) fn of<K: Cached>(project: Option<Project<K>>, as_values: bool) -> Self {
        let packs = !as_values && project.is_none();
        let project = project.map(|project| -> AnyProject {
            Box::new(move |object| object.downcast_mut().into_iter().for_each(|object| project(object)))
        });
        Self {
            // The value beside a text soon goes.
            decode: match packs {
                true => kubewright_objects::decode::<K>,
                false => kubewright_objects::decode_compact::<K>,
            },
            project,
            packing: packs.then(|| {
                Packing::new(size_of::<K>(), |text| kubewright_objects::decode::<K>(text, &forget_managers))
            }),
            id: TypeId::of::<K>(),
            name: type_name::<K>(),
        }
    }

    /// Whether objects of type `K` are kept.
    pub(super) fn is_of<K: Cached>(&self) -> bool {
        self.id == TypeId::of::<K>()
    }

    pub(super) fn is_projected(&self) -> bool {
        self.project.is_some()
    }

    /// What is kept of the object that is written in JSON.
    pub(super) fn decode(&self, text: &str) -> serde_json::Result<Arc<dyn Kept>> {
        let value = (self.decode)(text, &|object| self.reduce(object))?;
        Ok(match &self.packing {
            Some(packing) => packing.pack(value, text),
            None => value,
        })
    }

    /// What is kept of an object that was read from this JSON, in which there are no managed fields.
    pub(super) fn keep<K: Cached>(&self, object: &Arc<K>, text: &str) -> Arc<dyn Kept> {
        match &self.packing {
            // Of what is kept as text nothing is taken away.
            Some(packing) => packing.pack(object.clone(), text),
            None => self.transform(K::clone(object)),
        }
    }

    /// What is kept of an object whose JSON is not known.
    pub(super) fn transform<K: Cached>(&self, object: K) -> Arc<dyn AnyObject> {
        kubewright_objects::erase(object, &|object| self.reduce(object))
    }

    /// A projection that panics leaves an object as far as it came.
    fn reduce(&self, object: &mut dyn AnyObject) {
        if let Some(project) = &self.project
            && catch_unwind(AssertUnwindSafe(|| project(object.any_mut()))).is_err()
        {
            tracing::error!(kind = self.name, "a projection panicked; the object is kept as it was left");
        }
        forget_managers(object);
    }
}

fn forget_managers(object: &mut dyn AnyObject) {
    object.metadata_mut().managed_fields = None;
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kubewright_objects::typed;
    use serde_json::json;

    use super::*;

    fn stored() -> ConfigMap {
        kubewright_objects::from_value(json!({
            "metadata": {"name": "a", "managedFields": [{"manager": "test"}]}, "data": {"a": "1", "b": "2"}
        }))
        .expect("a ConfigMap")
    }

    #[test]
    fn managed_fields_are_not_kept() {
        let decoder = Decoder::of::<ConfigMap>(None, false);
        let kept = typed::<ConfigMap>(decoder.transform(stored())).expect("a ConfigMap");
        assert_eq!(kept.metadata.managed_fields, None);
        assert_eq!(kept.data, stored().data);
    }

    #[test]
    fn no_room_is_kept_for_more_than_there_is() {
        let text = r#"{"metadata": {"name": "a", "finalizers": ["example.com/a"], "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": "c"}]}}"#;
        let kept = typed::<ConfigMap>(
            Decoder::of::<ConfigMap>(None, true).decode(text).expect("it is JSON").value(),
        );
        let meta = &kept.as_ref().expect("a ConfigMap").metadata;
        assert_eq!(meta.finalizers.as_ref().map(Vec::capacity), Some(1));
        assert_eq!(meta.owner_references.as_ref().map(Vec::capacity), Some(1));
    }

    #[test]
    fn a_projection_that_panics_leaves_what_it_did_until_then() {
        let decoder = Decoder::of::<ConfigMap>(
            Some(Arc::new(|map| {
                map.data = None;
                panic!("on purpose");
            })),
            false,
        );
        let kept = typed::<ConfigMap>(decoder.transform(stored())).expect("a ConfigMap");
        assert_eq!((kept.data.clone(), kept.metadata.managed_fields.clone()), (None, None));
    }
}
