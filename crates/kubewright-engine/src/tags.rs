//! The tags of stored objects, made again when a store is opened.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kubewright_kinds::definition::{self, Versions};
use kubewright_kinds::{Kind, Kinds, Role, Summary};
use kubewright_spec::Version;
use kubewright_store::{Name, Stored};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// What makes the [`Summary`] of an object again, from its collection and its bytes, for the objects of a store that is
/// being opened: those of the built-in kinds, and of the kinds that the stored definitions make.
///
/// # Errors
/// The function that it gives says why bytes are no object.
pub fn tags(
    version: Version,
    stored: &Stored<'_>,
) -> impl FnMut(&str, &[u8]) -> Result<Summary, String> + use<> {
    let kinds = Kinds::of_version(version);
    let custom = defined(&kinds, |collection| stored.values(collection).into_values().collect());
    tagger(&kinds, &custom)
}

/// As [`tags`], of anything that tells the values of a collection. Of a definition there may be several states; the first
/// that has a kind counts for it.
///
/// # Errors
/// As those of [`tags`].
pub fn tags_of<'a, F>(
    version: Version,
    values: F,
) -> impl FnMut(&str, &[u8]) -> Result<Summary, String> + use<'a, F>
where
    F: Fn(&str) -> Vec<&'a [u8]>,
{
    let kinds = Kinds::of_version(version);
    let custom = defined(&kinds, values);
    tagger(&kinds, &custom)
}

/// The kinds that definitions make.
fn defined<'a>(kinds: &Kinds, values: impl Fn(&str) -> Vec<&'a [u8]>) -> Vec<Arc<Kind>> {
    let definitions = kinds.iter().filter(|kind| kind.behaviour.role == Role::Definition);
    let custom = definitions
        .flat_map(|kind| values(&kind.collection))
        .filter_map(|bytes| serde_json::from_slice::<Value>(bytes).ok())
        .flat_map(|definition| {
            let versions = Versions::of(&definition, None, &BTreeSet::new());
            definition::kinds(&definition, &Arc::new(versions))
        });
    custom.map(Arc::new).collect()
}

fn tagger(kinds: &Kinds, custom: &[Arc<Kind>]) -> impl FnMut(&str, &[u8]) -> Result<Summary, String> + use<> {
    let mut by_collection: BTreeMap<Name, Arc<Kind>> = BTreeMap::new();
    for kind in kinds.iter().chain(custom) {
        let known = by_collection.entry(Arc::clone(&kind.collection)).or_insert_with(|| Arc::clone(kind));
        if kind.is_storage() {
            *known = Arc::clone(kind);
        }
    }
    move |collection, bytes| {
        let no_object = |error: serde_json::Error| format!("it is no object: {error}");
        match by_collection.get(collection) {
            Some(kind) if !kind.selectable().names().is_empty() => {
                Ok(Summary::of(kind, &serde_json::from_slice(bytes).map_err(no_object)?))
            }
            kind => {
                let outline: Outline = serde_json::from_slice(bytes).map_err(no_object)?;
                let object = json!({"metadata": {"labels": outline.metadata.labels}});
                Ok(kind.map_or_else(|| Summary::unserved(&object), |kind| Summary::of(kind, &object)))
            }
        }
    }
}

/// As much of an object as a summary needs that has no fields of its kind's own.
#[derive(Deserialize)]
struct Outline {
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    labels: Map<String, Value>,
}
