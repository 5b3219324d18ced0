use kubewright_meta::rules::metadata::{self, NameRule};
use serde_json::{Value, json};

use super::samples::{CONFIG_MAP, DEPLOYMENT, NAMESPACE, SERVICE, STATEFUL_SET};
use super::{change_refused, each_is_refused, made, messages, refused, rules, samples, with};
use crate::rules::{Generation, Rules};

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const PATH_OWNERS: &str = "metadata.ownerReferences";

fn owner(change: impl FnOnce(&mut Value)) -> Value {
    let mut owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"});
    change(&mut owner);
    json!([owner])
}

#[test]
fn names_follow_the_rule_of_their_kind() {
    let named = |name: &str| json!({"metadata": {"name": name}});
    let upper = format!("metadata.name: Invalid value: \"Upper\": {SUBDOMAIN}");
    assert_eq!(refused(CONFIG_MAP, &named("Upper")), [upper]);
    assert_eq!(refused(CONFIG_MAP, &named("a.b-c.d")), Vec::<String>::new());
    let dots = ["metadata.name: Invalid value: \"a.b\": must not contain dots"];
    for kind in [NAMESPACE, SERVICE, STATEFUL_SET] {
        assert_eq!(refused(kind, &with(&samples::of(kind), "/metadata", json!({"name": "a.b"}))), dots);
    }
    let role = ("rbac.authorization.k8s.io", "v1", "roles");
    assert_eq!(refused(role, &named("system:a_B")), Vec::<String>::new());
    assert_eq!(refused(role, &named("a%b")), ["metadata.name: Invalid value: \"a%b\": may not contain '%'"]);
}

#[test]
fn an_object_needs_a_name_and_a_namespace() {
    let errors = Rules::none().errors_on_create(&json!({}), true);
    assert_eq!(
        messages(&errors),
        [
            "metadata.name: Required value: name or generateName is required",
            "metadata.namespace: Required value"
        ]
    );
    let errors = Rules::none().errors_on_create(&json!({"metadata": {"name": "a", "namespace": "b"}}), false);
    assert_eq!(messages(&errors), ["metadata.namespace: Forbidden: not allowed on this type"]);
}

#[test]
fn the_start_of_a_generated_name_may_end_with_a_dash() {
    assert!(metadata::name_errors("web-", NameRule::Label, true).is_empty());
    assert_eq!(metadata::name_errors("web-", NameRule::Label, false).len(), 1);
    assert_eq!(metadata::name_errors("-", NameRule::Label, true).len(), 1);
}

#[test]
fn labels_annotations_owners_and_finalizers_are_checked() {
    let good = json!({"metadata": {"name": "a"}});
    let many = "x".repeat(256 * 1024);
    let two = json!([
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1", "controller": true},
        {"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "2", "controller": true}
    ]);
    let two_shown = format!(
        "{PATH_OWNERS}: Invalid value: [{{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"p\",\"uid\":\"1\",\"controller\":true}},{{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"q\",\"uid\":\"2\",\"controller\":true}}]: Only one reference can have Controller set to true. Found \"true\" in references for Pod/p and Pod/q"
    );
    let event_shown = format!(
        "{PATH_OWNERS}: Invalid value: {{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"p\",\"uid\":\"1\"}}: /v1, Kind=Event is disallowed from being an owner"
    );
    each_is_refused(
        CONFIG_MAP,
        &good,
        &[
            (
                "/metadata/labels",
                json!({"/a": "b"}),
                &["metadata.labels: Invalid value: \"/a\": prefix part must be non-empty"],
            ),
            (
                "/metadata/labels",
                json!({"a": "b".repeat(64)}),
                &[&format!(
                    "metadata.labels: Invalid value: \"{}\": must be no more than 63 bytes",
                    "b".repeat(64)
                )],
            ),
            ("/metadata/annotations", json!({"A": "b c"}), &[]),
            (
                "/metadata/annotations",
                json!({"a": many}),
                &["metadata.annotations: Too long: may not be more than 262144 bytes"],
            ),
            (
                "/metadata/ownerReferences",
                owner(|owner| owner["uid"] = json!("")),
                &["metadata.ownerReferences.uid: Invalid value: \"\": must not be empty"],
            ),
            (
                "/metadata/ownerReferences",
                owner(|owner| owner["apiVersion"] = json!("")),
                &["metadata.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty"],
            ),
            ("/metadata/ownerReferences", owner(|owner| owner["kind"] = json!("Event")), &[&event_shown]),
            ("/metadata/ownerReferences", two, &[&two_shown]),
            ("/metadata/finalizers", json!(["orphan"]), &[]),
            (
                "/metadata/finalizers",
                json!(["nodomain"]),
                &[
                    "metadata.finalizers[0]: Invalid value: \"nodomain\": name is neither a standard finalizer name nor is it fully qualified",
                ],
            ),
            (
                "/metadata/finalizers",
                json!(["orphan", "foregroundDeletion"]),
                &[
                    "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be both set",
                ],
            ),
        ],
    );
}

#[test]
fn custom_resources_are_only_warned_of_finalizers_without_a_domain() {
    let object = json!({"metadata": {"name": "a", "namespace": "n", "finalizers": ["x", "x.y"]}});
    assert_eq!(Rules::custom().errors_on_create(&object, true), []);
    assert_eq!(
        Rules::custom().warnings(&object, None),
        [
            "metadata.finalizers: \"x\": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers",
            "metadata.finalizers: \"x.y\": prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers"
        ]
    );
}

#[test]
fn a_change_of_identity_is_told_twice() {
    let old = made(CONFIG_MAP, &json!({"metadata": {"name": "a"}}));
    let new = with(&old, "/metadata/uid", json!("other"));
    let said = messages(&rules(CONFIG_MAP).errors_on_update(&new, &old, true));
    assert_eq!(said, ["metadata.uid: Invalid value: \"other\": field is immutable"; 2]);
}

#[test]
fn a_dying_object_gets_no_new_finalizers() {
    let dying = json!({"metadata": {"name": "a", "deletionTimestamp": "2024-01-01T00:00:00Z", "finalizers": ["e.com/a"]}});
    let said = change_refused(CONFIG_MAP, &dying, |object| {
        object["metadata"]["finalizers"] = json!(["e.com/b", "e.com/a"]);
    });
    assert_eq!(
        said,
        [
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"e.com/b\"}"
        ]
    );
    assert!(
        change_refused(CONFIG_MAP, &dying, |object| object["metadata"]["finalizers"] = json!([])).is_empty()
    );
}

#[test]
fn annotations_of_a_deployment_raise_its_generation_and_labels_do_not() {
    let old = made(DEPLOYMENT, &samples::of(DEPLOYMENT));
    let changed = |field: &str| with(&old, &format!("/metadata/{field}"), json!({"a": "b"}));
    let generation = rules(DEPLOYMENT).generation;
    assert_eq!(generation, Generation::ContentAndAnnotations);
    assert!(generation.raised(&changed("annotations"), &old));
    assert!(!generation.raised(&changed("labels"), &old));
    assert!(!generation.raised(&with(&old, "/status", json!({"replicas": 3})), &old));
}

#[test]
fn a_field_manager_is_short_and_printable() {
    assert!(metadata::validate_field_manager("kubectl").is_empty());
    let said = messages(&metadata::validate_field_manager(&"x".repeat(129)));
    assert_eq!(said, ["fieldManager: Too long: may not be more than 128 bytes"]);
    assert_eq!(metadata::validate_field_manager("a\u{7}").len(), 1);
}
