//! What the server answers to a write, which the cache has before its caller.

use std::sync::Arc;

use super::Context;
use crate::{
    Cached, Error, Key,
    cache::{Intent, Owned},
    endpoint::ApiResponse,
};

/// What the server answered to a write.
pub(crate) struct Answer<K> {
    pub(crate) object: Arc<K>,
    /// Whether it was not there before.
    pub(crate) is_new: bool,
    /// What the appliers own of it, if it is kept whole.
    pub(crate) owned: Vec<Owned>,
}

impl Context {
    /// Sends a write and tells the cache what came of it before the caller knows. It is one of the object of this key, if that
    /// is known before.
    pub(crate) async fn write_answered<K: Cached>(
        &self,
        kind: &K::DynamicType,
        key: Option<Key>,
        intent: Intent<'_>,
        request: impl Future<Output = kube::Result<ApiResponse<K>>>,
    ) -> Result<Answer<K>, Error> {
        let informer = self.0.cache.informer_of::<K>(kind);
        let write = informer.as_ref().map(|informer| (informer, informer.write(key, self.1.clone())));
        let ApiResponse { object, text, managed_fields, is_new } = request.await?;
        let object = Arc::new(object);
        let owned = informer.as_ref().map(|informer| informer.owned_in(managed_fields.as_deref()));
        let owned = owned.unwrap_or_default();
        self.0.sink.metrics.writes.inc();
        if let Some((informer, write)) = write {
            if ended_by_update(kind, &*object) {
                write.ended(&Key::of(&*object), object.meta().uid.as_deref());
            } else if informer.selects(&*object) {
                let kept = informer.keep(&object, &text);
                write.returned(&kept, owned.clone(), write.is_own() && intent.is_met_by(&text));
            }
        }
        Ok(Answer { object, is_new, owned })
    }
}

/// Whether an update took the last thing away that held a deleted object: it is answered with the object, which is
/// gone (`ShouldDeleteDuringUpdate` in `k8s.io/apiserver/pkg/registry/generic/registry/store.go`). A namespace is held
/// by `spec.finalizers` besides; the watch tells of its end.
fn ended_by_update<K: Cached>(kind: &K::DynamicType, object: &K) -> bool {
    let meta = object.meta();
    let is_namespace = K::group(kind).is_empty() && K::kind(kind) == "Namespace";
    meta.deletion_timestamp.is_some()
        && meta.finalizers.as_ref().is_none_or(Vec::is_empty)
        && meta.deletion_grace_period_seconds == Some(0)
        && !is_namespace
}

/// Whether the object that a deletion answered with is still there: some kinds answer with the object that was
/// removed (`ReturnDeletedObject`), all do so with one that a finalizer or a grace period holds.
pub(super) fn stays_after_delete<K: Cached>(kind: &K::DynamicType, object: &K) -> bool {
    object.meta().deletion_timestamp.is_some() && !ended_by_update(kind, object)
}
