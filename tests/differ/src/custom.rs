//! Definitions of custom resources out of dice.

use rand::RngExt;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};

use crate::schema::Resource;

/// A definition and what it serves.
pub(crate) struct Made {
    pub(crate) name: String,
    pub(crate) definition: Value,
    pub(crate) resource: Resource,
    /// The same objects in another version.
    pub(crate) other: Option<Resource>,
    pub(crate) schema: Value,
}

/// CustomResourceDefinitions as a resource.
pub(crate) fn definitions() -> Resource {
    Resource {
        group: "apiextensions.k8s.io".into(),
        version: "v1".into(),
        plural: "customresourcedefinitions".into(),
        kind: "CustomResourceDefinition".into(),
        namespaced: false,
        verbs: ["create", "get", "delete"].map(str::to_owned).to_vec(),
        subresources: vec!["status".into()],
    }
}

/// A definition in the group `@run@.example.com`.
pub(crate) fn definition(rng: &mut ChaCha8Rng) -> Made {
    let namespaced = rng.random_bool(0.8);
    let mut schema =
        json!({"type": "object", "properties": {"spec": object(rng, 3), "status": object(rng, 2)}});
    if rng.random_bool(0.2) {
        schema["properties"]["extra"] = property(rng, 2);
    }
    if rng.random_bool(0.15) {
        schema["required"] = json!(["spec"]);
    }
    if rng.random_bool(0.1) {
        schema["x-kubernetes-validations"] =
            json!([{"rule": "!has(self.spec) || self.metadata.name != 'b'", "message": "not b"}]);
    }
    let mut version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let mut subresources = Vec::new();
    if rng.random_bool(0.6) {
        version["subresources"]["status"] = json!({});
        subresources.push("status".to_owned());
    }
    if rng.random_bool(0.3) {
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["replicas"] =
            json!({"type": "integer", "format": "int32"});
        version["subresources"]["scale"] =
            json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
        if rng.random_bool(0.5) {
            version["subresources"]["scale"]["labelSelectorPath"] = json!(".status.selector");
        }
        subresources.push("scale".to_owned());
    }
    if rng.random_bool(0.5) {
        version["additionalPrinterColumns"] = columns(rng);
    }
    if rng.random_bool(0.3) {
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["color"] =
            json!({"type": "string"});
        version["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
    }
    let schema = version["schema"]["openAPIV3Schema"].clone();
    let mut versions = vec![version.clone()];
    let resource = Resource {
        group: "@run@.example.com".into(),
        version: "v1".into(),
        plural: "things".into(),
        kind: "Thing".into(),
        namespaced,
        verbs: ["create", "get", "list", "watch", "update", "patch", "delete", "deletecollection"]
            .map(str::to_owned)
            .to_vec(),
        subresources,
    };
    let other = rng.random_bool(0.25).then(|| {
        let mut second = version.clone();
        second["name"] = json!("v2");
        second["storage"] = json!(false);
        if rng.random_bool(0.5) {
            second["schema"]["openAPIV3Schema"]["properties"]["spec"] = object(rng, 2);
            if let Some(members) = second.as_object_mut() {
                members.remove("selectableFields");
            }
        }
        if rng.random_bool(0.3) {
            second["deprecated"] = json!(true);
        }
        versions.push(second);
        Resource { version: "v2".into(), ..resource.clone() }
    });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.@run@.example.com"},
        "spec": {"group": "@run@.example.com", "scope": if namespaced { "Namespaced" } else { "Cluster" },
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}, "versions": versions},
    });
    Made { name: "things.@run@.example.com".into(), definition, resource, other, schema }
}

fn columns(rng: &mut ChaCha8Rng) -> Value {
    let all = [
        json!({"name": "A", "type": "string", "jsonPath": ".spec.a"}),
        json!({"name": "B", "type": "integer", "jsonPath": ".spec.b", "priority": 1}),
        json!({"name": "C", "type": "boolean", "jsonPath": ".spec.c", "description": "the third"}),
        json!({"name": "Since", "type": "date", "jsonPath": ".metadata.creationTimestamp"}),
        json!({"name": "Items", "type": "string", "jsonPath": ".spec.d[*].name"}),
        json!({"name": "N", "type": "number", "jsonPath": ".status.a"}),
    ];
    Value::Array(all.into_iter().filter(|_| rng.random_bool(0.5)).collect())
}

fn object(rng: &mut ChaCha8Rng, depth: usize) -> Value {
    let mut properties = Map::new();
    for name in ["a", "b", "c", "d", "e"] {
        if rng.random_bool(0.7) {
            properties.insert(name.to_owned(), property(rng, depth));
        }
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if rng.random_bool(0.2) {
        schema["required"] = json!(["a"]);
    }
    if rng.random_bool(0.08) {
        schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
    }
    if rng.random_bool(0.1) {
        schema["x-kubernetes-map-type"] = json!("atomic");
    }
    if rng.random_bool(0.15) && schema["properties"]["a"].is_object() {
        schema["x-kubernetes-validations"] = json!([{"rule": *["!has(self.a) || has(self.b)", "has(self.a) == has(oldSelf.a)"].choose(rng).unwrap_or(&"true"), "message": "a and b"}]);
        if schema["properties"].get("b").is_none() {
            schema["properties"]["b"] = json!({"type": "string"});
        }
    }
    if rng.random_bool(0.06) {
        schema["minProperties"] = json!(1);
    }
    if rng.random_bool(0.05) && schema["properties"].get("c").is_some() {
        schema["oneOf"] = json!([{"required": ["a"]}, {"required": ["c"]}]);
    }
    schema
}

fn property(rng: &mut ChaCha8Rng, depth: usize) -> Value {
    let mut schema = match rng.random_range(0..if depth > 0 { 12 } else { 7 }) {
        0 => json!({"type": "string"}),
        1 => json!({"type": "string", "enum": ["a", "web", "c"]}),
        2 => text(rng),
        3 => json!({"type": "integer"}),
        4 => number(rng),
        5 => json!({"type": "boolean"}),
        6 => json!({"x-kubernetes-int-or-string": true}),
        7 | 8 => object(rng, depth - 1),
        9 => list(rng, depth - 1),
        10 => json!({"type": "object", "additionalProperties": property(rng, depth - 1)}),
        _ => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    };
    if rng.random_bool(0.15) {
        schema["nullable"] = json!(true);
    }
    if rng.random_bool(0.2) && schema.get("x-kubernetes-int-or-string").is_none() {
        let default = match schema["type"].as_str() {
            Some("string") if schema["enum"].is_array() => Some(json!("web")),
            Some("string") if schema.as_object().is_some_and(|members| members.len() <= 2) => {
                Some(json!("dflt"))
            }
            Some("integer") if schema.as_object().is_some_and(|members| members.len() <= 2) => Some(json!(3)),
            Some("boolean") => Some(json!(true)),
            Some("object")
                if schema["properties"].is_object()
                    && schema.get("required").is_none()
                    && schema.get("oneOf").is_none()
                    && schema.get("minProperties").is_none()
                    && schema.get("x-kubernetes-validations").is_none() =>
            {
                Some(json!({}))
            }
            _ => None,
        };
        if let Some(default) = default {
            schema["default"] = default;
        }
    }
    if rng.random_bool(0.15) {
        schema["description"] = json!("what it is");
    }
    schema
}

fn text(rng: &mut ChaCha8Rng) -> Value {
    match rng.random_range(0..6) {
        0 => json!({"type": "string", "pattern": "^[a-z]+$"}),
        1 => json!({"type": "string", "minLength": 2, "maxLength": 5}),
        2 => {
            json!({"type": "string", "format": *["date-time", "duration", "ipv4", "uri", "uuid", "byte", "email", "cidr", "hostname", "date"].choose(rng).unwrap_or(&"uri")})
        }
        3 => {
            json!({"type": "string", "maxLength": 20, "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "it is immutable"}]})
        }
        4 => {
            json!({"type": "string", "maxLength": 20, "x-kubernetes-validations": [{"rule": "self.startsWith('a')", "messageExpression": "'not ' + self", "reason": "FieldValueForbidden"}]})
        }
        _ => json!({"type": "string", "maxLength": 3}),
    }
}

fn number(rng: &mut ChaCha8Rng) -> Value {
    match rng.random_range(0..5) {
        0 => json!({"type": "integer", "minimum": 1, "maximum": 10}),
        1 => json!({"type": "integer", "format": "int32"}),
        2 => json!({"type": "number", "multipleOf": 0.5}),
        3 => json!({"type": "integer", "minimum": 0, "exclusiveMinimum": true}),
        _ => json!({"type": "number"}),
    }
}

fn list(rng: &mut ChaCha8Rng, depth: usize) -> Value {
    match rng.random_range(0..4) {
        0 => {
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "maxItems": 3})
        }
        1 => {
            let mut item = object(rng, depth);
            item["properties"]["name"] = json!({"type": "string"});
            item["required"] = json!(["name"]);
            for word in ["x-kubernetes-map-type", "oneOf", "x-kubernetes-validations", "minProperties"] {
                item.as_object_mut().map(|members| members.remove(word));
            }
            json!({"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]})
        }
        2 => {
            json!({"type": "array", "items": property(rng, depth), "x-kubernetes-list-type": "atomic", "minItems": 1})
        }
        _ => json!({"type": "array", "items": property(rng, depth)}),
    }
}
