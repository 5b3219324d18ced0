//! ThirdPartyResources, which came before CustomResourceDefinitions (until Kubernetes 1.7).

use anyhow::{anyhow, bail};
use serde_json::{Value, json};

use super::object::{Members, Note};

/// The definition of the kind that a ThirdPartyResource defines (`ExtractApiGroupAndKind` in
/// `pkg/registry/extensions/thirdpartyresourcedata/util.go` of Kubernetes 1.5): of its name, the first label is the kind, and
/// the rest the group.
pub(super) fn convert(old: &Members, notes: &mut Vec<Note>) -> anyhow::Result<Option<Members>> {
    let metadata = &old.get("metadata").cloned().unwrap_or_default();
    let name = metadata["name"]
        .as_str()
        .ok_or_else(|| anyhow!("metadata.name is missing, which says kind and group"))?;
    let Some((label, group)) =
        name.split_once('.').filter(|(label, group)| !label.is_empty() && group.contains('.'))
    else {
        bail!(
            "metadata.name {name:?} says no kind and group: it is written <kind>.<group>, such as cron-tab.example.org"
        );
    };
    let kind: String = label.split('-').map(capitalised).collect();
    let singular = kind.to_lowercase();
    let plural = plural(&singular);
    notes.push(Note::Done(format!(
        "made of the ThirdPartyResource {name}: {kind} of {group}, served as {plural}"
    )));
    let versions: Vec<&str> = old
        .get("versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|version| version["name"].as_str())
        .collect();
    if versions.is_empty() {
        bail!("versions names none");
    }
    let description = old.get("description").and_then(Value::as_str);
    // Nothing but apiVersion, kind and metadata was fixed.
    let mut schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    if let Some(description) = description {
        schema["description"] = json!(description);
    }
    let of = |(index, name): (usize, &&str)| json!({"name": name, "served": true, "storage": index == 0, "schema": {"openAPIV3Schema": schema}});
    let versions: Vec<Value> = versions.iter().enumerate().map(of).collect();
    if versions.len() > 1 {
        notes.push(Note::Done(format!("objects are stored as {}, the first version", versions[0]["name"])));
    }
    let mut new_metadata = json!({"name": format!("{plural}.{group}")});
    for kept in ["labels", "annotations"] {
        if !metadata[kept].is_null() {
            new_metadata[kept] = metadata[kept].clone();
        }
    }
    for lost in old.keys().filter(|field| {
        !["apiVersion", "kind", "metadata", "description", "versions"].contains(&field.as_str())
    }) {
        notes.push(Note::Lost(format!("{lost}, which no ThirdPartyResource has")));
    }
    super::definition::warn_of_protection(group, &new_metadata, notes);
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": new_metadata,
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": singular},
            "versions": versions,
        },
    });
    Ok(crd.as_object().cloned())
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// What a kind's objects are called in URLs (`KindToResource` in `k8s.io/apimachinery/pkg/api/meta`).
fn plural(singular: &str) -> String {
    match singular.as_bytes().last() {
        Some(b's') => format!("{singular}es"),
        Some(b'y') => format!("{}ies", &singular[..singular.len() - 1]),
        _ => format!("{singular}s"),
    }
}
