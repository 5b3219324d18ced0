use serde_json::{Value, json};

use super::samples::{FLOW_SCHEMA, PRIORITY_LEVEL, of};
use super::{change_refused, each_is_refused, made, refused};
use crate::rules::flow::bootstrap;

#[test]
fn levels_and_schemas_get_their_defaults() {
    assert_eq!(made(FLOW_SCHEMA, &of(FLOW_SCHEMA))["spec"]["matchingPrecedence"], 1000);
    assert_eq!(
        made(PRIORITY_LEVEL, &of(PRIORITY_LEVEL))["spec"]["limited"],
        json!({
            "nominalConcurrencyShares": 30, "lendablePercent": 0,
            "limitResponse": {
                "type": "Queue",
                "queuing": {"queues": 64, "handSize": 8, "queueLengthLimit": 50}
            }
        })
    );
}

#[test]
fn flow_schemas_are_checked() {
    let subdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let of_account =
        format!("spec.rules[0].subjects[0].serviceAccount.name: Invalid value: \"A\": {subdomain}");
    each_is_refused(
        FLOW_SCHEMA,
        &of(FLOW_SCHEMA),
        &[
            (
                "/spec/matchingPrecedence",
                json!(10_001),
                &["spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000"],
            ),
            (
                "/spec/matchingPrecedence",
                json!(1),
                &[
                    "spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1",
                ],
            ),
            (
                "/spec/distinguisherMethod",
                json!({"type": "x"}),
                &[
                    "spec.distinguisherMethod.type: Unsupported value: {\"Type\":\"x\"}: supported values: \"ByNamespace\", \"ByUser\"",
                ],
            ),
            (
                "/spec/priorityLevelConfiguration",
                json!({"name": ""}),
                &["spec.priorityLevelConfiguration.name: Required value: must reference a priority level"],
            ),
            (
                "/spec/rules/0",
                json!({}),
                &[
                    "spec.rules[0].subjects: Required value: subjects must contain at least one value",
                    "spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty",
                ],
            ),
            (
                "/spec/rules/0/subjects/0",
                json!({"kind": "Group", "group": {"name": ""}, "user": {"name": "u"}}),
                &[
                    "spec.rules[0].subjects[0].group.name: Required value",
                    "spec.rules[0].subjects[0].user: Forbidden: user is forbidden when subject kind is not 'User'",
                ],
            ),
            (
                "/spec/rules/0/subjects/0",
                json!({"kind": "Foo"}),
                &[
                    "spec.rules[0].subjects[0].kind: Unsupported value: \"Foo\": supported values: \"Group\", \"ServiceAccount\", \"User\"",
                ],
            ),
            (
                "/spec/rules/0/subjects/0",
                json!({"kind": "ServiceAccount", "serviceAccount": {"name": "A"}}),
                &[
                    &of_account,
                    "spec.rules[0].subjects[0].serviceAccount.namespace: Required value: must specify namespace for service account",
                ],
            ),
            (
                "/spec/rules/0/resourceRules/0",
                json!({"verbs": ["*", "get"], "apiGroups": ["*", "a"], "clusterScope": true}),
                &[
                    "spec.rules[0].resourceRules[0].verbs: Invalid value: [\"*\",\"get\"]: if '*' is present, must not specify other verbs",
                    "spec.rules[0].resourceRules[0].apiGroups: Invalid value: [\"*\",\"a\"]: if '*' is present, must not specify other api groups",
                    "spec.rules[0].resourceRules[0].resources: Required value: resource rules must supply at least one resource",
                ],
            ),
        ],
    );
    for (url, detail) in [
        ("", "must not be empty"),
        ("a", "must start with slash"),
        ("/a b", "must not contain white-space"),
        ("/a//b", "must not contain double slash"),
        ("/a*", "wildcard can only do suffix matching"),
    ] {
        let mut schema = of(FLOW_SCHEMA);
        schema["spec"]["rules"][0]["nonResourceRules"][0]["nonResourceURLs"] = json!(["/b/*", url]);
        let place = "spec.rules[0].nonResourceRules[0].nonResourceURLs[1]";
        assert_eq!(refused(FLOW_SCHEMA, &schema), [format!("{place}: Invalid value: {url:?}: {detail}")]);
    }
}

#[test]
fn priority_levels_are_checked() {
    let queuing = "/spec/limited/limitResponse/queuing";
    each_is_refused(
        PRIORITY_LEVEL,
        &of(PRIORITY_LEVEL),
        &[
            ("/spec", json!({}), &["spec.type: Required value"]),
            (
                "/spec/type",
                json!("Foo"),
                &["spec.type: Unsupported value: \"Foo\": supported values: \"Exempt\", \"Limited\""],
            ),
            (
                "/spec/type",
                json!("Exempt"),
                &[
                    "spec.type: Invalid value: \"Exempt\": must be 'Exempt' if and only if `name` is 'exempt'",
                    "spec.limited: Forbidden: must be nil if the type is not Limited",
                ],
            ),
            (
                "/spec/limited",
                Value::Null,
                &["spec.limited: Required value: must not be empty when type is Limited"],
            ),
            (
                "/spec/limited",
                json!({
                    "limitResponse": {"type": "Foo"}, "nominalConcurrencyShares": -1,
                    "lendablePercent": 101, "borrowingLimitPercent": -1
                }),
                &[
                    "spec.limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer",
                    "spec.limited.limitResponse.type: Unsupported value: \"Foo\": supported values: \"Queue\", \"Reject\"",
                    "spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive",
                    "spec.limited.borrowingLimitPercent: Invalid value: -1: if specified, must be a non-negative integer",
                ],
            ),
            (
                queuing,
                json!({"handSize": 65, "queueLengthLimit": -1}),
                &[
                    "spec.limited.limitResponse.queuing.queueLengthLimit: Invalid value: -1: must be positive",
                    "spec.limited.limitResponse.queuing.handSize: Invalid value: 65: should not be greater than queues (64)",
                ],
            ),
            (
                queuing,
                json!({"handSize": 20}),
                &[
                    "spec.limited.limitResponse.queuing.handSize: Invalid value: 20: required entropy bits of deckSize 64 and handSize 20 should not be greater than 60",
                ],
            ),
        ],
    );
}

#[test]
fn what_every_cluster_has_is_good_and_the_mandatory_part_of_it_stays() {
    for (plural, object) in bootstrap::objects() {
        let kind = ("flowcontrol.apiserver.k8s.io", "v1", plural);
        assert_eq!(refused(kind, &object), Vec::<String>::new(), "{object}");
        assert_eq!(made(kind, &object)["spec"], object["spec"], "nothing is left to default");
    }
    let object = |plural, name| {
        let is = |(of, object): &(&str, Value)| *of == plural && object["metadata"]["name"] == name;
        bootstrap::objects().into_iter().find(is).expect("an object of every cluster").1
    };
    let said = change_refused(PRIORITY_LEVEL, &object(PRIORITY_LEVEL.2, "catch-all"), |level| {
        level["spec"]["limited"]["nominalConcurrencyShares"] = json!(7);
    });
    assert_eq!(
        said,
        [
            r#"spec: Invalid value: {"Type":"Limited","Limited":{"NominalConcurrencyShares":7,"LimitResponse":{"Type":"Reject","Queuing":null},"LendablePercent":0,"BorrowingLimitPercent":null},"Exempt":null}: spec of 'catch-all' must equal the fixed value"#
        ]
    );
    let exempt = object(PRIORITY_LEVEL.2, "exempt");
    let said = change_refused(PRIORITY_LEVEL, &exempt, |level| {
        level["spec"]["exempt"]["nominalConcurrencyShares"] = json!(7);
    });
    assert_eq!(said, Vec::<String>::new());
    let said = change_refused(FLOW_SCHEMA, &object(FLOW_SCHEMA.2, "exempt"), |schema| {
        schema["spec"]["matchingPrecedence"] = json!(3);
    });
    assert_eq!(
        said,
        [
            r#"spec: Invalid value: {"PriorityLevelConfiguration":{"Name":"exempt"},"MatchingPrecedence":3,"DistinguisherMethod":null,"Rules":[{"Subjects":[{"Kind":"Group","User":null,"Group":{"Name":"system:masters"},"ServiceAccount":null}],"ResourceRules":[{"Verbs":["*"],"APIGroups":["*"],"Resources":["*"],"ClusterScope":true,"Namespaces":["*"]}],"NonResourceRules":[{"Verbs":["*"],"NonResourceURLs":["*"]}]}]}: spec of 'exempt' must equal the fixed value"#
        ]
    );
}
