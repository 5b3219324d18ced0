//! Everything that happens to the kinds that are followed, custom ones included.

use std::{collections::BTreeMap, future};

use futures::{
    StreamExt,
    future::{AbortHandle, Abortable},
    stream::{BoxStream, SelectAll},
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
    runtime::{WatchStreamExt, watcher, watcher::Event},
};
use serde_json::Value;

use crate::change::{Change, holds};

/// The changes of some kinds; of each custom kind too, from when its CRD is established until it is gone.
pub(crate) struct Changes {
    client: Client,
    streams: SelectAll<BoxStream<'static, Change>>,
    /// The custom kinds that are followed, by the name of their CRD.
    custom: BTreeMap<String, AbortHandle>,
}

impl Changes {
    /// Follows `kinds`. A client that may read them all is needed.
    pub(crate) fn of(client: Client, kinds: &[ApiResource]) -> Self {
        let streams = kinds.iter().map(|kind| follow(client.clone(), kind)).collect();
        Self { client, streams, custom: BTreeMap::new() }
    }

    /// The next change; waits for ever if no kind is followed.
    pub(crate) async fn next(&mut self) -> Change {
        match self.streams.next().await {
            Some(change) => {
                self.note_crd(&change);
                change
            }
            None => future::pending().await,
        }
    }

    fn note_crd(&mut self, change: &Change) {
        let Some(name) = change.object.metadata.name.clone().filter(|_| change.kind == CRD.0) else { return };
        if change.gone {
            if let Some(handle) = self.custom.remove(&name) {
                handle.abort();
            }
        } else if holds(&change.object, "Established")
            && !self.custom.contains_key(&name)
            && let Some(kind) = served_kind(&change.object)
        {
            let (handle, registration) = AbortHandle::new_pair();
            self.streams.push(Abortable::new(follow(self.client.clone(), &kind), registration).boxed());
            self.custom.insert(name, handle);
        }
    }
}

const CRD: (&str, &str) = ("customresourcedefinition", "apiextensions.k8s.io");

/// The kinds that are always followed: the CRDs.
pub(crate) fn crds() -> ApiResource {
    resource(CRD.1, "v1", "CustomResourceDefinition", "customresourcedefinitions")
}

/// The kinds that a person wants to hear of.
pub(crate) fn workloads() -> [ApiResource; 2] {
    [resource("apps", "v1", "Deployment", "deployments"), resource("", "v1", "Pod", "pods")]
}

fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    let [group, version, kind, plural] = [group, version, kind, plural].map(str::to_owned);
    let api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
    ApiResource { group, version, api_version, kind, plural }
}

/// The kind that a CRD defines, in its first served version.
fn served_kind(crd: &DynamicObject) -> Option<ApiResource> {
    let text = |pointer: &str| crd.data.pointer(pointer).and_then(Value::as_str);
    let versions = crd.data.pointer("/spec/versions")?.as_array()?;
    let served = versions.iter().find(|version| version["served"] == true)?;
    Some(resource(
        text("/spec/group")?,
        served["name"].as_str()?,
        text("/spec/names/kind")?,
        text("/spec/names/plural")?,
    ))
}

fn follow(client: Client, kind: &ApiResource) -> BoxStream<'static, Change> {
    let name = kind.kind.to_lowercase();
    let api: Api<DynamicObject> = Api::all_with(client, kind);
    watcher(api, watcher::Config::default())
        .default_backoff()
        .filter_map(move |event| {
            let change = |object, gone| Change { kind: name.clone(), object, gone };
            future::ready(match event {
                Ok(Event::Apply(object) | Event::InitApply(object)) => Some(change(object, false)),
                Ok(Event::Delete(object)) => Some(change(object, true)),
                Ok(Event::Init | Event::InitDone) => None,
                Err(error) => {
                    tracing::debug!(kind = name, %error, "the watch is tried again");
                    None
                }
            })
        })
        .boxed()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_crd_is_followed_in_its_first_served_version() {
        let crd = kubewright_objects::from_value(json!({"metadata": {"name": "as.b.c"}, "spec": {
            "group": "b.c",
            "names": {"kind": "A", "plural": "as"},
            "versions": [{"name": "v1alpha1", "served": false}, {"name": "v1", "served": true}],
        }}))
        .expect("a CRD");
        assert_eq!(served_kind(&crd), Some(resource("b.c", "v1", "A", "as")));
        assert_eq!(
            served_kind(&kubewright_objects::from_value(json!({"metadata": {}})).expect("an object")),
            None
        );
    }
}
