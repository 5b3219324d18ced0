//! `kubewright trial` on an operator in Go whose bugs can be switched on (`tests/envtest-go/press`): each is found by the plan that is
//! made for it, and without a bug nothing is.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::join_all;
use kubewright_recording::{Reader, Record};
use kubewright_tests::{Up, needed};
use serde_json::Value;

/// How many trials go on at once; each has runs of its own side by side.
const AT_ONCE: usize = 13;

/// A bug, a plan that shows it, and the check that tells of it.
const BUGS: [(&str, &str, &str); 26] = [
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
    ("one-field-at-a-time", "together/1", "state"),
    ("compares-specs", "unseen/spec.text", "observed-generation"),
    ("confirmed-deletes", "unseen/deleted/configmaps", "drift"),
    ("gives-up-on-unready", "node/not-ready", "state"),
    ("gives-up-on-refusal", "webhooks/create", "deletion"),
    ("reports-the-same", "touch", "no-op"),
];

/// What a plan needs: how its name begins, a folder of the press with more manifests, the samples, and what the press is told.
const NEEDS: [(&str, &str, &str, &str); 2] = [
    ("node/", "printers", "printers/samples", "--printers"),
    ("webhooks/", "webhook", "config/samples", "--webhook-port={webhook-port}"),
];

/// The report of a trial of the press, and what the command ended with.
async fn tried(bug: &str, plans: &[&str]) -> (Value, i32) {
    run(bug, plans, None, &[]).await
}

/// The same, with a variable of the program.
async fn tried_with(bug: &str, plans: &[&str], variable: Option<(&str, &str)>) -> (Value, i32) {
    run(bug, plans, variable, &[]).await
}

/// The press without a bug, with more options.
async fn tried_in(options: &[&str], plans: &[&str]) -> (Value, i32) {
    run("", plans, None, options).await
}

async fn run(bug: &str, plans: &[&str], variable: Option<(&str, &str)>, options: &[&str]) -> (Value, i32) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("kubewright-trial-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let ran = run_in(&folder, bug, plans, variable, options).await;
    let _ = std::fs::remove_dir_all(&folder);
    ran
}

/// The same, with its report and its recordings in a folder.
async fn run_in(
    folder: &Path,
    bug: &str,
    plans: &[&str],
    variable: Option<(&str, &str)>,
    options: &[&str],
) -> (Value, i32) {
    let press = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("envtest-go/press");
    let needs = NEEDS.into_iter().find(|(start, ..)| plans.iter().any(|plan| plan.starts_with(start)));
    let mut command = Command::new(needed("KUBEWRIGHT"));
    command.arg("trial").arg("--manifests").arg(press.join("config"));
    if let Some((_, manifests, ..)) = needs {
        command.arg("--manifests").arg(press.join(manifests));
    }
    command.arg("--sample").arg(press.join(needs.map_or("config/samples", |(_, _, samples, _)| samples)));
    command.args(["--patience", "8", "--jobs", "2", "--report"]).arg(folder.join("report.json"));
    command.arg("--recordings").arg(folder);
    for plan in plans {
        command.args(["--plan", plan]);
    }
    command.args(options);
    command.arg("--").arg(needed("PRESS")).args(needs.map(|(.., told)| told));
    if !bug.is_empty() {
        command.args(["--bug", bug]);
    }
    command.envs(variable);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let output = tokio::process::Command::from(command).output().await.expect("the command runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let report = std::fs::read_to_string(folder.join("report.json"));
    let report = report.unwrap_or_else(|error| panic!("{bug}: {error}: {said}"));
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
        "together/1",
        "unseen",
    ];
    let all: [&[&str]; 3] = [&plans, &["node/"], &["webhooks/"]];
    let reports = join_all(all.map(async |plans| tried("", plans).await)).await;
    for (report, code) in &reports {
        assert_eq!((checks(report), *code), (Vec::new(), 0), "{report:#}");
    }
    let runs = |place: usize| reports[place].0["runs"].as_u64().unwrap_or_default();
    assert!(runs(0) > 20 && runs(1) == 6 && runs(2) == 6, "{reports:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Go and the built command: cargo xtask test"]
async fn what_is_found_is_told_with_its_plan_its_story_and_how_to_see_it_again() {
    let folder = std::env::temp_dir().join(format!("kubewright-trial-{}-found", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let (report, code) = run_in(&folder, "late-finalizer", &["kill/create/1/delete"], None, &[]).await;
    let finding = &report["findings"][0];
    let file = finding["recording"].as_str().unwrap_or_else(|| panic!("no recording: {finding:#}"));
    let records = records(Path::new(file));
    drop(Up::start("trial-recording", &["--from", file]));
    let _ = std::fs::remove_dir_all(&folder);
    assert_eq!(code, 1);
    assert_eq!(finding["plan"]["name"], "kill/create/1/delete");
    let again = report["command"].as_str().unwrap_or_default();
    assert!(
        again.starts_with("kubewright trial --manifests") && again.ends_with("--bug late-finalizer"),
        "{again}"
    );
    let timeline = finding["finding"]["timeline"].to_string();
    assert!(timeline.contains("program created configmaps ledger/default.hello"), "{timeline}");
    assert!(file.ends_with("kill_create_1_delete.kwrec"), "{finding:#}");
    let is_of_press =
        |one: &Record| matches!(one, Record::Request(one) if one.by.user == PRESS && one.verb == "create");
    assert!(records.iter().any(is_of_press), "no request of the press");
    let is_fault = |one: &Record| matches!(one, Record::Mark(mark) if mark.what == "fault");
    assert!(records.iter().filter(|one| is_fault(one)).count() >= 2, "a fault that came and went");
}

/// As whom the press acts.
const PRESS: &str = "system:serviceaccount:press-system:press";

/// What is in a recording.
fn records(file: &Path) -> Vec<Record> {
    let mut reader = Reader::open(File::open(file).expect("the recording")).expect("a recording");
    std::iter::from_fn(|| reader.next_record().expect("a record")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Go and the built command: cargo xtask test"]
async fn an_old_state_misleads_a_program_that_deletes_by_name_and_none_that_looks_whose_it_is() {
    // As client-go before 1.35: its informers begin with a list that takes any state.
    let lists = Some(("KUBE_FEATURE_WatchListClient", "false"));
    let trials = ["deletes-by-name", ""].map(|bug| tried_with(bug, &["past"], lists));
    let [(misled, _), (careful, _)] = &join_all(trials).await[..] else { panic!("two trials") };
    assert!(checks(misled).contains(&"old-state"), "{misled:#}");
    assert_eq!(checks(careful), Vec::<&str>::new(), "{careful:#}");
}

#[test]
#[ignore = "needs Go and the built command: cargo xtask test"]
fn a_signal_ends_a_trial_and_all_that_it_has_started() {
    let folder = std::env::temp_dir().join(format!("kubewright-trial-{}-signal", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let config = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("envtest-go/press/config");
    let mut command = Command::new(needed("KUBEWRIGHT"));
    command.arg("trial").arg("--manifests").arg(&config).arg("--sample").arg(config.join("samples"));
    command.arg("--recordings").arg(&folder).args(["--plan", "kill", "--", "sh", "-c"]);
    // The shell stays, and what it starts is in its group.
    let shell = format!("echo $$ > '{0}'/$$.pid; '{1}'; true", folder.display(), needed("PRESS").display());
    let mut trial = command.arg(shell).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut said = BufReader::new(trial.stderr.take().expect("its errors")).lines().map_while(Result::ok);
    assert!(said.any(|line| line.ends_with("side by side")), "it never begins");
    let asked = Command::new("kill").args(["-TERM", &trial.id().to_string()]).status();
    assert!(asked.is_ok_and(|asked| asked.success()));
    assert!(said.any(|line| line.starts_with("interrupted: ")), "it tells nothing");
    assert!(trial.wait().is_ok_and(|ended| ended.code().is_some()), "it ends by itself");
    let started: Vec<String> = std::fs::read_dir(&folder)
        .expect("the folder")
        .filter_map(|file| Some(file.ok()?.path().file_stem()?.to_string_lossy().into_owned()))
        .filter(|name| name.parse::<u32>().is_ok())
        .collect();
    assert!(started.len() >= 3, "{started:?}");
    let lives = |process: &&String| {
        // A process that has ended, and that nobody has asked for, is a zombie.
        std::fs::read_to_string(Path::new("/proc").join(process).join("stat"))
            .is_ok_and(|stat| !stat.contains(") Z"))
    };
    let left: Vec<&String> = started.iter().filter(lives).collect();
    assert!(left.is_empty(), "still there: {left:?}");
    let _ = std::fs::remove_dir_all(&folder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Go and the built command: cargo xtask test"]
async fn another_operator_runs_beside_the_one_that_is_tried_in_each_run() {
    let folder = std::env::temp_dir().join(format!("kubewright-trial-{}-beside", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    // It finds its cluster as the program does; and it ends early, of which a warning tells.
    let seen =
        format!("press-system/press=grep -q token \"$KUBECONFIG\" && echo > '{}'/seen.$$", folder.display());
    let (report, code) = tried_in(&["--also", &seen], &["undisturbed"]).await;
    let count = std::fs::read_dir(&folder).expect("the folder").count();
    let _ = std::fs::remove_dir_all(&folder);
    assert_eq!((checks(&report), code, count), (Vec::new(), 0, 3), "{report:#}");
    assert!(
        report["warnings"].to_string().contains("beside it as press-system/press has ended"),
        "{report:#}"
    );
}
