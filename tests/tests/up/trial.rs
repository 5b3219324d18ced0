//! `kubewright trial` on an operator in Go whose bugs can be switched on (`tests/envtest-go/press`): each is found by the plan that is
//! made for it, and without a bug nothing is.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::join_all;
use kubewright_tests::needed;
use serde_json::Value;

/// How many trials go on at once; each has runs of its own side by side.
const AT_ONCE: usize = 10;

/// A bug, a plan that shows it, and the check that tells of it.
const BUGS: [(&str, &str, &str); 20] = [
    ("missing-owner", "undisturbed", "leak"),
    ("create-unchecked", "undisturbed", "fails-at-rest"),
    ("status-first", "undisturbed", "status-ahead"),
    ("lost-update", "extended/configmaps/default/hello-page", "additions"),
    ("cleanup-once", "deleted/configmaps/ledger/default.hello/before-the-end", "deletion"),
    ("stale-read", "fault/stale-watch/configmaps", "state"),
    ("missed-delete", "deleted/configmaps/default/hello-page", "drift"),
    ("hot-loop", "undisturbed", "rest"),
    ("retry-without-end", "fault/error/configmaps/change", "back-off"),
    ("adopts-strangers", "occupied/configmaps/default/hello-page", "strangers"),
    ("swallowed-error", "fault/error/configmaps/change", "state"),
    ("late-finalizer", "kill/create/1/delete", "leak"),
    ("forgets-on-restart", "restart", "leak"),
    ("writes-the-same", "restart", "no-op"),
    ("forgets-key", "change/no spec.footer", "state"),
    ("forgets-child", "change/spec.languages=[\"de\"]", "state"),
    ("fights-injector", "extended/configmaps/default/hello-page", "additions"),
    ("stale-generation", "change/no spec.footer", "observed-generation"),
    ("missing-right", "undisturbed", "rights"),
    ("panics-on-empty", "change/spec.text=\"\"", "crash"),
];

/// The report of a trial of the press, and what the command ended with.
async fn tried(bug: &str, plans: &[&str]) -> (Value, i32) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("kubewright-trial-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let config = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("envtest-go/press/config");
    let mut command = Command::new(needed("KUBEWRIGHT"));
    command.arg("trial").arg("--manifests").arg(&config).arg("--sample").arg(config.join("samples"));
    command.args(["--patience", "8", "--jobs", "2", "--report"]).arg(folder.join("report.json"));
    command.arg("--recordings").arg(&folder);
    for plan in plans {
        command.args(["--plan", plan]);
    }
    command.arg("--").arg(needed("PRESS"));
    if !bug.is_empty() {
        command.args(["--bug", bug]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let output = tokio::process::Command::from(command).output().await.expect("the command runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let report = std::fs::read_to_string(folder.join("report.json"));
    let report = report.unwrap_or_else(|error| panic!("{bug}: {error}: {said}"));
    let _ = std::fs::remove_dir_all(&folder);
    (serde_json::from_str(&report).expect("a report"), output.status.code().unwrap_or(-1))
}

/// The names of the checks that found something.
fn checks(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().map_or(&[][..], Vec::as_slice);
    findings.iter().filter_map(|one| one["finding"]["check"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Go and the built command: cargo xtask test"]
async fn each_bug_of_an_operator_in_go_is_found_by_the_plan_that_is_made_for_it() {
    let mut missed = Vec::new();
    for some in BUGS.chunks(AT_ONCE) {
        let reports = join_all(some.iter().map(async |(bug, plan, _)| tried(bug, &[plan]).await)).await;
        for ((bug, _, check), (report, _)) in some.iter().zip(reports) {
            if !checks(&report).contains(check) {
                missed.push(format!("{bug}: {check} is not among {:?}", checks(&report)));
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Go and the built command: cargo xtask test"]
async fn an_operator_without_a_bug_gives_no_finding_and_the_command_ends_with_0() {
    let plans = [
        "restart",
        "kill/create/2",
        "deleted",
        "extended",
        "occupied",
        "change/no",
        "fault/error",
        "fault/stale",
    ];
    let (report, code) = tried("", &plans).await;
    assert_eq!((checks(&report), code), (Vec::new(), 0), "{report:#}");
    assert!(report["runs"].as_u64().is_some_and(|runs| runs > 20), "{report:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Go and the built command: cargo xtask test"]
async fn what_is_found_is_told_with_its_plan_its_story_and_how_to_see_it_again() {
    let (report, code) = tried("late-finalizer", &["kill/create/1/delete"]).await;
    assert_eq!(code, 1);
    let finding = &report["findings"][0];
    assert_eq!(finding["plan"]["name"], "kill/create/1/delete");
    let again = report["command"].as_str().unwrap_or_default();
    assert!(
        again.starts_with("kubewright trial --manifests") && again.ends_with("--bug late-finalizer"),
        "{again}"
    );
    let timeline = finding["finding"]["timeline"].to_string();
    assert!(timeline.contains("program created configmaps ledger/default.hello"), "{timeline}");
    assert!(finding["recording"].as_str().is_some_and(|file| file.ends_with(".jsonl")), "{finding:#}");
}
