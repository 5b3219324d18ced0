//! What came out of the tests, in a table that is kept: name, result, date.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::{Context, Result};
use serde_json::Value;

/// Where it is kept.
pub(super) const FILE: &str = "xtask/src/conformance/results.tsv";

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    Failed,
    /// The time of the suite was over, or somebody stopped it: nothing is known of the test.
    Interrupted,
}

impl Verdict {
    pub(super) const ALL: [Self; 3] = [Self::Passed, Self::Failed, Self::Interrupted];

    /// As the table has it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }

    /// What ginkgo says of a test that ran (`SpecState` in `types/types.go`); none for one that did not.
    fn of_state(state: &str) -> Option<Self> {
        match state {
            "passed" => Some(Self::Passed),
            "interrupted" | "aborted" => Some(Self::Interrupted),
            "skipped" | "pending" => None,
            _ => Some(Self::Failed),
        }
    }
}

/// What came out of one test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) name: String,
    pub(super) verdict: Verdict,
    /// The day when it ran.
    pub(super) date: String,
}

/// The last outcome of each test.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Results(BTreeMap<String, Outcome>);

impl Results {
    /// Reads the table.
    ///
    /// # Errors
    /// When a line is none of it.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let outcome = |line: &str| {
            let mut columns = line.split('\t');
            let word = columns.next()?;
            let verdict = Verdict::ALL.into_iter().find(|verdict| verdict.word() == word)?;
            let (date, name) = (columns.next()?.to_owned(), columns.next()?.to_owned());
            Some((name.clone(), Outcome { name, verdict, date }))
        };
        let lines = text.lines().filter(|line| !line.is_empty());
        let read = lines.map(|line| outcome(line).with_context(|| format!("no line of {FILE}: {line}")));
        Ok(Self(read.collect::<Result<_>>()?))
    }

    pub(super) fn render(&self) -> String {
        self.0.values().fold(String::new(), |mut text, Outcome { name, verdict, date }| {
            // Writing to a String does not fail.
            let _ = writeln!(text, "{}\t{date}\t{name}", verdict.word());
            text
        })
    }

    pub(super) fn of(&self, name: &str) -> Option<&Outcome> {
        self.0.get(name)
    }

    pub(super) fn has_passed(&self, name: &str) -> bool {
        self.of(name).is_some_and(|outcome| outcome.verdict == Verdict::Passed)
    }

    /// These, with what was found now in place of what was found before.
    pub(super) fn with(mut self, found: Vec<Outcome>) -> Self {
        self.0.extend(found.into_iter().map(|outcome| (outcome.name.clone(), outcome)));
        self
    }
}

/// The outcomes in a report of ginkgo (`--json-report`) of tests that ran.
///
/// # Errors
/// When it is no such report.
pub(super) fn of_report(report: &Value) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    for suite in report.as_array().context("a report is a list of suites")? {
        let specs = suite["SpecReports"].as_array().context("a suite has reports of its tests")?;
        for spec in specs.iter().filter(|spec| spec["LeafNodeType"] == "It") {
            let Some(verdict) = Verdict::of_state(spec["State"].as_str().unwrap_or_default()) else {
                continue;
            };
            let date = spec["StartTime"].as_str().unwrap_or_default().chars().take(10).collect();
            outcomes.push(Outcome { name: name(spec), verdict, date });
        }
    }
    Ok(outcomes)
}

/// The name of a test: the texts of what it is in, and its own.
fn name(spec: &Value) -> String {
    let outer = spec["ContainerHierarchyTexts"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let all: Vec<_> = outer.chain(spec["LeafNodeText"].as_str()).filter(|text| !text.is_empty()).collect();
    all.join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_has_the_outcomes_of_the_tests_that_ran() {
        let spec = |state: &str, kind: &str| {
            json!({"ContainerHierarchyTexts": ["[sig-a]", "Things"], "LeafNodeText": "should be", "State": state,
                "LeafNodeType": kind, "StartTime": "2026-11-28T06:52:33Z"})
        };
        let report = json!([{"SpecReports": [spec("failed", "It"), spec("skipped", "It"), spec("passed", "BeforeSuite")]}]);
        let outcomes = of_report(&report).expect("a report");
        let outcome = |verdict: Verdict| Outcome {
            name: "[sig-a] Things should be".into(),
            verdict,
            date: "2026-11-28".into(),
        };
        assert_eq!(outcomes, [outcome(Verdict::Failed)]);
        let cut = of_report(&json!([{"SpecReports": [spec("interrupted", "It"), spec("aborted", "It")]}]));
        let interrupted = outcome(Verdict::Interrupted);
        assert_eq!(cut.expect("a report"), [interrupted.clone(), interrupted], "they have not failed");
        assert!(of_report(&json!({})).is_err());
    }

    #[test]
    fn what_is_found_now_goes_before_what_was_found_and_leaves_the_rest() {
        let before = Results::parse("failed\t2026-11-01\ta\npassed\t2026-11-01\tb\n").expect("a table");
        let again = Outcome { name: "a".into(), verdict: Verdict::Passed, date: "2026-11-28".into() };
        let all = before.with(vec![again]);
        assert_eq!(all.render(), "passed\t2026-11-28\ta\npassed\t2026-11-01\tb\n");
        assert_eq!(Results::parse(&all.render()).expect("a table"), all);
        assert!(Results::parse("perhaps\t2026-11-28\ta").is_err());
    }
}
