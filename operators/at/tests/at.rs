//! The promises of the At operator, in a whole cluster and in virtual time. `AT-` rows are those of the write-ups that the
//! kind comes from.

mod lab;
mod log;

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Pod};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use kubewright::testing::Cluster;
use kubewright_at::{At, BookAt, BookAtSpec, Phase, operator};
use lab::{ATS, at, condition, done, notes, phase, pods, refusal, table};
use serde_json::json;

/// AT-01: before the kind had columns.
#[kubewright::test]
async fn at_01_a_first_crd_shows_name_and_age_and_answers_to_its_singular(cluster: Cluster) {
    let mut crd = kubewright::object::to_value(&<At as kube::CustomResourceExt>::crd()).expect("a CRD");
    let version = &mut crd["spec"]["versions"][0];
    version["additionalPrinterColumns"] = json!([]);
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"] = json!([]);
    let crd: k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition =
        kubewright::object::from_value(crd).expect("a CRD");
    cluster.create(&crd).await;
    cluster.create(&at("example-at", json!({}))).await;
    let (columns, rows) = table(&cluster, ATS).await;
    assert_eq!(columns, ["Name", "Age"]);
    assert_eq!(rows[0][0], "example-at");
    assert_eq!(crd.spec.names.singular.as_deref(), Some("at"));
}

/// AT-02, AT-03: what a client is told, to the letter; kubectl says `The At "example-at" is invalid: ` and the same.
#[kubewright::test]
async fn at_02_at_03_what_the_schema_refuses_is_told_literally(cluster: Cluster) {
    cluster.run(operator).await;
    let missing = json!({"spec": {"schedule": "2023-07-14T10:12:00Z"}});
    let invalid = "At.cnat.study.jayground8 \"example-at\" is invalid: ";
    assert_eq!(refusal(&cluster, missing).await, format!("{invalid}spec.command: Required value"));
    let short = json!({"spec": {"schedule": "2019-04-12T10:12Z", "command": "echo YAY"}});
    let pattern = r"^\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d";
    assert_eq!(
        refusal(&cluster, short).await,
        format!(
            "{invalid}spec.schedule: Invalid value: \"2019-04-12T10:12Z\": spec.schedule in body should match '{pattern}'"
        )
    );
}

/// AT-04.
/// KB-38.
#[kubewright::test]
async fn at_04_the_table_shows_schedule_command_and_phase(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&at("example-at", json!({"schedule": "2023-07-14T10:12:00Z"}))).await;
    done(&cluster, "example-at").await;
    let (columns, rows) = table(&cluster, ATS).await;
    assert_eq!(columns, ["Name", "Schedule", "Command", "Phase"]);
    assert_eq!(rows, [["example-at", "2023-07-14T10:12:00Z", "echo YAY", "DONE"]]);
}

/// AT-05, AT-06, AT-16, AT-17: PENDING to RUNNING to DONE by itself, to the second.
#[kubewright::test]
async fn at_05_at_06_at_17_it_waits_runs_once_and_is_done_by_itself(cluster: Cluster) {
    cluster.run(operator).await;
    let due = cluster.world().clock.now() + Duration::from_secs(3600);
    cluster
        .create(&at("example-at", json!({"schedule": due.strftime("%FT%TZ").to_string(), "for": "30s"})))
        .await;
    cluster.settle().await;
    let waiting = cluster.get::<At>("example-at").await;
    assert_eq!(
        waiting.status.as_ref().map(|status| status.phase),
        Some(Phase::Pending),
        "AT-16: never empty"
    );
    cluster.advance(Duration::from_secs(3590)).await;
    assert_eq!(pods(&cluster).await, [""; 0]);
    cluster.advance(Duration::from_secs(10)).await;
    assert_eq!(phase(&cluster, "example-at").await, Phase::Running);
    let pod = cluster.get::<Pod>("example-at-pod").await;
    let late = pod.creation_timestamp().expect("it was made").0.as_second() - due.as_second();
    assert!((0..=1).contains(&late), "{late}");
    let done = done(&cluster, "example-at").await;
    let status = done.status.expect("a status");
    assert_eq!((status.exit_code, status.pod_name.as_deref()), (Some(0), Some("example-at-pod")));
    assert_eq!(condition(&cluster, "example-at", "Succeeded").await, ("True".into(), "Completed".into()));
    assert_eq!(status.observed_generation, done.metadata.generation);
    assert_eq!(notes(&cluster, "Started").await, ["Started pod example-at-pod"]);
    assert_eq!(notes(&cluster, "Completed").await.len(), 1);
}

#[kubewright::test]
async fn at_07_a_schedule_in_the_past_runs_at_once(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&at("example-at", json!({"schedule": "2019-04-12T10:12:00Z"}))).await;
    cluster
        .run_until(
            |cluster| async move { cluster.exists::<Pod>("example-at-pod").await },
            Duration::from_secs(1),
        )
        .await;
}

/// AT-08: what each of the two paths of an At takes, and what it leaves.
/// KB-39.
#[kubewright::test]
async fn at_08_the_status_is_written_apart_from_the_rest(cluster: Cluster) {
    cluster.run(operator).await;
    let before = cluster.create(&at("example-at", json!({"schedule": "2030-01-01T00:00:00Z"}))).await;
    cluster.settle().await;
    let patched: At = cluster.patch("example-at", json!({"status": {"phase": "DONE"}})).await;
    assert_eq!(patched.status.map(|status| status.phase), Some(Phase::Pending), "no change");
    let ats: Api<At> = Api::namespaced(cluster.client(), "default");
    let all =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"command": "false"}, "status": {"log": "x"}});
    let patched =
        ats.patch_status("example-at", &PatchParams::default(), &Patch::Merge(all)).await.expect("taken");
    assert_eq!((patched.labels().len(), &patched.spec), (0, &before.spec));
    assert_eq!(patched.metadata.generation, before.metadata.generation);
    assert_eq!(patched.status.and_then(|status| status.log).as_deref(), Some("x"));
}

/// AT-09: whatever becomes of the pod afterwards.
#[kubewright::test]
async fn at_09_done_stays_done(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&at("good", json!({}))).await;
    cluster.create(&at("bad", json!({"exit": "3"}))).await;
    done(&cluster, "good").await;
    let bad = done(&cluster, "bad").await.status.expect("a status");
    assert_eq!(bad.exit_code, Some(3));
    assert_eq!(condition(&cluster, "bad", "Succeeded").await, ("False".into(), "Failed".into()));
    cluster.delete::<Pod>("good-pod").await;
    cluster.patch::<At>("good", json!({"metadata": {"labels": {"touched": "yes"}}})).await;
    cluster.advance(Duration::from_secs(3600)).await;
    assert_eq!(phase(&cluster, "good").await, Phase::Done);
    assert_eq!(pods(&cluster).await, ["bad-pod"], "gone, and not run again");
}

/// AT-10: what kubectl lists of the pod afterwards. (Simulated nodes write no log; where there is one, its end is in
/// `status.log`.)
#[kubewright::test]
async fn at_10_the_pod_of_a_command_that_is_done_is_listed_as_completed(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&at("example-at", json!({"command": "echo YAY"}))).await;
    let done = done(&cluster, "example-at").await;
    cluster.settle().await;
    let (columns, rows) = table(&cluster, "/api/v1/namespaces/default/pods").await;
    assert_eq!(columns[..3], ["Name", "Ready", "Status"]);
    assert_eq!(rows[0][..3], ["example-at-pod", "0/1", "Completed"]);
    assert_eq!(done.status.and_then(|status| status.log), None, "nobody keeps one here");
}

/// AT-11: its pod goes with it within four seconds, or is kept by who asks for that.
#[kubewright::test]
async fn at_11_a_deleted_at_takes_its_pod_along_unless_it_is_orphaned(cluster: Cluster) {
    cluster.run(operator).await;
    let ats: Api<At> = Api::namespaced(cluster.client(), "default");
    for parameters in [DeleteParams::background(), DeleteParams::foreground()] {
        for run_for in ["1s", "1h"] {
            cluster.create(&at("example-at", json!({"for": run_for}))).await;
            cluster.advance(Duration::from_secs(10)).await;
            assert_eq!(pods(&cluster).await, ["example-at-pod"]);
            ats.delete("example-at", &parameters).await.expect("deleted");
            let gone = |cluster: Cluster| async move {
                !cluster.exists::<At>("example-at").await && pods(&cluster).await.is_empty()
            };
            cluster.run_until(gone, Duration::from_secs(4)).await;
        }
    }
    cluster.create(&at("example-at", json!({"for": "1h"}))).await;
    cluster.advance(Duration::from_secs(10)).await;
    ats.delete("example-at", &DeleteParams::orphan()).await.expect("deleted");
    cluster.advance(Duration::from_secs(60)).await;
    let kept = cluster.get::<Pod>("example-at-pod").await;
    assert_eq!((kept.owner_references().len(), kept.finalizers().len()), (0, 0));
}

/// AT-11: also when nobody was there to let it go.
#[kubewright::test]
async fn at_11_a_pod_that_is_orphaned_while_the_operator_is_away_is_let_go_later(cluster: Cluster) {
    let operator = cluster.run(operator).await;
    cluster.create(&at("example-at", json!({"for": "1h"}))).await;
    cluster.advance(Duration::from_secs(10)).await;
    operator.stop().await;
    let ats: Api<At> = Api::namespaced(cluster.client(), "default");
    ats.delete("example-at", &DeleteParams::orphan()).await.expect("deleted");
    cluster.advance(Duration::from_secs(60)).await;
    assert_eq!(cluster.get::<Pod>("example-at-pod").await.finalizers().len(), 1);
    operator.restart().await;
    cluster.settle().await;
    assert_eq!(cluster.get::<Pod>("example-at-pod").await.finalizers().len(), 0);
}

/// AT-12: the rights that it works with let it write the status, and nothing else of an At.
#[kubewright::test]
async fn at_12_the_operator_may_write_the_status_and_not_the_spec(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&at("example-at", json!({"schedule": "2030-01-01T00:00:00Z"}))).await;
    let ats: Api<At> = Api::namespaced(cluster.client_of_service_account("at-system", "at"), "default");
    let change = Patch::Merge(json!({"spec": {"command": "false"}}));
    let error = ats.patch("example-at", &PatchParams::default(), &change).await.expect_err("it may not");
    assert!(
        error.to_string().contains("cannot patch resource \"ats\" in API group \"cnat.study.jayground8\""),
        "{error}"
    );
    let change = Patch::Merge(json!({"status": {"log": "x"}}));
    ats.patch_status("example-at", &PatchParams::default(), &change).await.expect("it may");
}

/// AT-15: what `kubectl apply` makes its line of, `at.cnat.study.jayground8/example-at created`: singular, group and name.
#[kubewright::test]
async fn at_15_kubectl_finds_the_kind_by_its_singular_and_group(cluster: Cluster) {
    cluster.run(operator).await;
    let path =
        http::Request::get("/apis/cnat.study.jayground8/v1alpha1").body(Vec::new()).expect("a request");
    let resources: serde_json::Value = cluster.client().request(path).await.expect("discovery");
    let ats = &resources["resources"][0];
    assert_eq!(
        (&ats["name"], &ats["singularName"], &ats["kind"]),
        (&json!("ats"), &json!("at"), &json!("At"))
    );
}

/// AT-18: refused up front, with what to write instead.
#[kubewright::test]
async fn at_18_dates_that_do_not_exist_are_refused_and_offsets_and_zones_are_honoured(cluster: Cluster) {
    cluster.run(operator).await;
    for schedule in [
        "2023-19-39T29:59:59Z",
        "2023-02-29T10:00:00Z",
        "2023-07-14T24:00:00Z",
        "2023-07-14T10:12:00Zgarbage",
        "2023-07-14T10:12:00+99:00",
    ] {
        let refused = refusal(&cluster, json!({"spec": {"schedule": schedule, "command": "true"}})).await;
        assert!(
            refused
                .contains("spec.schedule is no date and time that exists: write it as 2026-07-14T10:12:00Z"),
            "{schedule}: {refused}"
        );
    }
    for spec in [
        json!({"schedule": "2023-07-14T10:12:00"}),
        json!({"schedule": "2023-07-14T10:12:00Z", "timeZone": "Asia/Seoul"}),
    ] {
        let mut spec = spec;
        spec["command"] = json!("true");
        let refused = refusal(&cluster, json!({"spec": spec})).await;
        assert!(refused.contains("does not say once which clocks it means"), "{refused}");
    }
    for (name, spec) in [
        ("offset", json!({"schedule": "2030-07-14T19:12:00+09:00"})),
        ("zone", json!({"schedule": "2030-07-14T19:12:00", "timeZone": "Asia/Seoul"})),
        ("fraction", json!({"schedule": "2030-07-14T10:12:00.000Z"})),
    ] {
        cluster.create(&at(name, spec)).await;
        cluster.settle().await;
        let status = cluster.get::<At>(name).await.status.expect("a status");
        let due: Timestamp = "2030-07-14T10:12:00Z".parse().expect("a time");
        assert_eq!(status.scheduled_time.map(|time| time.0), Some(due), "{name}");
    }
}

/// AT-18: what cannot be refused is told once, and not tried for ever.
#[kubewright::test]
async fn at_18_what_cannot_be_refused_is_a_condition_and_one_event(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&at("zone", json!({"schedule": "2030-07-14T19:12:00", "timeZone": "Mars/Base"}))).await;
    cluster.create(&at("quote", json!({"command": "echo 'A"}))).await;
    cluster.advance(Duration::from_secs(3600)).await;
    assert_eq!(condition(&cluster, "zone", "Accepted").await, ("False".into(), "UnknownTimeZone".into()));
    assert_eq!(condition(&cluster, "quote", "Accepted").await, ("False".into(), "InvalidCommand".into()));
    assert_eq!(notes(&cluster, "InvalidCommand").await, ["spec.command: a single quote is not closed"]);
    let before = cluster.get::<At>("quote").await;
    cluster.advance(Duration::from_secs(3600)).await;
    assert_eq!(cluster.get::<At>("quote").await.resource_version(), before.resource_version());
    cluster.patch::<At>("quote", json!({"spec": {"command": "echo A"}})).await;
    done(&cluster, "quote").await;
}

/// AT-19.
#[kubewright::test]
async fn at_19_a_foreign_pod_is_never_adopted(cluster: Cluster) {
    cluster.run(operator).await;
    let foreign: Pod = kubewright::object::from_value(json!({
        "metadata": {"name": "example-at-pod", "annotations": {"kubewright.dev/run-for": "1s"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "theirs", "image": "theirs"}]}}))
    .expect("a pod");
    cluster.create(&foreign).await;
    cluster.create(&at("example-at", json!({}))).await;
    cluster.advance(Duration::from_secs(600)).await;
    assert_eq!(phase(&cluster, "example-at").await, Phase::Pending);
    assert_eq!(condition(&cluster, "example-at", "Conflict").await, ("True".into(), "PodNotOwned".into()));
    assert_eq!(notes(&cluster, "PodNotOwned").await.len(), 1);
    assert_eq!(cluster.get::<Pod>("example-at-pod").await.spec.expect("a spec").containers[0].name, "theirs");
    cluster.delete::<Pod>("example-at-pod").await;
    done(&cluster, "example-at").await;
    assert_eq!(condition(&cluster, "example-at", "Conflict").await.0, "False");
}

/// AT-20.
#[kubewright::test]
async fn at_20_quotes_reach_the_pod_as_words(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&at("example-at", json!({"command": "sh -c 'echo  A B'"}))).await;
    cluster.settle().await;
    let pod = cluster.get::<Pod>("example-at-pod").await;
    let command = pod.spec.expect("a spec").containers[0].command.clone();
    assert_eq!(command.unwrap_or_default(), ["sh", "-c", "echo  A B"]);
}

/// AT-21.
#[kubewright::test]
async fn at_21_a_command_that_fails_is_not_started_for_ever(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&at("once", json!({"exit": "7"}))).await;
    cluster.create(&at("thrice", json!({"exit": "7", "backoffLimit": 2}))).await;
    let once = done(&cluster, "once").await.status.expect("a status");
    assert_eq!(once.exit_code, Some(7));
    assert_eq!(phase(&cluster, "thrice").await, Phase::Running);
    let thrice =
        cluster.run_until(lab::is_done("thrice"), Duration::from_secs(600)).await.status.expect("a status");
    assert_eq!(thrice.exit_code, Some(7));
    assert_eq!(
        condition(&cluster, "thrice", "Succeeded").await,
        ("False".into(), "BackoffLimitExceeded".into())
    );
    cluster.advance(Duration::from_secs(600)).await;
    assert_eq!(pods(&cluster).await, ["once-pod"], "the crash loop has ended");
}

/// AT-23, Beyond 4.
#[kubewright::test]
async fn at_23_a_deleted_pod_is_reported_as_lost_and_run_again_only_where_asked(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&at("report", json!({"for": "10s"}))).await;
    cluster.create(&at("rerun", json!({"for": "10s", "ifLost": "Rerun"}))).await;
    cluster.advance(Duration::from_secs(2)).await;
    let first = cluster.get::<Pod>("rerun-pod").await.uid();
    cluster.delete::<Pod>("report-pod").await;
    cluster.delete::<Pod>("rerun-pod").await;
    let lost = cluster.run_until(lab::is_done("report"), Duration::from_secs(120)).await;
    assert_eq!(condition(&cluster, "report", "Succeeded").await, ("False".into(), "PodLost".into()));
    assert_eq!(lost.status.expect("a status").exit_code, None);
    let again =
        cluster.run_until(lab::is_done("rerun"), Duration::from_secs(120)).await.status.expect("a status");
    assert_eq!((again.lost_pods, again.exit_code), (1, Some(0)));
    assert_ne!(again.pod_uid, first);
    assert_eq!(pods(&cluster).await, ["rerun-pod"]);
}

/// AT-24: two kinds of one controller, which do not get in each other's way.
#[kubewright::test]
async fn at_24_both_groups_are_served(cluster: Cluster) {
    cluster.run(operator).await;
    let mut book = BookAt::new("book", BookAtSpec(at("book", json!({})).spec.0));
    cluster.create(&book).await;
    cluster.create(&at("study", json!({}))).await;
    done(&cluster, "study").await;
    let is_done = |cluster: Cluster| async move {
        cluster.get::<BookAt>("book").await.status.is_some_and(|status| status.phase == Phase::Done)
    };
    cluster.eventually(is_done).await;
    // One name in both: the second finds the first one's pod, and leaves it alone.
    book.metadata.name = Some("study".to_owned());
    cluster.create(&book).await;
    cluster.advance(Duration::from_secs(60)).await;
    let book = cluster.get::<BookAt>("study").await.status.expect("a status");
    assert_eq!(book.phase, Phase::Pending);
    assert!(kubewright::conditions::is_true(&book.conditions, "Conflict"));
}

/// AT-22, Beyond 4: whatever happens to the operator, a command runs once and is told of.
#[kubewright::test]
async fn a_restart_at_any_moment_runs_nothing_twice(cluster: Cluster) {
    let operator = cluster.run(operator).await;
    for round in 0..20_u64 {
        cluster.create(&at(&format!("at-{round}"), json!({"for": "2s"}))).await;
        tokio::time::sleep(Duration::from_millis(round * 7)).await;
        operator.crash().await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        operator.restart().await;
    }
    cluster.advance(Duration::from_secs(60)).await;
    let started = notes(&cluster, "Scheduled").await;
    for round in 0..20 {
        let name = format!("at-{round}");
        assert_eq!(phase(&cluster, &name).await, Phase::Done, "{name}");
        let told = started.iter().filter(|note| note.contains(&format!("/{name}-pod "))).count();
        assert_eq!(told, 1, "{name} was scheduled {told} times");
    }
}

/// Beyond 4.
#[kubewright::test]
async fn two_replicas_run_each_command_once(cluster: Cluster) {
    cluster.run(operator).replicas(2).await;
    for name in ["a", "b", "c"] {
        cluster.create(&at(name, json!({}))).await;
    }
    cluster.advance(Duration::from_secs(60)).await;
    assert_eq!(notes(&cluster, "Started").await.len(), 3);
    let leases: Api<Lease> = Api::namespaced(cluster.client(), "at-system");
    assert!(leases.get("at").await.is_ok_and(|lease| lease.spec.is_some()));
}

/// Beyond 2.
#[kubewright::test]
async fn an_operator_that_was_away_too_long_says_missed(cluster: Cluster) {
    let operator = cluster.run(operator).await;
    let due = (cluster.world().clock.now() + Duration::from_secs(60)).strftime("%FT%TZ").to_string();
    cluster.create(&at("strict", json!({"schedule": due, "startingDeadlineSeconds": 30}))).await;
    cluster.create(&at("patient", json!({"schedule": due}))).await;
    cluster.create(&at("skipped", json!({"schedule": "2019-01-01T00:00:00Z", "ifPast": "Skip"}))).await;
    cluster.settle().await;
    operator.stop().await;
    cluster.advance(Duration::from_secs(600)).await;
    operator.restart().await;
    cluster.settle().await;
    assert_eq!(phase(&cluster, "strict").await, Phase::Missed);
    assert_eq!(condition(&cluster, "strict", "Succeeded").await, ("False".into(), "Missed".into()));
    assert_eq!(notes(&cluster, "Missed").await.len(), 1);
    assert_eq!(phase(&cluster, "skipped").await, Phase::Missed);
    done(&cluster, "patient").await;
}

/// Beyond 6: `suspend`, edits, `ttlSecondsAfterFinished`, and what is refused once the command was started.
#[kubewright::test]
async fn life_before_and_after(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&at("held", json!({"suspend": true, "ttlSecondsAfterFinished": 60}))).await;
    cluster.advance(Duration::from_secs(600)).await;
    assert_eq!(condition(&cluster, "held", "Succeeded").await, ("Unknown".into(), "Suspended".into()));
    let later = (cluster.world().clock.now() + Duration::from_secs(100)).strftime("%FT%TZ").to_string();
    cluster.patch::<At>("held", json!({"spec": {"suspend": false, "schedule": later}})).await;
    cluster.advance(Duration::from_secs(99)).await;
    assert_eq!(pods(&cluster).await, [""; 0], "re-armed");
    done(&cluster, "held").await;
    let ats: Api<At> = Api::namespaced(cluster.client(), "default");
    for change in
        [json!({"schedule": "2030-01-01T00:00:00Z"}), json!({"command": "false"}), json!({"args": ["a"]})]
    {
        let error = ats.patch("held", &PatchParams::default(), &Patch::Merge(json!({"spec": change}))).await;
        let error = error.expect_err("it was started").to_string();
        assert!(error.contains("the command was started already"), "{error}");
    }
    cluster.patch::<At>("held", json!({"metadata": {"labels": {"a": "b"}}})).await;
    cluster.advance(Duration::from_secs(70)).await;
    assert!(!cluster.exists::<At>("held").await);
    assert_eq!(pods(&cluster).await, [""; 0]);
}

/// A name that is used again gets a pod of its own, also when the operator was away while the first At went.
#[kubewright::test]
async fn an_at_of_the_same_name_runs_too(cluster: Cluster) {
    let operator = cluster.run(operator).await;
    cluster.create(&at("example-at", json!({"for": "1h"}))).await;
    cluster.advance(Duration::from_secs(5)).await;
    let first = cluster.get::<Pod>("example-at-pod").await.uid();
    operator.crash().await;
    cluster.delete::<At>("example-at").await;
    cluster.advance(Duration::from_secs(5)).await;
    cluster.create(&at("example-at", json!({}))).await;
    operator.restart().await;
    done(&cluster, "example-at").await;
    assert_ne!(cluster.get::<Pod>("example-at-pod").await.uid(), first);
}

/// An idle hour brings no writes.
#[kubewright::test]
async fn nothing_is_written_when_nothing_changes(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&at("done", json!({}))).await;
    cluster.create(&at("later", json!({"schedule": "2030-01-01T00:00:00Z"}))).await;
    done(&cluster, "done").await;
    cluster.settle().await;
    let versions = async || -> BTreeMap<String, Option<String>> {
        let ats = cluster.list::<At>().await;
        ats.iter().map(|at| (at.name_any(), at.resource_version())).collect()
    };
    let before = versions().await;
    cluster.advance(Duration::from_secs(3600)).await;
    assert_eq!(versions().await, before);
}

/// AT-22, Beyond 4: conflicts, lost answers, dropped watches, evictions, crashes between two writes.
#[kubewright::test(seeds = 200, faults)]
async fn at_22_whatever_goes_wrong_a_command_is_started_once_and_told_of(cluster: Cluster) {
    // What may have run once is not run again: it is lost.
    cluster.may_depend_on_history();
    cluster.run(operator).await;
    let soon = (cluster.world().clock.now() + Duration::from_secs(20)).strftime("%FT%TZ").to_string();
    cluster.create(&at("past", json!({"for": "2s"}))).await;
    cluster.create(&at("soon", json!({"schedule": soon}))).await;
    cluster.create(&at("fails", json!({"exit": "3"}))).await;
    for (name, code) in [("past", 0), ("soon", 0), ("fails", 3)] {
        let done = cluster.run_until(lab::is_done(name), Duration::from_secs(3600)).await;
        let made = cluster.history::<Pod>(&format!("{name}-pod")).writes.into_iter();
        assert_eq!(made.filter(|write| write.verb == "create").count(), 1, "{name}");
        let is_lost = condition(&cluster, name, "Succeeded").await.1 == "PodLost";
        assert!(is_lost || done.status.is_some_and(|status| status.exit_code == Some(code)), "{name}");
    }
}
