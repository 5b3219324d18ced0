//! Promises of schemas as a whole, over schemas and objects of all kinds.

pub(crate) mod values;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use values::{json, schema};

fn custom() -> impl Strategy<Value = Schema> {
    schema().prop_map(|spec| Schema::custom(&json!({"type": "object", "properties": {"spec": spec}})))
}

/// All paths to values that the schema names (or maps name).
fn declared(node: &Node, value: &Value, path: &str, paths: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, one) in fields {
                if let Some(field) = node.field(name) {
                    let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
                    paths.push(path.clone());
                    declared(field, one, &path, paths);
                }
            }
        }
        Value::Array(list) => {
            for (index, one) in list.iter().enumerate() {
                if let Some(items) = &node.items {
                    declared(items, one, &format!("{path}/{index}"), paths);
                }
            }
        }
        _ => {}
    }
}

proptest! {
    #[test]
    fn decoding_twice_is_decoding_once(schema in custom(), mut object in json()) {
        if schema.decode(&mut object).is_ok() {
            let once = object.clone();
            prop_assert_eq!(schema.decode(&mut object), Ok(Vec::new()));
            prop_assert_eq!(object, once);
        }
    }

    #[test]
    fn decoding_a_built_in_kind_twice_is_decoding_it_once(mut object in json()) {
        let schema = Schema::built_in("io.k8s.api.apps.v1.Deployment");
        if schema.decode(&mut object).is_ok() {
            let once = object.clone();
            prop_assert_eq!(schema.decode(&mut object), Ok(Vec::new()));
            prop_assert_eq!(object, once);
        }
    }

    #[test]
    fn pruning_keeps_declared_fields(schema in custom(), spec in json()) {
        let given = json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "a"}, "spec": spec});
        let mut pruned = given.clone();
        if schema.decode(&mut pruned).is_ok() {
            let mut paths = Vec::new();
            declared(schema.root(), &given, "", &mut paths);
            for path in paths.iter().filter(|path| !path.contains("/metadata")) {
                prop_assert!(pruned.pointer(path).is_some(), "{} is gone from {}", path, given);
            }
            prop_assert_eq!(&pruned["metadata"], &given["metadata"]);
        }
    }

    #[test]
    fn defaulting_twice_is_defaulting_once(schema in custom(), mut object in json()) {
        schema.default(&mut object);
        let once = object.clone();
        schema.default(&mut object);
        prop_assert_eq!(object, once);
    }

    #[test]
    fn what_is_said_to_have_its_defaults_gets_no_more(schema in custom(), object in json()) {
        let mut after = object.clone();
        schema.default(&mut after);
        prop_assert!(!schema.is_defaulted(&object) || after == object, "{} becomes {}", object, after);
    }

    #[test]
    fn any_object_can_be_validated(schema in custom(), mut object in json(), old in json()) {
        schema.default(&mut object);
        let _ = schema.value_errors(whole(&object, Some(&old)));
    }

    #[test]
    fn what_can_be_told_to_be_unchanged_is_never_refused(schema in custom(), spec in json()) {
        let mut object = json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "a"}, "spec": spec});
        prop_assume!(schema.decode(&mut object).is_ok());
        let spec = super::validate::Former::of(schema.root(), &object).field("spec");
        prop_assume!(spec.is_some_and(|spec| spec.is(&object["spec"])));
        let mut relabelled = object.clone();
        relabelled["metadata"]["labels"] = json!({"a": "b"});
        let told: Vec<_> = schema.value_errors(whole(&relabelled, Some(&object))).into_iter().filter(|one| !one.field.contains("apiVersion") && !one.field.contains("kind")).collect();
        prop_assert_eq!(told, Vec::new());
    }
}

#[test]
fn a_built_in_kind_refers_to_its_components() {
    let mut components = BTreeMap::new();
    let schema = Schema::built_in("io.k8s.api.apps.v1.Deployment")
        .openapi(kubewright_spec::Version::DEFAULT, &mut components);
    assert_eq!(schema, json!({"$ref": "#/components/schemas/io.k8s.api.apps.v1.Deployment"}));
    let deployment = &components["io.k8s.api.apps.v1.Deployment"];
    assert_eq!(
        deployment["x-kubernetes-group-version-kind"],
        json!([{"group": "apps", "version": "v1", "kind": "Deployment"}])
    );
    let spec = &deployment["properties"]["spec"];
    assert_eq!(spec["allOf"], json!([{"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec"}]));
    assert!(spec["description"].is_string());
    let containers = &components["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
    let container = json!({"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"});
    assert_eq!(containers["items"], json!({"allOf": [container], "default": {}}));
    assert_eq!(components["io.k8s.api.core.v1.ContainerPort"]["properties"]["protocol"]["default"], "TCP");
    for (name, component) in &components {
        let text = component.to_string();
        for reference in text.split("#/components/schemas/").skip(1) {
            let target = reference.split('"').next().unwrap_or_default();
            assert!(components.contains_key(target), "{name} refers to {target}, which is not there");
        }
    }
}

#[test]
fn components_that_are_there_are_left_alone() {
    let mut components = BTreeMap::from([("io.k8s.api.core.v1.PodSpec".to_owned(), json!({"mine": true}))]);
    let _ = Schema::built_in("io.k8s.api.core.v1.Pod")
        .openapi(kubewright_spec::Version::DEFAULT, &mut components);
    assert_eq!(components["io.k8s.api.core.v1.PodSpec"], json!({"mine": true}));
    assert!(components.contains_key("io.k8s.api.core.v1.PodStatus"));
    assert!(!components.contains_key("io.k8s.api.core.v1.Container"), "only the spec refers to it");
}

#[test]
fn a_custom_kind_is_told_as_its_author_wrote_it() {
    let source = json!({"type": "object", "description": "A thing.", "properties": {"spec": {"type": "object",
        "description": "What is wanted.", "x-kubernetes-validations": [{"rule": "true"}]}}});
    let mut components = BTreeMap::new();
    let schema = Schema::custom(&source).openapi(kubewright_spec::Version::DEFAULT, &mut components);
    assert_eq!(schema["description"], "A thing.");
    assert_eq!(schema["properties"]["spec"], source["properties"]["spec"]);
    assert_eq!(schema["properties"]["apiVersion"]["type"], "string");
    let metadata = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    assert_eq!(schema["properties"]["metadata"]["allOf"], json!([{"$ref": metadata}]));
    assert!(components.contains_key("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"));
}

#[test]
fn defaults_of_built_in_kinds_are_set_where_the_parent_is_there() {
    let schema = Schema::built_in("io.k8s.api.core.v1.Service");
    let mut service = json!({"spec": {"ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}]}});
    schema.default(&mut service);
    assert_eq!(
        service,
        json!({"spec": {"ports": [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]}})
    );
    let mut empty = json!({"metadata": {"name": "a"}});
    schema.default(&mut empty);
    assert_eq!(empty, json!({"metadata": {"name": "a"}}));
}

/// A write of a whole object.
fn whole<'a>(object: &'a Value, old: Option<&'a Value>) -> Candidate<'a> {
    Candidate { object, old, part: Extent::Whole, version: kubewright_spec::Version::DEFAULT }
}
