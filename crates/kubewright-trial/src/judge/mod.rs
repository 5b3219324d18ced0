//! Judges a run without knowing the operator.

mod agreement;
mod clock;
mod derived;
mod no_ops;
mod requests;
mod rights;
mod states;
mod timeline;
mod writes;

use crate::{
    finding::Finding,
    known::Known,
    plan::{Act, Desired, Step},
    story::{Passed, Story},
};

pub use agreement::disagreements;
pub use rights::{Rule, unused};

/// All that is wrong in a run.
#[must_use]
pub fn judge(story: &Story, known: &Known) -> Vec<Finding> {
    let mut found = program(story);
    for (step, passed) in story.plan.steps.iter().zip(&story.steps) {
        if passed.refused.is_some() {
            // What nobody can ask for need not be answered.
            continue;
        }
        let scene = Scene { story, step, passed, known };
        let judges: [fn(&Scene<'_>) -> Vec<Finding>; 4] =
            [requests::judge, no_ops::judge, writes::judge, states::judge];
        let of_step = judges.into_iter().flat_map(|judge| judge(&scene));
        let steps = Some(scene.number() + 1);
        found.extend(of_step.map(|finding| Finding { steps, ..finding }));
    }
    found
}

/// A step of a run, with what is known.
struct Scene<'a> {
    story: &'a Story,
    step: &'a Step,
    passed: &'a Passed,
    known: &'a Known,
}

impl Scene<'_> {
    /// Whether the operator was asked for what makes no sense: it may fail.
    fn is_hostile(&self) -> bool {
        matches!(&self.step.desired, Desired::Changed(change) if change.is_hostile)
    }

    /// The number of the step in its plan.
    fn number(&self) -> usize {
        let steps = &self.story.plan.steps;
        steps.iter().position(|step| std::ptr::eq(step, self.step)).unwrap_or(steps.len())
    }

    /// Whether somebody else has an object under a name that the operator wants.
    fn has_stranger(&self) -> bool {
        self.story.plan.steps.iter().any(|step| matches!(step.act, Act::Occupy(..)))
    }

    fn timeline(&self) -> Vec<String> {
        timeline::timeline(self.story, self.passed)
    }
}

/// How the program ended. Under faults it may end to be started again, as a Deployment does; it may never panic.
fn program(story: &Story) -> Vec<Finding> {
    let meets_faults = story.plan.steps.iter().any(Step::meets_faults);
    let mut found = Vec::new();
    for life in &story.lives {
        if let Some(line) = life.panics.first() {
            found.push(Finding {
                check: crate::finding::Check::Crash,
                subject: without_numbers(line),
                message: format!("the program panics: {line}"),
                differences: Vec::new(),
                timeline: life.tail.lines().map(str::to_owned).collect(),
                steps: None,
            });
        } else if let Some(exit) = life.exit.as_ref().filter(|_| !meets_faults) {
            found.push(Finding {
                check: crate::finding::Check::Crash,
                subject: exit.clone(),
                message: format!("the program ended ({exit})"),
                differences: Vec::new(),
                timeline: life.tail.lines().map(str::to_owned).collect(),
                steps: None,
            });
        }
    }
    found
}

/// A line that is the same in each run: numbers are left out.
fn without_numbers(line: &str) -> String {
    let mut text = String::new();
    for letter in line.chars().take(160) {
        match letter {
            '0'..='9' if text.ends_with('#') => {}
            '0'..='9' => text.push('#'),
            other => text.push(other),
        }
    }
    text
}
