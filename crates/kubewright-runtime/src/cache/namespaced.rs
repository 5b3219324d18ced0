//! What kube's client has to be told of a kind to read one namespace of it.

use std::borrow::Cow;

use kube::{Resource, api::ObjectMeta, core::DynamicResourceScope};
use serde::Deserialize;

/// An object of a kind whose scope is known at run time only: what kube wants for reading one namespace, which generic code
/// cannot promise at compile time.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Namespaced<K>(pub(super) K);

impl<K: Resource> Resource for Namespaced<K> {
    type DynamicType = K::DynamicType;
    type Scope = DynamicResourceScope;

    fn kind(kind: &K::DynamicType) -> Cow<'_, str> {
        K::kind(kind)
    }

    fn group(kind: &K::DynamicType) -> Cow<'_, str> {
        K::group(kind)
    }

    fn version(kind: &K::DynamicType) -> Cow<'_, str> {
        K::version(kind)
    }

    fn plural(kind: &K::DynamicType) -> Cow<'_, str> {
        K::plural(kind)
    }

    fn metadata_api() -> bool {
        K::metadata_api()
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}
