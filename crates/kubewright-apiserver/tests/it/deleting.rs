//! What a deletion leaves of an object, and what it answers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use http::Method;
use kubewright_engine::Settings;
use serde_json::{Value, json};

use crate::support::hooked::{Hook, Hooked};
use crate::support::{Answer, Api};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn is_marked(object: &Value) -> bool {
    let metadata = &object["metadata"];
    metadata.get("deletionTimestamp").is_some() || metadata.get("deletionGracePeriodSeconds").is_some()
}

#[tokio::test(start_paused = true)]
async fn what_nothing_holds_goes_unmarked() {
    let api = Api::start().await;
    let mut watch = api.watch(&format!("{ACCOUNTS}?watch=true&fieldSelector=metadata.name%3Da")).await;
    api.post(ACCOUNTS, json!({"metadata": {"name": "a"}})).await.expect(201);
    let answer = api.delete(&format!("{ACCOUNTS}/a")).await.expect(200);
    assert_eq!(answer["kind"], "ServiceAccount");
    watch.expect("ADDED", "a").await;
    let last = watch.expect("DELETED", "a").await;
    assert!(!is_marked(&answer) && !is_marked(&last), "{answer} {last}");
}

/// Without a time the two writes follow each other at once, and who hears of the first one finds nothing.
#[tokio::test(start_paused = true)]
async fn a_pod_that_goes_at_once_is_there_for_a_moment_when_its_watchers_hear_of_it() {
    let marked_for = Duration::from_millis(1);
    let api = Api::start_with(Settings { marked_for, ..Settings::default() }).await;
    api.post(ACCOUNTS, json!({"metadata": {"name": "default"}})).await.expect(201);
    let mut watch = api.watch(&format!("{PODS}?watch=true&fieldSelector=metadata.name%3Da")).await;
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
    api.post(PODS, pod).await.expect(201);
    watch.expect("ADDED", "a").await;
    let path = format!("{PODS}/a");
    let hears = async {
        let marked = watch.expect("MODIFIED", "a").await;
        assert!(is_marked(&marked), "{marked}");
        api.get(&path).await.expect(200)
    };
    let (_, found) = tokio::join!(api.delete(&path), hears);
    assert!(is_marked(&found), "{found}");
    watch.expect("DELETED", "a").await;
    api.get(&path).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn who_deletes_dependents_by_the_old_option_is_told_that_an_object_stays() {
    let api = Api::start().await;
    for (finalizers, code) in [(json!(["example.com/hold"]), 202), (json!([]), 200)] {
        let map = json!({"metadata": {"generateName": "m", "finalizers": finalizers}});
        let made = api.post(MAPS, map).await.expect(201);
        let path = format!("{MAPS}/{}", made["metadata"]["name"].as_str().expect("a name"));
        api.delete(&format!("{path}?orphanDependents=false&dryRun=All")).await.expect(code);
        api.delete(&format!("{path}?propagationPolicy=Background&dryRun=All")).await.expect(200);
        api.delete(&format!("{path}?orphanDependents=false")).await.expect(code);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_on_trial_that_takes_finalizers_away_tells_an_object_that_nobody_has_written() {
    let api = Api::start().await;
    api.post(MAPS, json!({"metadata": {"name": "a"}})).await.expect(201);
    let path = format!("{MAPS}/a");
    api.delete(&format!("{path}?propagationPolicy=Orphan")).await.expect(200);
    let background = format!("{path}?propagationPolicy=Background");
    let told = api.delete(&format!("{background}&dryRun=All")).await.expect(200);
    assert_eq!(told, json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}}));
    assert_eq!(api.delete(&background).await.expect(200)["kind"], "Status");
}

/// It is not stored, and so it is answered as it was sent.
#[tokio::test(start_paused = true)]
async fn an_update_with_which_an_object_goes_is_answered_with_the_lists_that_it_had() {
    let api = Api::start().await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    let held = json!({"metadata": {"name": "r", "finalizers": ["example.com/hold"]}, "rules": []});
    assert_eq!(api.post(roles, held).await.expect(201)["rules"], Value::Null);
    api.delete(&format!("{roles}/r")).await.expect(200);
    let last = json!({"metadata": {"name": "r"}, "rules": []});
    assert_eq!(api.put(&format!("{roles}/r"), last).await.expect(200)["rules"], json!([]));
    api.get(&format!("{roles}/r")).await.refused(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn what_a_finalizer_holds_is_marked_once_and_is_a_new_generation() {
    let api = Api::start().await;
    let deployment = json!({
        "metadata": {"name": "a", "finalizers": ["example.com/hold"]},
        "spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {
                "metadata": {"labels": {"app": "a"}},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]}
            }
        }
    });
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    api.post(deployments, deployment).await.expect(201);
    let marked = api.delete(&format!("{deployments}/a")).await.expect(200);
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(marked["metadata"]["generation"], 2);
    tokio::time::advance(std::time::Duration::from_secs(60)).await;
    assert_eq!(api.delete(&format!("{deployments}/a")).await.expect(200), marked);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_marked_without_a_grace_period_and_goes_with_its_last_finalizer() {
    let api = Api::start().await;
    api.post("/api/v1/namespaces", json!({"metadata": {"name": "a"}})).await.expect(201);
    let marked = api.delete("/api/v1/namespaces/a").await.expect(200);
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    assert!(marked["metadata"].get("deletionGracePeriodSeconds").is_none(), "{marked}");
    assert_eq!(marked["status"]["phase"], "Terminating");
    let refused = json!({"metadata": {"name": "a"}, "spec": {"finalizers": ["bare"]}});
    let message = api.put("/api/v1/namespaces/a/finalize", refused).await.refused(422, "Invalid");
    assert!(message.contains("spec.finalizers[0]"), "{message}");
    let empty = json!({"metadata": {"name": "a"}, "spec": {"finalizers": []}});
    api.put("/api/v1/namespaces/a/finalize", empty).await.expect(200);
    api.get("/api/v1/namespaces/a").await.refused(404, "NotFound");
}

/// They are listed page by page, and a list with a limit is one at the version that it names.
#[tokio::test(start_paused = true)]
async fn what_was_created_after_the_version_of_a_deletion_of_many_stays() {
    let api = Api::start().await;
    let list = api.get(MAPS).await.expect(200);
    let version = list["metadata"]["resourceVersion"].as_str().expect("a version");
    api.post(MAPS, json!({"metadata": {"name": "later"}})).await.expect(201);
    let deleted = api.delete(&format!("{MAPS}?resourceVersion={version}")).await.expect(200);
    assert_eq!((&deleted["items"], &deleted["metadata"]["resourceVersion"]), (&json!([]), &json!(version)));
    api.get(&format!("{MAPS}/later")).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn the_spec_finalizers_of_other_kinds_hold_nothing() {
    let api = Api::start().await;
    let definition = json!({
        "metadata": {"name": "jobs.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "jobs", "kind": "Job"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true
            }}}]
        }
    });
    api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await.expect(201);
    let jobs = "/apis/example.com/v1/namespaces/default/jobs";
    let job = json!({
        "apiVersion": "example.com/v1", "kind": "Job",
        "metadata": {"name": "a", "finalizers": ["example.com/hold"]}, "spec": {"finalizers": ["mine"]}
    });
    api.post(jobs, job).await.expect(201);
    api.delete(&format!("{jobs}/a")).await.expect(200);
    api.patch(&format!("{jobs}/a"), "merge", json!({"metadata": {"finalizers": null}})).await.expect(200);
    api.get(&format!("{jobs}/a")).await.refused(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn a_pods_time_to_end_only_gets_shorter_when_asked_again() {
    let api = Api::start().await;
    let pod = json!({
        "metadata": {"name": "a"},
        "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 100, "containers": [{"name": "c", "image": "nginx"}]}
    });
    api.post("/api/v1/namespaces/default/serviceaccounts", json!({"metadata": {"name": "default"}})).await;
    api.post(PODS, pod).await.expect(201);
    let first = api.delete(&format!("{PODS}/a")).await.expect(200);
    assert_eq!(first["metadata"]["deletionTimestamp"], "2026-01-01T00:01:40Z");
    assert_eq!(api.delete(&format!("{PODS}/a")).await.expect(200), first, "not shorter by itself");
    assert_eq!(
        api.delete(&format!("{PODS}/a?gracePeriodSeconds=500")).await.expect(200),
        first,
        "and not longer"
    );
    tokio::time::advance(std::time::Duration::from_secs(10)).await;
    let sooner = api.delete(&format!("{PODS}/a?gracePeriodSeconds=20")).await.expect(200);
    assert_eq!(
        sooner["metadata"]["deletionTimestamp"], "2026-01-01T00:00:20Z",
        "counted from the first request"
    );
    assert_eq!(sooner["metadata"]["generation"], first["metadata"]["generation"]);
    let orphan = format!("{PODS}/a?propagationPolicy=Orphan");
    assert_eq!(api.delete(&orphan).await.expect(200), sooner, "what becomes of dependents was said before");
    tokio::time::advance(std::time::Duration::from_secs(60)).await;
    let over = api.delete(&format!("{PODS}/a?gracePeriodSeconds=5")).await.expect(200);
    let meta = &over["metadata"];
    assert_eq!(meta["deletionTimestamp"], "2026-01-01T00:01:10Z", "not in the past");
    assert_eq!(meta["deletionGracePeriodSeconds"], 1);
    api.delete(&format!("{PODS}/a?gracePeriodSeconds=0")).await.expect(200);
    api.get(&format!("{PODS}/a")).await.refused(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_goes_says_so_in_its_conditions() {
    let api = Api::start().await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = json!({
        "metadata": {"name": "boxes.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "boxes", "kind": "Box"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]
        }
    });
    api.post(definitions, definition).await.expect(201);
    let marked = api.delete(&format!("{definitions}/boxes.example.com")).await.expect(200);
    let last =
        marked["status"]["conditions"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
    assert_eq!(
        (&last["type"], &last["reason"]),
        (&json!("Terminating"), &json!("InstanceDeletionPending")),
        "{marked}"
    );
    api.get(&format!("{definitions}/boxes.example.com")).await.refused(404, "NotFound");
}

/// They are deleted straight from the store (`crd_finalizer.go`, `deleteInstances`).
#[tokio::test(start_paused = true)]
async fn nobody_is_asked_whether_the_objects_of_a_definition_that_goes_may_go() {
    let api = Api::start().await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = json!({
        "metadata": {"name": "boxes.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "boxes", "kind": "Box"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]
        }
    });
    api.post(definitions, definition).await.expect(201);
    let boxes = "/apis/example.com/v1/namespaces/default/boxes";
    api.post(boxes, json!({"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "a"}}))
        .await
        .expect(201);
    let rules = json!({"resourceRules": [{
        "apiGroups": ["example.com"], "apiVersions": ["*"], "operations": ["DELETE"], "resources": ["*"]
    }]});
    let spec = json!({"matchConstraints": rules, "validations": [{"expression": "false"}]});
    let registration = "/apis/admissionregistration.k8s.io/v1";
    let policy = json!({"metadata": {"name": "p"}, "spec": spec});
    api.post(&format!("{registration}/validatingadmissionpolicies"), policy).await.expect(201);
    let binding =
        json!({"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    api.post(&format!("{registration}/validatingadmissionpolicybindings"), binding).await.expect(201);
    api.delete(&format!("{boxes}/a")).await.refused(422, "Invalid");
    api.delete(&format!("{definitions}/boxes.example.com")).await.expect(200);
    api.get(&format!("{definitions}/boxes.example.com")).await.refused(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn options_that_make_no_sense_are_told() {
    let api = Api::start().await;
    api.post(MAPS, json!({"metadata": {"name": "a"}})).await.expect(201);
    let message = api.delete(&format!("{MAPS}/a?propagationPolicy=Sideways")).await.refused(422, "Invalid");
    assert_eq!(
        message,
        "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Sideways\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
    );
    let pod = json!({"apiVersion": "v1", "kind": "Pod"}).to_string();
    let message = api.send(Method::DELETE, &format!("{MAPS}/a"), &[], pod).await.refused(400, "BadRequest");
    assert!(message.starts_with("no kind \"Pod\" is registered for version \"v1\" in scheme"), "{message}");
    api.get(&format!("{MAPS}/a")).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn who_deletes_jobs_and_does_not_say_what_becomes_of_their_pods_is_warned() {
    const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
    const WARNING: &str = "299 - \"child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning\"";
    let api = Api::start().await;
    let template =
        json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "nginx"}]}});
    let job = json!({"metadata": {"name": "a"}, "spec": {"template": template}});
    let answers = |answer: Answer| {
        let warning = answer.headers.get("warning").map(|text| text.to_str().expect("text").to_owned());
        (answer.code.as_u16(), warning)
    };
    let warned = |code| (code, Some(WARNING.to_owned()));
    let missing = format!("{JOBS}/missing");
    assert_eq!(answers(api.delete(&missing).await), warned(404), "before the Job is looked for");
    let form = [("accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")];
    let told = api.send(Method::DELETE, JOBS, &form, String::new()).await;
    assert_eq!(answers(told), warned(406), "in a form that a list has not");
    for silenced in ["propagationPolicy=Background", "propagationPolicy=Orphan", "orphanDependents=false"] {
        api.post(JOBS, job.clone()).await.expect(201);
        assert_eq!(answers(api.delete(&format!("{JOBS}/a?{silenced}&dryRun=All")).await), (200, None));
        assert_eq!(answers(api.delete(&format!("{JOBS}?{silenced}&dryRun=All")).await), (200, None));
        assert_eq!(answers(api.delete(&format!("{JOBS}/a?dryRun=All")).await), warned(200));
        api.delete(&format!("{JOBS}/a?propagationPolicy=Background")).await.expect(200);
    }
    assert_eq!(answers(api.delete(JOBS).await), warned(200), "of many, and of none");
    let unread = format!("{JOBS}?resourceVersion=abc");
    assert_eq!(answers(api.delete(&unread).await), warned(400), "before the version is read");
    assert_eq!(answers(api.delete(&format!("{JOBS}?limit=abc")).await), (400, None), "after all else is");
    let controllers = "/api/v1/namespaces/default/replicationcontrollers/missing";
    assert_eq!(answers(api.delete(controllers).await), (404, None), "though they orphan their pods, too");
}

#[tokio::test(start_paused = true)]
async fn what_was_created_as_deleted_is_marked_by_who_deletes_it() {
    let api = Api::start().await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    for (name, asked, ends) in [("a", "2020-01-01T00:00:00Z", true), ("b", "2999-01-01T00:00:00Z", false)] {
        let metadata = json!({"name": name, "deletionTimestamp": asked, "finalizers": ["example.com/hold"]});
        api.put(&format!("{leases}/{name}"), json!({"metadata": metadata})).await.expect(201);
        let marked = api.delete(&format!("{leases}/{name}")).await.expect(200);
        assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
        assert_eq!(marked["metadata"]["deletionTimestamp"] == asked, ends, "{marked}");
    }
}

/// A kubelet that removes the pod as soon as it is marked.
#[derive(Clone, Default)]
struct FastKubelet {
    api: Arc<OnceLock<Api>>,
    is_due: Arc<AtomicBool>,
}

impl Hook for FastKubelet {
    fn after(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if self.is_due.swap(false, Ordering::Relaxed) {
                let api = self.api.get().expect("the server has started");
                api.delete(&format!("{PODS}/a?gracePeriodSeconds=0")).await.expect(200);
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_its_kubelet_removes_meanwhile_is_deleted() {
    let kubelet = FastKubelet::default();
    let api = Api::start_on(Hooked::new(kubelet.clone())).await;
    let same = Api::of(api.server.clone(), api.shutdown.clone());
    assert!(kubelet.api.set(same).is_ok());
    api.post(ACCOUNTS, json!({"metadata": {"name": "default"}})).await.expect(201);
    let pod = json!({"metadata": {"name": "a"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}});
    api.post(PODS, pod).await.expect(201);
    kubelet.is_due.store(true, Ordering::Relaxed);
    let deleted = api.delete(&format!("{PODS}/a?gracePeriodSeconds=0")).await.expect(200);
    assert_eq!((&deleted["kind"], is_marked(&deleted)), (&json!("Pod"), true), "{deleted}");
    api.get(&format!("{PODS}/a")).await.refused(404, "NotFound");
}
