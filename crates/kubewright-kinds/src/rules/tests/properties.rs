//! What holds for every kind and any JSON.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{Kind, is_namespaced, made, messages, refused, rules, samples, served};
use crate::rules::{Generation, convert};

/// Names of fields that lead deep into the rules.
const FIELDS: [&str; 60] = [
    "metadata",
    "spec",
    "status",
    "template",
    "jobTemplate",
    "containers",
    "initContainers",
    "name",
    "image",
    "ports",
    "containerPort",
    "hostPort",
    "env",
    "valueFrom",
    "fieldRef",
    "fieldPath",
    "resources",
    "limits",
    "requests",
    "cpu",
    "memory",
    "storage",
    "volumes",
    "emptyDir",
    "projected",
    "sources",
    "items",
    "selector",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "strategy",
    "type",
    "rollingUpdate",
    "maxSurge",
    "replicas",
    "schedule",
    "completions",
    "rules",
    "http",
    "paths",
    "backend",
    "service",
    "clusterIP",
    "clusterIPs",
    "ipFamilies",
    "webhooks",
    "limits",
    "hard",
    "max",
    "min",
    "subsets",
    "addresses",
    "behavior",
];

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(vec![
            "1Gi",
            "100m",
            "Never",
            "Always",
            "a",
            "None",
            "25%",
            "10.0.0.0/8",
            "::1",
            "*",
            "Indexed"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(7, 80, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(FIELDS.to_vec()), inner), 0..7).prop_map(|fields| {
                Value::Object(
                    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>(),
                )
            }),
        ]
    })
}

fn any_kind() -> impl Strategy<Value = (Kind, Value)> {
    prop::sample::select(samples::all())
}

/// A good object with one of its parts replaced.
fn damaged() -> impl Strategy<Value = (Kind, Value)> {
    (any_kind(), any_json(), any::<prop::sample::Index>()).prop_map(|((kind, sample), part, which)| {
        let mut object = made(kind, &sample);
        let mut places = Vec::new();
        pointers(&object, String::new(), &mut places);
        let place = which.get(&places).clone();
        if let Some(slot) = object.pointer_mut(&place) {
            *slot = part;
        }
        (kind, object)
    })
}

fn pointers(value: &Value, at: String, places: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                pointers(value, format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), places);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                pointers(value, format!("{at}/{index}"), places);
            }
        }
        _ => {}
    }
    places.push(at);
}

fn run_everything(kind: Kind, new: &Value, old: &Value) {
    let rules = rules(kind);
    let mut object = new.clone();
    (rules.default)(&mut object);
    (rules.prepare_create)(&mut object);
    let _ = rules.errors_on_create(&object, is_namespaced(kind));
    (rules.prepare_update)(&mut object, old);
    let _ = messages(&rules.errors_on_update(&object, old, is_namespaced(kind)));
    let _ = rules.errors_on_status(&object, old, is_namespaced(kind));
    let _ = rules.warnings(&object, None);
    let _ = rules.generation.raised(&object, old);
    let kind = served(kind);
    kind.to_storage(&mut object);
    kind.to_served(&mut object);
}

#[test]
fn every_kind_accepts_its_sample() {
    for (kind, sample) in samples::all() {
        assert_eq!(refused(kind, &sample), Vec::<String>::new(), "{kind:?}");
    }
}

#[test]
fn an_unchanged_object_may_be_written_again() {
    for (kind, sample) in samples::all() {
        let object = made(kind, &sample);
        let mut again = object.clone();
        (rules(kind).default)(&mut again);
        (rules(kind).prepare_update)(&mut again, &object);
        assert_eq!(
            messages(&rules(kind).errors_on_update(&again, &object, is_namespaced(kind))),
            Vec::<String>::new(),
            "{kind:?}"
        );
        assert!(!rules(kind).generation.raised(&again, &object), "{kind:?}");
    }
}

#[test]
fn defaults_are_complete_after_the_first_time() {
    for (kind, sample) in samples::all() {
        let object = made(kind, &sample);
        let mut again = object.clone();
        (rules(kind).default)(&mut again);
        assert_eq!(again, object, "{kind:?}");
    }
}

#[test]
fn a_change_of_content_raises_the_generation_where_kinds_count_it() {
    for (kind, sample) in samples::all() {
        let object = made(kind, &sample);
        let mut changed = object.clone();
        changed["other"] = json!(1);
        let counts = !matches!(rules(kind).generation, Generation::None | Generation::Fixed);
        assert_eq!(rules(kind).generation.raised(&changed, &object), counts, "{kind:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_json_makes_a_rule_panic((kind, _) in any_kind(), new in any_json(), old in any_json()) {
        run_everything(kind, &new, &old);
    }

    #[test]
    fn no_damaged_object_makes_a_rule_panic((kind, object) in damaged(), (_, other) in damaged()) {
        run_everything(kind, &object, &other);
        run_everything(kind, &other, &object);
    }

    #[test]
    fn defaulting_twice_changes_nothing((kind, object) in damaged()) {
        let mut once = object;
        (rules(kind).default)(&mut once);
        let mut twice = once.clone();
        (rules(kind).default)(&mut twice);
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn events_keep_their_facts_through_the_other_version(object in any_json()) {
        let mut core = json!({"apiVersion": "v1", "reason": object, "involvedObject": {"kind": "Pod"}, "source": {},
            "firstTimestamp": null, "lastTimestamp": null, "eventTime": null, "reportingComponent": "", "reportingInstance": ""});
        let before = core.clone();
        convert::events::from_core(&mut core);
        convert::events::to_core(&mut core);
        prop_assert_eq!(core, before);
    }
}
