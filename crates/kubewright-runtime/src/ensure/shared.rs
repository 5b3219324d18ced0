//! Lists that an operator shares with others: there its elements are wanted, and those of others stay.
//!
//! They are those of a Pod and of a ServiceAccount. Admission extends a Pod (the volume and mount of its account's token,
//! tolerations for nodes that are away, sidecars), and no update takes an element from these lists again (from those that one
//! may, as `schedulingGates`, what is not wanted goes); tokens and credentials of
//! registries come to a ServiceAccount the same way. In any other list what is not wanted any more has to go, which only
//! the whole list says: what was wanted before is not remembered.

use std::{borrow::Cow, collections::BTreeMap};

use kubewright_meta::desired::overlay;
use serde_json::Value;

type Fields = &'static [(&'static str, Shared)];

/// Where shared lists are in a field.
enum Shared {
    /// In fields of the object that it is.
    Within(Fields),
    /// It is one, whose elements differ in these fields, and have shared lists in those.
    List(&'static [Key], Fields),
}

/// A field that tells elements apart.
struct Key {
    field: &'static str,
    /// What it means that it is not there.
    default: &'static str,
}

impl Key {
    const fn named(field: &'static str) -> Self {
        Self { field, default: "" }
    }
}

const NAME: &[Key] = &[Key::named("name")];
const NAMED: Shared = Shared::List(NAME, &[]);

// The keys are `listMapKey` in `k8s.io/api/core/v1/types.go`; a test holds them to it. Tolerations have none, as who applies
// them owns them all; these are the fields by which one is found again (`MatchToleration` in
// `k8s.io/api/core/v1/toleration.go`). Nor have the `imagePullSecrets` of a ServiceAccount.
const POD: Fields = &[("spec", Shared::Within(POD_SPEC))];
const POD_SPEC: Fields = &[
    ("containers", Shared::List(NAME, CONTAINER)),
    ("ephemeralContainers", Shared::List(NAME, CONTAINER)),
    ("hostAliases", Shared::List(&[Key::named("ip")], &[])),
    ("imagePullSecrets", NAMED),
    ("initContainers", Shared::List(NAME, CONTAINER)),
    ("resourceClaims", NAMED),
    ("tolerations", Shared::List(TOLERATION, &[])),
    ("topologySpreadConstraints", Shared::List(SPREAD, &[])),
    ("volumes", NAMED),
];
const CONTAINER: Fields = &[
    ("env", NAMED),
    ("ports", Shared::List(PORT, &[])),
    ("resources", Shared::Within(&[("claims", NAMED)])),
    ("volumeDevices", Shared::List(&[Key::named("devicePath")], &[])),
    ("volumeMounts", Shared::List(&[Key::named("mountPath")], &[])),
];
const PORT: &[Key] = &[Key::named("containerPort"), Key { field: "protocol", default: "TCP" }];
const SPREAD: &[Key] = &[Key::named("topologyKey"), Key::named("whenUnsatisfiable")];
const TOLERATION: &[Key] = &[
    Key::named("key"),
    Key { field: "operator", default: "Equal" },
    Key::named("value"),
    Key::named("effect"),
];
const SERVICE_ACCOUNT: Fields = &[("imagePullSecrets", NAMED), ("secrets", NAMED)];

/// Whether objects of this kind have shared lists.
pub(super) fn has_lists(group: &str, kind: &str) -> bool {
    matches!((group, kind), ("", "Pod" | "ServiceAccount"))
}

/// Puts into the shared lists of `wanted` what `current` has besides, as far as objects of this kind have such lists. The
/// wanted elements are in their order, and those of others where they are.
pub(super) fn keep_others(group: &str, kind: &str, wanted: &mut Value, current: &Value) {
    match (group, kind) {
        ("", "Pod") => within(POD, wanted, current),
        ("", "ServiceAccount") => within(SERVICE_ACCOUNT, wanted, current),
        _ => {}
    }
}

fn within(fields: Fields, wanted: &mut Value, current: &Value) {
    for (field, shared) in fields {
        let (Some(wanted), Some(current)) = (wanted.get_mut(*field), current.get(*field)) else { continue };
        match (shared, wanted, current) {
            (Shared::Within(fields), wanted, current) => within(fields, wanted, current),
            (Shared::List(keys, fields), Value::Array(wanted), Value::Array(current)) => {
                list(keys, fields, wanted, current);
            }
            (Shared::List(..), ..) => {}
        }
    }
}

/// A list in which elements cannot be told apart is left as it is wanted.
fn list(keys: &[Key], fields: Fields, wanted: &mut Vec<Value>, current: &[Value]) {
    let (Some(names), Some(places)) = (by_name(keys, wanted), by_name(keys, current)) else { return };
    let wanted_names: Vec<_> = wanted.iter().map(|element| name(keys, element)).collect();
    let mut slots = current.iter().filter(|element| names.contains_key(&name(keys, element))).count();
    let mut ours = Vec::with_capacity(wanted.len());
    for (element, name) in wanted.iter().zip(&wanted_names) {
        let mut element = element.clone();
        if let Some(place) = places.get(name) {
            within(fields, &mut element, &current[*place]);
            element = overlay(&element, &current[*place]);
        }
        ours.push(element);
    }
    let mut ours = ours.into_iter();
    let mut merged = Vec::with_capacity(wanted.len() + current.len());
    for element in current {
        if !names.contains_key(&name(keys, element)) {
            merged.push(element.clone());
            continue;
        }
        slots -= 1;
        // The last place of one of ours takes all that are left.
        merged.extend(ours.by_ref().take(if slots == 0 { usize::MAX } else { 1 }));
    }
    merged.extend(ours);
    *wanted = merged;
}

type Name<'a> = Vec<Cow<'a, str>>;

/// Where each element is; `None` when two have the same name.
fn by_name<'a>(keys: &[Key], list: &'a [Value]) -> Option<BTreeMap<Name<'a>, usize>> {
    let places: BTreeMap<_, _> =
        list.iter().enumerate().map(|(place, element)| (name(keys, element), place)).collect();
    (places.len() == list.len()).then_some(places)
}

fn name<'a>(keys: &[Key], element: &'a Value) -> Name<'a> {
    let part = |key: &Key| match element.get(key.field) {
        None | Some(Value::Null) => Cow::Borrowed(key.default),
        Some(Value::String(text)) if text.is_empty() => Cow::Borrowed(key.default),
        Some(Value::String(text)) => Cow::Borrowed(text.as_str()),
        Some(other) => Cow::Owned(other.to_string()),
    };
    keys.iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kubewright_meta::desired::between;

    /// What a Pod with this spec has by now, and what it lacks of the wanted one.
    fn lacks(wanted: &Value, current: &Value) -> Option<Value> {
        let (mut wanted, current) = (json!({"spec": wanted}), json!({"spec": current}));
        keep_others("", "Pod", &mut wanted, &current);
        between(&wanted, &current).map(|difference| difference.patch["spec"].clone())
    }

    fn wanted() -> Value {
        json!({
            "volumes": [{"name": "data", "emptyDir": {}}],
            "tolerations": [{"key": "gpu", "effect": "NoSchedule"}],
            "containers": [{
                "name": "web", "image": "nginx",
                "env": [{"name": "A", "value": "1"}],
                "ports": [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}],
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            }],
        })
    }

    /// As the server has it: with defaults, the token's volume, tolerations of admission, a sidecar and its variable.
    fn admitted() -> Value {
        let token = json!({"name": "token", "mountPath": "/var/run/secrets", "readOnly": true});
        json!({
            "restartPolicy": "Always",
            "volumes": [{"name": "data", "emptyDir": {}}, {"name": "token", "projected": {"defaultMode": 420}}],
            "tolerations": [
                {"key": "gpu", "operator": "Equal", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300},
            ],
            "containers": [
                {"name": "proxy", "image": "envoy"},
                {
                    "name": "web", "image": "nginx", "imagePullPolicy": "Always",
                    "env": [{"name": "PROXY", "value": "1"}, {"name": "A", "value": "1"}],
                    "ports": [
                        {"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"},
                    ],
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}, token],
                },
            ],
        })
    }

    #[test]
    fn a_pod_that_admission_extended_lacks_nothing() {
        assert_eq!(lacks(&wanted(), &admitted()), None);
    }

    #[test]
    fn a_change_is_sent_with_what_others_added() {
        let mut changed = wanted();
        changed["containers"][0]["image"] = json!("nginx:2");
        changed["tolerations"][0]["tolerationSeconds"] = json!(5);
        let mut patched =
            json!({"containers": admitted()["containers"], "tolerations": admitted()["tolerations"]});
        patched["containers"][1]["image"] = json!("nginx:2");
        patched["tolerations"][0]["tolerationSeconds"] = json!(5);
        assert_eq!(lacks(&changed, &admitted()), Some(patched));
    }

    #[test]
    fn what_is_wanted_is_in_its_order_and_what_others_added_where_it_is() {
        let list = |names: &[&str]| -> Value { names.iter().map(|name| json!({"name": name})).collect() };
        let merged = |wanted: &[&str], current: &[&str]| {
            let patch = lacks(&json!({"volumes": list(wanted)}), &json!({"volumes": list(current)}))?;
            let names = patch["volumes"].as_array()?.iter().filter_map(|one| one["name"].as_str());
            Some(names.collect::<String>())
        };
        assert_eq!(merged(&["a", "b"], &["x", "a", "y", "b", "z"]), None);
        assert_eq!(merged(&["a", "b"], &["x", "b", "y", "a"]).as_deref(), Some("xayb"));
        assert_eq!(merged(&["n", "a", "m"], &["x", "a", "y"]).as_deref(), Some("xnamy"));
        assert_eq!(merged(&["a"], &["x", "y"]).as_deref(), Some("xya"));
        assert_eq!(merged(&["a"], &[]).as_deref(), Some("a"));
    }

    #[test]
    fn a_list_whose_elements_cannot_be_told_apart_is_wanted_as_a_whole() {
        let twice =
            json!({"containers": [{"name": "web", "env": [{"name": "A"}, {"name": "A", "value": "2"}]}]});
        let one = json!({"containers": [{"name": "web", "env": [{"name": "A"}]}]});
        assert_eq!(lacks(&twice, &twice), None);
        assert_eq!(lacks(&twice, &one), Some(twice.clone()));
        assert_eq!(lacks(&one, &twice), Some(one.clone()));
    }

    /// What Kubernetes says of its lists, as the API server of this repository keeps it.
    const FACTS: &str = include_str!("../../../kubewright-spec/spec/v1.36/facts.txt");

    fn lists_of(kind: &str) -> BTreeMap<&'static str, String> {
        let section =
            FACTS.split("\n[").find_map(|section| section.strip_prefix(&format!("api.core.v1.{kind}]\n")));
        let lines = section.unwrap_or_default().lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let keyed = lines.filter_map(|words| {
            let keys = words.iter().find_map(|word| word.strip_prefix("keys="))?;
            Some((words[0], keys.to_owned()))
        });
        keyed.collect()
    }

    #[test]
    fn the_lists_and_their_keys_are_those_of_kubernetes() {
        let table = |fields: Fields, without: &[&str]| -> BTreeMap<&str, String> {
            let lists = fields.iter().filter_map(|(field, shared)| match shared {
                Shared::List(keys, _) if !without.contains(field) => {
                    Some((*field, keys.iter().map(|key| key.field).collect::<Vec<_>>().join(",")))
                }
                _ => None,
            });
            lists.collect()
        };
        let mut of_pods = lists_of("PodSpec");
        assert!(of_pods.remove("schedulingGates").is_some(), "a gate is lifted by not wanting it");
        assert_eq!(table(POD_SPEC, &["tolerations"]), of_pods);
        assert_eq!(table(CONTAINER, &[]), lists_of("Container"));
        assert_eq!(table(CONTAINER, &[]), lists_of("EphemeralContainer"));
        assert_eq!(table(SERVICE_ACCOUNT, &["imagePullSecrets"]), lists_of("ServiceAccount"));
        assert_eq!(lists_of("ResourceRequirements"), [("claims", "name".to_owned())].into());
        assert!(FACTS.contains("\ntolerations list=atomic\n"));
    }

    #[test]
    fn elsewhere_what_is_not_wanted_any_more_goes() {
        let (mut wanted, current) =
            (json!({"spec": {"volumes": []}}), json!({"spec": {"volumes": [{"name": "a"}]}}));
        keep_others("apps", "Deployment", &mut wanted, &current);
        keep_others("example.org", "Pod", &mut wanted, &current);
        assert_eq!(wanted, json!({"spec": {"volumes": []}}));
    }
}
