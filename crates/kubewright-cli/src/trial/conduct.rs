//! All runs of a trial: first those in which nothing goes wrong, then one for each plan, several side by side.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context, bail};
use futures::{StreamExt, stream::FuturesUnordered};
use kube::api::DynamicObject;
use kubewright_serve::signals::Signals;
use kubewright_trial::{
    change::{self, Change},
    finding::{Check, Finding, Findings, Likeness},
    judge::{Rule, disagreements, judge, unused},
    known::Known,
    plan::{Act, Desired, Plan},
    planner::{self, Group},
    story::{Request, Rest, Story, Who, Write, is_upkeep},
};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use super::{Pace, Setting, kept::Kept, stage};
use crate::stand::{program::advice, webhooks};

/// How many runs without anything that goes wrong teach what differs by itself.
const UNDISTURBED: usize = 3;
/// How long the first of them is watched beyond rest, to learn how long the operator pauses.
const FIRST_REST: Duration = Duration::from_secs(4);
/// The longest pause between two writes that rest is longer than.
const LONGEST_REST: Duration = Duration::from_secs(15);

/// How a trial is conducted.
pub(super) struct Options {
    pub(super) pace: Pace,
    /// How many runs go on side by side; as many as the machine allows where nobody says.
    pub(super) jobs: Option<usize>,
    pub(super) time: Duration,
    /// Only plans whose names begin so.
    pub(super) plans: Vec<String>,
    /// Where recordings of runs with findings go.
    pub(super) recordings: PathBuf,
}

/// What came of a trial.
pub(super) struct Tried {
    pub(super) findings: Findings,
    pub(super) runs: usize,
    pub(super) refused: usize,
    /// The names of the plans that were tried.
    pub(super) plans: Vec<String>,
    pub(super) left: Vec<String>,
    pub(super) volatile: Vec<String>,
    pub(super) warnings: Vec<String>,
}

/// What a plan came to.
enum Outcome {
    /// There was no time.
    Left,
    Refused,
    Ran(Vec<(Finding, (usize, usize))>, Option<String>),
}

/// What a group of plans came to.
struct Ran {
    outcomes: Vec<(Plan, Outcome)>,
    /// The plans that their stories give rise to.
    more: Vec<Plan>,
}

/// A trial that goes on.
struct Trial<'a> {
    setting: &'a Setting,
    options: &'a Options,
    pace: Pace,
    /// When to begin no more runs.
    deadline: Instant,
    known: Mutex<Known>,
    requests: Mutex<BTreeMap<String, Request>>,
    /// What was seen more than once already.
    confirmed: Mutex<BTreeSet<Likeness>>,
    runs: Mutex<usize>,
    /// Held by who looks again at what is expected.
    confirming: tokio::sync::Mutex<()>,
}

/// Conducts a trial; `tell` gets a line for each plan. A signal ends it, and what was found so far is given.
///
/// # Errors
/// When the operator cannot be run at all, no plan is of a name that is wanted, or a signal comes before any was tried.
pub(super) async fn conduct(
    setting: &Setting,
    options: &Options,
    signals: &mut Signals,
    tell: &(dyn Fn(String) + Sync),
) -> anyhow::Result<Tried> {
    let deadline = Instant::now() + options.time;
    let mut trial = Trial {
        setting,
        options,
        pace: Pace { rest: options.pace.rest.max(FIRST_REST), ..options.pace },
        deadline,
        known: Mutex::default(),
        requests: Mutex::default(),
        confirmed: Mutex::default(),
        runs: Mutex::default(),
        confirming: tokio::sync::Mutex::default(),
    };
    let mut tally = Tally::default();
    let undisturbed = tokio::select! {
        learnt = trial.undisturbed(&mut tally.findings, tell) => learnt?,
        () = signals.next() => bail!("interrupted"),
    };
    let (first, mut warnings, fixed) = undisturbed;
    tally.plans.extend((1..=*trial.runs.lock()).map(|number| planner::undisturbed(number).name));
    let jobs = jobs(options.jobs, fixed.as_ref(), &mut warnings);
    if first.steps.iter().any(|step| step.rest != Rest::Quiet) {
        tell("nothing else is tried: undisturbed it does not come to rest".to_owned());
    } else {
        let mut groups = trial.plans(&first)?;
        if setting.webhooks.is_some() || fixed.as_ref().is_none_or(|fixed| !fixed.is_empty()) {
            // Two replicas cannot listen on one port.
            groups.retain(|group| !group.iter().any(planner::has_replica));
        }
        tally.all = groups.iter().map(Vec::len).sum();
        tell(format!("{} plans, {jobs} side by side", tally.all));
        trial.carry_out(groups, jobs, &mut tally, signals, tell).await?;
        // What only some plans need says nothing of rights while not all were tried.
        if tally.left.is_empty() && options.plans.is_empty() {
            let requests: Vec<Request> = trial.requests.lock().values().cloned().collect();
            let nothing = Plan::new("all", []);
            let unused = unused(&rights(setting), &requests);
            unused.into_iter().for_each(|finding| tally.findings.add(&nothing, None, &finding, (1, 1)));
        }
    }
    let known = trial.known.lock();
    let volatile = known.volatile.places().map(|(id, field)| format!("{id} {field}")).collect();
    let runs = *trial.runs.lock();
    let Tally { findings, refused, plans, left, .. } = tally;
    Ok(Tried { findings, runs, refused, plans, left, volatile, warnings })
}

/// What came of plans so far.
#[derive(Default)]
struct Tally {
    findings: Findings,
    refused: usize,
    /// The plans that were tried.
    plans: Vec<String>,
    /// The plans that were not tried.
    left: Vec<String>,
    /// How many were tried, of how many.
    done: usize,
    all: usize,
}

impl Tally {
    /// Counts what came of a plan, and says it in a line; nothing of one that was not tried.
    fn take(&mut self, plan: Plan, outcome: Outcome) -> Option<String> {
        let told = match outcome {
            Outcome::Left => {
                self.left.push(plan.name);
                return None;
            }
            Outcome::Refused => {
                self.refused += 1;
                "refused by the API".to_owned()
            }
            Outcome::Ran(found, _) if found.is_empty() => "ok".to_owned(),
            Outcome::Ran(found, recording) => {
                let names: BTreeSet<&str> = found.iter().map(|(one, _)| one.check.name()).collect();
                let told = names.into_iter().collect::<Vec<_>>().join(", ");
                for (finding, seen) in found {
                    self.findings.add(&plan, recording.as_deref(), &finding, seen);
                }
                told
            }
        };
        self.done += 1;
        let line = format!("[{}/{}] {}: {told}", self.done, self.all, plan.name);
        self.plans.push(plan.name);
        Some(line)
    }
}

impl Trial<'_> {
    /// Carries out groups of plans, so many side by side, to their end or to a signal. Runs that go on although the time is over have as
    /// long as a step has; then they are cut off, and say nothing.
    async fn carry_out(
        &self,
        groups: Vec<Group>,
        jobs: usize,
        tally: &mut Tally,
        signals: &mut Signals,
        tell: &(dyn Fn(String) + Sync),
    ) -> anyhow::Result<()> {
        let mut waiting = VecDeque::from(groups);
        let mut running = FuturesUnordered::new();
        let mut under_way: BTreeSet<String> = BTreeSet::new();
        loop {
            while running.len() < jobs
                && let Some(group) = waiting.pop_front()
            {
                under_way.extend(group.iter().map(|plan| plan.name.clone()));
                running.push(self.group(group));
            }
            let (ran, why) = tokio::select! {
                ran = running.next() => (ran, ""),
                () = signals.next() => (None, "interrupted"),
                () = sleep_until(self.deadline + self.pace.timeout) => (None, "the time is over"),
            };
            if !why.is_empty() {
                tally.left.extend(under_way);
                tally.left.extend(waiting.into_iter().flatten().map(|plan| plan.name));
                tell(format!("{why}: {} plans are left out", tally.left.len()));
                return Ok(());
            }
            let Some(ran) = ran else { return Ok(()) };
            let Ran { outcomes, more } = ran?;
            tally.all += more.len();
            for (place, plan) in more.into_iter().enumerate() {
                // Taking turns with the others.
                waiting.insert((2 * place).min(waiting.len()), vec![plan]);
            }
            for (plan, outcome) in outcomes {
                under_way.remove(&plan.name);
                tally.take(plan, outcome).into_iter().for_each(tell);
            }
        }
    }

    async fn run(&self, plan: &Plan) -> anyhow::Result<stage::Run> {
        let run = stage::run(self.setting, self.pace, plan, &self.known).await?;
        *self.runs.lock() += 1;
        let mut requests = self.requests.lock();
        for request in &run.story.requests {
            requests
                .entry(format!("{} {} {}", request.verb, request.collection, request.subresource))
                .or_insert_with(|| request.clone());
        }
        Ok(run)
    }

    /// Learns what the operator comes to when nothing goes wrong; gives the first of these runs.
    async fn undisturbed(
        &mut self,
        findings: &mut Findings,
        tell: &(dyn Fn(String) + Sync),
    ) -> anyhow::Result<(Story, Vec<String>, Option<BTreeSet<u16>>)> {
        let first = self.run(&planner::undisturbed(1)).await?;
        let has_webhooks = self.setting.webhooks.is_some() && webhooks::has_some(&self.setting.inputs.needed);
        let defined = self.setting.inputs.defined();
        let mut known = Known { has_webhooks, defined, ..Known::of(first.samples.clone()) };
        known.learn_watches(&first.story);
        *self.known.lock() = known;
        let tail = || first.story.lives.last().map(|life| life.tail.clone()).unwrap_or_default();
        if first.story.steps.first().is_some_and(|step| step.rest == Rest::Exited) {
            let tail = tail();
            bail!("the program ends before it is asked for anything{}; it said last:\n{tail}", advice(&tail));
        }
        if first.story.steps.iter().any(|step| step.rest == Rest::Silent) {
            let tail = tail();
            bail!(
                "the program has not spoken to its control plane in time{}; it said last:\n{tail}",
                advice(&tail)
            );
        }
        if let Some(why) = first.story.steps.iter().find_map(|step| step.refused.as_ref()) {
            bail!("sample {why}");
        }
        self.known.lock().learn(&first.story);
        self.pace.rest = rest(&first.story, self.options.pace.rest);
        tell(format!("undisturbed: at rest after {:.1} s of silence", self.pace.rest.as_secs_f64()));
        let mut stories = vec![first];
        let is_quiet = stories[0].story.steps.iter().all(|step| step.rest == Rest::Quiet);
        for number in 2..=if is_quiet { UNDISTURBED } else { 1 } {
            let run = self.run(&planner::undisturbed(number)).await?;
            self.known.lock().learn(&run.story);
            stories.push(run);
        }
        let count = stories.len();
        let mut seen: BTreeMap<Likeness, (usize, Finding, usize)> = BTreeMap::new();
        for (number, run) in stories.iter().enumerate() {
            for finding in self.judged(&run.story) {
                let key = finding.likeness(&run.story.plan);
                seen.entry(key).or_insert_with(|| (0, finding, number)).0 += 1;
            }
        }
        let told: Vec<&Story> = stories.iter().map(|run| &run.story).collect();
        for (finding, number, times) in disagreements(&told) {
            let key = finding.likeness(&stories[number].story.plan);
            seen.entry(key).or_insert((times, finding, number));
        }
        for (key, (times, finding, number)) in seen {
            let run = &stories[number];
            let recording = self.keep(&run.story.plan, run.kept.as_ref())?;
            self.confirmed.lock().insert(key);
            findings.add(&run.story.plan, recording.as_deref(), &finding, (times, count));
        }
        // A port on which it listens in each run is fixed.
        let ports: Option<Vec<BTreeSet<u16>>> = stories.iter().map(|run| run.ports.clone()).collect();
        let fixed = ports.and_then(|ports| ports.into_iter().reduce(|one, other| &one & &other));
        let mut first = stories.swap_remove(0);
        first.warnings.extend(self.doubts(&first.story));
        Ok((first.story, first.warnings, fixed))
    }

    /// What makes a run in which nothing goes wrong say little: then findings may be those of the set-up.
    fn doubts(&self, story: &Story) -> Option<String> {
        let is_work = |write: &&Write| write.by == Who::Program && !is_upkeep(&write.id.collection);
        if !story.writes.iter().any(|write| is_work(&write)) {
            return Some(
                "the program has written nothing for the samples: it refuses them, or needs longer than --rest".to_owned(),
            );
        }
        let wanted =
            story.plan.steps.iter().zip(&story.steps).find(|(step, _)| step.desired == Desired::Samples);
        let why = wanted.and_then(|(_, passed)| self.known.lock().not_ready(&passed.state))?;
        Some(format!("undisturbed a sample is not ready: {why}"))
    }

    /// The plans that are wanted.
    fn plans(&self, first: &Story) -> anyhow::Result<Vec<Group>> {
        let known = self.known.lock();
        let json = |object: &DynamicObject| serde_json::to_value(object).context("an object");
        let inputs = &self.setting.inputs;
        let definitions = inputs.needed.iter().map(json).collect::<anyhow::Result<Vec<Value>>>()?;
        let mut changes: Vec<Change> = Vec::new();
        for (number, sample) in inputs.given.iter().map(json).enumerate() {
            let sample = sample?;
            if let Some(schema) = change::schema_of(&definitions, &sample) {
                changes.extend(change::changes(number, &sample, schema));
            }
        }
        let groups = planner::plans(&known, first, &changes);
        if self.options.plans.is_empty() {
            return Ok(groups);
        }
        // Those are run in any case.
        let mut wanted = self.options.plans.iter().filter(|name| !name.starts_with("undisturbed")).peekable();
        if wanted.peek().is_none() {
            return Ok(Vec::new());
        }
        let wanted: Vec<&str> = wanted.map(String::as_str).collect();
        // A plan that needs another brings it along.
        let is_wanted = |group: &Group| {
            group.iter().any(|plan| {
                self.wants(&plan.name) || wanted.iter().any(|name| planner::gives_rise(plan, name))
            })
        };
        let names: Vec<String> = groups.iter().flatten().map(|plan| plan.name.clone()).collect();
        let chosen: Vec<Group> = groups.into_iter().filter(is_wanted).collect();
        if chosen.is_empty() {
            bail!("no plan is called {}: there are {}", wanted.join(" or "), names.join(", "));
        }
        Ok(chosen)
    }

    /// Whether a plan of that name is wanted.
    fn wants(&self, plan: &str) -> bool {
        let all = &self.options.plans;
        all.is_empty() || all.iter().any(|name| plan.starts_with(name))
    }

    /// Carries out the plans of a group one after the other.
    async fn group(&self, group: Group) -> anyhow::Result<Ran> {
        let mut ran = Ran { outcomes: Vec::new(), more: Vec::new() };
        for plan in group {
            let (outcome, more) = match Instant::now() >= self.deadline {
                true => (Outcome::Left, Vec::new()),
                false => self.plan(&plan).await?,
            };
            let is_over = !matches!(outcome, Outcome::Ran(..));
            ran.outcomes.push((plan, outcome));
            ran.more.extend(more);
            if is_over {
                break;
            }
        }
        Ok(ran)
    }

    /// Carries out a plan; gives what came of it, and the plans that its story gives rise to.
    async fn plan(&self, plan: &Plan) -> anyhow::Result<(Outcome, Vec<Plan>)> {
        self.learn_desired(plan).await?;
        let run = self.run(plan).await?;
        if !run.story.was_tried() {
            return Ok((Outcome::Refused, Vec::new()));
        }
        let mut more = planner::kills_in_change(&run.story);
        more.retain(|plan| self.wants(&plan.name));
        if plan.is_undisturbed() && matches!(plan.steps[0].desired, Desired::Changed(_)) {
            self.known.lock().learn(&run.story);
        }
        let mut found = self.judged(&run.story);
        let is_of_state = found.iter().any(|one| one.check == Check::State);
        if is_of_state && Instant::now() < self.deadline {
            self.confirm(&run.story).await?;
            found = self.judged(&run.story);
        }
        if found.is_empty() {
            return Ok((Outcome::Ran(Vec::new(), None), more));
        }
        let recording = self.keep(plan, run.kept.as_ref())?;
        let is_new = |finding: &Finding| !self.confirmed.lock().contains(&finding.likeness(plan));
        let mut again: Vec<Vec<Finding>> = Vec::new();
        // A finding that comes once in three runs may be the machine's.
        while again.len() < 2
            && Instant::now() < self.deadline
            && found.iter().filter(|one| is_new(one)).any(|one| !has(&again, one))
        {
            again.push(self.judged(&self.run(plan).await?.story));
        }
        let runs = 1 + again.len();
        let counted = found.into_iter().map(|finding| {
            let seen =
                1 + again.iter().filter(|other| other.iter().any(|one| is_alike(one, &finding))).count();
            self.confirmed.lock().insert(finding.likeness(plan));
            (finding, (seen, runs))
        });
        Ok((Outcome::Ran(counted.collect(), recording), more))
    }

    /// Learns what the operator comes to when it is asked from the start for what a plan asks for later.
    async fn learn_desired(&self, plan: &Plan) -> anyhow::Result<()> {
        for step in plan.steps.iter().filter(|step| !matches!(step.act, Act::Create(_))) {
            let Desired::Changed(change) = &step.desired else { continue };
            if change.is_hostile || self.known.lock().knows(&step.desired) {
                continue;
            }
            let run = self.run(&planner::fresh(change)).await?;
            self.known.lock().learn(&run.story);
        }
        Ok(())
    }

    /// Looks once more at what the changes of a story come to from the start, where nobody has looked again.
    async fn confirm(&self, story: &Story) -> anyhow::Result<()> {
        // Another plan may be about to look at the same.
        let _guard = self.confirming.lock().await;
        let doubted = self.known.lock().doubted(story);
        for change in &doubted {
            let run = self.run(&planner::fresh(change)).await?;
            self.known.lock().learn(&run.story);
        }
        Ok(())
    }

    /// The findings of a run; alike ones once.
    fn judged(&self, story: &Story) -> Vec<Finding> {
        let known = self.known.lock().clone();
        let mut found = judge(story, &known);
        let mut seen = BTreeSet::new();
        found.retain(|one| seen.insert((one.check, one.subject.clone())));
        found
    }

    /// Writes down what was recorded of a run; gives the file.
    fn keep(&self, plan: &Plan, kept: Option<&Kept>) -> anyhow::Result<Option<String>> {
        let path = kept.map(|kept| kept.write(&self.options.recordings, plan)).transpose()?;
        Ok(path.map(|path| path.display().to_string()))
    }
}

fn is_alike(one: &Finding, other: &Finding) -> bool {
    one.check == other.check && one.subject == other.subject
}

fn has(runs: &[Vec<Finding>], finding: &Finding) -> bool {
    runs.iter().any(|run| run.iter().any(|one| is_alike(one, finding)))
}

/// How many runs go on side by side: one where the program listens on ports that are the same in each run.
fn jobs(wanted: Option<usize>, fixed: Option<&BTreeSet<u16>>, warnings: &mut Vec<String>) -> usize {
    let most = 3 * std::thread::available_parallelism().map_or(1, usize::from);
    match (wanted, fixed) {
        (Some(wanted), _) => wanted,
        (None, Some(fixed)) if fixed.is_empty() => most,
        (None, Some(fixed)) => {
            let ports: Vec<String> = fixed.iter().map(u16::to_string).collect();
            warnings.push(format!(
                "runs go one after the other, as the program listens on port {}; with {{port}} in its arguments in place of a port \
                 they go side by side",
                ports.join(" and ")
            ));
            1
        }
        (None, None) => 1,
    }
}

/// How long nobody writes when all is at rest: longer than the longest pause between two writes.
fn rest(story: &Story, least: Duration) -> Duration {
    let mut longest = Duration::ZERO;
    for step in &story.steps {
        let mut last = step.from;
        for write in story.writes_in(step) {
            longest = longest.max(write.at.saturating_sub(last));
            last = write.at;
        }
    }
    longest.mul_f64(1.5).clamp(least, LONGEST_REST.max(least))
}

/// The rights of the account.
fn rights(setting: &Setting) -> Vec<Rule> {
    let objects: Vec<Value> =
        setting.inputs.needed.iter().filter_map(|object| serde_json::to_value(object).ok()).collect();
    let (namespace, name) = &setting.account;
    let is_kind =
        |object: &&Value, kinds: [&str; 2]| kinds.contains(&object["kind"].as_str().unwrap_or_default());
    let of_account = |binding: &&Value| {
        binding["subjects"].as_array().is_some_and(|all| {
            all.iter().any(|subject| {
                subject["kind"] == "ServiceAccount"
                    && subject["name"] == **name
                    && subject["namespace"] == **namespace
            })
        })
    };
    let bindings =
        objects.iter().filter(|one| is_kind(one, ["RoleBinding", "ClusterRoleBinding"])).filter(of_account);
    let named: Vec<(&Value, &Value)> =
        bindings.map(|one| (&one["roleRef"]["kind"], &one["roleRef"]["name"])).collect();
    let is_bound = |role: &&Value| {
        named.iter().any(|(kind, name)| role["kind"] == **kind && role["metadata"]["name"] == **name)
    };
    let roles: Vec<&Value> =
        objects.iter().filter(|one| is_kind(one, ["Role", "ClusterRole"])).filter(is_bound).collect();
    Rule::of(&roles)
}
