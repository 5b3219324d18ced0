//! Expressions, and what kube-apiserver v1.36's own environment (cel-go with Kubernetes' libraries) says of them: errors of
//! compilation to the letter, types, estimated costs, values, errors of evaluation, costs.

use kubewright_cel::{
    Bindings, CompileErrors, DeclField, DeclType, Environment, ListKind, Map, Opaque, Value,
    limits::PER_CALL_LIMIT,
};
use serde_json::Value as Json;

const TABLE: &str = include_str!("conformance.json");

/// The declaration of a schema, as the API server makes it.
fn declaration(schema: &Json) -> DeclType {
    let number = |name: &str| schema[name].as_u64();
    let flag = |name: &str| schema[name] == true;
    let declared = if flag("x-kubernetes-int-or-string") {
        DeclType::int_or_string(number("maxLength"))
    } else {
        match schema["type"].as_str() {
            Some("array") => {
                let keys = schema["x-kubernetes-list-map-keys"].as_array();
                let kind = match schema["x-kubernetes-list-type"].as_str() {
                    Some("set") => ListKind::Set,
                    Some("map") => ListKind::Map(
                        keys.into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect(),
                    ),
                    _ => ListKind::Atomic,
                };
                DeclType::list(declaration(&schema["items"]), kind, number("maxItems"))
            }
            Some("object") => match &schema["additionalProperties"] {
                Json::Null => object(schema),
                values => DeclType::map(declaration(values), number("maxProperties")),
            },
            Some("string") => match (schema["format"].as_str(), schema["enum"].as_array()) {
                (Some("byte"), _) => DeclType::bytes(number("maxLength")),
                (Some("date"), _) => DeclType::date(),
                (Some("date-time"), _) => DeclType::date_time(),
                (Some("duration"), _) => DeclType::duration(),
                (_, Some(values)) => {
                    let longest = values.iter().filter_map(Json::as_str).map(str::len).max();
                    DeclType::string_enum(longest.unwrap_or(0) as u64)
                }
                _ => DeclType::string(number("maxLength")),
            },
            Some("boolean") => DeclType::boolean(),
            Some("number") => DeclType::number(),
            Some("integer") => DeclType::integer(),
            _ => DeclType::hidden(),
        }
    };
    if flag("nullable") { declared.nullable() } else { declared }
}

fn object(schema: &Json) -> DeclType {
    let mut properties: serde_json::Map<String, Json> =
        schema["properties"].as_object().cloned().unwrap_or_default();
    if schema["x-kubernetes-embedded-resource"] == true {
        for name in ["apiVersion", "kind"] {
            properties.insert(name.to_owned(), serde_json::json!({"type": "string"}));
        }
        let names = serde_json::json!({"name": {"type": "string"}, "generateName": {"type": "string"}});
        properties.insert("metadata".to_owned(), serde_json::json!({"type": "object", "properties": names}));
    }
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|other| *other == *name))
    };
    DeclType::object(
        properties.iter().map(|(name, property)| DeclField::new(name, declaration(property), required(name))),
    )
}

/// A value, as the table writes it.
fn show(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => format!("bool {truth}"),
        Value::Int(number) => format!("int {number}"),
        Value::Uint(number) => format!("uint {number}"),
        Value::Double(number) if number.is_infinite() => {
            format!("double {}Inf", if *number > 0.0 { '+' } else { '-' })
        }
        Value::Double(number) if number.abs() < 1e-4 && *number != 0.0 => {
            let written = format!("{number:e}");
            let (digits, exponent) = written.split_once("e-").unwrap();
            format!("double {digits}e-{exponent:0>2}")
        }
        Value::Double(number) => format!("double {number}"),
        Value::String(text) => format!("string {text}", text = serde_json::to_string(&**text).unwrap()),
        Value::Bytes(bytes) => {
            format!("bytes {}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
        Value::Timestamp(time) => format!("timestamp {time}"),
        Value::Duration(span) => format!("duration {span}"),
        Value::Optional(None) => "optional.none()".to_owned(),
        Value::Optional(Some(value)) => format!("optional({})", show(value)),
        Value::Type(named) => format!("type {}", named.name()),
        Value::List(list) => {
            let items: Vec<String> = list.iter().map(|item| show(&item.unwrap())).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => show_map(map),
        Value::Opaque(Opaque::Format(_)) => "kubernetes.NamedFormat".to_owned(),
        Value::Opaque(opaque) => format!("{} {opaque}", value.runtime_type().name()),
        Value::Object(object) => object.type_name.to_string(),
        Value::Hidden(json) => json.to_string(),
    }
}

fn show_map(map: &Map<'_>) -> String {
    let mut entries = Vec::new();
    for key in map.keys() {
        match map.get(&key) {
            Ok(Some(value)) => entries.push(format!("{}: {}", show(&key), show(&value))),
            Ok(None) => {}
            Err(error) => entries.push(format!("{}: {error}", show(&key))),
        }
    }
    entries.sort();
    format!("{{{}}}", entries.join(", "))
}

/// What differs from the table for one expression.
fn differences(case: &Json, table: &Json, schema: &DeclType) -> Vec<String> {
    let expression = case["expr"].as_str().unwrap();
    let mut environment = Environment::new().variable("object", DeclType::dynamic());
    match case["with"].as_str() {
        Some("self") => {
            let optional = DeclType::of(kubewright_cel::Type::optional(schema.cel_type()));
            environment = environment
                .variable("self", schema.clone())
                .variable("oldSelf", schema.clone())
                .variable("optSelf", optional);
        }
        Some("mutation") => environment = environment.patch_types(),
        _ => {}
    }
    let mut differences = Vec::new();
    let mut compare = |what: &str, ours: &str, theirs: &Json| {
        let theirs = match theirs {
            Json::String(text) => text.clone(),
            Json::Null => String::new(),
            other => other.to_string(),
        };
        if ours != theirs {
            differences.push(format!("{expression:?}: {what}\n   ours: {ours}\n theirs: {theirs}"));
        }
    };
    let program = match environment.compile(expression) {
        Ok(program) => program,
        Err(error) => {
            let what =
                if let CompileErrors::Instantiation(_) = error { "programError" } else { "compileError" };
            compare(what, &error.to_string(), &case[what]);
            return differences;
        }
    };
    compare("compileError", "", &case["compileError"]);
    compare("programError", "", &case["programError"]);
    if !case["compileError"].is_null() || !case["programError"].is_null() {
        return differences;
    }
    compare("type", &program.output_type().to_string(), &case["type"]);
    let estimate = program.estimate();
    compare(
        "estimate",
        &format!("{}..{}", estimate.min, estimate.max),
        &Json::String(format!("{}..{}", case["min"], case["max"])),
    );
    let mut bindings = Bindings::new();
    bindings.bind("object", Value::dynamic(&table["object"]));
    let declared = Value::declared(&table["self"], schema).unwrap();
    bindings.bind("self", declared.clone()).bind("oldSelf", declared.clone());
    bindings.bind("optSelf", Value::optional(Some(declared)));
    let evaluation = program.evaluate(&bindings, PER_CALL_LIMIT);
    match evaluation.result {
        Ok(value) => {
            compare("error", "", &case["error"]);
            compare("value", &show(&value), &case["value"]);
            compare("cost", &evaluation.cost.to_string(), &case["cost"]);
        }
        Err(error) => compare("error", &error.to_string(), &case["error"]),
    }
    differences
}

#[test]
fn expressions_are_what_kube_apiserver_takes_them_for() {
    let table: Json = serde_json::from_str(TABLE).unwrap();
    let schema = declaration(&table["schema"]).named("selfType");
    let cases = table["cases"].as_array().unwrap();
    let differences: Vec<String> = cases.iter().flat_map(|case| differences(case, &table, &schema)).collect();
    assert!(cases.len() > 1_000);
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}
