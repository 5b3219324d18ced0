//! Objects that stand in something else, read as all others are.

use std::borrow::Cow;

use kube::{Resource, api::ObjectMeta};
use serde::{Deserialize, Deserializer, de::DeserializeOwned, de::Error as _};
use serde_json::value::RawValue;

use crate::from_json;

/// An object that is read by [`from_json`], wherever it stands. For kube's `watcher`: an event is an enum with a tag, for which
/// serde reads what is in it in two more forms.
#[derive(Clone, Debug)]
pub struct ByText<K>(pub K);

impl<'de, K: DeserializeOwned> Deserialize<'de> for ByText<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&RawValue>::deserialize(deserializer)?;
        from_json(text.get()).map(Self).map_err(D::Error::custom)
    }
}

impl<K: Resource> Resource for ByText<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

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

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::core::{ObjectList, WatchEvent};

    use super::*;

    #[test]
    fn what_a_watch_and_a_list_tell_is_read() {
        let event = r#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}"#;
        let Ok(WatchEvent::Added(ByText(map))) = serde_json::from_str::<WatchEvent<ByText<ConfigMap>>>(event)
        else {
            panic!("an object that was added")
        };
        assert_eq!(map.metadata.name.as_deref(), Some("a"));
        let list = r#"{"metadata":{},"items":[{"metadata":{"name":"a"}}]}"#;
        let list: ObjectList<ByText<ConfigMap>> = from_json(list).expect("a list");
        assert_eq!(list.items[0].meta().name.as_deref(), Some("a"));
    }
}
