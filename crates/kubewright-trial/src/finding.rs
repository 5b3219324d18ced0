//! Finding: something that is wrong with an operator, and what shows it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::{
    change::Change,
    plan::{Plan, Trouble},
    state::Difference,
};

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Not what users expect, and there may be a reason for it.
    Warning,
    /// A bug.
    Error,
}

impl Severity {
    /// As it is printed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// The program ends, or panics.
    Crash,
    /// Nothing comes to rest.
    Rest,
    /// A request is refused again and again.
    FailsAtRest,
    /// 403.
    Rights,
    /// 400 or 422 for what the program writes.
    Schema,
    /// The same, for what a user asked for: the schema of the kind lets through what the operator cannot do.
    LaxSchema,
    /// Requests without a pause.
    HotLoop,
    /// An operation that fails is tried again without a pause.
    BackOff,
    /// The state is another than that of a run in which nothing went wrong.
    State,
    /// The same, and there is an explanation: the status says that it is not done, or pods were asked, which are simulated.
    ExplainedState,
    /// A sample that is deleted stays.
    Deletion,
    /// What was made for a sample stays behind when the sample is gone.
    Leak,
    /// `observedGeneration` stays behind.
    ObservedGeneration,
    /// The status says that all is done before it is.
    StatusAhead,
    /// A program that starts anew writes, and nothing has changed.
    Restart,
    /// A program that reads an old state deletes what is wanted.
    OldState,
    /// It writes what is there already.
    NoOp,
    /// An object of the operator that somebody deletes does not come back.
    Drift,
    /// A field that somebody changes stays changed.
    FieldDrift,
    /// What others add is removed.
    Additions,
    /// An object of somebody else is changed or deleted.
    Strangers,
    /// Rights that were never used.
    UnusedRights,
}

impl Check {
    /// All of them.
    pub const ALL: [Self; 22] = [
        Self::Crash,
        Self::Rest,
        Self::FailsAtRest,
        Self::Rights,
        Self::Schema,
        Self::LaxSchema,
        Self::HotLoop,
        Self::BackOff,
        Self::State,
        Self::ExplainedState,
        Self::Deletion,
        Self::Leak,
        Self::ObservedGeneration,
        Self::StatusAhead,
        Self::Restart,
        Self::OldState,
        Self::NoOp,
        Self::Drift,
        Self::FieldDrift,
        Self::Additions,
        Self::Strangers,
        Self::UnusedRights,
    ];

    /// As it is written in a baseline.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Rest => "rest",
            Self::FailsAtRest => "fails-at-rest",
            Self::Rights => "rights",
            Self::Schema => "schema",
            Self::LaxSchema => "lax-schema",
            Self::HotLoop => "hot-loop",
            Self::BackOff => "back-off",
            Self::State => "state",
            Self::ExplainedState => "explained-state",
            Self::Deletion => "deletion",
            Self::Leak => "leak",
            Self::ObservedGeneration => "observed-generation",
            Self::StatusAhead => "status-ahead",
            Self::Restart => "restart",
            Self::OldState => "old-state",
            Self::NoOp => "no-op",
            Self::Drift => "drift",
            Self::FieldDrift => "field-drift",
            Self::Additions => "additions",
            Self::Strangers => "strangers",
            Self::UnusedRights => "unused-rights",
        }
    }

    /// What has to hold.
    #[must_use]
    pub fn promise(self) -> &'static str {
        match self {
            Self::Crash => "the program does not end or panic",
            Self::Rest => "it comes to rest",
            Self::FailsAtRest => "nothing fails again and again",
            Self::Rights => "its role allows what it does (no 403)",
            Self::Schema => "what it writes is valid (no 400, no 422)",
            Self::LaxSchema => "the schema of its kind lets through what it can do, and no more",
            Self::HotLoop => "it does not ask without a pause",
            Self::BackOff => "what fails is tried again with a back-off",
            Self::State => "the state it ends in is a function of what was asked for",
            Self::ExplainedState => "what is not done as asked for is done, or the status says so",
            Self::Deletion => "everything can be deleted",
            Self::Leak => "what it made for an object goes with it",
            Self::ObservedGeneration => "observedGeneration is the current generation at rest",
            Self::StatusAhead => "the status is not ahead of what was done",
            Self::Restart => "after a restart at rest nothing is left to do",
            Self::OldState => "an old state that it reads does not make it delete what is wanted",
            Self::NoOp => "it does not write what is there already",
            Self::Drift => "an object that somebody deletes comes back",
            Self::FieldDrift => "a field that somebody changes is set again",
            Self::Additions => "what others add to its objects stays",
            Self::Strangers => "objects of others are left alone",
            Self::UnusedRights => "its role allows no more than it does",
        }
    }

    /// How bad it is.
    #[must_use]
    pub fn severity(self) -> Severity {
        match self {
            Self::UnusedRights | Self::FieldDrift | Self::LaxSchema | Self::ExplainedState => Severity::Note,
            Self::Additions | Self::Drift | Self::Restart | Self::HotLoop | Self::NoOp | Self::Strangers => {
                Severity::Warning
            }
            _ => Severity::Error,
        }
    }

    /// Whether it costs requests alone: it is told, and no trial fails by it.
    #[must_use]
    pub fn is_of_cost(self) -> bool {
        self == Self::NoOp
    }
}

/// Evidence that a run gives of something.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub check: Check,
    /// What alike findings have in common: an object with its field, a request.
    pub subject: String,
    /// What was seen, in a sentence.
    pub message: String,
    /// What was expected and what was reached, where states were compared.
    pub differences: Vec<Difference>,
    /// What happened, line by line.
    pub timeline: Vec<String>,
    /// How many steps of the plan led to it; none where it is not of a step.
    #[serde(skip)]
    pub steps: Option<usize>,
}

/// Alike findings of several plans.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Folded {
    /// The finding of the shortest plan that shows it.
    pub finding: Finding,
    /// How bad it is.
    pub severity: Severity,
    /// That plan.
    pub plan: Plan,
    /// Its recording.
    pub recording: Option<String>,
    /// In how many of so many runs of that plan it was seen.
    pub seen: (usize, usize),
    /// The names of all plans that show it.
    pub plans: Vec<String>,
    /// What has to go wrong for it, as far as that says which of several causes it has.
    pub trouble: Trouble,
    /// Whether the baseline has it.
    pub is_known: bool,
}

impl Folded {
    /// What a baseline has of it: stays the same from run to run.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{} {}{}", self.finding.check.name(), self.finding.subject, self.trouble.words())
    }
}

/// By what it is known that findings are alike: what was looked at, what it is about, and what went wrong.
pub type Likeness = (Check, String, Trouble);

impl Finding {
    /// What it has in common with other findings. A request or a line of a panic names its cause by itself; that an object is not as it is to
    /// be has one cause where the operator was killed, and another where somebody changed the object.
    #[must_use]
    pub fn likeness(&self, plan: &Plan) -> Likeness {
        let is_of_end = matches!(
            self.check,
            Check::State | Check::ExplainedState | Check::Deletion | Check::Leak | Check::ObservedGeneration
        );
        let trouble = if is_of_end { plan.trouble(self.steps.unwrap_or(usize::MAX)) } else { Trouble::None };
        (self.check, self.subject.clone(), trouble)
    }
}

/// Findings of runs, alike ones together; the worst first.
#[derive(Debug, Default)]
pub struct Findings(BTreeMap<(Check, String), Vec<Evidence>>);

/// What a plan has shown.
#[derive(Clone, Debug)]
struct Evidence {
    finding: Finding,
    trouble: Trouble,
    plan: Plan,
    recording: Option<String>,
    seen: (usize, usize),
}

impl Findings {
    /// Adds the findings of a plan's run. `seen`: in how many of how many runs of the plan.
    pub fn add(&mut self, plan: &Plan, recording: Option<&str>, finding: &Finding, seen: (usize, usize)) {
        let (check, subject, trouble) = finding.likeness(plan);
        self.0.entry((check, subject)).or_default().push(Evidence {
            finding: finding.clone(),
            trouble,
            plan: plan.clone(),
            recording: recording.map(str::to_owned),
            seen,
        });
    }

    /// All of them, the worst first; those whose keys are `known` are marked.
    #[must_use]
    pub fn folded(&self, known: &[String]) -> Vec<Folded> {
        let mut all: Vec<Folded> =
            self.0.values().flat_map(|all| by_cause(all)).filter_map(|all| folded(&all)).collect();
        for one in &mut all {
            one.is_known = known.contains(&one.key());
            // What comes once, and in no other plan, may be the machine's: it is looked for twice more, as long as there is time.
            if one.seen.0 == 1 && one.plans.len() < 2 {
                one.severity = one.severity.min(Severity::Warning);
            }
        }
        all.sort_by_key(|one| (one.is_known, std::cmp::Reverse(one.severity), one.finding.check));
        all
    }
}

/// Alike evidence by its cause. What shows where nothing goes wrong is the cause wherever the same is asked for.
fn by_cause(all: &[Evidence]) -> Vec<Vec<&Evidence>> {
    let is_plain = |one: &&Evidence| one.trouble == Trouble::None;
    let shows_always = all.iter().filter(is_plain).any(|one| one.plan.changes().next().is_none());
    let asked: BTreeSet<&Change> = all.iter().filter(is_plain).flat_map(|one| one.plan.changes()).collect();
    let mut causes: BTreeMap<Trouble, Vec<&Evidence>> = BTreeMap::new();
    for one in all {
        let is_of_plain = shows_always || one.plan.changes().any(|change| asked.contains(change));
        causes.entry(if is_of_plain { Trouble::None } else { one.trouble }).or_default().push(one);
    }
    causes.into_values().collect()
}

/// Evidence of one cause as one finding: that of the simplest plan.
fn folded(all: &[&Evidence]) -> Option<Folded> {
    let simplest = all.iter().min_by_key(|one| (one.plan.has_fault(), one.plan.steps.len()))?;
    let Evidence { finding, plan, recording, seen, .. } = (*simplest).clone();
    let mut plans: Vec<String> = Vec::new();
    for one in all {
        if !plans.contains(&one.plan.name) {
            plans.push(one.plan.name.clone());
        }
    }
    let severity = finding.check.severity();
    let trouble = all.iter().map(|one| one.trouble).min()?;
    Some(Folded { finding, severity, plan, recording, seen, plans, trouble, is_known: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Act, Desired, Disturbance, Fault, Step};

    #[test]
    fn what_comes_once_is_an_error_where_another_plan_shows_it_too() {
        let finding = Finding {
            check: Check::Deletion,
            subject: "pages".to_owned(),
            message: String::new(),
            differences: Vec::new(),
            timeline: Vec::new(),
            steps: None,
        };
        let plan = |name: &str| Plan::new(name, [Step::create()]);
        let mut findings = Findings::default();
        findings.add(&plan("kill/create/1"), None, &finding, (1, 3));
        assert_eq!(findings.folded(&[])[0].severity, Severity::Warning);
        findings.add(&plan("kill/create/2"), None, &finding, (1, 1));
        assert_eq!(findings.folded(&[])[0].severity, Severity::Error);
    }

    /// The keys of a state that is not the expected one in these plans, each with how many plans show it.
    fn keys(plans: &[Plan]) -> Vec<(String, usize)> {
        let finding = Finding {
            check: Check::State,
            subject: "pages /data".to_owned(),
            message: String::new(),
            differences: Vec::new(),
            timeline: Vec::new(),
            steps: None,
        };
        let mut findings = Findings::default();
        plans.iter().for_each(|plan| findings.add(plan, None, &finding, (1, 1)));
        findings.folded(&[]).iter().map(|one| (one.key(), one.plans.len())).collect()
    }

    #[test]
    fn what_a_kill_shows_is_not_folded_with_what_somebody_changes_unless_it_shows_by_itself() {
        let killed = || Plan::new("kill", [Step::create().under(Disturbance::Kill(1))]);
        let failed = || Plan::new("fail", [Step::create().under(Disturbance::OneWrite(Fault::Error, 1))]);
        let id = crate::story::ObjectId::new("/pages", "a");
        let changed = || {
            let act = Act::ChangeObject(id.clone(), "/data".to_owned(), 1.into());
            Plan::new("changed", [Step::create(), Step::new(act, Desired::Samples)])
        };
        let key = |end: &str, count| (format!("state pages /data{end}"), count);
        assert_eq!(
            keys(&[killed(), changed(), failed()]),
            [key(", interrupted", 2), key(", meddled with", 1)]
        );
        let plain = Plan::new("again", [Step::create()]);
        assert_eq!(keys(&[killed(), changed(), failed(), plain]), [key("", 4)]);
    }

    #[test]
    fn what_goes_wrong_after_the_step_that_shows_it_is_not_its_cause() {
        let finding = |steps| Finding {
            check: Check::State,
            subject: "pages /data".to_owned(),
            message: String::new(),
            differences: Vec::new(),
            timeline: Vec::new(),
            steps,
        };
        let restart = Step::new(Act::RestartInThePast(0), Desired::Samples);
        let plan = Plan::new("past", [Step::create(), restart]);
        let trouble = |steps| finding(steps).likeness(&plan).2;
        assert_eq!(trouble(Some(1)), Trouble::None);
        assert_eq!([trouble(Some(2)), trouble(None)], [Trouble::OldState; 2]);
    }

    #[test]
    fn what_a_change_shows_by_itself_is_the_cause_where_it_is_disturbed_and_nowhere_else() {
        let step = |field: &str| {
            let change = Change::one(0, field, Some("2".to_owned()), false);
            Step::new(Act::Change(Some(change.clone())), Desired::Changed(change))
        };
        let plain = Plan::new("change/spec.a", [step("/spec/a")]);
        let same = Plan::new("kill/spec.a", [step("/spec/a").under(Disturbance::Kill(1))]);
        let other = Plan::new("kill/spec.b", [step("/spec/b").under(Disturbance::Kill(1))]);
        let key = |end: &str, count| (format!("state pages /data{end}"), count);
        assert_eq!(keys(&[other, same, plain]), [key("", 2), key(", interrupted", 1)]);
    }
}
