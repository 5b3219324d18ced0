//! The validation of definitions (`pkg/apis/apiextensions/validation/validation.go`), all but their schemas.

use std::collections::BTreeSet;

use kubewright_meta::FieldError;
use kubewright_schema::names::{label_1035, subdomain};
use kubewright_schema::pattern::Patterns;
use serde_json::Value;

use super::history::{stored_versions, unchanged};
use super::parts::{columns, deprecation, resource_names, scale};
use super::path::Path;
use super::same::same;
use super::{approval, conversion, flag, go, list, one_of, part, schema, selectable, text};

/// What is wrong with a definition, beyond its metadata; `old` is the one that it replaces.
///
/// Messages name the places where the internal version has things: what all versions have in common stands in
/// `spec.validation`, `spec.subresources` and so on, as in kube-apiserver.
#[must_use]
pub fn validate(definition: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let nothing = Value::Null;
    let spec = definition.get("spec").unwrap_or(&nothing);
    let mut errors = Vec::new();
    if old.is_none() {
        own_name(definition, spec, &mut errors);
    }
    group_and_scope(spec, &mut errors);
    let common = Common::of(spec);
    schemas_are_there(spec, &mut errors);
    defaults_need_pruning(spec, &mut errors);
    each_version(spec, old, &common, &mut errors);
    versions_together(spec, &common, &mut errors);
    let path = Path::root("spec");
    let names = path.child("names");
    let asked = spec.get("names").unwrap_or(&nothing);
    for name in ["plural", "singular", "kind", "listKind"] {
        if text(asked, name).is_empty() {
            errors.push(FieldError::required(names.child(name), ""));
        }
    }
    resource_names(asked, &names, &mut errors);
    common_parts(spec, old, &common, &mut errors);
    conversion::validate(spec, old, &mut errors);
    if let Some(old) = old {
        unchanged(spec, old, &mut errors);
    }
    errors.extend(validate_status(definition));
    stored_versions(definition, &mut errors);
    approval::validate(definition, old, &mut errors);
    if flag(spec, "preserveUnknownFields")
        && !old.is_some_and(|old| flag(&old["spec"], "preserveUnknownFields"))
    {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", true, detail));
    }
    errors
}

/// What is wrong with the status of a definition, when that alone is written.
#[must_use]
pub fn validate_status(definition: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let status = Path::root("status");
    resource_names(&definition["status"]["acceptedNames"], &status.child("acceptedNames"), &mut errors);
    errors
}

fn own_name(definition: &Value, spec: &Value, errors: &mut Vec<FieldError>) {
    let (plural, group) = (spec.get("names").map_or("", |names| text(names, "plural")), text(spec, "group"));
    let expected = format!("{plural}.{group}");
    for field in ["generateName", "name"] {
        let name = text(&definition["metadata"], field);
        if !name.is_empty() && name != expected {
            let detail = r#"must be spec.names.plural+"."+spec.group"#;
            errors.push(FieldError::invalid(format!("metadata.{field}"), name, detail));
        }
    }
}

fn group_and_scope(spec: &Value, errors: &mut Vec<FieldError>) {
    let group = text(spec, "group");
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if let Some(why) = subdomain(group) {
        errors.push(FieldError::invalid("spec.group", group, why));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid("spec.group", group, "should be a domain with at least one dot"));
    }
    one_of(text(spec, "scope"), &["Cluster", "Namespaced"], &Path::root("spec").child("scope"), errors);
}

/// What all versions have in common.
struct Common<'a> {
    schema: Option<&'a Value>,
    subresources: Option<&'a Value>,
    columns: Option<&'a Value>,
    selectable: Option<&'a Value>,
}

impl<'a> Common<'a> {
    fn of(spec: &'a Value) -> Self {
        let of_all = |key: &str| {
            let mut all = list(spec, "versions").map(|version| part(version, key));
            let first = all.next().flatten()?;
            all.all(|other| same(key, other, Some(first))).then_some(first)
        };
        Self {
            schema: of_all("schema"),
            subresources: of_all("subresources"),
            columns: of_all("additionalPrinterColumns"),
            selectable: of_all("selectableFields"),
        }
    }
}

fn schemas_are_there(spec: &Value, errors: &mut Vec<FieldError>) {
    for (index, version) in list(spec, "versions").enumerate() {
        if version["schema"].get("openAPIV3Schema").is_none() {
            errors.push(FieldError::required(format!("spec.versions[{index}].schema.openAPIV3Schema"), ""));
        }
    }
}

fn defaults_need_pruning(spec: &Value, errors: &mut Vec<FieldError>) {
    let defaults = |version: &Value| {
        schema::any(&version["schema"]["openAPIV3Schema"], &|one| part(one, "default").is_some())
    };
    if flag(spec, "preserveUnknownFields") && list(spec, "versions").any(defaults) {
        let detail = "must be false in order to use defaults in the schema";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", true, detail));
    }
}

fn each_version(spec: &Value, old: Option<&Value>, common: &Common<'_>, errors: &mut Vec<FieldError>) {
    let mut patterns = Patterns::default();
    let spec_path = Path::root("spec");
    let all = spec_path.child("versions");
    for (index, version) in list(spec, "versions").enumerate() {
        let path = all.index(index);
        if let Some(why) = label_1035(text(version, "name")) {
            errors.push(FieldError::invalid(path.child("name"), text(version, "name"), why));
        }
        deprecation(version, &path, errors);
        if let (None, Some(schema)) = (common.schema, part(version, "schema")) {
            let status = version["subresources"].get("status").is_some();
            let unchanged = is_unchanged(version, old);
            let path = path.child("schema");
            schema::validate(schema, status, unchanged, &mut patterns, &path, errors);
        }
        if let (None, Some(subresources)) = (common.subresources, part(version, "subresources")) {
            scale(subresources, &path.child("subresources"), errors);
        }
        if common.columns.is_none() {
            columns(version.get("additionalPrinterColumns"), &path.child("additionalPrinterColumns"), errors);
        }
        if let (None, Some(fields)) = (common.selectable, part(version, "selectableFields")) {
            // A schema that all versions have is none of their own in Kubernetes' internal type.
            let schema = version["schema"].get("openAPIV3Schema").filter(|_| common.schema.is_none());
            let none = "may only be set when `version.schema.openAPIV3Schema` is not included";
            let schema_at = format!("{path}.schema.openAPIV3Schema");
            selectable::validate(
                fields,
                schema.ok_or(none),
                (&path.child("selectableFields"), &schema_at),
                errors,
            );
        }
    }
}

/// Whether the schema of a version is as it was.
fn is_unchanged(version: &Value, old: Option<&Value>) -> bool {
    let mut before = old.into_iter().flat_map(|old| list(&old["spec"], "versions"));
    before.any(|one| {
        text(one, "name") == text(version, "name")
            && same("schema", part(one, "schema"), part(version, "schema"))
    })
}

fn common_parts(spec: &Value, old: Option<&Value>, common: &Common<'_>, errors: &mut Vec<FieldError>) {
    let path = Path::root("spec");
    if let Some(schema) = common.schema {
        let status = list(spec, "versions").any(|version| version["subresources"].get("status").is_some());
        let unchanged = list(spec, "versions").next().is_some_and(|first| is_unchanged(first, old));
        let path = path.child("validation");
        schema::validate(schema, status, unchanged, &mut Patterns::default(), &path, errors);
    }
    if let Some(subresources) = common.subresources {
        scale(subresources, &path.child("subresources"), errors);
    }
    columns(common.columns, &path.child("additionalPrinterColumns"), errors);
    if let Some(fields) = common.selectable {
        let schema = common.schema.map(|schema| &schema["openAPIV3Schema"]);
        let none = "may only be set when validations.schema is included";
        let at = (&path.child("selectableFields"), "spec.schema.openAPIV3Schema");
        selectable::validate(fields, schema.ok_or(none), at, errors);
    }
}

fn versions_together(spec: &Value, common: &Common<'_>, errors: &mut Vec<FieldError>) {
    let names_none = spec["versions"].is_null();
    let all = || {
        let versions = list(spec, "versions").map(|version| {
            let own = go::Own {
                schema: common.schema.is_none(),
                subresources: common.subresources.is_none(),
                columns: common.columns.is_none(),
                selectable: common.selectable.is_none(),
            };
            go::version(version, own)
        });
        if names_none { "null".to_owned() } else { go::list(versions) }
    };
    let names: Vec<&str> = list(spec, "versions").map(|version| text(version, "name")).collect();
    if names.iter().collect::<BTreeSet<_>>().len() != names.len() {
        let error = FieldError::invalid("spec.versions", Value::Null, "must contain unique version names");
        errors.push(error.printed(all()));
    }
    if list(spec, "versions").filter(|version| flag(version, "storage")).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid("spec.versions", Value::Null, detail).printed(all()));
    }
    // The internal version has the first version's name once more.
    if let Some(first) = names.first().filter(|first| !first.is_empty())
        && let Some(why) = label_1035(first)
    {
        errors.push(FieldError::invalid("spec.version", *first, why));
    }
}
