//! The report as Markdown: for a terminal, a pull request, or a file.

use std::fmt::Write;

use super::Report;
use crate::finding::Folded;

/// The most differences of one finding that are told.
const DIFFERENCES: usize = 12;

impl Report {
    /// As Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = format!("# Trial of {}\n\n{}\n", self.operator, self.summary());
        for warning in &self.warnings {
            let _ = writeln!(text, "\n> {warning}");
        }
        for finding in &self.findings {
            text += &self.of(finding);
        }
        text += &self.scorecard_markdown();
        if !self.volatile.is_empty() {
            text += "\n## Not compared\n\nThese fields differ between runs in which nothing went wrong:\n\n";
            for one in &self.volatile {
                let _ = writeln!(text, "- {one}");
            }
        }
        if !self.left.is_empty() {
            let _ = writeln!(
                text,
                "\n## Not tried\n\nThe time was over before {} plans: {}",
                self.left.len(),
                self.left.join(", ")
            );
        }
        text
    }

    /// One line of what was done and found.
    #[must_use]
    pub fn summary(&self) -> String {
        let new = self.findings.iter().filter(|one| !one.is_known);
        let mut counts = [0_usize; 3];
        new.for_each(|one| counts[one.severity as usize] += 1);
        let [notes, warnings, errors] = counts;
        let per_run = self.cpu_seconds / f64::from(u32::try_from(self.runs.max(1)).unwrap_or(u32::MAX));
        let mut text = format!(
            "{errors} errors, {warnings} warnings, {notes} notes in {} runs ({:.0} s; {per_run:.2} CPU-seconds a run)",
            self.runs, self.seconds,
        );
        if self.refused > 0 {
            let _ = write!(text, "; {} were refused by the API", self.refused);
        }
        text + "."
    }

    fn of(&self, folded: &Folded) -> String {
        let Folded { finding, plan, severity, seen, .. } = folded;
        let known = if folded.is_known { " (in the baseline)" } else { "" };
        let mut text = format!("\n## {}: {}{known}\n\n", severity.name(), finding.message);
        let _ = writeln!(text, "What has to hold: {} (`{}`).\n", finding.check.promise(), folded.key());
        if !plan.steps.is_empty() {
            let _ = writeln!(text, "Plan `{}`, seen in {} of {} runs:\n", plan.name, seen.0, seen.1);
            for (number, step) in plan.steps.iter().enumerate() {
                let _ = writeln!(text, "{}. {step}", number + 1);
            }
            let _ = writeln!(text, "\n    {}", self.again(folded));
        }
        if let Some(recording) = &folded.recording {
            let _ = writeln!(text, "    kubewright view {recording}\n    kubewright up --from {recording}");
        }
        if !finding.differences.is_empty() {
            text += "\n| object | field | expected | reached |\n|---|---|---|---|\n";
            for one in finding.differences.iter().take(DIFFERENCES) {
                let cell = |value: Option<&String>| value.map_or("nothing".to_owned(), |value| cell(value));
                let (expected, reached) = (cell(one.expected.as_ref()), cell(one.reached.as_ref()));
                let _ = writeln!(text, "| {} | {} | {expected} | {reached} |", one.id, one.field);
            }
        }
        if !finding.timeline.is_empty() {
            text += "\n```text\n";
            for line in &finding.timeline {
                let _ = writeln!(text, "{}", line.replace("```", "'''"));
            }
            text += "```\n";
        }
        if folded.plans.len() > 1 {
            let _ = writeln!(text, "\nShown by {} plans: {}", folded.plans.len(), folded.plans.join(", "));
        }
        text
    }
}

/// A value in a cell of a table.
fn cell(value: &str) -> String {
    let end = value.floor_char_boundary(120);
    let more = if end < value.len() { "..." } else { "" };
    format!("`{}{more}`", value[..end].replace('|', "\\|").replace('`', "'").replace('\n', " "))
}
