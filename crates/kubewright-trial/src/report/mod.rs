//! Tells what a trial has found.

use serde::Serialize;

use crate::finding::{Folded, Severity};

/// Report of a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The operator, as it was called.
    pub operator: String,
    /// The command that runs a plan of it again, without `--plan NAME`.
    pub command: String,
    /// How many runs there were.
    pub runs: usize,
    /// How many of them were refused: the API server did not take what the plan asks for.
    pub refused: usize,
    /// The names of the plans that were tried.
    pub tried: Vec<String>,
    /// Plans for which there was no time.
    pub left: Vec<String>,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Seconds of CPU that the programs and the control planes took.
    pub cpu_seconds: f64,
    /// What was found, the worst first.
    pub findings: Vec<Folded>,
    /// Fields that differ between runs in which nothing went wrong; they are not compared.
    pub volatile: Vec<String>,
    /// What was left out, in words.
    pub warnings: Vec<String>,
}

impl Report {
    /// The worst of what is not known yet, and by which a trial may fail.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        let counted = self.findings.iter().filter(|one| !one.is_known && !one.finding.check.is_of_cost());
        counted.map(|one| one.severity).max()
    }

    /// The command that runs a finding's plan again.
    #[must_use]
    pub fn again(&self, finding: &Folded) -> String {
        self.command.replacen(" trial", &format!(" trial --plan '{}'", finding.plan.name), 1)
    }

    /// As JSON, with the scorecard.
    ///
    /// # Errors
    /// Never for what is in a report.
    pub fn json(&self) -> serde_json::Result<String> {
        let mut report = serde_json::to_value(self)?;
        report["scorecard"] = serde_json::to_value(self.cards())?;
        serde_json::to_string_pretty(&report)
    }
}

pub use scorecard::Card;

/// Text in HTML and in XML 1.0, without the control characters that these cannot hold.
fn escaped(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => all += "&amp;",
            '<' => all += "&lt;",
            '>' => all += "&gt;",
            '"' => all += "&quot;",
            '\'' => all += "&#39;",
            '\n' | '\t' => all.push(letter),
            control if control.is_control() => all.push('\u{fffd}'),
            other => all.push(other),
        }
    }
    all
}

mod html;
mod junit;
mod markdown;
mod sarif;
mod scorecard;
#[cfg(test)]
mod tests;
