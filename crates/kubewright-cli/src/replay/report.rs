//! What a replay came to, for people and for programs. Pure.

use kubewright_trial::story::ObjectId;
use serde_json::{Value, json};

use super::verdict::{Compared, Verdict};
use crate::{
    printer::{BOLD, painted},
    render::compare::patch,
};

/// When something was compared: the last write of the recording before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) revision: u64,
    pub(super) time: String,
}

/// What a replay came to.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) recording: String,
    pub(super) operator: String,
    /// How many writes the operator made then, and how many the program now.
    pub(super) writes: (usize, usize),
    /// How many writes of others were played.
    pub(super) played: usize,
    pub(super) compared: Vec<(Moment, Compared)>,
    /// What the program was refused for want of rights.
    pub(super) refused: Vec<String>,
    pub(super) warnings: Vec<String>,
}

impl Report {
    fn count(&self, verdict: Verdict) -> usize {
        self.compared.iter().filter(|(_, one)| one.verdict == verdict).count()
    }

    fn findings(&self) -> impl Iterator<Item = &(Moment, Compared)> {
        self.compared.iter().filter(|(_, one)| one.verdict != Verdict::Same)
    }

    /// Whether the program did what was done then, and was refused nothing.
    pub(super) fn is_same(&self) -> bool {
        self.findings().next().is_none() && self.refused.is_empty()
    }

    /// In one line.
    pub(super) fn summary(&self) -> String {
        let counts = [Verdict::Same, Verdict::Different, Verdict::NotDone, Verdict::New]
            .map(|verdict| format!("{} {}", self.count(verdict), verdict.words()));
        format!(
            "{}: {}; {} wrote {} times then, {} times now",
            self.recording,
            counts.join(", "),
            self.operator,
            self.writes.0,
            self.writes.1
        )
    }

    /// What differs, object by object, as a diff from then to now.
    pub(super) fn text(&self, colours: bool) -> String {
        let mut all = String::new();
        for (moment, one) in self.findings() {
            let head = format!(
                "{}, after revision {} ({}): {}\n",
                one.object,
                moment.revision,
                moment.time,
                one.verdict.words()
            );
            all += &painted(&head, BOLD, colours);
            all += &patch(&one.then, &one.now, colours);
        }
        for line in &self.refused {
            all += &format!("refused: {line}\n");
        }
        all
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let name = |object: &ObjectId| json!({"resource": object.resource(), "key": object.key});
        let objects: Vec<Value> = self
            .compared
            .iter()
            .map(|(moment, one)| {
                let mut object = name(&one.object);
                object["verdict"] = json!(one.verdict);
                object["revision"] = moment.revision.into();
                object["time"] = moment.time.clone().into();
                if one.verdict != Verdict::Same {
                    object["diff"] = patch(&one.then, &one.now, false).into();
                }
                object
            })
            .collect();
        json!({
            "recording": self.recording,
            "operator": self.operator,
            "writes": {"then": self.writes.0, "now": self.writes.1, "ofOthers": self.played},
            "objects": objects,
            "refused": self.refused,
            "warnings": self.warnings,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_told_with_its_moment_and_its_lines() {
        let compared = |verdict, then: &str, now: &str| {
            let moment = Moment { revision: 7, time: "2026-01-01T00:00:00Z".to_owned() };
            let object = ObjectId::new("/configmaps", "default/a");
            (moment, Compared { object, verdict, then: then.to_owned(), now: now.to_owned() })
        };
        let mut report = Report {
            recording: "a.kwrec".to_owned(),
            operator: "press".to_owned(),
            writes: (2, 1),
            compared: vec![compared(Verdict::Same, "x\n", "x\n")],
            ..Report::default()
        };
        assert!(report.is_same() && report.text(false).is_empty());
        report.compared.push(compared(Verdict::Different, "x\n", "y\n"));
        assert_eq!(
            report.text(false),
            "configmaps default/a, after revision 7 (2026-01-01T00:00:00Z): different\n@@ -1 +1 @@\n-x\n+y\n"
        );
        assert_eq!(
            report.summary(),
            "a.kwrec: 1 same, 1 different, 0 not done, 0 new; press wrote 2 times then, 1 times now"
        );
        assert_eq!(report.json()["objects"][1]["verdict"], "different");
        assert!(!report.is_same());
    }
}
