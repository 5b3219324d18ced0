//! Finalizers: what must be cleaned up before an object may go.
//!
//! These change an object in memory; [`crate::Context::add_finalizer`] and [`crate::Context::remove_finalizer`] write.
//! [`crate::Context::guard`] does all that a cleanup takes.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kubewright_runtime::finalizer;
//!
//! let mut map = ConfigMap::default();
//! assert!(finalizer::add(&mut map, "example.com/cleanup"));
//! assert!(!finalizer::add(&mut map, "example.com/cleanup"), "it has it");
//! assert!(finalizer::remove(&mut map, "example.com/cleanup") && !finalizer::has(&map, "example.com/cleanup"));
//! ```

use kube::Resource;

/// Whether `object` carries the finalizer `name`.
#[must_use]
pub fn has<K: Resource>(object: &K, name: &str) -> bool {
    object.meta().finalizers.iter().flatten().any(|finalizer| finalizer == name)
}

/// Adds the finalizer `name`; tells whether it was missing.
pub fn add<K: Resource>(object: &mut K, name: &str) -> bool {
    let missing = !has(object, name);
    if missing {
        object.meta_mut().finalizers.get_or_insert_default().push(name.to_owned());
    }
    missing
}

/// Takes the finalizer `name` away; tells whether it was there.
pub fn remove<K: Resource>(object: &mut K, name: &str) -> bool {
    let there = has(object, name);
    if let Some(finalizers) = &mut object.meta_mut().finalizers {
        finalizers.retain(|finalizer| finalizer != name);
    }
    there
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[test]
    fn a_finalizer_is_there_once_and_the_others_stay() {
        let mut object = ConfigMap::default();
        assert!(add(&mut object, "a"));
        assert!(add(&mut object, "b"));
        assert!(!add(&mut object, "a"));
        assert!(remove(&mut object, "a"));
        assert!(!remove(&mut object, "a"));
        assert_eq!(object.metadata.finalizers, Some(vec!["b".to_owned()]));
    }
}
