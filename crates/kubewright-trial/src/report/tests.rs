//! What a report says, in each form.

use super::Report;
use crate::{
    finding::{Check, Finding, Findings, Severity},
    plan::{Disturbance, Plan, Step},
    state::Difference,
    story::ObjectId,
};

fn report(known: &[String]) -> Report {
    let difference = Difference {
        id: ObjectId::new("/configmaps", "a/<b>"),
        field: "/data/x".to_owned(),
        expected: Some("\"1|2\"".to_owned()),
        reached: None,
    };
    let finding = Finding {
        check: Check::State,
        subject: "configmaps /data/x missing".to_owned(),
        message: "configmaps a/<b>: /data/x is not there".to_owned(),
        differences: vec![difference],
        timeline: vec!["1.0 program created <script>\u{1b}".to_owned()],
        steps: None,
    };
    let note = Finding {
        check: Check::FieldDrift,
        differences: Vec::new(),
        message: "a field stays changed".to_owned(),
        ..finding.clone()
    };
    let plan = Plan::new("kill/create/1", [Step::create().under(Disturbance::Kill(1)), Step::delete()]);
    let simple = Plan::new("touch", [Step::create()]);
    let mut findings = Findings::default();
    findings.add(&plan, Some("trial/kill.kwrec"), &finding, (2, 2));
    findings.add(&simple, None, &finding, (1, 2));
    findings.add(&plan, Some("trial/note.kwrec"), &note, (2, 2));
    Report {
        operator: "./bin/manager".to_owned(),
        command: "kubewright trial --manifests config -- ./bin/manager".to_owned(),
        runs: 10,
        refused: 1,
        tried: ["undisturbed/1", "touch", "kill/create/1", "kill/create/2", "fault/error/0"]
            .map(str::to_owned)
            .to_vec(),
        left: vec!["fault/error/1".to_owned()],
        seconds: 12.0,
        cpu_seconds: 5.0,
        findings: findings.folded(known),
        volatile: vec!["secrets a/b /data/password".to_owned()],
        warnings: Vec::new(),
    }
}

#[test]
fn alike_findings_are_one_with_the_simplest_plan_and_the_names_of_all() {
    let report = report(&[]);
    let first = &report.findings[0];
    assert_eq!((first.severity, &*first.plan.name, first.seen), (Severity::Error, "touch", (1, 2)));
    assert_eq!(first.plans, ["kill/create/1", "touch"]);
    assert_eq!(report.findings.len(), 2);
}

#[test]
fn what_the_baseline_knows_does_not_count_and_is_told_last() {
    let report = report(&["state configmaps /data/x missing".to_owned()]);
    assert_eq!(report.worst(), Some(Severity::Note));
    assert!(report.findings.last().expect("two").is_known);
    assert!(!report.junit().contains("<failure"));
}

#[test]
fn markdown_tells_the_plan_the_command_and_both_states() {
    let text = report(&[]).markdown();
    for wanted in [
        "1 errors, 0 warnings, 1 notes in 10 runs (12 s; 0.50 CPU-seconds a run); 1 were refused by the API.",
        "kubewright trial --plan 'touch' --manifests config -- ./bin/manager",
        "    kubewright view trial/note.kwrec\n    kubewright up --from trial/note.kwrec\n",
        "| configmaps a/<b> | /data/x | `\"1\\|2\"` | nothing |",
        "| `state` | the state it ends in is a function of what was asked for | **1 found** |",
        "| **I: basic install** | tried: 1 undisturbed | **held** |",
        "| **II: seamless upgrades** | tried: 1 touch | **held** |",
        "| **III: full lifecycle** | tried: 1 fault, 2 kill | **not held** |",
        "The time was over before 1 plans: fault/error/1",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}

#[test]
fn what_comes_from_a_cluster_is_text_in_html_and_xml() {
    let report = report(&[]);
    let (html, xml) = (report.html(), report.junit());
    assert!(html.contains("&lt;script&gt;") && !html.contains("<script"), "{html}");
    assert!(
        html.contains("<pre>kubewright view trial/note.kwrec\nkubewright up --from trial/note.kwrec</pre>"),
        "{html}"
    );
    assert!(xml.contains("created &lt;script&gt;\u{fffd}") && !xml.contains('\u{1b}'), "{xml}");
    assert!(xml.contains("tests=\"22\" failures=\"1\""), "{xml}");
}

#[test]
fn sarif_has_a_rule_for_each_check_and_a_level_for_each_finding() {
    let sarif = report(&[]).sarif("config/");
    let run = &sarif["runs"][0];
    assert_eq!(run["tool"]["driver"]["rules"].as_array().map(Vec::len), Some(Check::ALL.len()));
    assert_eq!((&run["results"][0]["level"], &run["results"][1]["level"]), (&"error".into(), &"note".into()));
}

#[test]
fn what_costs_requests_alone_is_a_warning_by_which_no_trial_fails() {
    let mut report = report(&[]);
    report.findings.truncate(1);
    report.findings[0].finding.check = Check::NoOp;
    report.findings[0].severity = Check::NoOp.severity();
    assert_eq!((report.findings[0].severity, report.worst()), (Severity::Warning, None));
    assert!(report.cards().iter().all(|card| card.held != Some(false)));
    assert!(!report.junit().contains("<failure"));
    let text = report.markdown();
    for wanted in ["0 errors, 1 warnings", "| **warning: 1 found** |", "## warning: "] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}

#[test]
fn json_has_the_scorecard() {
    let json: serde_json::Value = serde_json::from_str(&report(&[]).json().expect("JSON")).expect("JSON");
    let first = &json["scorecard"][0];
    assert_eq!((&first["level"], &first["held"]), (&"I: basic install".into(), &true.into()));
}
