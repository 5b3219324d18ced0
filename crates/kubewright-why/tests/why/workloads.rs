//! Workloads, budgets and autoscalers.

use kubewright_why::Cause;
use serde_json::{Value, json};

use crate::lab::{Lab, deployment, found, says, workload};

#[tokio::test(start_paused = true)]
async fn a_quota_that_is_used_up_keeps_pods_from_being_created() {
    let lab = Lab::start(1).await;
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": "default"},
        "spec": {"hard": {"pods": "1"}}});
    lab.create(quota).await;
    lab.create(deployment(json!({}), json!({"replicas": 2}), json!({}))).await;
    says(&lab.finds("deploy/web", Cause::Quota).await, &["exceeded quota: few", "kubectl describe quota"]);
}

#[tokio::test(start_paused = true)]
async fn a_limit_range_forbids_pods() {
    let lab = Lab::start(1).await;
    let range = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small", "namespace": "default"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}});
    lab.create(range).await;
    let large = json!([{"name": "c", "image": "web:1", "resources": {"limits": {"cpu": "4"}}}]);
    lab.create(deployment(json!({}), json!({}), json!({"containers": large}))).await;
    says(&lab.finds("deploy/web", Cause::LimitRange).await, &["maximum cpu usage per Container is 1"]);
}

#[tokio::test(start_paused = true)]
async fn pod_security_forbids_pods() {
    let lab = Lab::start(1).await;
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    lab.create(
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "strict", "labels": labels}}),
    )
    .await;
    let mut web = deployment(json!({}), json!({}), json!({}));
    web["metadata"]["namespace"] = json!("strict");
    lab.create(web).await;
    says(
        &lab.finds_in("deploy/web", "strict", Cause::PodSecurity).await,
        &["violates PodSecurity", "securityContext"],
    );
}

#[tokio::test(start_paused = true)]
async fn a_service_account_that_is_missing_is_named() {
    let lab = Lab::start(1).await;
    lab.create(deployment(json!({}), json!({}), json!({"serviceAccountName": "robot"}))).await;
    says(&lab.finds("deploy/web", Cause::ServiceAccountMissing).await, &["robot", "create"]);
}

fn webhook(name: &str) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": name},
        "webhooks": [{"name": "pods.example.org", "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "default", "name": "guard"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}]})
}

#[tokio::test(start_paused = true)]
async fn a_webhook_without_endpoints_keeps_pods_from_being_created() {
    let lab = Lab::start(1).await;
    lab.create(webhook("guard")).await;
    lab.create(deployment(json!({}), json!({}), json!({}))).await;
    says(
        &lab.finds("deploy/web", Cause::WebhookUnreachable).await,
        &["failed calling webhook", "pods.example.org"],
    );
    let finding = lab.finds("validatingwebhookconfiguration/guard", Cause::WebhookNoEndpoints).await;
    says(&finding, &["service guard in default does not exist", "failurePolicy: Fail"]);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_refuses_pods_is_named() {
    let lab = Lab::start(1).await;
    let group = "admissionregistration.k8s.io/v1";
    lab.create(json!({"apiVersion": group, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "no-web"},
        "spec": {"matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]},
            "validations": [{"expression": "false", "message": "no pods today"}]}})).await;
    lab.create(json!({"apiVersion": group, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "no-web"},
        "spec": {"policyName": "no-web", "validationActions": ["Deny"]}})).await;
    lab.create(deployment(json!({}), json!({}), json!({}))).await;
    says(&lab.finds("deploy/web", Cause::PolicyDenied).await, &["no pods today", "no-web"]);
}

#[tokio::test(start_paused = true)]
async fn pods_that_cannot_be_created_for_another_reason_repeat_it() {
    let lab = Lab::start(1).await;
    lab.create(deployment(json!({}), json!({}), json!({"priorityClassName": "gone"}))).await;
    says(&lab.finds("deploy/web", Cause::CreateFailed).await, &["gone"]);
}

#[tokio::test(start_paused = true)]
async fn without_a_controller_nothing_comes_of_a_deployment() {
    let lab = Lab::with("").await;
    lab.create(deployment(json!({}), json!({}), json!({}))).await;
    says(&lab.finds("deploy/web", Cause::NotObserved).await, &["generation 1", "controller of Deployments"]);
}

#[tokio::test(start_paused = true)]
async fn a_pause_and_no_replicas_are_told_of_what_is_asked_about() {
    let lab = Lab::start(1).await;
    let web = lab.create(deployment(json!({}), json!({"replicas": 0}), json!({}))).await;
    says(&lab.finds("deploy/web", Cause::ScaledToZero).await, &["kubectl scale"]);
    lab.patch(&web, json!({"spec": {"paused": true}})).await;
    says(&lab.finds("deploy/web", Cause::Paused).await, &["kubectl rollout resume"]);
}

#[tokio::test(start_paused = true)]
async fn a_rollout_waits_and_then_misses_its_deadline() {
    let lab = Lab::start(1).await;
    let web = lab
        .create(deployment(json!({}), json!({"replicas": 3, "progressDeadlineSeconds": 60}), json!({})))
        .await;
    let waiting = json!({"kubewright.dev/waiting": "ErrImagePull"});
    lab.patch(&web, json!({"spec": {"template": {"metadata": {"annotations": waiting}}}})).await;
    says(&lab.finds("deploy/web", Cause::RolloutWaiting).await, &["1 of 3 new pods are made, 3 old ones"]);
    lab.pass(120).await;
    let report = lab.why("deploy/web").await;
    let finding = found(&report.object, Cause::ProgressDeadline).unwrap_or_else(|| panic!("{report:#?}"));
    says(finding, &["no progress for 60s", "kubectl rollout undo"]);
    assert!(found(&report.object, Cause::ImagePull).is_some(), "{report:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_waits_for_the_first_pod_that_is_not_ready() {
    let lab = Lab::start(1).await;
    let waiting = json!({"kubewright.dev/waiting": "ImagePullBackOff"});
    lab.create(workload("StatefulSet", waiting, json!({"replicas": 3, "serviceName": "web"}), json!({})))
        .await;
    let finding = lab.finds("sts/web", Cause::OrdinalWaiting).await;
    says(&finding, &["pod web-0 is not ready, and web-1, web-2 are made only after it"]);
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_without_a_fitting_node_has_no_pods() {
    let lab = Lab::start(1).await;
    lab.create(workload("DaemonSet", json!({}), json!({}), json!({"nodeSelector": {"disk": "ssd"}}))).await;
    says(&lab.finds("ds/web", Cause::NoFittingNode).await, &["none of 1 nodes", "ssd"]);
}

fn job(annotations: Value, spec: Value) -> Value {
    let mut job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "default"}, "spec": spec});
    job["spec"]["template"] = json!({"metadata": {"annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "job:1"}]}});
    job
}

#[tokio::test(start_paused = true)]
async fn a_job_that_failed_says_how_often_and_its_pods_how() {
    let lab = Lab::start(1).await;
    lab.create(job(json!({"kubewright.dev/exit-code": "7"}), json!({"backoffLimit": 1}))).await;
    lab.pass(600).await;
    says(&lab.finds("job/j", Cause::BackoffLimit).await, &["failed 2 times; backoffLimit is 1"]);
    says(&lab.finds("job/j", Cause::PodFailed).await, &["exited with 7"]);
}

#[tokio::test(start_paused = true)]
async fn a_job_has_a_deadline() {
    let lab = Lab::start(1).await;
    lab.create(job(json!({"kubewright.dev/run-for": "1h"}), json!({"activeDeadlineSeconds": 30}))).await;
    lab.pass(60).await;
    says(&lab.finds("job/j", Cause::JobDeadline).await, &["activeDeadlineSeconds, which is 30"]);
}

#[tokio::test(start_paused = true)]
async fn a_job_fails_by_its_policy() {
    let lab = Lab::start(1).await;
    let policy = json!({"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [9]}}]});
    lab.create(job(json!({"kubewright.dev/exit-code": "9"}), json!({"podFailurePolicy": policy}))).await;
    lab.pass(60).await;
    says(&lab.finds("job/j", Cause::JobFailed).await, &["PodFailurePolicy"]);
}

fn cron_job(spec: Value) -> Value {
    let mut cron = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c", "namespace": "default"}, "spec": spec});
    cron["spec"]["jobTemplate"] =
        json!({"spec": job(json!({"kubewright.dev/run-for": "3h"}), json!({}))["spec"]});
    cron
}

#[tokio::test(start_paused = true)]
async fn what_is_suspended_makes_nothing() {
    let lab = Lab::start(1).await;
    lab.create(job(json!({}), json!({"suspend": true}))).await;
    says(&lab.finds("job/j", Cause::Suspended).await, &["spec.suspend is true"]);
    lab.create(cron_job(json!({"schedule": "0 * * * *", "suspend": true}))).await;
    says(&lab.finds("cj/c", Cause::Suspended).await, &["no Jobs are made"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_missed_says_why() {
    let lab = Lab::start(1).await;
    lab.create(cron_job(json!({"schedule": "0 * * * *", "concurrencyPolicy": "Forbid"}))).await;
    lab.pass(7_200 + 600).await;
    says(&lab.finds("cj/c", Cause::ScheduleMissed).await, &["concurrencyPolicy is Forbid", "was due at"]);
}

#[tokio::test(start_paused = true)]
async fn a_budget_says_how_many_have_to_be_healthy() {
    let lab = Lab::start(1).await;
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "default"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}});
    lab.create(budget).await;
    says(&lab.finds("pdb/b", Cause::BudgetSelectsNothing).await, &["matches no pods"]);
    lab.create(deployment(json!({}), json!({"replicas": 2}), json!({}))).await;
    lab.pass(5).await;
    says(&lab.finds("pdb/b", Cause::DisruptionBudget).await, &["2 of 2 pods are healthy and 2 have to be"]);
}

fn autoscaler(name: &str) -> Value {
    json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h", "namespace": "default"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "metrics": [{"type": "External", "external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "1"}}}]}})
}

#[tokio::test(start_paused = true)]
async fn an_autoscaler_says_that_it_has_no_target_or_no_metrics() {
    let lab = Lab::start(1).await;
    lab.create(autoscaler("web")).await;
    lab.pass(60).await;
    says(&lab.finds("hpa/h", Cause::AutoscalerTarget).await, &["scaleTargetRef"]);
    lab.create(deployment(json!({}), json!({}), json!({}))).await;
    lab.pass(60).await;
    says(&lab.finds("hpa/h", Cause::AutoscalerMetrics).await, &["queue"]);
}
