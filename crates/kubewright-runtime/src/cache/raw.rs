//! Objects as the API server writes them: of any kind, until somebody wants to know which.

use std::borrow::Cow;

use kube::{
    Resource,
    api::{ApiResource, ObjectMeta},
    core::DynamicResourceScope,
};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::value::RawValue;

/// An object as JSON, apart from what no cache keeps: kube's client and watcher are compiled for this, not for each kind. Of its
/// metadata only its name, uid and resource version are known.
///
/// Of a kind of which only the metadata is watched when `METADATA` is set.
#[derive(Clone, Debug)]
pub(crate) struct Raw<const METADATA: bool> {
    pub(crate) text: String,
    /// Its managed fields, as JSON.
    pub(crate) managed_fields: Option<Box<str>>,
    head: ObjectMeta,
}

#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow)]
    metadata: Meta<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta<'a> {
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    #[serde(borrow)]
    managed_fields: Option<&'a RawValue>,
}

impl<const METADATA: bool> Raw<METADATA> {
    pub(crate) fn of(mut text: String) -> serde_json::Result<Self> {
        let Object { metadata } = serde_json::from_str(&text)?;
        let Meta { namespace, name, uid, resource_version, managed_fields } = metadata;
        let head = ObjectMeta { namespace, name, uid, resource_version, ..ObjectMeta::default() };
        // Half of most objects, and the part that takes most time and memory to read.
        let apart = managed_fields.map(RawValue::get).map(Box::from);
        let cut = managed_fields.map(|fields| {
            let start = fields.get().as_ptr().addr() - text.as_ptr().addr();
            start..start + fields.get().len()
        });
        if let Some(cut) = cut {
            text.replace_range(cut, "null");
        }
        Ok(Self { text, managed_fields: apart, head })
    }

    /// All of its metadata.
    pub(super) fn metadata(&self) -> serde_json::Result<ObjectMeta> {
        #[derive(Deserialize)]
        struct Whole {
            metadata: ObjectMeta,
        }
        serde_json::from_str::<Whole>(&self.text).map(|whole| whole.metadata)
    }
}

impl<'de, const METADATA: bool> Deserialize<'de> for Raw<METADATA> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Self::of(String::from(Box::<str>::from(text))).map_err(D::Error::custom)
    }
}

impl<const METADATA: bool> Resource for Raw<METADATA> {
    type DynamicType = ApiResource;
    // As far as is known here; the requests of cluster-scoped kinds name no namespace.
    type Scope = DynamicResourceScope;

    fn kind(kind: &ApiResource) -> Cow<'_, str> {
        kind.kind.as_str().into()
    }

    fn group(kind: &ApiResource) -> Cow<'_, str> {
        kind.group.as_str().into()
    }

    fn version(kind: &ApiResource) -> Cow<'_, str> {
        kind.version.as_str().into()
    }

    fn plural(kind: &ApiResource) -> Cow<'_, str> {
        kind.plural.as_str().into()
    }

    fn metadata_api() -> bool {
        METADATA
    }

    fn meta(&self) -> &ObjectMeta {
        &self.head
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.head
    }
}

#[cfg(test)]
mod tests {
    use kube::core::{ObjectList, WatchEvent};

    use super::*;

    const OBJECT: &str = r#"{"metadata":{"name":"a","managedFields":[{"manager":"é","fieldsV1":{"f:data":{}}}],"uid":"u",
        "resourceVersion":"7"},"data":{"managedFields":"mine"}}"#;
    const KEPT: &str = r#"{"metadata":{"name":"a","managedFields":null,"uid":"u",
        "resourceVersion":"7"},"data":{"managedFields":"mine"}}"#;

    #[test]
    fn an_object_of_a_list_is_as_the_server_wrote_it_but_for_managed_fields() {
        let text = format!(
            r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"9","continue":"c"}},"items":[{OBJECT}]}}"#
        );
        let list: ObjectList<Raw<false>> = serde_json::from_str(&text).expect("a list");
        assert_eq!(list.metadata.continue_.as_deref(), Some("c"));
        let [object] = list.items.as_slice() else { panic!("one item") };
        assert_eq!(object.text, KEPT);
        assert_eq!(object.meta().uid.as_deref(), Some("u"));
        assert_eq!(object.meta().resource_version.as_deref(), Some("7"));
        assert_eq!(object.metadata().expect("metadata").name.as_deref(), Some("a"));
    }

    #[test]
    fn so_is_one_of_a_watch() {
        let text = format!(r#"{{"type":"MODIFIED","object":{OBJECT}}}"#);
        let WatchEvent::Modified(object) =
            serde_json::from_str::<WatchEvent<Raw<true>>>(&text).expect("an event")
        else {
            panic!("a change")
        };
        assert_eq!(object.text, KEPT);
        let fields = r#"[{"manager":"é","fieldsV1":{"f:data":{}}}]"#;
        assert_eq!(object.managed_fields.as_deref(), Some(fields));
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in [r#""a""#, "{}", r#"{"metadata":{"uid":1}}"#] {
            assert!(serde_json::from_str::<Raw<false>>(text).is_err(), "{text}");
        }
    }
}
