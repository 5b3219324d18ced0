//! CustomResourceDefinitions of `v1beta1` (until Kubernetes 1.21), as `apiextensions.k8s.io/v1` converts and asks for them.

use anyhow::{anyhow, bail};
use serde_json::{Value, json};

use super::{
    object::{Members, Note},
    schema,
};

/// What was said once for all versions, and is said for each.
const PER_VERSION: [(&str, &str); 3] = [
    ("validation", "schema"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
];

pub(super) fn convert(members: &mut Members, notes: &mut Vec<Note>) -> anyhow::Result<Option<Members>> {
    members.insert("apiVersion".to_owned(), json!("apiextensions.k8s.io/v1"));
    if members.remove("status").is_some() {
        notes.push(Note::Done("the status is left out: the API server writes it".to_owned()));
    }
    let metadata = members.get("metadata").cloned().unwrap_or_default();
    let spec =
        members.get_mut("spec").and_then(Value::as_object_mut).ok_or_else(|| anyhow!("spec is missing"))?;
    spec.entry("scope").or_insert_with(|| json!("Namespaced"));
    versions(spec, notes)?;
    conversion(spec);
    let group = spec.get("group").and_then(Value::as_str).unwrap_or_default();
    warn_of_protection(group, &metadata, notes);
    Ok(None)
}

/// `spec.versions`, each with all that is said of it.
fn versions(spec: &mut Members, notes: &mut Vec<Note>) -> anyhow::Result<()> {
    // v1beta1 keeps unknown fields unless it is told not to.
    let preserves = spec.remove("preserveUnknownFields").is_none_or(|preserves| preserves != json!(false));
    let single = spec.remove("version");
    let shared = PER_VERSION.map(|(old, new)| (new, spec.remove(old)));
    let versions = spec.entry("versions").or_insert_with(|| json!([]));
    let Some(versions) = versions.as_array_mut() else { bail!("spec.versions is no list") };
    if versions.is_empty() {
        let Some(name) = single else { bail!("spec.version and spec.versions are both missing") };
        notes.push(Note::Done("spec.version is now an item of spec.versions".to_owned()));
        versions.push(json!({"name": name, "served": true, "storage": true}));
    }
    for (field, value) in shared {
        let Some(value) = value else { continue };
        notes.push(Note::Done(format!("{field} is now said of each version")));
        for version in versions.iter_mut().filter_map(Value::as_object_mut) {
            version.entry(field).or_insert_with(|| value.clone());
        }
    }
    for version in versions {
        let Some(version) = version.as_object_mut() else { bail!("an item of spec.versions is no object") };
        columns(version);
        let name = version.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let schema = version.entry("schema").or_insert_with(|| json!({}));
        let schema = match schema.get_mut("openAPIV3Schema") {
            Some(schema) if schema.is_object() => schema,
            _ => {
                notes.push(Note::Done(format!(
                    "version {name} had no schema: any field is kept, none is checked"
                )));
                *schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
                continue;
            }
        };
        schema::make_structural(schema, &format!("schema of {name}"), notes);
        if preserves && schema.get("x-kubernetes-preserve-unknown-fields").is_none() {
            notes.push(Note::Done(format!(
                "version {name} kept unknown fields, and still does: take x-kubernetes-preserve-unknown-fields out of its schema when it is complete"
            )));
            schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
        }
    }
    Ok(())
}

/// `JSONPath` is written otherwise.
fn columns(version: &mut Members) {
    let columns = version.get_mut("additionalPrinterColumns").and_then(Value::as_array_mut);
    for column in columns.into_iter().flatten().filter_map(Value::as_object_mut) {
        if let Some(path) = column.remove("JSONPath") {
            column.insert("jsonPath".to_owned(), path);
        }
    }
}

/// Who converts between versions is said one level deeper.
fn conversion(spec: &mut Members) {
    let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut) else { return };
    let client = conversion.remove("webhookClientConfig");
    let reviews = conversion.remove("conversionReviewVersions");
    if let Some(client) = client {
        let reviews = reviews.unwrap_or_else(|| json!(["v1beta1"]));
        conversion.insert(
            "webhook".to_owned(),
            json!({"clientConfig": client, "conversionReviewVersions": reviews}),
        );
    }
}

/// Groups of Kubernetes itself need an approval (`k8s.io/apiextensions-apiserver/pkg/apihelpers`).
pub(super) fn warn_of_protection(group: &str, metadata: &Value, notes: &mut Vec<Note>) {
    let is_protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group == *domain || group.ends_with(&format!(".{domain}")));
    if is_protected && metadata["annotations"]["api-approved.kubernetes.io"].is_null() {
        notes.push(Note::Lost(format!(
            "the group {group} is Kubernetes' own: the API server asks for the annotation api-approved.kubernetes.io, which is yours to give"
        )));
    }
}
