//! What came out of the tests, in a table that is kept: name, result, date.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::{Context, Result};
use serde_json::Value;

/// Where it is kept.
pub(super) const FILE: &str = "xtask/src/conformance/results.tsv";

/// What came out of one test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) name: String,
    pub(super) passed: bool,
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
            let passed = match columns.next()? {
                "passed" => true,
                "failed" => false,
                _ => return None,
            };
            let (date, name) = (columns.next()?.to_owned(), columns.next()?.to_owned());
            Some((name.clone(), Outcome { name, passed, date }))
        };
        let lines = text.lines().filter(|line| !line.is_empty());
        let read = lines.map(|line| outcome(line).with_context(|| format!("no line of {FILE}: {line}")));
        Ok(Self(read.collect::<Result<_>>()?))
    }

    pub(super) fn render(&self) -> String {
        self.0.values().fold(String::new(), |mut text, Outcome { name, passed, date }| {
            // Writing to a String does not fail.
            let _ = writeln!(text, "{}\t{date}\t{name}", if *passed { "passed" } else { "failed" });
            text
        })
    }

    pub(super) fn of(&self, name: &str) -> Option<&Outcome> {
        self.0.get(name)
    }

    pub(super) fn has_passed(&self, name: &str) -> bool {
        self.of(name).is_some_and(|outcome| outcome.passed)
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
            let passed = match spec["State"].as_str().unwrap_or_default() {
                "passed" => true,
                "skipped" | "pending" => continue,
                _ => false,
            };
            let date = spec["StartTime"].as_str().unwrap_or_default().chars().take(10).collect();
            outcomes.push(Outcome { name: name(spec), passed, date });
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
        let failed =
            Outcome { name: "[sig-a] Things should be".into(), passed: false, date: "2026-11-28".into() };
        assert_eq!(outcomes, [failed]);
        assert!(of_report(&json!({})).is_err());
    }

    #[test]
    fn what_is_found_now_goes_before_what_was_found_and_leaves_the_rest() {
        let before = Results::parse("failed\t2026-11-01\ta\npassed\t2026-11-01\tb\n").expect("a table");
        let again = Outcome { name: "a".into(), passed: true, date: "2026-11-28".into() };
        let all = before.with(vec![again]);
        assert_eq!(all.render(), "passed\t2026-11-28\ta\npassed\t2026-11-01\tb\n");
        assert_eq!(Results::parse(&all.render()).expect("a table"), all);
        assert!(Results::parse("perhaps\t2026-11-28\ta").is_err());
    }
}
