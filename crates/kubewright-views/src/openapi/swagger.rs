//! OpenAPI v2 (Swagger), for clients that still ask for it: the documents of v3 in one, in its older grammar.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::document;
use kubewright_kinds::Kinds;

const SCHEMAS: &str = "#/components/schemas/";
const MEDIA_TYPES: [&str; 2] = ["application/json", "application/yaml"];

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
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": format!("v{}", kinds.version().release())},
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
    let mut all = match operation.remove("parameters").map(parameters) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    if let Some(body) = operation.remove("requestBody") {
        let content = body["content"].as_object().cloned().unwrap_or_default();
        let consumed: Vec<&String> = content.keys().collect();
        operation.insert("consumes".to_owned(), json!(consumed));
        let schema = content.values().next().map(|form| schema(form["schema"].clone())).unwrap_or_default();
        let required = body["required"] == true;
        all.push(json!({"name": "body", "in": "body", "required": required, "schema": schema}));
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
    operation.insert("produces".to_owned(), json!(MEDIA_TYPES));
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
                members.remove("default");
                if let Value::Object(reference) = only {
                    members.extend(reference);
                }
            }
            for dropped in ["nullable", "oneOf", "anyOf", "not"] {
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
        let body = create["parameters"].as_array().and_then(|list| list.last()).expect("a body");
        assert_eq!(body["schema"]["$ref"], "#/definitions/io.k8s.api.apps.v1.Deployment");
        assert_eq!(
            create["responses"]["201"]["schema"]["$ref"],
            "#/definitions/io.k8s.api.apps.v1.Deployment"
        );
        let list = &document["paths"]["/api/v1/pods"]["get"]["parameters"];
        assert!(list.as_array().is_some_and(|list| list.iter().all(|one| one["type"].is_string())), "{list}");
    }
}
