//! Rules that differ between versions of Kubernetes: what each of them says of the same object.

use kubewright_spec::Version;
use serde_json::{Value, json};

use super::samples::{DEPLOYMENT, JOB, SERVICE, STATEFUL_SET, of};
use super::{Kind, is_namespaced, messages, with};

const AUTOSCALER: Kind = ("autoscaling", "v2", "horizontalpodautoscalers");
const DRIVER: Kind = ("storage.k8s.io", "v1", "csidrivers");
const NETWORK_POLICY: Kind = ("networking.k8s.io", "v1", "networkpolicies");
const NODE: Kind = ("", "v1", "nodes");
const POD: Kind = ("", "v1", "pods");
const ROLE_BINDING: Kind = ("rbac.authorization.k8s.io", "v1", "rolebindings");

fn of_version(version: Version, kind: Kind) -> std::sync::Arc<crate::Kind> {
    let kinds = crate::Kinds::of_version(version);
    std::sync::Arc::clone(kinds.get(kind.0, kind.1, kind.2).expect("a served kind"))
}

/// The object as it would be stored.
fn made(version: Version, kind: Kind, object: &Value) -> Value {
    let mut object = object.clone();
    let rules = of_version(version, kind).rules;
    rules.default(&mut object);
    if object["metadata"]["name"].is_null() {
        object["metadata"]["name"] = json!("a");
    }
    if is_namespaced(kind) {
        object["metadata"]["namespace"] = json!("default");
    }
    object["metadata"]["uid"] = json!("6b1e4f3c-0000-4000-8000-000000000001");
    rules.prepare_create(&mut object);
    object
}

/// What each version says of a new object with this value, the oldest first.
fn refused(kind: Kind, pointer: &str, value: &Value) -> [Vec<String>; 3] {
    Version::ALL.map(|version| {
        let object = made(version, kind, &with(&of(kind), pointer, value.clone()));
        messages(&of_version(version, kind).rules.errors_on_create(&object, is_namespaced(kind)))
    })
}

/// What each version says of a change, each sentence once.
fn change_refused(kind: Kind, before: &Value, pointer: &str, value: &Value) -> [Vec<String>; 3] {
    Version::ALL.map(|version| {
        let old = made(version, kind, before);
        let mut new = with(&old, pointer, value.clone());
        let rules = of_version(version, kind).rules;
        rules.default(&mut new);
        rules.prepare_update(&mut new, &old);
        let mut said = messages(&rules.errors_on_update(&new, &old, is_namespaced(kind)));
        said.dedup();
        said
    })
}

fn says(words: [&[&str]; 3]) -> [Vec<String>; 3] {
    words.map(|words| words.iter().map(ToString::to_string).collect())
}

#[test]
fn an_autoscaler_goes_to_zero_from_v1_37_on() {
    let metric = json!([{"type": "External", "external": {"metric": {"name": "m"},
        "target": {"type": "AverageValue", "averageValue": "1"}}}]);
    let outside = with(&of(AUTOSCALER), "/spec/metrics", metric);
    let zero = |version| {
        let object = made(version, AUTOSCALER, &with(&outside, "/spec/minReplicas", json!(0)));
        messages(&of_version(version, AUTOSCALER).rules.errors_on_create(&object, true))
    };
    let before = "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1";
    assert_eq!(Version::ALL.map(zero), says([&[before], &[before], &[]]));
    let negative = refused(AUTOSCALER, "/spec/minReplicas", &json!(-1));
    assert!(negative[2][0].ends_with("must be greater than or equal to 0"), "{negative:?}");
    let generation = |version| of_version(version, AUTOSCALER).rules.generation.counts();
    assert_eq!(Version::ALL.map(generation), [false, false, true]);
}

/// `SELinuxMount` is on from there.
#[test]
fn volumes_may_be_labelled_by_how_they_are_mounted_from_v1_37_on() {
    let unknown = r#"spec.securityContext.seLinuxChangePolicy: Unsupported value: "MountOption": supported values: "Recursive""#;
    let found = refused(POD, "/spec/securityContext", &json!({"seLinuxChangePolicy": "MountOption"}));
    assert_eq!(found, says([&[unknown], &[unknown], &[]]));
}

#[test]
fn what_had_a_policy_of_labels_may_get_any() {
    let of = |policy: Value| {
        let context = json!({"seLinuxChangePolicy": policy});
        made(
            Version::V1_36,
            DEPLOYMENT,
            &with(&of(DEPLOYMENT), "/spec/template/spec/securityContext", context),
        )
    };
    let refused = |new: &str, old: Value| {
        let rules = of_version(Version::V1_36, DEPLOYMENT).rules;
        messages(&rules.errors_on_update(&of(new.into()), &of(old), true))
    };
    let at = "spec.template.spec.securityContext.seLinuxChangePolicy: Unsupported value";
    assert_eq!(refused("MountOption", json!("Recursive")), Vec::<String>::new());
    let both = format!(r#"{at}: "x": supported values: "MountOption", "Recursive""#);
    assert_eq!(refused("x", json!("Recursive")), [both]);
    let one = format!(r#"{at}: "x": supported values: "Recursive""#);
    assert_eq!(refused("x", json!(null)), [one]);
}

#[test]
fn a_stateful_set_says_how_many_pods_may_be_away_from_v1_37_on() {
    let rolling = |most: Value| json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": most}});
    let kept = |version| {
        let object = with(&of(STATEFUL_SET), "/spec/updateStrategy", rolling(json!(2)));
        made(version, STATEFUL_SET, &object)["spec"]["updateStrategy"]["rollingUpdate"].clone()
    };
    let dropped = json!({"partition": 0});
    let expected = [dropped.clone(), dropped, json!({"partition": 0, "maxUnavailable": 2})];
    assert_eq!(Version::ALL.map(kept), expected);
    let at = "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value:";
    let zero = format!("{at} 0: cannot be 0");
    assert_eq!(refused(STATEFUL_SET, "/spec/updateStrategy", &rolling(json!(0))), says([&[], &[], &[&zero]]));
    let much = format!("{at} \"110%\": must not be greater than 100%");
    assert_eq!(
        refused(STATEFUL_SET, "/spec/updateStrategy", &rolling(json!("110%"))),
        says([&[], &[], &[&much]])
    );
}

#[test]
fn a_service_may_be_called_by_a_number_from_v1_36_on() {
    let [before, after, latest] = refused(SERVICE, "/metadata", &json!({"name": "1a"}));
    assert!(before[0].contains("a DNS-1035 label must consist of"), "{before:?}");
    assert_eq!((after, latest), (vec![], vec![]));
}

#[test]
fn an_address_is_strict_from_v1_36_on_but_for_what_is_there() {
    let zeros = json!(["010.1.2.3"]);
    let told = "spec.externalIPs[0]: Invalid value: \"010.1.2.3\": must not have leading 0s";
    assert_eq!(refused(SERVICE, "/spec/externalIPs", &zeros), says([&[], &[told], &[told]]));
    let before = with(&of(SERVICE), "/spec/externalIPs", zeros);
    let kept = change_refused(SERVICE, &before, "/metadata/labels", &json!({"a": "b"}));
    assert_eq!(kept, says([&[], &[], &[]]));
    let other = change_refused(SERVICE, &before, "/spec/externalIPs", &json!(["010.1.2.4"]));
    assert!(other[0].is_empty() && other[1] == other[2] && other[2].len() == 1, "{other:?}");
}

#[test]
fn a_node_is_told_what_became_of_its_provider() {
    let before = with(&of(NODE), "/spec", json!({"providerID": "cloud://1"}));
    let once = "spec.providerID: Forbidden: node updates may not change providerID except from \"\" to valid";
    let changed = change_refused(NODE, &before, "/spec/providerID", &json!("cloud://2"));
    let modified = "spec.providerID: Invalid value: null: field cannot be modified once set";
    assert_eq!(changed, says([&[once], &[once], &[modified]]));
    let cleared = change_refused(NODE, &before, "/spec/providerID", &Value::Null);
    let word = "spec.providerID: Invalid value: null: field cannot be cleared once set";
    assert_eq!(cleared, says([&[once], &[once], &[word]]));
}

#[test]
fn a_binding_keeps_its_role_in_other_words_from_v1_37_on() {
    let before = of(ROLE_BINDING);
    let told = change_refused(ROLE_BINDING, &before, "/roleRef/name", &json!("other"));
    let ends =
        told.map(|told| told.first().map(|told| told.rsplit(": ").next().unwrap_or_default().to_owned()));
    let [before, after] = ["cannot change roleRef", "field is immutable"].map(|text| Some(text.to_owned()));
    assert_eq!(ends, [before.clone(), before, after]);
}

#[test]
fn the_end_of_a_range_of_ports_is_shown_from_v1_37_on() {
    let rule = json!([{"ports": [{"port": 80, "endPort": 70}]}]);
    let told = |shown: u16| {
        format!(
            "spec.ingress[0].ports[0].endPort: Invalid value: {shown}: must be greater than or equal to `port`"
        )
    };
    let (port, end) = (told(80), told(70));
    assert_eq!(refused(NETWORK_POLICY, "/spec/ingress", &rule), says([&[&port], &[&port], &[&end]]));
}

#[test]
fn a_suspended_job_is_given_other_resources_from_v1_36_on() {
    let before = with(&of(JOB), "/spec/suspend", json!(true));
    let more = json!({"requests": {"cpu": "1"}});
    let [before, after, latest] =
        change_refused(JOB, &before, "/spec/template/spec/containers/0/resources", &more);
    assert!(
        before[0].starts_with("spec.template: Invalid value") && before[0].ends_with("field is immutable")
    );
    assert_eq!((after, latest), (vec![], vec![]));
}

#[test]
fn a_driver_says_whether_pods_need_it_from_v1_37_on() {
    let field = "preventPodSchedulingIfMissing";
    let of_driver = |version| made(version, DRIVER, &of(DRIVER))["spec"].get(field).cloned();
    assert_eq!(Version::ALL.map(of_driver), [None, None, Some(json!(false))]);
}
