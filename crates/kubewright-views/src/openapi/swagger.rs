//! OpenAPI v2 (Swagger), for clients that still ask for it: the documents of v3 in one, in its older grammar.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::components::custom_name;
use super::operation::MEDIA_TYPES;
use super::{document, short};
use kubewright_kinds::Kinds;
use kubewright_schema::patch;

/// The types of patches, in the order in which they are told.
const PATCHES: [&str; 4] = [patch::JSON, patch::MERGE, patch::STRATEGIC, patch::APPLY];
const SCHEMAS: &str = "#/components/schemas/";

/// `/openapi/v2`: all versions of all groups.
#[must_use]
pub fn swagger(kinds: &Kinds) -> Value {
    let versions: BTreeSet<(&str, &str)> =
        kinds.iter().map(|kind| (kind.group.as_str(), kind.version.as_str())).collect();
    let (mut paths, mut definitions) = (BTreeMap::new(), BTreeMap::new());
    for (group, version) in versions {
        let Some(Value::Object(mut document)) = document(kinds, group, version) else { continue };
        if let Some(Value::Object(own)) = document.remove("paths") {
            paths.extend(own.into_iter().map(|(path, item)| (path, path_item(item))));
        }
        if let Some(Value::Object(mut components)) = document.remove("components")
            && let Some(Value::Object(schemas)) = components.remove("schemas")
        {
            definitions.extend(schemas.into_iter().map(|(name, schema)| (name, self::schema(schema))));
        }
    }
    for kind in kinds.iter() {
        let Some(Value::Object(mut own)) = kind.schema().swagger(kinds.version()) else { continue };
        let Some(Value::Object(there)) = definitions.get_mut(&custom_name(kind)) else { continue };
        // What is said of the kind itself is the same in both grammars.
        for said in ["x-kubernetes-group-version-kind", "x-kubernetes-selectable-fields"] {
            own.extend(there.remove(said).map(|value| (said.to_owned(), value)));
        }
        *there = own;
    }
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": short(kinds.version())},
        "paths": paths,
        "definitions": definitions,
    })
}

fn path_item(item: Value) -> Value {
    let Value::Object(item) = item else { return item };
    let members = item.into_iter().map(|(key, value)| match key.as_str() {
        "parameters" => (key, parameters(value)),
        _ => (key, operation(value)),
    });
    Value::Object(members.collect())
}

fn operation(operation: Value) -> Value {
    let Value::Object(mut operation) = operation else { return operation };
    let answered = operation["responses"]["200"]["content"].as_object().cloned().unwrap_or_default();
    let produced: Vec<&str> = MEDIA_TYPES.into_iter().filter(|one| answered.contains_key(*one)).collect();
    // Bodies of built-in kinds are of any type; so it is told of requests without one, too.
    let is_custom = !produced.contains(&MEDIA_TYPES[2]);
    let mut consumed = if is_custom { json!(MEDIA_TYPES[..2]) } else { json!(["*/*"]) };
    let mut all = Vec::new();
    if let Some(body) = operation.remove("requestBody") {
        let content = body["content"].as_object().cloned().unwrap_or_default();
        let schema = content.values().next().map(|form| schema(form["schema"].clone())).unwrap_or_default();
        // A patch is of one of these types, all else of those of above.
        let patches = PATCHES.into_iter().filter(|one| content.contains_key(*one));
        let patches: Vec<&str> = patches.collect();
        if !patches.is_empty() {
            consumed = json!(patches);
        }
        let mut parameter = json!({"name": "body", "in": "body", "schema": schema});
        if body["required"] == true {
            parameter["required"] = true.into();
        }
        all.push(parameter);
    }
    if let Some(Value::Array(list)) = operation.remove("parameters").map(parameters) {
        all.extend(list);
    }
    if !all.is_empty() {
        operation.insert("parameters".to_owned(), all.into());
    }
    if let Some(Value::Object(responses)) = operation.get_mut("responses") {
        for response in responses.values_mut() {
            let schema = response["content"]["application/json"]["schema"].clone();
            let mut plain = json!({"description": response["description"]});
            if !schema.is_null() {
                plain["schema"] = self::schema(schema);
            }
            *response = plain;
        }
    }
    operation.insert("consumes".to_owned(), consumed);
    operation.insert("produces".to_owned(), json!(produced));
    operation.insert("schemes".to_owned(), json!(["https"]));
    Value::Object(operation)
}

/// The type of a parameter stands in the parameter itself.
fn parameters(list: Value) -> Value {
    let Value::Array(list) = list else { return list };
    let plain = list.into_iter().map(|mut parameter| {
        if let Some(Value::Object(schema)) =
            parameter.as_object_mut().and_then(|parameter| parameter.remove("schema"))
            && let Some(parameter) = parameter.as_object_mut()
        {
            parameter.extend(schema);
        }
        parameter
    });
    Value::Array(plain.collect())
}

/// A schema without what only v3 has: a reference stands alone, alternatives are left open.
fn schema(schema: Value) -> Value {
    match schema {
        Value::Object(mut members) => {
            if let Some(Value::Array(all)) = members.get("allOf")
                && let [only] = all.as_slice()
                && only.get("$ref").is_some()
            {
                let only = only.clone();
                members.remove("allOf");
                if let Value::Object(reference) = only {
                    members.extend(reference);
                }
            }
            for dropped in ["nullable", "oneOf", "anyOf", "not", "default"] {
                // What is a property of that name is a schema in `properties`, not here.
                if !matches!(members.get(dropped), Some(Value::Object(inner)) if inner.contains_key("type") && dropped == "nullable")
                {
                    members.remove(dropped);
                }
            }
            let plain: Map<String, Value> = members
                .into_iter()
                .map(|(key, value)| match (key.as_str(), value) {
                    ("$ref", Value::String(reference)) => {
                        (key, reference.replace(SCHEMAS, "#/definitions/").into())
                    }
                    ("properties", Value::Object(properties)) => {
                        let own = properties.into_iter().map(|(name, one)| (name, self::schema(one)));
                        (key, Value::Object(own.collect()))
                    }
                    ("items" | "additionalProperties", inner) => (key, self::schema(inner)),
                    ("allOf", Value::Array(all)) => (key, all.into_iter().map(self::schema).collect()),
                    (_, value) => (key, value),
                })
                .collect();
            Value::Object(plain)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_of_the_document_is_one_of_its_definitions() {
        fn check(value: &Value, definitions: &Value) {
            match value {
                Value::Object(members) => {
                    if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                        let name = reference.strip_prefix("#/definitions/").expect(reference);
                        assert!(definitions.get(name).is_some(), "{name}");
                    }
                    members.values().for_each(|member| check(member, definitions));
                }
                Value::Array(items) => items.iter().for_each(|item| check(item, definitions)),
                _ => {}
            }
        }
        let document = swagger(&Kinds::built_in());
        check(&document["paths"], &document["definitions"]);
        check(&document["definitions"], &document["definitions"]);
        let create = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments"]["post"];
        let body = create["parameters"].as_array().and_then(|list| list.first()).expect("a body");
        assert_eq!(body["schema"]["$ref"], "#/definitions/io.k8s.api.apps.v1.Deployment");
        assert_eq!(
            create["responses"]["201"]["schema"]["$ref"],
            "#/definitions/io.k8s.api.apps.v1.Deployment"
        );
        let list = &document["paths"]["/api/v1/pods"]["parameters"];
        assert!(list.as_array().is_some_and(|list| list.iter().all(|one| one["type"].is_string())), "{list}");
    }
}
