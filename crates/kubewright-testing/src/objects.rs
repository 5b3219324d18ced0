//! Objects, as a test looks at them and changes them: by the administrator, in the cluster's namespace.

use std::fmt::Display;

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kubewright_runtime::Object;
use serde_json::Value;

use crate::Cluster;
use crate::history::ObjectId;

impl Cluster {
    /// The object `name`.
    ///
    /// # Panics
    /// When it is not there; with its history.
    pub async fn get<K: Object>(&self, name: &str) -> K {
        match self.try_get(name).await {
            Some(object) => object,
            None => panic!("there is no {} {name}\n{}", K::kind(&()), self.looked_at_history()),
        }
    }

    /// The object `name`, if it is there.
    ///
    /// # Panics
    /// When the API server does not say.
    pub async fn try_get<K: Object>(&self, name: &str) -> Option<K> {
        self.look_at(ObjectId::of::<K>(self.namespace(), name));
        match self.api::<K>(None).get_opt(name).await {
            Ok(found) => found.as_ref().map(typed),
            Err(error) => self.failed::<K>("get", name, &error),
        }
    }

    /// All objects of a kind in the namespace, sorted by name.
    ///
    /// # Panics
    /// When the API server does not say.
    pub async fn list<K: Object>(&self) -> Vec<K> {
        match self.api::<K>(None).list(&ListParams::default()).await {
            Ok(found) => found.items.iter().map(|object| self.noted(typed(object))).collect(),
            Err(error) => self.failed::<K>("list", "", &error),
        }
    }

    /// The objects of a kind in the namespace that belong to another one: those with an owner reference to it.
    ///
    /// # Panics
    /// When the API server does not say.
    pub async fn owned_by<K: Object>(&self, owner: &impl Object) -> Vec<K> {
        let uid = owner.meta().uid.as_deref().unwrap_or_default();
        let mut all = self.list::<K>().await;
        let refers =
            |object: &K| object.meta().owner_references.iter().flatten().any(|owner| owner.uid == uid);
        all.retain(refers);
        all
    }

    /// Whether the object `name` is there.
    ///
    /// # Panics
    /// When the API server does not say.
    pub async fn exists<K: Object>(&self, name: &str) -> bool {
        self.try_get::<K>(name).await.is_some()
    }

    /// Creates an object, in its own namespace if it names one; gives what was created.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn create<K: Object>(&self, object: &K) -> K {
        self.injector().next(self).await;
        let api = self.api::<K>(object.meta().namespace.as_deref());
        match api.create(&PostParams::default(), &untyped(object)).await {
            Ok(created) => self.noted(typed(&created)),
            Err(error) => {
                self.failed::<K>("create", object.meta().name.as_deref().unwrap_or_default(), &error)
            }
        }
    }

    /// Applies the manifest of an object, such as a sample, as `kubectl apply --server-side --validate=strict` does: a field
    /// that the kind does not know is refused. Gives what it is now.
    ///
    /// # Panics
    /// When it is no manifest of one object with a name, or is refused.
    pub async fn apply<K: Object>(&self, manifest: &str) -> K {
        self.injector().next(self).await;
        let object: DynamicObject = match serde_saphyr::from_str(manifest) {
            Ok(object) => object,
            Err(error) => self.failed::<K>("apply", "", &error),
        };
        let name = object.metadata.name.clone().unwrap_or_default();
        let api = self.api::<K>(object.metadata.namespace.as_deref());
        let params = PatchParams::apply("kubectl").validation_strict();
        match api.patch(&name, &params, &Patch::Apply(&object)).await {
            Ok(applied) => self.noted(typed(&applied)),
            Err(error) => self.failed::<K>("apply", &name, &error),
        }
    }

    /// Replaces an object; gives what it is now.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn update<K: Object>(&self, object: &K) -> K {
        self.injector().next(self).await;
        let name = object.meta().name.as_deref().unwrap_or_default();
        let api = self.api::<K>(object.meta().namespace.as_deref());
        match api.replace(name, &PostParams::default(), &untyped(object)).await {
            Ok(updated) => self.noted(typed(&updated)),
            Err(error) => self.failed::<K>("update", name, &error),
        }
    }

    /// Changes the object `name` by a merge patch, such as `json!({"spec": {"replicas": 2}})`; gives what it is now.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn patch<K: Object>(&self, name: &str, patch: Value) -> K {
        self.injector().next(self).await;
        self.look_at(ObjectId::of::<K>(self.namespace(), name));
        match self.api::<K>(None).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(patched) => typed(&patched),
            Err(error) => self.failed::<K>("patch", name, &error),
        }
    }

    /// Deletes the object `name`. With finalizers, or dependents in the foreground, it is there until they are gone.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn delete<K: Object>(&self, name: &str) {
        self.injector().next(self).await;
        self.look_at(ObjectId::of::<K>(self.namespace(), name));
        if let Err(error) = self.api::<K>(None).delete(name, &DeleteParams::default()).await {
            self.failed::<K>("delete", name, &error);
        }
    }

    fn api<K: Object>(&self, namespace: Option<&str>) -> Api<DynamicObject> {
        let kind = ApiResource::erase::<K>(&());
        match K::is_namespaced() {
            true => Api::namespaced_with(self.client(), namespace.unwrap_or_else(|| self.namespace()), &kind),
            false => Api::all_with(self.client(), &kind),
        }
    }

    fn noted<K: Object>(&self, object: K) -> K {
        let meta = object.meta();
        let namespace = meta.namespace.as_deref().unwrap_or_default();
        self.look_at(ObjectId::of::<K>(namespace, meta.name.as_deref().unwrap_or_default()));
        object
    }

    fn failed<K: Object>(&self, verb: &str, name: &str, error: &impl Display) -> ! {
        panic!("{verb} {} {name}: {error}\n{}", K::kind(&()), self.looked_at_history());
    }
}

fn typed<K: Object>(object: &DynamicObject) -> K {
    kubewright_objects::convert(object)
        .unwrap_or_else(|error| panic!("what the API server has is no {}: {error}", K::kind(&())))
}

fn untyped<K: Object>(object: &K) -> DynamicObject {
    kubewright_objects::convert(object)
        .unwrap_or_else(|error| panic!("a {} that is no object: {error}", K::kind(&())))
}
