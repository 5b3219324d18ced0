//! Specs as errors show them: the structs of Go with its own names and order of fields (`pkg/apis/flowcontrol/types.go`).

use serde_json::Value;

use super::super::printed::Shape::{self, List, Plain, Pointer, Struct};

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
    Struct(SCHEMA).of(spec)
}

/// The spec of a priority level.
pub(super) fn level(spec: &Value) -> String {
    Struct(LEVEL).of(spec)
}
