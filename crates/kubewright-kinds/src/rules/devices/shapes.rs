//! Claims and devices as errors show them: the structs of Go with its own names and order of fields (`pkg/apis/resource/types.go`).

use kubewright_spec::Version;
use serde_json::Value;

use super::super::printed::Fields;
use super::super::printed::Shape::{List, Plain, Pointer, Struct};
use super::super::version::since;

const TEXT: super::super::printed::Shape = Plain("\"\"");
const NONE: super::super::printed::Shape = Plain("null");

const SELECTOR: Fields = &[("CEL", "cel", Pointer(&[("Expression", "expression", TEXT)]))];

const TOLERATION: Fields = &[
    ("Key", "key", TEXT),
    ("Operator", "operator", TEXT),
    ("Value", "value", TEXT),
    ("Effect", "effect", TEXT),
    ("TolerationSeconds", "tolerationSeconds", NONE),
];

const CAPACITY: Fields = &[("Requests", "requests", NONE)];

const OPAQUE: Fields = &[("Driver", "driver", TEXT), ("Parameters", "parameters", NONE)];

const DEVICES: Fields = &[
    (
        "Requests",
        "requests",
        List(&[
            ("Name", "name", TEXT),
            (
                "Exactly",
                "exactly",
                Pointer(&[
                    ("DeviceClassName", "deviceClassName", TEXT),
                    ("Selectors", "selectors", List(SELECTOR)),
                    ("AllocationMode", "allocationMode", TEXT),
                    ("Count", "count", Plain("0")),
                    ("AdminAccess", "adminAccess", NONE),
                    ("Tolerations", "tolerations", List(TOLERATION)),
                    ("Capacity", "capacity", Pointer(CAPACITY)),
                ]),
            ),
            (
                "FirstAvailable",
                "firstAvailable",
                List(&[
                    ("Name", "name", TEXT),
                    ("DeviceClassName", "deviceClassName", TEXT),
                    ("Selectors", "selectors", List(SELECTOR)),
                    ("AllocationMode", "allocationMode", TEXT),
                    ("Count", "count", Plain("0")),
                    ("Tolerations", "tolerations", List(TOLERATION)),
                    ("Capacity", "capacity", Pointer(CAPACITY)),
                ]),
            ),
        ]),
    ),
    (
        "Constraints",
        "constraints",
        List(&[
            ("Requests", "requests", NONE),
            ("MatchAttribute", "matchAttribute", NONE),
            ("DistinctAttribute", "distinctAttribute", NONE),
        ]),
    ),
    ("Config", "config", List(&[("Requests", "requests", NONE), ("Opaque", "opaque", Pointer(OPAQUE))])),
];

const CLAIM: Fields = &[("Devices", "devices", Struct(DEVICES))];

const REQUIREMENT: Fields =
    &[("Key", "key", TEXT), ("Operator", "operator", TEXT), ("Values", "values", NONE)];

const TERM: Fields = &[
    ("MatchExpressions", "matchExpressions", List(REQUIREMENT)),
    ("MatchFields", "matchFields", List(REQUIREMENT)),
];

const ALLOCATION: Fields = &[
    (
        "Devices",
        "devices",
        Struct(&[
            (
                "Results",
                "results",
                List(&[
                    ("Request", "request", TEXT),
                    ("Driver", "driver", TEXT),
                    ("Pool", "pool", TEXT),
                    ("Device", "device", TEXT),
                    ("AdminAccess", "adminAccess", NONE),
                    ("Tolerations", "tolerations", List(TOLERATION)),
                    ("BindingConditions", "bindingConditions", NONE),
                    ("BindingFailureConditions", "bindingFailureConditions", NONE),
                    ("ShareID", "shareID", NONE),
                    ("ConsumedCapacity", "consumedCapacity", NONE),
                ]),
            ),
            (
                "Config",
                "config",
                List(&[
                    ("Source", "source", TEXT),
                    ("Requests", "requests", NONE),
                    ("Opaque", "opaque", Pointer(OPAQUE)),
                ]),
            ),
        ]),
    ),
    ("NodeSelector", "nodeSelector", Pointer(&[("NodeSelectorTerms", "nodeSelectorTerms", List(TERM))])),
    ("AllocationTimestamp", "allocationTimestamp", NONE),
];

const ATTRIBUTE: Fields = &[
    ("IntValue", "int", NONE),
    ("BoolValue", "bool", NONE),
    ("StringValue", "string", NONE),
    ("VersionValue", "version", NONE),
    ("IntValues", "ints", NONE),
    ("BoolValues", "bools", NONE),
    ("StringValues", "strings", NONE),
    ("VersionValues", "versions", NONE),
];
/// So many of them there were before v1.36.
const SINGLE_VALUES: usize = 4;

/// The spec of a claim. From v1.37 on there are attributes that are derived, a feature that is off.
pub(super) fn claim(spec: &Value) -> String {
    let printed = Struct(CLAIM).of(spec);
    if !since(Version::V1_37) {
        return printed;
    }
    let last = "\"Capacity\":null}";
    printed.replace(last, "\"Capacity\":null,\"DerivedAttributes\":null}")
}

/// The spec of a template: the metadata of its claims as JSON has it, and their spec.
pub(super) fn template(spec: &Value) -> String {
    let mut parts = Vec::new();
    for field in ["labels", "annotations"] {
        if let Some(map) = spec.pointer(&format!("/metadata/{field}")).filter(|map| !map.is_null()) {
            parts.push(format!("{field:?}:{map}"));
        }
    }
    parts.push(format!("\"Spec\":{}", claim(spec.get("spec").unwrap_or(&Value::Null))));
    format!("{{{}}}", parts.join(","))
}

/// An allocation.
pub(super) fn allocation(allocation: &Value) -> String {
    Struct(ALLOCATION).of(allocation)
}

/// The terms of a selector of nodes.
pub(super) fn terms(terms: &Value) -> String {
    List(TERM).of(terms)
}

/// An attribute of a device.
pub(super) fn attribute(attribute: &Value) -> String {
    let fields = if since(Version::V1_36) { ATTRIBUTE } else { &ATTRIBUTE[..SINGLE_VALUES] };
    Struct(fields).of(attribute)
}

/// What identifies a device that was allocated: its driver, pool, name, and the share of it.
pub(super) fn device_id(device: &Value) -> String {
    let fields: Fields = &[
        ("Driver", "driver", TEXT),
        ("Pool", "pool", TEXT),
        ("Device", "device", TEXT),
        ("ShareID", "shareID", TEXT),
    ];
    Struct(fields).of(device)
}
