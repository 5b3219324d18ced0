//! Set algebra, `FieldsV1`, and what merging, comparing and removing have to do with each other.

use kubewright_schema::fields::{Difference, Element, Set, Shape, Write, fields, merge, remove};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::{Kinds, KnownVersions};

fn element() -> impl Strategy<Value = Element> {
    prop_oneof![
        "[abc.]".prop_map(|name| Element::field(&name)),
        (0..3i64, "[xy]").prop_map(|(port, name)| {
            Element::Key([("name".into(), name.into()), ("port".into(), port.into())].into())
        }),
        (0..3i64).prop_map(|number| Element::Value(number.into())),
        "[ab]".prop_map(|text| Element::Value(text.into())),
        any::<bool>().prop_map(|truth| Element::Value(truth.into())),
        (0..3i64).prop_map(Element::Index),
    ]
}

fn set() -> impl Strategy<Value = Set> {
    vec(vec(element(), 1..4), 0..8).prop_map(|paths| {
        let mut set = Set::default();
        paths.iter().for_each(|path| set.insert(path));
        set
    })
}

/// A pod with lists of all kinds: maps (containers, ports, env), sets (finalizers), atomic ones (args).
fn pod() -> impl Strategy<Value = Value> {
    let port = (1..4u16, prop::sample::select(vec!["TCP", "UDP"]));
    let container = (btree_set(port, 0..3), btree_map("[AB]", "[12]", 0..3), vec("[xy]", 0..3));
    let containers = btree_map("[cde]", container, 0..3);
    (containers, btree_map("[lm]", "[12]", 0..3), btree_set("[fg]", 0..3)).prop_map(
        |(containers, labels, finalizers)| {
            let container = |(name, (ports, env, args)): (String, _)| {
                let ports: std::collections::BTreeSet<(u16, &str)> = ports;
                let env: std::collections::BTreeMap<String, String> = env;
                let args: Vec<String> = args;
                let ports: Vec<Value> =
                    ports.iter().map(|(port, of)| json!({"containerPort": port, "protocol": of})).collect();
                let env: Vec<Value> =
                    env.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
                without_empty(json!({"name": name, "ports": ports, "env": env, "args": args}))
            };
            let containers: Vec<Value> = containers.into_iter().map(container).collect();
            let metadata = without_empty(json!({"labels": labels, "finalizers": finalizers}));
            let spec = without_empty(json!({"containers": containers}));
            let mut pod = without_empty(json!({"metadata": metadata, "spec": spec}));
            pod["apiVersion"] = "v1".into();
            pod["kind"] = "Pod".into();
            pod
        },
    )
}

fn without_empty(mut value: Value) -> Value {
    if let Value::Object(members) = &mut value {
        members.retain(|_, member| *member != json!([]) && *member != Value::Object(Map::new()));
    }
    value
}

proptest! {
    #[test]
    fn a_set_survives_fields_v1(set in set()) {
        prop_assert_eq!(Set::decode(&set.encode()), Ok(set));
    }

    #[test]
    fn sets_obey_the_laws_of_sets(one in set(), other in set()) {
        let (union, both) = (one.union(&other), one.intersection(&other));
        prop_assert_eq!(&union, &other.union(&one));
        prop_assert_eq!(&both, &other.intersection(&one));
        prop_assert_eq!(one.difference(&other).union(&both), one.clone());
        prop_assert_eq!(union.difference(&other), one.difference(&other));
        prop_assert!(both.is_subset(&one) && one.is_subset(&union));
        prop_assert_eq!(one.intersects(&other), !both.is_empty());
        prop_assert!(one.recursive_difference(&other).is_subset(&one.difference(&other)));
    }

    #[test]
    fn a_set_has_the_paths_it_lists(one in set(), other in set()) {
        for path in one.paths() {
            prop_assert!(one.has(&path));
            prop_assert_eq!(one.difference(&other).has(&path), !other.has(&path));
        }
    }

    #[test]
    fn merging_the_same_again_changes_nothing(live in pod(), config in pod()) {
        let kinds = Kinds::built_in();
        let shape = Shape::of(&**kinds.get("", "v1", "pods").expect("a built-in kind"));
        let once = merge(shape, &live, &config).expect("it fits");
        prop_assert_eq!(merge(shape, &once, &config), Ok(once.clone()));
        prop_assert!(fields(shape, &config).is_subset(&fields(shape, &once)));
        prop_assert!(Difference::between(shape, &once, &once).expect("it compares").is_empty());
    }

    #[test]
    fn what_differs_is_in_one_of_both(old in pod(), new in pod()) {
        let kinds = Kinds::built_in();
        let shape = Shape::of(&**kinds.get("", "v1", "pods").expect("a built-in kind"));
        let found = Difference::between(shape, &old, &new).expect("it compares");
        prop_assert_eq!(found.is_empty(), old == new);
        let (of_old, of_new) = (fields(shape, &old), fields(shape, &new));
        prop_assert!(of_new.difference(&of_old).is_subset(&found.changed));
        prop_assert!(of_old.difference(&of_new).is_subset(&found.removed));
    }

    #[test]
    fn nothing_is_left_of_what_is_removed(pod in pod()) {
        let kinds = Kinds::built_in();
        let shape = Shape::of(&**kinds.get("", "v1", "pods").expect("a built-in kind"));
        let all = fields(shape, &pod);
        prop_assert!(!fields(shape, &remove(shape, &pod, &all)).intersects(&all.leaves()));
    }

    #[test]
    fn applying_the_same_again_changes_nothing(live in pod(), config in pod()) {
        let kinds = Kinds::built_in();
        let kind = kinds.get("", "v1", "pods").expect("a built-in kind");
        let versions = KnownVersions { kinds: &kinds, kind, conversions: &crate::Conversions::default() };
        let write = |now| Write {
            versions: &versions, manager: "applier", subresource: "", now,
        };
        let once = write("2026-01-01T00:00:00Z").apply(Some(&live), &config, true).expect("it is forced");
        let twice = write("2026-01-02T00:00:00Z").apply(Some(&once), &config, false);
        prop_assert_eq!(twice.expect("its fields are its own"), once);
    }
}
