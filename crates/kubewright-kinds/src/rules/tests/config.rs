use serde_json::json;

use super::samples::{CONFIG_MAP, NAMESPACE, SECRET, of};
use super::{change_refused, each_change_is_refused, each_is_refused, made, messages, refused, rules, with};
use crate::rules::namespaces;

const FROZEN: &str = "Forbidden: field is immutable when `immutable` is set";

#[test]
fn plain_data_of_a_secret_becomes_data() {
    let secret = made(SECRET, &json!({"data": {"old": "eA=="}, "stringData": {"k": "v"}}));
    assert_eq!(secret["data"], json!({"old": "eA==", "k": "dg=="}));
    assert_eq!(secret["type"], "Opaque");
    assert!(secret.get("stringData").is_none());
}

#[test]
fn a_secret_holds_what_its_type_promises() {
    let typed = |kind: &str, data: serde_json::Value| refused(SECRET, &json!({"type": kind, "data": data}));
    assert_eq!(typed("kubernetes.io/tls", json!({"tls.crt": "eA=="})), ["data[tls.key]: Required value"]);
    assert_eq!(
        typed("kubernetes.io/basic-auth", json!({})),
        ["data[username]: Required value", "data[password]: Required value"]
    );
    assert_eq!(
        typed("kubernetes.io/dockerconfigjson", json!({})),
        ["data[.dockerconfigjson]: Required value"]
    );
    assert!(typed("kubernetes.io/dockerconfigjson", json!({".dockerconfigjson": "e30="})).is_empty());
    assert_eq!(
        typed("kubernetes.io/service-account-token", json!({})),
        ["metadata.annotations[kubernetes.io/service-account.name]: Required value"]
    );
    assert!(typed("example.com/own", json!({})).is_empty());
}

#[test]
fn what_is_wrong_with_the_logins_of_a_secret_is_said_in_words_of_go() {
    let redacted = |key: &str, why: &str| {
        vec![format!("data[{key}]: Invalid value: \"<secret contents redacted>\": {why}")]
    };
    for (kind, key) in [("dockercfg", ".dockercfg"), ("dockerconfigjson", ".dockerconfigjson")] {
        for (bytes, why) in [
            ("", "unexpected end of JSON input"),
            ("eA==", "invalid character 'x' looking for beginning of value"),
            ("W10=", "json: cannot unmarshal array into Go value of type map[string]interface {}"),
            ("MQ==", "json: cannot unmarshal number into Go value of type map[string]interface {}"),
        ] {
            let secret = json!({"type": format!("kubernetes.io/{kind}"), "data": {key: bytes}});
            assert_eq!(refused(SECRET, &secret), redacted(key, why));
        }
        let none = json!({"type": format!("kubernetes.io/{kind}"), "data": {key: "bnVsbA=="}});
        assert!(refused(SECRET, &none).is_empty());
    }
}

#[test]
fn keys_are_file_names_and_a_megabyte_is_enough() {
    let key = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
    each_is_refused(
        CONFIG_MAP,
        &of(CONFIG_MAP),
        &[
            ("/data", json!({"a b": ""}), &[&format!("data[a b]: Invalid value: \"a b\": {key}")]),
            (
                "/binaryData",
                json!({"k": ""}),
                &["data[k]: Invalid value: \"k\": duplicate of key present in binaryData"],
            ),
            (
                "/data",
                json!({"k": "x".repeat(1024 * 1024 + 1)}),
                &["[]: Too long: may not be more than 1048576 bytes"],
            ),
        ],
    );
}

#[test]
fn what_is_immutable_stays() {
    each_change_is_refused(
        CONFIG_MAP,
        &with(&of(CONFIG_MAP), "/immutable", json!(true)),
        &[
            ("/data/k", json!("w"), &[&format!("data: {FROZEN}")]),
            ("/immutable", json!(false), &[&format!("immutable: {FROZEN}")]),
            ("/metadata/labels", json!({"a": "b"}), &[]),
        ],
    );
    let map = with(&of(CONFIG_MAP), "/immutable", json!(true));
    let said = change_refused(CONFIG_MAP, &map, |map| map["data"]["a b"] = json!(""));
    assert_eq!(said[0], format!("data: {FROZEN}"));
    assert!(said[1].starts_with("data[a b]: Invalid value"), "{said:?}");
    let typed = change_refused(SECRET, &of(SECRET), |secret| secret["type"] = json!("other"));
    assert_eq!(typed, ["type: Invalid value: \"other\": field is immutable"]);
}

#[test]
fn a_namespace_is_kept_until_it_is_empty() {
    let namespace = made(NAMESPACE, &of(NAMESPACE));
    assert_eq!(namespace["spec"], json!({"finalizers": ["kubernetes"]}));
    assert_eq!(namespace["status"], json!({"phase": "Active"}));
    assert_eq!(namespace["metadata"]["labels"]["kubernetes.io/metadata.name"], "n");
    let mut new = with(&namespace, "/spec/finalizers", json!([]));
    (rules(NAMESPACE).prepare_update)(&mut new, &namespace);
    assert_eq!(new["spec"], namespace["spec"]);
    assert_eq!(
        messages(&namespaces::validate_finalize(&with(&namespace, "/spec/finalizers", json!(["x"])))),
        [
            "spec.finalizers[0]: Invalid value: \"x\": name is neither a standard finalizer name nor is it fully qualified"
        ]
    );
    assert_eq!(
        messages(&rules(NAMESPACE).errors_on_status(
            &with(&namespace, "/status/phase", json!("Gone")),
            &namespace,
            false
        )),
        ["status.Phase: Invalid value: \"Gone\": may only be 'Active' if `deletionTimestamp` is empty"]
    );
}

#[test]
fn nodes_are_checked() {
    let node = ("", "v1", "nodes");
    let made_node = made(node, &of(node));
    assert_eq!(made_node["status"]["allocatable"], json!({"cpu": "4", "pods": "110"}));
    each_is_refused(
        node,
        &json!({"spec": {}, "status": {}}),
        &[
            (
                "/spec/taints",
                json!([{"key": "a", "effect": "Sometimes"}]),
                &[
                    "metadata.taints[0].effect: Unsupported value: \"Sometimes\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
                ],
            ),
            (
                "/status/capacity",
                json!({"pods": "1500m"}),
                &[
                    "status.capacity.pods: Invalid value: \"1500m\": must be an integer",
                    "status.allocatable.pods: Invalid value: \"1500m\": must be an integer",
                ],
            ),
        ],
    );
    let moved = change_refused(node, &json!({"spec": {"providerID": "a"}}), |node| {
        node["spec"]["providerID"] = json!("b");
    });
    assert_eq!(
        moved,
        ["spec.providerID: Forbidden: node updates may not change providerID except from \"\" to valid"]
    );
}

#[test]
fn limits_are_in_order() {
    let range = ("", "v1", "limitranges");
    let limits =
        json!({"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "2"}}]}});
    assert_eq!(
        made(range, &limits)["spec"]["limits"][0],
        json!({"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}, "max": {"cpu": "2"}})
    );
    each_is_refused(
        range,
        &limits,
        &[
            (
                "/spec/limits/1",
                json!({"type": "Container"}),
                &["spec.limits[1].type: Duplicate value: \"Container\""],
            ),
            (
                "/spec/limits/0",
                json!({"type": "Pod", "default": {"cpu": "1"}}),
                &["spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'"],
            ),
            (
                "/spec/limits/0",
                json!({"type": "PersistentVolumeClaim"}),
                &[
                    "spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but neither was provided",
                ],
            ),
            (
                "/spec/limits/0",
                json!({"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "1"}}),
                &["spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1"],
            ),
        ],
    );
}

#[test]
fn quotas_are_checked() {
    let quota = ("", "v1", "resourcequotas");
    assert_eq!(made(quota, &of(quota))["spec"]["hard"]["requests.cpu"], "1");
    each_is_refused(
        quota,
        &of(quota),
        &[
            (
                "/spec/hard",
                json!({"pods": "-1"}),
                &["spec.hard[pods]: Invalid value: \"-1\": must be greater than or equal to 0"],
            ),
            (
                "/spec",
                json!({"hard": {"pods": "1"}, "scopes": ["BestEffort", "NotBestEffort"]}),
                &["spec.scopes: Invalid value: [\"BestEffort\",\"NotBestEffort\"]: conflicting scopes"],
            ),
            (
                "/spec/scopeSelector",
                json!({"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]}),
                &[
                    "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
                ],
            ),
        ],
    );
    let said = change_refused(quota, &of(quota), |quota| quota["spec"]["scopes"] = json!(["NotTerminating"]));
    assert_eq!(said, ["spec.scopes: Invalid value: [\"NotTerminating\"]: field is immutable"]);
}

#[test]
fn a_status_of_a_node_has_a_configuration_where_it_had_one() {
    let rules = super::rules(("", "v1", "nodes"));
    let had = json!({"status": {"config": {"error": "e"}}});
    for (old, kept) in [(json!({"status": {}}), false), (had.clone(), true)] {
        let mut new = had.clone();
        (rules.prepare_status)(&mut new, &old);
        assert_eq!(new["status"].get("config").is_some(), kept, "{old}");
    }
}
