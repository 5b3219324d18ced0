use http::StatusCode;
use serde_json::json;

use super::super::Rbac;
use super::*;

/// `alice` may `get` and `list` configmaps in `ns`, and `get` the path `/x`.
fn rights() -> Rights {
    let alice = json!([{"kind": "User", "name": "alice"}]);
    let rbac = Rbac::of_objects(&[
        json!({"kind": "Role", "metadata": {"name": "r", "namespace": "ns"},
            "rules": [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]}]}),
        json!({"kind": "RoleBinding", "metadata": {"name": "r", "namespace": "ns"},
            "roleRef": {"kind": "Role", "name": "r"}, "subjects": alice}),
        json!({"kind": "ClusterRole", "metadata": {"name": "paths"},
            "rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]}),
        json!({"kind": "ClusterRoleBinding", "metadata": {"name": "paths"},
            "roleRef": {"kind": "ClusterRole", "name": "paths"}, "subjects": alice}),
    ]);
    rbac.into()
}

fn ask(plural: &str, namespace: &str, body: &Value) -> Result<Value, ApiError> {
    let asks = match plural {
        "subjectaccessreviews" => Asks::Anyone,
        "localsubjectaccessreviews" => Asks::InNamespace,
        "selfsubjectaccessreviews" => Asks::Oneself,
        "selfsubjectrulesreviews" => Asks::OwnRules,
        other => panic!("{other} are no reviews"),
    };
    handle(&rights(), Version::V1_36, &User::new("alice", ["g"]), asks, namespace, body)
}

fn refusal(plural: &str, namespace: &str, body: &Value) -> (u16, String) {
    let error = ask(plural, namespace, body).unwrap_err();
    (error.code.as_u16(), error.message)
}

#[test]
fn the_status_tells_the_decision_and_its_reason() {
    let body = json!({"kind": "SubjectAccessReview", "spec": {"user": "alice",
        "resourceAttributes": {"namespace": "ns", "verb": "get", "resource": "configmaps", "name": "x"}}});
    let answer = ask("subjectaccessreviews", "", &body).unwrap();
    assert_eq!(
        answer["status"],
        json!({"allowed": true, "reason": r#"RBAC: allowed by RoleBinding "r/ns" of Role "r" to User "alice""#})
    );
    assert_eq!(answer["spec"], body["spec"]);

    let denied = json!({"spec": {"user": "bob", "resourceAttributes": {"namespace": "ns", "verb": "get"}}});
    assert_eq!(ask("subjectaccessreviews", "", &denied).unwrap()["status"], json!({"allowed": false}));
    let master = json!({"spec": {"groups": ["system:masters"], "nonResourceAttributes": {"verb": "get", "path": "/z"}}});
    assert_eq!(ask("subjectaccessreviews", "", &master).unwrap()["status"], json!({"allowed": true}));
}

#[test]
fn a_self_review_is_about_the_asker_whatever_the_body_says() {
    let of = |spec: Value| {
        ask("selfsubjectaccessreviews", "", &json!({"spec": spec})).unwrap()["status"]["allowed"].clone()
    };
    let list = json!({"namespace": "ns", "verb": "list", "resource": "configmaps"});
    assert_eq!(of(json!({"resourceAttributes": list})), true);
    assert_eq!(of(json!({"resourceAttributes": list, "user": "bob"})), true);
    assert_eq!(of(json!({"nonResourceAttributes": {"verb": "get", "path": "/x"}})), true);
    assert_eq!(of(json!({"nonResourceAttributes": {"verb": "get", "path": ""}})), false);
}

#[test]
fn a_local_review_is_about_its_namespace() {
    let body = |metadata: Value, namespace: &str| {
        json!({"metadata": metadata, "spec": {"user": "alice",
            "resourceAttributes": {"namespace": namespace, "verb": "list", "resource": "configmaps"}}})
    };
    for metadata in [json!({"namespace": "ns"}), json!({})] {
        let answer = ask("localsubjectaccessreviews", "ns", &body(metadata, "ns")).unwrap();
        assert_eq!(
            (&answer["status"]["allowed"], &answer["metadata"]["namespace"]),
            (&json!(true), &json!("ns"))
        );
    }
    assert_eq!(
        refusal("localsubjectaccessreviews", "ns", &body(json!({}), "other")),
        (
            422,
            ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes.namespace: Invalid value: \"other\": must \
             match metadata.namespace"
                .to_owned()
        )
    );
    assert_eq!(refusal("localsubjectaccessreviews", "ns", &body(json!({"namespace": "other"}), "ns")).0, 400);
}

#[test]
fn a_review_needs_one_question_about_somebody_and_no_metadata() {
    let invalid = |spec: Value| refusal("subjectaccessreviews", "", &json!({"spec": spec})).1;
    assert_eq!(
        invalid(
            json!({"user": "x", "resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"verb": "get"}})
        ),
        ".authorization.k8s.io \"\" is invalid: spec.nonResourceAttributes: Invalid value: \
         {\"Path\":\"\",\"Verb\":\"get\"}: cannot be specified in combination with resourceAttributes"
    );
    assert_eq!(
        invalid(json!({"resourceAttributes": {"verb": "get"}})),
        ".authorization.k8s.io \"\" is invalid: spec.user: Invalid value: \"\": at least one of user or group must be \
         specified"
    );
    assert_eq!(
        refusal("selfsubjectaccessreviews", "", &json!({"spec": {}})).1,
        ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes: Invalid value: null: exactly one of \
         nonResourceAttributes or resourceAttributes must be specified"
    );
    let named = json!({"metadata": {"name": "n"}, "spec": {"resourceAttributes": {"verb": "get"}}});
    assert_eq!(
        refusal("selfsubjectaccessreviews", "", &named).1,
        ".authorization.k8s.io \"\" is invalid: metadata: Invalid value: {\"name\":\"n\"}: must be empty"
    );
    let managed = json!({"metadata": {"managedFields": [{}], "creationTimestamp": null}, "spec": {"resourceAttributes": {}}});
    assert!(ask("selfsubjectaccessreviews", "", &managed).is_ok());
}

#[test]
fn from_v1_37_on_a_review_is_wrong_as_a_whole_where_it_has_not_one_question() {
    let wrong = |spec: Value| {
        let body = json!({"spec": spec});
        let alice = User::new("alice", ["g"]);
        handle(&rights(), Version::V1_37, &alice, Asks::Oneself, "", &body).unwrap_err().message
    };
    let told = |value: &str| {
        format!(
            ".authorization.k8s.io \"\" is invalid: spec: Invalid value: {value}: exactly one of nonResourceAttributes \
             or resourceAttributes must be specified"
        )
    };
    assert_eq!(wrong(json!({})), told("null"));
    let both = json!({"resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"verb": "get"}});
    assert_eq!(wrong(both), told(r#"{"Path":"","Verb":"get"}"#));
}

#[test]
fn selectors_are_raw_or_requirements_not_both_and_not_neither() {
    let of = |selector: Value| {
        let spec = json!({"resourceAttributes": {"verb": "list", "labelSelector": selector}});
        ask("selfsubjectaccessreviews", "", &json!({"spec": spec})).map(|_| ()).map_err(|error| error.code)
    };
    assert_eq!(of(json!({"rawSelector": "a=b"})), Ok(()));
    assert_eq!(of(json!({"requirements": [{"key": "a", "operator": "Exists"}]})), Ok(()));
    assert_eq!(of(json!({})), Err(StatusCode::UNPROCESSABLE_ENTITY));
    assert_eq!(of(json!({"rawSelector": "a", "requirements": [{}]})), Err(StatusCode::UNPROCESSABLE_ENTITY));
}

#[test]
fn a_requirement_of_a_field_is_asked_for_its_key_first_and_one_of_a_label_last() {
    let fields = |of_labels| {
        let requirement = json!({"key": "", "operator": "Exists", "values": ["a"]});
        let errors = requirement_errors("r", of_labels, &requirement);
        errors.iter().map(|error| error.field.clone()).collect::<Vec<_>>()
    };
    assert_eq!(fields(false), ["r.key", "r.values"]);
    assert_eq!(fields(true)[..2], ["r.values", "r.key"]);
}

#[test]
fn a_rules_review_lists_what_the_asker_holds_in_a_namespace() {
    let answer = ask("selfsubjectrulesreviews", "", &json!({"spec": {"namespace": "ns"}})).unwrap();
    assert_eq!(
        answer["status"],
        json!({
            "resourceRules": [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]}],
            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}],
            "incomplete": false,
        })
    );
    assert_eq!(refusal("selfsubjectrulesreviews", "", &json!({"spec": {}})).0, 400);
}

#[test]
fn a_body_of_another_shape_is_refused() {
    for body in [json!([]), json!("x"), json!({"spec": 1}), json!({"spec": {"groups": "g"}}), json!([{}])] {
        for plural in [
            "subjectaccessreviews",
            "selfsubjectaccessreviews",
            "localsubjectaccessreviews",
            "selfsubjectrulesreviews",
        ] {
            assert_eq!(refusal(plural, "ns", &body).0, 400, "{plural} {body}");
        }
    }
}

/// Asked of kube-apiserver v1.36.3.
#[test]
fn selectors_that_cannot_be_read_are_told_of() {
    let told = |field: &str, selector: Value| {
        let body = json!({"spec": {"user": "alice", "resourceAttributes":
            {"verb": "list", "resource": "configmaps", "namespace": "ns", field: selector}}});
        ask("subjectaccessreviews", "", &body).unwrap()["status"]["evaluationError"].clone()
    };
    let ignored = |field: &str| json!(format!("spec.resourceAttributes.{field} ignored due to parse error"));
    let requirement = |operator: &str, values: &[&str]| json!({"requirements": [{"key": "a", "operator": operator, "values": values}]});
    assert_eq!(told("fieldSelector", json!({"rawSelector": "x"})), ignored("fieldSelector"));
    assert_eq!(told("fieldSelector", json!({"rawSelector": "a=b"})), Value::Null);
    assert_eq!(told("labelSelector", json!({"rawSelector": "a in (b"})), ignored("labelSelector"));
    assert_eq!(told("fieldSelector", requirement("Exists", &[])), ignored("fieldSelector"));
    assert_eq!(told("labelSelector", requirement("Exists", &[])), Value::Null);
    assert_eq!(told("fieldSelector", requirement("In", &["x", "y"])), ignored("fieldSelector"));
    assert_eq!(told("labelSelector", requirement("Bad", &["x"])), ignored("labelSelector"));
    let some = json!({"requirements": [{"key": "a", "operator": "In", "values": ["x"]}, {"key": "b", "operator": "Bad"}]});
    let partially = json!("spec.resourceAttributes.fieldSelector partially ignored due to parse error");
    assert_eq!(told("fieldSelector", some), partially);
}
