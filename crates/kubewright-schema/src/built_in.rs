//! The types of Kubernetes as schema nodes.
//!
//! A type is made once for the whole process, when something that has it is first looked at. References between types are
//! followed one by one ([`Node::target`]): so types may be recursive, and a `PodSpec` is there once however many kinds have one.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubewright_spec::Version;
use parking_lot::Mutex;
use serde_json::Value;

use super::definitions;
use super::facts::{Facts, FieldFacts};
use super::node::{Additional, Coding, MapType, Merge, Node, Other, Reference, Type};
use super::zeros::Zeros;

/// The maps that something tells from none although they have no entries: messages about pods and templates, the default of what a node may give,
/// and the admission of runtime classes.
const TOLD_FROM_NONE: [(&str, &str); 5] = [
    ("NodeStatus", "allocatable"),
    ("ObjectMeta", "annotations"),
    ("ObjectMeta", "labels"),
    ("PodSpec", "nodeSelector"),
    ("PodSpec", "overhead"),
];

/// The types of each version that were made so far.
static LIBRARY: [Mutex<BTreeMap<Box<str>, Arc<Node>>>; Version::ALL.len()] =
    [const { Mutex::new(BTreeMap::new()) }; Version::ALL.len()];

/// The name of the type of `metadata`.
pub(crate) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The name of the type of schemas in definitions, which stand in some fields or in their place another value.
const JSON_SCHEMA_PROPS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// The type of that name. A name that no type has stands for any value: there is none, as all that is referred to is defined.
pub(crate) fn named(version: Version, name: &str) -> Arc<Node> {
    let library = &LIBRARY[version as usize];
    if let Some(made) = library.lock().get(name) {
        return Arc::clone(made);
    }
    let Some(schema) = definitions::of(version, name) else { return Arc::default() };
    let made = Arc::new(type_node(version, name, &schema));
    Arc::clone(library.lock().entry(name.into()).or_insert(made))
}

/// The name of the type that a schema refers to.
fn referred(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.rsplit('/').next()
}

/// A type with a name: its schema, and what the facts say of it and its fields.
fn type_node(version: Version, name: &str, schema: &Value) -> Node {
    let facts = Facts::of(version, name);
    let mut made = node(version, schema);
    made.name = Some(name.into());
    made.coding = coding(name);
    match made.coding {
        Coding::Raw => made.kind = None,
        Coding::SchemaOr(_) => {
            let one = Node { reference: Some(Reference::to(version, JSON_SCHEMA_PROPS)), ..Node::default() };
            made.items = Some(Arc::new(one));
        }
        Coding::IntOrString | Coding::Quantity => made.int_or_string = true,
        _ => {}
    }
    if facts.atomic() {
        made.merge = Some(Box::new(Merge { map: Some(MapType::Atomic), ..Merge::default() }));
    }
    let short = name.rsplit('.').next().unwrap_or(name);
    for (_, field) in TOLD_FROM_NONE.iter().filter(|(of, _)| *of == short) {
        if let Some(node) = made.properties.get_mut(*field) {
            Arc::make_mut(node).is_told_from_none = true;
        }
    }
    let zeros = Zeros::of(version, name);
    for field in zeros.dropped() {
        if let Some(node) = made.properties.get_mut(field) {
            Arc::make_mut(node).omits_zero = true;
        }
    }
    for (field, by) in zeros.inlined() {
        if let Some(node) = made.properties.get_mut(field) {
            Arc::make_mut(node).inlined = Some(by.into());
        }
    }
    for field in ["apiVersion", "kind"].into_iter().filter(|field| !zeros.has(field)) {
        if let Some(node) = made.properties.get_mut(field) {
            Arc::make_mut(node).inlined = Some("TypeMeta".into());
        }
    }
    for (field, named) in zeros.named() {
        if let Some(node) = made.properties.get_mut(field) {
            name_type(Arc::make_mut(node), named);
        }
    }
    made.shown = zeros
        .shown()
        .filter(|(field, _)| made.properties.contains_key(*field))
        .map(|(field, zero)| (field.into(), zero))
        .collect();
    for (field, node) in &mut made.properties {
        let FieldFacts { merge, enumeration, default } = facts.field(field);
        if merge.is_some() || default.is_some() || !enumeration.is_empty() {
            let node = Arc::make_mut(node);
            node.merge = merge.map(Box::new);
            node.enumeration = enumeration;
            node.default = default;
        }
    }
    made
}

fn node(version: Version, schema: &Value) -> Node {
    if let Some(name) = referred(schema) {
        return Node { reference: Some(Reference::to(version, name)), ..Node::default() };
    }
    let text = |key: &str| schema.get(key).and_then(Value::as_str);
    let sub = |key: &str| schema.get(key).map(|sub| Arc::new(node(version, sub)));
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    Node {
        kind: text("type").and_then(Type::parse),
        format: text("format").map(Into::into),
        int_or_string: schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)),
        properties: properties
            .map(|all| {
                all.iter().map(|(name, one)| (name.as_str().into(), Arc::new(node(version, one)))).collect()
            })
            .unwrap_or_default(),
        additional: sub("additionalProperties").map_or(Additional::Unsaid, Additional::Of),
        items: sub("items"),
        required: required
            .map(|all| all.iter().filter_map(Value::as_str).map(Into::into).collect())
            .unwrap_or_default(),
        ..Node::default()
    }
}

/// Gives a type its name in Go, and what it is a list or a map of the name that follows from that.
fn name_type(node: &mut Node, named: &'static str) {
    node.named = Some(named);
    let of = named
        .strip_prefix("[]")
        .or_else(|| named.strip_prefix("map[").and_then(|map| Some(map.split_once(']')?.1)));
    let Some(of) = of.filter(|of| of.contains('.')) else { return };
    match (&mut node.items, &mut node.additional) {
        (Some(inner), _) | (None, Additional::Of(inner)) if inner.reference.is_none() => {
            name_type(Arc::make_mut(inner), of);
        }
        _ => {}
    }
}

fn coding(name: &str) -> Coding {
    let (_, short) = name.rsplit_once('.').unwrap_or(("", name));
    match short {
        "Quantity" => Coding::Quantity,
        "IntOrString" => Coding::IntOrString,
        "Time" => Coding::Time,
        "MicroTime" => Coding::MicroTime,
        "RawExtension" | "FieldsV1" | "JSON" => Coding::Raw,
        "JSONSchemaPropsOrBool" => Coding::SchemaOr(Other::Bool),
        "JSONSchemaPropsOrArray" => Coding::SchemaOr(Other::Schemas),
        "JSONSchemaPropsOrStringArray" => Coding::SchemaOr(Other::Texts),
        _ => Coding::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::super::node::ListType;
    use super::*;

    fn at(root: &Node, path: &[&str]) -> Arc<Node> {
        let mut here = Arc::new(root.clone());
        for step in path {
            let next = match *step {
                "[]" => here.target().items.clone(),
                name => here.field(name).cloned(),
            };
            here = next.unwrap_or_else(|| panic!("no {step} in {path:?}"));
        }
        here
    }

    #[test]
    fn a_pod_spec_is_there_once_however_many_kinds_have_one() {
        let pod = named(Version::DEFAULT, "io.k8s.api.core.v1.Pod");
        let deployment = named(Version::DEFAULT, "io.k8s.api.apps.v1.Deployment");
        let of_pod = at(&pod, &["spec"]);
        let of_deployment = at(&deployment, &["spec", "template", "spec"]);
        assert!(std::ptr::eq(of_pod.target(), of_deployment.target()));
        assert_eq!(of_pod.target().name.as_deref(), Some("io.k8s.api.core.v1.PodSpec"));
    }

    #[test]
    fn recursive_types_end() {
        let definition = named(
            Version::DEFAULT,
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
        );
        let schema = at(&definition, &["spec", "versions", "[]", "schema", "openAPIV3Schema"]);
        let deeper = at(&schema, &["properties", "anything", "properties", "more"]);
        assert!(std::ptr::eq(schema.target(), deeper.target()));
        assert_eq!(
            schema.field("additionalProperties").unwrap().target().coding,
            Coding::SchemaOr(Other::Bool)
        );
    }

    #[test]
    fn fields_carry_the_facts() {
        let pod = named(Version::DEFAULT, "io.k8s.api.core.v1.Pod");
        let containers = at(&pod, &["spec", "containers"]);
        assert_eq!(containers.list_type(), Some(ListType::Map));
        assert_eq!(containers.list_map_keys(), ["name".into()]);
        assert_eq!(containers.patch(), (Some("merge"), Some("name")));
        assert_eq!(at(&containers, &["[]", "ports", "[]", "protocol"]).default, Some("TCP".into()));
        assert_eq!(at(&pod, &["spec", "nodeSelector"]).map_type(), Some(MapType::Atomic));
        assert_eq!(
            at(&pod, &["spec", "volumes", "[]", "configMap", "items"]).list_type(),
            Some(ListType::Atomic)
        );
    }

    #[test]
    fn a_field_says_more_than_its_type() {
        let volume = named(Version::DEFAULT, "io.k8s.api.core.v1.PersistentVolume");
        let claim = at(&volume, &["spec", "claimRef"]);
        assert_eq!(claim.target().map_type(), Some(MapType::Atomic));
        assert_eq!(claim.map_type(), Some(MapType::Granular));
    }

    #[test]
    fn a_type_has_the_fields_of_its_version() {
        let spec = |version| named(version, "io.k8s.api.batch.v1.JobSpec");
        assert!(spec(Version::V1_36).field("scheduling").is_none());
        let scheduling = spec(Version::V1_37).field("scheduling").cloned().unwrap();
        assert!(scheduling.target().field("resourceClaims").is_some(), "its types are of the version too");
    }
}
