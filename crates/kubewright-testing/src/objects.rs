//! Objects, as a test looks at them and changes them: by the administrator, in the cluster's namespace.

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kubewright_runtime::Object;
use serde_json::Value;

use crate::Cluster;

impl Cluster {
    /// The object `name`.
    ///
    /// # Panics
    /// When it is not there.
    pub async fn get<K: Object>(&self, name: &str) -> K {
        match self.try_get(name).await {
            Some(object) => object,
            None => panic!("there is no {} {name}", K::kind(&())),
        }
    }

    /// The object `name`, if it is there.
    ///
    /// # Panics
    /// When the API server does not say.
    pub async fn try_get<K: Object>(&self, name: &str) -> Option<K> {
        let found = self.api::<K>(None).get_opt(name).await;
        found.unwrap_or_else(|error| panic!("get {} {name}: {error}", K::kind(&()))).map(typed)
    }

    /// All objects of a kind in the namespace, sorted by name.
    ///
    /// # Panics
    /// When the API server does not say.
    pub async fn list<K: Object>(&self) -> Vec<K> {
        let found = self.api::<K>(None).list(&ListParams::default()).await;
        let found = found.unwrap_or_else(|error| panic!("list {}: {error}", K::plural(&())));
        found.items.into_iter().map(typed).collect()
    }

    /// Creates an object, in its own namespace if it names one; gives what was created.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn create<K: Object>(&self, object: &K) -> K {
        let created = self
            .api::<K>(object.meta().namespace.as_deref())
            .create(&PostParams::default(), &untyped(object))
            .await;
        created.map_or_else(|error| panic!("create {}: {error}", K::kind(&())), typed)
    }

    /// Replaces an object; gives what it is now.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn update<K: Object>(&self, object: &K) -> K {
        let name = object.meta().name.as_deref().unwrap_or_default();
        let api = self.api::<K>(object.meta().namespace.as_deref());
        let updated = api.replace(name, &PostParams::default(), &untyped(object)).await;
        updated.map_or_else(|error| panic!("update {} {name}: {error}", K::kind(&())), typed)
    }

    /// Changes the object `name` by a merge patch, such as `json!({"spec": {"replicas": 2}})`; gives what it is now.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn patch<K: Object>(&self, name: &str, patch: Value) -> K {
        let patched = self.api::<K>(None).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.map_or_else(|error| panic!("patch {} {name}: {error}", K::kind(&())), typed)
    }

    /// Deletes the object `name`. With finalizers, or dependents in the foreground, it is there until they are gone.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn delete<K: Object>(&self, name: &str) {
        if let Err(error) = self.api::<K>(None).delete(name, &DeleteParams::default()).await {
            panic!("delete {} {name}: {error}", K::kind(&()));
        }
    }

    /// Whether the object `name` is there.
    ///
    /// # Panics
    /// When the API server does not say.
    pub async fn exists<K: Object>(&self, name: &str) -> bool {
        self.try_get::<K>(name).await.is_some()
    }

    fn api<K: Object>(&self, namespace: Option<&str>) -> Api<DynamicObject> {
        let kind = ApiResource::erase::<K>(&());
        match K::is_namespaced() {
            true => Api::namespaced_with(self.client(), namespace.unwrap_or_else(|| self.namespace()), &kind),
            false => Api::all_with(self.client(), &kind),
        }
    }
}

fn typed<K: Object>(object: DynamicObject) -> K {
    object
        .try_parse()
        .unwrap_or_else(|error| panic!("what the API server has is no {}: {error}", K::kind(&())))
}

fn untyped<K: Object>(object: &K) -> DynamicObject {
    let parsed = serde_json::to_value(object).and_then(serde_json::from_value);
    parsed.unwrap_or_else(|error| panic!("a {} that is no object: {error}", K::kind(&())))
}
