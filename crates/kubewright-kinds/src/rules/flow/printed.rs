//! Specs as errors show them: the structs of Go with its own names and order of fields (`pkg/apis/flowcontrol/types.go`).

use std::fmt::Write;

use serde_json::Value;

/// What a struct of Go is made of.
enum Shape {
    /// A value that is printed as it is; this text where there is none.
    Plain(&'static str),
    /// A struct with these fields: the name that Go has for each, and that of JSON.
    Struct(&'static [(&'static str, &'static str, Shape)]),
    /// A pointer to a struct.
    Pointer(&'static [(&'static str, &'static str, Shape)]),
    /// A list of structs.
    List(&'static [(&'static str, &'static str, Shape)]),
}

use Shape::{List, Plain, Pointer, Struct};

const NAME: &[(&str, &str, Shape)] = &[("Name", "name", Plain("\"\""))];

const SCHEMA: &[(&str, &str, Shape)] = &[
    ("PriorityLevelConfiguration", "priorityLevelConfiguration", Struct(NAME)),
    ("MatchingPrecedence", "matchingPrecedence", Plain("0")),
    ("DistinguisherMethod", "distinguisherMethod", Pointer(&[("Type", "type", Plain("\"\""))])),
    (
        "Rules",
        "rules",
        List(&[
            (
                "Subjects",
                "subjects",
                List(&[
                    ("Kind", "kind", Plain("\"\"")),
                    ("User", "user", Pointer(NAME)),
                    ("Group", "group", Pointer(NAME)),
                    (
                        "ServiceAccount",
                        "serviceAccount",
                        Pointer(&[
                            ("Namespace", "namespace", Plain("\"\"")),
                            ("Name", "name", Plain("\"\"")),
                        ]),
                    ),
                ]),
            ),
            (
                "ResourceRules",
                "resourceRules",
                List(&[
                    ("Verbs", "verbs", Plain("null")),
                    ("APIGroups", "apiGroups", Plain("null")),
                    ("Resources", "resources", Plain("null")),
                    ("ClusterScope", "clusterScope", Plain("false")),
                    ("Namespaces", "namespaces", Plain("null")),
                ]),
            ),
            (
                "NonResourceRules",
                "nonResourceRules",
                List(&[
                    ("Verbs", "verbs", Plain("null")),
                    ("NonResourceURLs", "nonResourceURLs", Plain("null")),
                ]),
            ),
        ]),
    ),
];

const LEVEL: &[(&str, &str, Shape)] = &[
    ("Type", "type", Plain("\"\"")),
    (
        "Limited",
        "limited",
        Pointer(&[
            ("NominalConcurrencyShares", "nominalConcurrencyShares", Plain("0")),
            (
                "LimitResponse",
                "limitResponse",
                Struct(&[
                    ("Type", "type", Plain("\"\"")),
                    (
                        "Queuing",
                        "queuing",
                        Pointer(&[
                            ("Queues", "queues", Plain("0")),
                            ("HandSize", "handSize", Plain("0")),
                            ("QueueLengthLimit", "queueLengthLimit", Plain("0")),
                        ]),
                    ),
                ]),
            ),
            ("LendablePercent", "lendablePercent", Plain("null")),
            ("BorrowingLimitPercent", "borrowingLimitPercent", Plain("null")),
        ]),
    ),
    (
        "Exempt",
        "exempt",
        Pointer(&[
            ("NominalConcurrencyShares", "nominalConcurrencyShares", Plain("null")),
            ("LendablePercent", "lendablePercent", Plain("null")),
        ]),
    ),
];

/// The spec of a flow schema.
pub(super) fn schema(spec: &Value) -> String {
    let mut out = String::new();
    print(&mut out, spec, &Struct(SCHEMA));
    out
}

/// The spec of a priority level.
pub(super) fn level(spec: &Value) -> String {
    let mut out = String::new();
    print(&mut out, spec, &Struct(LEVEL));
    out
}

fn print(out: &mut String, value: &Value, shape: &Shape) {
    match (shape, value) {
        (Plain(absent), Value::Null) => out.push_str(absent),
        (Pointer(_) | List(_), Value::Null) => out.push_str("null"),
        (Plain(_), value) => {
            let _ = write!(out, "{value}");
        }
        (Struct(fields) | Pointer(fields), value) => print_fields(out, value, fields),
        (List(fields), value) => {
            out.push('[');
            for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                print_fields(out, item, fields);
            }
            out.push(']');
        }
    }
}

fn print_fields(out: &mut String, value: &Value, fields: &[(&str, &str, Shape)]) {
    out.push('{');
    for (index, (name, key, shape)) in fields.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        let _ = write!(out, "\"{name}\":");
        print(out, value.get(key).unwrap_or(&Value::Null), shape);
    }
    out.push('}');
}
