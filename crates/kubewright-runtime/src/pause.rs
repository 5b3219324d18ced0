//! Objects that are left alone for a while, because somebody said so on them.

use std::sync::Arc;

use kube::api::ObjectMeta;

use crate::{Cache, Key, Object};

/// With the value `"true"` on an object of a controller's own kind it is not reconciled:
/// `kubectl annotate widget a kubewright.dev/paused=true`, and `kubewright.dev/paused-` to go on.
pub const PAUSED: &str = "kubewright.dev/paused";

/// How a controller knows which of its objects are paused.
#[derive(Clone)]
pub(crate) struct Pause {
    pub(crate) annotation: Arc<str>,
    /// Looks at the own kind's object.
    pub(crate) look: HasAnnotation,
}

/// Whether the object of a kind that has this key has this annotation.
pub(crate) type HasAnnotation = fn(&Cache, &Key, &str) -> bool;

impl Pause {
    /// Whether the object is there and paused. One that is gone is not: its end has to be seen.
    pub(crate) fn holds(&self, cache: &Cache, key: &Key) -> bool {
        (self.look)(cache, key, &self.annotation)
    }
}

pub(crate) fn look<K: Object>(cache: &Cache, key: &Key, annotation: &str) -> bool {
    cache.get::<K>(key).is_some_and(|object| is_paused(object.meta(), annotation))
}

pub(crate) fn is_paused(meta: &ObjectMeta, annotation: &str) -> bool {
    meta.annotations.as_ref().and_then(|all| all.get(annotation)).is_some_and(|value| value == "true")
}
