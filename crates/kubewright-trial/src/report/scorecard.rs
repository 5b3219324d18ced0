//! The scorecard: what held and what did not, by the capability levels of Operator SDK
//! (<https://sdk.operatorframework.io/docs/overview/operator-capabilities/>), with what was tried for each.

use std::{collections::BTreeMap, fmt::Write};

use serde::Serialize;

use super::{Report, escaped};
use crate::finding::{Check, Severity};

/// A capability level.
struct Level {
    name: &'static str,
    /// What is looked at for it.
    checks: &'static [Check],
    /// How the names of plans begin that try it.
    plans: &'static [&'static str],
}

/// The levels that a trial can say something of. The upper ones are about metrics, alerts and load, which only show where a workload
/// really runs.
const LEVELS: [Level; 3] = [
    Level {
        name: "I: basic install",
        checks: &[
            Check::Crash,
            Check::Rest,
            Check::FailsAtRest,
            Check::Rights,
            Check::UnusedRights,
            Check::Schema,
            Check::LaxSchema,
            Check::Deletion,
            Check::Leak,
            Check::ObservedGeneration,
            Check::StatusAhead,
            Check::Strangers,
        ],
        plans: &["undisturbed", "fresh", "occupied"],
    },
    Level {
        name: "II: seamless upgrades",
        checks: &[Check::Restart, Check::NoOp, Check::OldState],
        plans: &["restart", "touch", "again", "replica", "past", "change"],
    },
    Level {
        name: "III: full lifecycle",
        checks: &[
            Check::State,
            Check::ExplainedState,
            Check::Drift,
            Check::FieldDrift,
            Check::Additions,
            Check::BackOff,
            Check::HotLoop,
        ],
        plans: &[
            "kill",
            "fail",
            "unanswered",
            "deleted",
            "changed",
            "extended",
            "fault",
            "quota",
            "node",
            "webhooks",
            "together",
            "unseen",
        ],
    },
];

/// What is said of the levels above.
const ABOVE: &str = "IV: deep insights, and V: auto pilot, are not tried: metrics, alerts and load are not seen where pods are simulated";

/// A level with what came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Card {
    /// The level.
    pub level: &'static str,
    /// Whether all of it held that was tried, but for notes; none where nothing was.
    pub held: Option<bool>,
    /// How many plans were tried for it, by kind.
    pub plans: BTreeMap<&'static str, usize>,
    /// How many findings there are, by check.
    pub found: BTreeMap<&'static str, usize>,
}

impl Card {
    fn verdict(&self) -> &'static str {
        match self.held {
            Some(true) => "held",
            Some(false) => "not held",
            None => "not tried",
        }
    }

    /// `12 kill, 3 fault`.
    fn evidence(&self) -> String {
        let counts: Vec<String> = self.plans.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        if counts.is_empty() { "no plan".to_owned() } else { counts.join(", ") }
    }
}

impl Report {
    /// The levels, from the lowest.
    #[must_use]
    pub fn cards(&self) -> Vec<Card> {
        let card = |level: &Level| {
            let mut plans = BTreeMap::new();
            for name in &self.tried {
                let kind = name
                    .split(['/', ' '])
                    .next()
                    .unwrap_or_default()
                    .trim_end_matches(|c: char| c.is_ascii_digit() || c == '-');
                if let Some(kind) = level.plans.iter().find(|known| **known == kind) {
                    *plans.entry(*kind).or_default() += 1;
                }
            }
            let counted = level.checks.iter().map(|check| (check.name(), self.count(*check)));
            let found: BTreeMap<_, _> = counted.filter(|(_, count)| *count > 0).collect();
            // A note is worth knowing, and breaks nothing; nor does what costs requests alone.
            let may_break = |check: &Check| check.severity() > Severity::Note && !check.is_of_cost();
            let is_broken = level.checks.iter().any(|check| may_break(check) && self.count(*check) > 0);
            let held = (!plans.is_empty()).then_some(!is_broken);
            Card { level: level.name, held, plans, found }
        };
        LEVELS.iter().map(card).collect()
    }

    fn count(&self, check: Check) -> usize {
        self.findings.iter().filter(|one| one.finding.check == check).count()
    }

    fn word(&self, check: Check, found: &str, end: &str) -> String {
        match self.count(check) {
            0 => "held".to_owned(),
            count if check.is_of_cost() => format!("{found}{}: {count} found{end}", check.severity().name()),
            count => format!("{found}{count} found{end}"),
        }
    }

    pub(super) fn scorecard_markdown(&self) -> String {
        let mut text =
            "\n## Scorecard\n\n| level or check | what has to hold | |\n|---|---|---|\n".to_owned();
        for (level, card) in LEVELS.iter().zip(self.cards()) {
            let _ = writeln!(
                text,
                "| **{}** | tried: {} | **{}** |",
                level.name,
                card.evidence(),
                card.verdict()
            );
            for check in level.checks {
                let word = self.word(*check, "**", "**");
                let _ = writeln!(text, "| `{}` | {} | {word} |", check.name(), check.promise());
            }
        }
        let _ = writeln!(text, "\n{ABOVE}.");
        text
    }

    pub(super) fn scorecard_html(&self) -> String {
        let mut page =
            "<h2>Scorecard</h2>\n<table><tr><th>level or check</th><th>what has to hold</th><th></th></tr>\n"
                .to_owned();
        for (level, card) in LEVELS.iter().zip(self.cards()) {
            let _ = writeln!(
                page,
                "<tr><th>{}</th><th>tried: {}</th><th>{}</th></tr>",
                level.name,
                escaped(&card.evidence()),
                card.verdict()
            );
            for check in level.checks {
                let (name, promise) = (check.name(), escaped(check.promise()));
                let word = self.word(*check, "<b>", "</b>");
                let _ =
                    writeln!(page, "<tr><td><code>{name}</code></td><td>{promise}</td><td>{word}</td></tr>");
            }
        }
        let _ = writeln!(page, "</table>\n<p>{ABOVE}.</p>");
        page
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_check_is_of_one_level() {
        let all: Vec<Check> = LEVELS.iter().flat_map(|level| level.checks).copied().collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>(), Check::ALL.iter().collect());
        assert_eq!(all.len(), Check::ALL.len());
    }
}
