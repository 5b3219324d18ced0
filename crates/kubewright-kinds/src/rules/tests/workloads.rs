use serde_json::{Value, json};

use super::samples::{
    CONTROLLER, CRON_JOB, DAEMON_SET, DEPLOYMENT, JOB, REPLICA_SET, STATEFUL_SET, claim_spec, of,
};
use super::{change_refused, each_change_is_refused, each_is_refused, made, messages, refused, rules, with};

const LABELS: &str = "spec.template.metadata.labels: Invalid value: {\"app\":\"b\"}: `selector` does not match template `labels`";

#[test]
fn the_status_of_a_daemon_set_says_nothing_of_how_often_its_template_changed() {
    const COUNT: &str = "deprecated.daemonset.template.generation";
    let old = with(&made(DAEMON_SET, &of(DAEMON_SET)), "/metadata/annotations", json!({COUNT: "3"}));
    for annotations in [json!({}), json!({COUNT: "7"})] {
        let mut new = with(&old, "/metadata/annotations", annotations);
        (rules(DAEMON_SET).prepare_status)(&mut new, &old);
        assert_eq!(new["metadata"]["annotations"][COUNT], "3");
    }
}

#[test]
fn a_deployment_rolls_by_default() {
    let spec = &made(DEPLOYMENT, &of(DEPLOYMENT))["spec"];
    assert_eq!(spec["replicas"], 1);
    assert_eq!(
        spec["strategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}})
    );
    assert_eq!((&spec["revisionHistoryLimit"], &spec["progressDeadlineSeconds"]), (&json!(10), &json!(600)));
}

#[test]
fn deployments_are_checked() {
    each_is_refused(
        DEPLOYMENT,
        &of(DEPLOYMENT),
        &[
            (
                "/spec/replicas",
                json!(-1),
                &["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
            ),
            ("/spec/template/metadata/labels/app", json!("b"), &[LABELS]),
            (
                "/spec/selector",
                json!({}),
                &["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
            ),
            (
                "/spec/strategy",
                json!({"type": "Recreate", "rollingUpdate": {}}),
                &[
                    "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
                ],
            ),
            (
                "/spec/strategy",
                json!({"type": "Magic"}),
                &[
                    "spec.strategy: Unsupported value: {\"Type\":\"Magic\",\"RollingUpdate\":null}: supported values: \"Recreate\", \"RollingUpdate\"",
                ],
            ),
            (
                "/spec/strategy",
                json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
                &[
                    "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0",
                ],
            ),
            (
                "/spec/strategy",
                json!({"rollingUpdate": {"maxUnavailable": "110%"}}),
                &[
                    "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"110%\": must not be greater than 100%",
                ],
            ),
            (
                "/spec/progressDeadlineSeconds",
                json!(0),
                &["spec.progressDeadlineSeconds: Invalid value: 0: must be greater than minReadySeconds"],
            ),
            (
                "/spec/template/spec/restartPolicy",
                json!("Never"),
                &[
                    "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
                ],
            ),
            (
                "/spec/template/spec/activeDeadlineSeconds",
                json!(5),
                &[
                    "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported",
                ],
            ),
        ],
    );
    assert_eq!(
        refused(DEPLOYMENT, &json!({})),
        [
            "spec.selector: Required value",
            "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`",
            "spec.template.spec.containers: Required value"
        ]
    );
}

#[test]
fn selectors_stay() {
    for kind in [DEPLOYMENT, REPLICA_SET, DAEMON_SET] {
        let said = change_refused(kind, &of(kind), |object| {
            object["spec"]["selector"]["matchLabels"]["app"] = json!("b");
            object["spec"]["template"]["metadata"]["labels"]["app"] = json!("b");
        });
        assert_eq!(
            said,
            ["spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"b\"}}: field is immutable"],
            "{kind:?}"
        );
    }
}

#[test]
fn the_counts_of_a_status_fit_together() {
    let old = made(DEPLOYMENT, &of(DEPLOYMENT));
    let new = with(
        &old,
        "/status",
        json!({"replicas": 1, "readyReplicas": 2, "availableReplicas": 3, "updatedReplicas": -1}),
    );
    assert_eq!(
        messages(&rules(DEPLOYMENT).errors_on_status(&new, &old, true)),
        [
            "status.updatedReplicas: Invalid value: -1: must be greater than or equal to 0",
            "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
            "status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas",
            "status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas"
        ]
    );
}

#[test]
fn a_replication_controller_takes_the_labels_of_its_template() {
    let controller = made(CONTROLLER, &of(CONTROLLER));
    assert_eq!(controller["spec"]["selector"], json!({"app": "a"}));
    assert_eq!(controller["metadata"]["labels"], json!({"app": "a"}));
    assert_eq!(refused(CONTROLLER, &with(&of(CONTROLLER), "/spec/selector", json!({"app": "x"}))).len(), 1);
}

#[test]
fn a_daemon_set_counts_its_templates() {
    let set = made(DAEMON_SET, &of(DAEMON_SET));
    let count =
        |set: &Value| set["metadata"]["annotations"]["deprecated.daemonset.template.generation"].clone();
    assert_eq!(count(&set), "1");
    let mut new = with(&set, "/spec/template/spec/containers/0/image", json!("nginx:2"));
    (rules(DAEMON_SET).prepare_update)(&mut new, &set);
    assert_eq!(count(&new), "2");
    let rolling = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}});
    assert_eq!(
        refused(DAEMON_SET, &with(&of(DAEMON_SET), "/spec/updateStrategy", rolling)),
        [
            "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"
        ]
    );
}

#[test]
fn a_stateful_set_mounts_its_claims_and_changes_little() {
    let mut set = with(
        &of(STATEFUL_SET),
        "/spec/volumeClaimTemplates",
        json!([{"metadata": {"name": "data"}, "spec": claim_spec()}]),
    );
    set["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "data", "mountPath": "/d"}]);
    let claim = &made(STATEFUL_SET, &set)["spec"]["volumeClaimTemplates"][0];
    assert_eq!(
        (&claim["kind"], &claim["status"]["phase"]),
        (&json!("PersistentVolumeClaim"), &json!("Pending"))
    );
    each_change_is_refused(
        STATEFUL_SET,
        &set,
        &[
            ("/spec/replicas", json!(3), &[]),
            ("/spec/template/spec/containers/0/image", json!("nginx:2"), &[]),
            (
                "/spec/serviceName",
                json!("other"),
                &[
                    "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
                ],
            ),
        ],
    );
    each_is_refused(
        STATEFUL_SET,
        &set,
        &[
            (
                "/spec/podManagementPolicy",
                json!("Wild"),
                &["spec.podManagementPolicy: Invalid value: \"Wild\": must be 'OrderedReady' or 'Parallel'"],
            ),
            (
                "/spec/updateStrategy",
                json!({"type": "OnDelete", "rollingUpdate": {"partition": 1}}),
                &[
                    "spec.updateStrategy.rollingUpdate: Invalid value: {\"Partition\":1,\"MaxUnavailable\":null}: only allowed for updateStrategy 'RollingUpdate'",
                ],
            ),
            (
                "/spec/volumeClaimTemplates",
                json!([]),
                &["spec.template.spec.containers[0].volumeMounts[0].name: Not found: \"data\""],
            ),
        ],
    );
}

#[test]
fn a_job_selects_its_own_pods() {
    let job = made(JOB, &of(JOB));
    let uid = job["metadata"]["uid"].clone();
    assert_eq!(job["spec"]["selector"], json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}));
    let labels = json!({
        "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": "a", "controller-uid": uid, "job-name": "a"
    });
    assert_eq!(job["spec"]["template"]["metadata"]["labels"], labels);
    assert_eq!(job["metadata"]["labels"], labels);
    let own = json!({"matchLabels": {"a": "b"}});
    let mut manual = with(&of(JOB), "/spec/selector", own);
    manual["spec"]["manualSelector"] = json!(true);
    manual["spec"]["template"]["metadata"] = json!({"labels": {"a": "b"}});
    assert!(refused(JOB, &manual).is_empty());
}

#[test]
fn jobs_are_checked() {
    let indexed = with(&of(JOB), "/spec/completionMode", json!("Indexed"));
    each_is_refused(
        JOB,
        &indexed,
        &[
            (
                "/spec/parallelism",
                json!(-1),
                &[
                    "spec.parallelism: Invalid value: -1: must be greater than or equal to 0",
                    "spec.completions: Required value: when completion mode is Indexed",
                ],
            ),
            (
                "/spec/template/spec/restartPolicy",
                Value::Null,
                &["spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""],
            ),
            (
                "/spec/managedBy",
                json!("nobody"),
                &[
                    "spec.managedBy: Invalid value: \"nobody\": must be a domain-prefixed path (such as \"acme.io/foo\")",
                ],
            ),
            (
                "/spec/completionMode",
                json!("Odd"),
                &[
                    "spec.completionMode: Unsupported value: \"Odd\": supported values: \"NonIndexed\", \"Indexed\"",
                ],
            ),
            (
                "/spec/podFailurePolicy",
                json!({"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [0]}}]}),
                &[
                    "spec.podFailurePolicy.rules[0].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator",
                ],
            ),
            (
                "/spec/podFailurePolicy",
                json!({"rules": [{"action": "FailJob"}]}),
                &[
                    "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
                ],
            ),
            (
                "/spec/successPolicy",
                json!({"rules": [{"succeededCount": 5}]}),
                &[
                    "spec.successPolicy.rules[0].succeededCount: Invalid value: 5: must be less than or equal to 1 (the number of specified completions)",
                ],
            ),
        ],
    );
}

#[test]
fn a_running_job_stays_as_it_is_and_a_waiting_one_may_be_moved() {
    each_change_is_refused(
        JOB,
        &of(JOB),
        &[
            ("/spec/parallelism", json!(3), &[]),
            ("/spec/completions", json!(3), &["spec.completions: Invalid value: 3: field is immutable"]),
            (
                "/spec/completionMode",
                json!("Indexed"),
                &["spec.completionMode: Invalid value: \"Indexed\": field is immutable"],
            ),
        ],
    );
    let move_it = |job: &mut Value| job["spec"]["template"]["spec"]["nodeSelector"] = json!({"a": "b"});
    assert_eq!(change_refused(JOB, &of(JOB), move_it).len(), 1);
    assert!(change_refused(JOB, &with(&of(JOB), "/spec/suspend", json!(true)), move_it).is_empty());
}

#[test]
fn a_completion_mode_that_is_none_is_told_of_alone() {
    let indexed = with(&of(JOB), "/spec/backoffLimitPerIndex", json!(1));
    let refused = |mode: Value| refused(JOB, &with(&indexed, "/spec/completionMode", mode));
    let unknown =
        "spec.completionMode: Unsupported value: \"\": supported values: \"NonIndexed\", \"Indexed\"";
    assert_eq!(refused(json!("")), [unknown]);
    let needs = "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode";
    assert_eq!(refused(json!("NonIndexed")), [needs]);
}

#[test]
fn a_time_zone_without_a_name_is_refused_also_where_there_was_none() {
    let why = "spec.timeZone: Invalid value: \"\": timeZone must be nil or non-empty string";
    each_change_is_refused(CRON_JOB, &of(CRON_JOB), &[("/spec/timeZone", json!(""), &[why])]);
}

#[test]
fn cron_jobs_are_checked() {
    let long = "x".repeat(53);
    each_is_refused(
        CRON_JOB,
        &with(&of(CRON_JOB), "/metadata", json!({"name": "a"})),
        &[
            (
                "/metadata/name",
                json!(long),
                &[&format!("metadata.name: Invalid value: \"{long}\": must be no more than 52 characters")],
            ),
            ("/spec/schedule", json!(""), &["spec.schedule: Required value"]),
            (
                "/spec/schedule",
                json!("often"),
                &["spec.schedule: Invalid value: \"often\": expected exactly 5 fields, found 1: [often]"],
            ),
            (
                "/spec/schedule",
                json!("TZ=UTC * * * * *"),
                &[
                    "spec.schedule: Invalid value: \"TZ=UTC * * * * *\": cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
                ],
            ),
            (
                "/spec/timeZone",
                json!("../UTC"),
                &["spec.timeZone: Invalid value: \"../UTC\": unknown time zone ../UTC"],
            ),
            (
                "/spec/concurrencyPolicy",
                json!("Pile"),
                &[
                    "spec.concurrencyPolicy: Unsupported value: \"Pile\": supported values: \"Allow\", \"Forbid\", \"Replace\"",
                ],
            ),
            (
                "/spec/jobTemplate/spec/template/spec/containers/0/image",
                Value::Null,
                &["spec.jobTemplate.spec.template.spec.containers[0].image: Required value"],
            ),
        ],
    );
}
