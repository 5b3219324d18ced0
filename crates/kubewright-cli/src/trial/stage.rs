//! One run: a plan is carried out on a stand of its own.

use std::{collections::BTreeSet, time::Duration};

use anyhow::Context;
use jiff::Timestamp;
use kube::api::DynamicObject;
use kubewright_cluster::{
    Cluster,
    admin::{Admin, Match, RuleId, Verb},
    journal::Journal,
};
use kubewright_trial::{
    known::Known,
    plan::{Act, Disturbance, NodeLoss, Plan, Step},
    state::{State, state},
    story::{Life, ObjectId, Passed, Rest, Story, Who, Write, is_upkeep, panics},
};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::{
    Pace, Setting,
    acts::{Acted, Actor},
    evidence::Witness,
    kept::Kept,
    nodes::{self, Lost},
    rules,
};
use crate::{
    run::account::Account,
    stand::{
        Stand, activity,
        program::{Running, shortened},
        webhooks::{WebhookPort, Webhooks, is_unreached},
    },
};

/// How many nodes there are: one may be lost.
const NODES: usize = 2;
/// How long watches leave out what happens before that is told which comes later, and how long it is waited for them.
const UNSEEN: Duration = Duration::from_millis(150);
const LONGEST_UNSEEN: Duration = Duration::from_secs(2);
/// How often it is looked whether all is at rest.
const PAUSE: Duration = Duration::from_millis(25);
/// How long a program asks for nothing when it has started, and how long it is waited for that.
const STARTED: Duration = Duration::from_millis(300);
const LONGEST_START: Duration = Duration::from_secs(10);
/// How long a program may take from its start until it watches the kinds of the samples.
const LONGEST_WATCH: Duration = Duration::from_secs(30);
/// How often it is looked how much the program computes, the part of that time that counts as work, and how long it may go on for that.
const LOOKED: Duration = Duration::from_millis(500);
const COMPUTES: u32 = 5;
const LONGEST_COMPUTING: Duration = Duration::from_secs(10);
/// How long a Deployment waits before it starts again what has ended.
const AGAIN: Duration = Duration::from_millis(500);
/// How often the program is started again when it ends by itself.
const LIVES: usize = 8;
/// How much of what a program said is kept.
const TAIL: usize = 3000;

/// A run, and what was recorded of it.
pub(super) struct Run {
    pub(super) story: Story,
    pub(super) kept: Option<Kept>,
    /// What of the manifests was left out.
    pub(super) warnings: Vec<String>,
    pub(super) samples: Vec<ObjectId>,
    /// On which ports the program listened at the end; none where that is not known.
    pub(super) ports: Option<BTreeSet<u16>>,
}

/// Carries out a plan.
///
/// # Errors
/// When the control plane does not start or take the manifests and samples, or the program cannot be run.
pub(super) async fn run(
    setting: &Setting,
    pace: Pace,
    plan: &Plan,
    known: &Mutex<Known>,
) -> anyhow::Result<Run> {
    let stand = Stand::of(Cluster::builder().nodes(NODES)).await?;
    let ran = on(&stand, setting, pace, plan, known).await;
    stand.cluster.stop().await;
    ran
}

async fn on(
    stand: &Stand,
    setting: &Setting,
    pace: Pace,
    plan: &Plan,
    known: &Mutex<Known>,
) -> anyhow::Result<Run> {
    let cluster = &stand.cluster;
    let admin = cluster.admin().context("the control plane keeps no log")?;
    let journal = cluster.journal().context("the control plane keeps no journal")?;
    let (namespace, name) = &setting.account;
    let deadline = Instant::now() + pace.timeout;
    let needed = &setting.inputs.needed;
    let webhooks = setting.webhooks.map(WebhookPort::prepare).transpose()?;
    let given = &setting.inputs.given;
    nodes::hurry(&stand.access.client, NODES, deadline).await?;
    stand.provide_storage(needed).await?;
    let mut warnings = stand.install(needed, given, namespace, deadline, webhooks.as_ref()).await?;
    let command =
        webhooks.as_ref().map_or_else(|| setting.command.clone(), |all| setting.command.with_webhooks(all));
    let account = Account::of_any_client(&stand.access, namespace, name).await?;
    let user = format!("system:serviceaccount:{namespace}:{name}");
    let witness = Witness { user, began: admin.now(), since: cluster.revision().0 };
    let mut actor = Actor::new(&stand.access, &setting.inputs.given, journal);
    let samples = actor.ids().await?;
    let mut beside = Beside::start(stand, setting).await?;
    let start = || command.start(account.kubeconfig(), false);
    let running = Some(start()?);
    let mut stage = Stage {
        admin,
        journal,
        stand,
        needed,
        webhooks: webhooks.as_ref(),
        witness: &witness,
        known,
        samples: &samples,
        pace,
        actor,
        start: &start,
        running,
        lives: Vec::new(),
        requested: false,
        since: admin.now(),
        watching: false,
        watches_by: Instant::now() + LONGEST_WATCH,
        meets_faults: false,
        revisions: Vec::new(),
    };
    stage.started().await?;
    let mut steps = Vec::new();
    for step in &plan.steps {
        stage.revisions.push(cluster.revision().0);
        let passed = stage.step(step).await?;
        // One field of an object that cannot be changed says nothing of the others.
        let is_taken = passed.refused.is_none() || matches!(step.act, Act::ChangeObject(..));
        let goes_on = passed.rest == Rest::Quiet && is_taken;
        steps.push(passed);
        if !goes_on {
            break;
        }
    }
    let ports = stage.running.as_ref().and_then(Running::ports).zip(beside.ports());
    let ports = ports.map(|(program, others)| &program | &others);
    let lives = stage.end().await;
    warnings.extend(beside.end().await);
    let requests = witness.requests(cluster);
    let writes = witness.writes(journal);
    let kept = Kept::of(cluster);
    let story = Story { plan: plan.clone(), steps, writes, requests, lives };
    Ok(Run { story, kept, warnings, samples, ports })
}

/// The operators that run beside the one that is tried, each with its account.
struct Beside(Vec<(Running, Account, String)>);

impl Beside {
    async fn start(stand: &Stand, setting: &Setting) -> anyhow::Result<Self> {
        let mut all = Vec::new();
        for other in &setting.also {
            let (namespace, name) = &other.account;
            let account = Account::of_any_client(&stand.access, namespace, name).await?;
            all.push((
                other.command.start(account.kubeconfig(), false)?,
                account,
                format!("{namespace}/{name}"),
            ));
        }
        Ok(Self(all))
    }

    /// The ports on which they listen; none where the machine does not say.
    fn ports(&self) -> Option<BTreeSet<u16>> {
        let ports: Option<Vec<BTreeSet<u16>>> = self.0.iter().map(|(running, ..)| running.ports()).collect();
        Some(ports?.into_iter().flatten().collect())
    }

    /// Ends them; tells of those that have ended before.
    async fn end(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        for (mut running, _, name) in self.0.drain(..) {
            if let Some(exit) = running.has_ended() {
                told.push(format!("what runs beside it as {name} has ended ({exit}){}", running.tail()));
            }
            running.stop().await;
        }
        told
    }
}

/// What a run is in the midst of.
struct Stage<'a, F> {
    admin: &'a Admin,
    journal: &'a Journal,
    stand: &'a Stand,
    /// What the operator needs in the cluster.
    needed: &'a [DynamicObject],
    webhooks: Option<&'a Webhooks>,
    witness: &'a Witness,
    known: &'a Mutex<Known>,
    samples: &'a [ObjectId],
    pace: Pace,
    actor: Actor<'a>,
    /// Starts the program.
    start: &'a F,
    running: Option<Running>,
    lives: Vec<Life>,
    /// Whether the program has made a request.
    requested: bool,
    /// When the program was started the last time.
    since: Timestamp,
    /// Whether it watches what it is asked for by, since then.
    watching: bool,
    /// Until when it is waited for that.
    watches_by: Instant,
    /// Whether it may end, as it meets faults.
    meets_faults: bool,
    /// The revision before each step.
    revisions: Vec<u64>,
}

impl<F: Fn() -> anyhow::Result<Running>> Stage<'_, F> {
    fn now(&self) -> Duration {
        self.witness.at(self.admin.now())
    }

    async fn step(&mut self, step: &Step) -> anyhow::Result<Passed> {
        let from = self.now();
        let refused = match &step.disturbance {
            None => match &step.act {
                Act::Restart => {
                    self.kill().await;
                    self.begin().await?;
                    None
                }
                Act::RestartInThePast(step) => self.restart_in_the_past(*step).await?,
                Act::LoseNode(loss, seed) => self.lose_node(*loss, *seed).await?,
                act => self.act(act).await?,
            },
            Some(Disturbance::Unseen(hidden)) => self.unseen(hidden, &step.act).await?,
            Some(Disturbance::WebhooksDown) => self.without_webhooks(&step.act).await?,
            Some(Disturbance::Kill(writes)) => self.killed(&step.act, *writes, None).await?,
            Some(Disturbance::KillAnd(0, meanwhile)) => {
                self.kill().await;
                let refused = self.act(meanwhile).await?.or(self.act(&step.act).await?);
                self.begin().await?;
                refused
            }
            Some(Disturbance::KillAnd(writes, meanwhile)) => {
                self.killed(&step.act, *writes, Some(meanwhile)).await?
            }
            Some(Disturbance::TakeOver(writes)) => self.taken_over(&step.act, *writes).await?,
            Some(Disturbance::OneWrite(fault, number)) => {
                self.meets_faults = true;
                let rule = self.admin.inject(rules::one_write(*fault, *number, &self.witness.user));
                let refused = self.act(&step.act).await?;
                let rested = if refused.is_none() { Some(self.rests(step, from).await?) } else { None };
                self.admin.remove_fault(rule);
                let (rest, state) = rested.unwrap_or_else(|| (Rest::Quiet, State::new()));
                return Ok(Passed { from, until: self.now(), rest, state, refused });
            }
            Some(Disturbance::Quota(resource)) => {
                self.actor.fill_quotas(resource).await?;
                let refused = self.act(&step.act).await?;
                self.pass(rules::WINDOW).await?;
                self.actor.empty_quotas().await?;
                refused
            }
            Some(Disturbance::Fault(fault, resource, seed)) => {
                self.meets_faults = true;
                let rules = rules::rules(*fault, resource.as_deref(), *seed, &self.witness.user);
                let rules: Vec<RuleId> = rules.into_iter().map(|rule| self.admin.inject(rule)).collect();
                let refused = self.act(&step.act).await?;
                self.pass(rules::window(*fault)).await?;
                for rule in rules {
                    self.admin.remove_fault(rule);
                }
                refused
            }
        };
        let (rest, state) = match &refused {
            Some(_) => (Rest::Quiet, State::new()),
            None => self.rests(step, from).await?,
        };
        Ok(Passed { from, until: self.now(), rest, state, refused })
    }

    /// Does something that the program's watches leave out, and then what they tell.
    async fn unseen(&mut self, hidden: &Act, seen: &Act) -> anyhow::Result<Option<String>> {
        let collections: BTreeSet<&str> = match hidden {
            Act::DeleteObject(id) | Act::ChangeObject(id, ..) | Act::Extend(id) => [&*id.collection].into(),
            _ => self.samples.iter().map(|id| &*id.collection).collect(),
        };
        let rules = rules::unseen(&collections, &self.witness.user);
        let rules: Vec<RuleId> = rules.into_iter().map(|rule| self.admin.inject(rule)).collect();
        let refused = self.act(hidden).await?;
        let deadline = Instant::now() + LONGEST_UNSEEN;
        let is_hidden = |rule: &RuleId| self.admin.hits(*rule).unwrap_or_default() > 0;
        while !rules.iter().any(is_hidden) && Instant::now() < deadline {
            sleep(PAUSE).await;
        }
        sleep(UNSEEN).await;
        for rule in rules {
            self.admin.remove_fault(rule);
        }
        match seen {
            Act::Relist(id) => self.relist(id).await?,
            act => return Ok(refused.or(self.act(act).await?)),
        }
        Ok(refused)
    }

    /// The program's watches of an object's kind end with 410.
    async fn relist(&mut self, id: &ObjectId) -> anyhow::Result<()> {
        let rule = self.admin.inject(rules::expired(&id.collection, &self.witness.user));
        self.pass(2 * UNSEEN).await?;
        self.admin.remove_fault(rule);
        Ok(())
    }

    /// Loses a node for some seconds.
    async fn lose_node(&mut self, loss: NodeLoss, seed: u64) -> anyhow::Result<Option<String>> {
        let Some(lost) = Lost::begin(&self.stand.access.client, loss, seed).await? else {
            return Ok(Some("no pod is on a node".to_owned()));
        };
        self.pass(rules::WINDOW).await?;
        lost.end().await?;
        Ok(None)
    }

    /// Does something while the program's webhooks cannot be called, and again later where that is refused for it.
    async fn without_webhooks(&mut self, act: &Act) -> anyhow::Result<Option<String>> {
        let Some(webhooks) = self.webhooks else { return self.act(act).await };
        self.meets_faults = true;
        self.actor.lead_webhooks(self.needed, webhooks, false).await?;
        let refused = self.act(act).await?;
        self.pass(rules::WINDOW).await?;
        self.actor.lead_webhooks(self.needed, webhooks, true).await?;
        match refused {
            Some(why) if is_unreached(&why) => Ok(match self.actor.act_again(act).await? {
                Acted::Done => None,
                Acted::Refused(why) => Some(why),
            }),
            refused => Ok(refused),
        }
    }

    /// Waits until the program watches and is quiet: what goes wrong is to meet it at work, not at its start.
    async fn started(&mut self) -> anyhow::Result<()> {
        self.is_quiet_at(self.watches_by, Self::is_watching).await
    }

    /// Waits until the program has asked for something and is quiet, whether it watches or not, as a second replica does not.
    async fn stands_by(&mut self) -> anyhow::Result<()> {
        self.is_quiet_at(Instant::now() + LONGEST_START, |_| true).await
    }

    async fn is_quiet_at(
        &mut self,
        deadline: Instant,
        is_ready: impl Fn(&mut Self) -> bool,
    ) -> anyhow::Result<()> {
        let (mut seen, mut quiet_since) = (u64::MAX, Instant::now());
        while Instant::now() < deadline && self.look_after_program().await? {
            let of_program = self.requests();
            if of_program != seen || of_program == 0 || !is_ready(self) {
                (seen, quiet_since) = (of_program, Instant::now());
            }
            if quiet_since.elapsed() >= STARTED {
                break;
            }
            sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Lets time pass, and starts the program again that ends meanwhile.
    async fn pass(&mut self, time: Duration) -> anyhow::Result<()> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.look_after_program().await?;
            sleep(PAUSE).await;
        }
        Ok(())
    }

    async fn act(&mut self, act: &Act) -> anyhow::Result<Option<String>> {
        Ok(match self.actor.act(act).await? {
            Acted::Done => None,
            Acted::Refused(why) => Some(why),
        })
    }

    /// Does something, kills the program after so many writes, and starts it again.
    async fn killed(
        &mut self,
        act: &Act,
        writes: u64,
        meanwhile: Option<&Act>,
    ) -> anyhow::Result<Option<String>> {
        let mut refused = self.killed_after(act, writes).await?;
        if let Some(meanwhile) = meanwhile {
            refused = refused.or(self.act(meanwhile).await?);
        }
        self.begin().await?;
        Ok(refused)
    }

    /// Starts the program again; its first lists show the samples as they were after the act of a step, and its watches tell
    /// nothing for a while.
    async fn restart_in_the_past(&mut self, step: usize) -> anyhow::Result<Option<String>> {
        self.kill().await;
        let since = self.revisions.get(step).copied().unwrap_or_default();
        let until = self.revisions.get(step + 1).copied().unwrap_or(u64::MAX);
        let of_trial = self.witness.of_trial(self.journal, self.samples, since..until);
        let Some(revision) = of_trial else {
            return Ok(Some(format!("step {} has changed no sample", step + 1)));
        };
        let rules: Vec<RuleId> = rules::past(revision, self.samples, &self.witness.user)
            .into_iter()
            .map(|rule| self.admin.inject(rule))
            .collect();
        self.begin().await?;
        let deadline = Instant::now() + LONGEST_START;
        let has_listed = |rule: &RuleId| self.admin.hits(*rule).unwrap_or_default() > 0;
        while !rules.iter().any(has_listed) && Instant::now() < deadline {
            sleep(PAUSE).await;
        }
        self.pass(rules::WINDOW).await?;
        for rule in rules {
            self.admin.remove_fault(rule);
        }
        Ok(None)
    }

    /// The same with a second replica, which waits for the Lease of the first and takes over.
    async fn taken_over(&mut self, act: &Act, writes: u64) -> anyhow::Result<Option<String>> {
        let first = self.running.take();
        self.launch()?;
        self.stands_by().await?;
        let second = std::mem::replace(&mut self.running, first);
        let refused = self.killed_after(act, writes).await?;
        self.actor.release_leases(&self.witness.user).await?;
        self.running = second;
        Ok(refused)
    }

    /// Does something, and kills the program after so many writes: no write after it is carried out.
    async fn killed_after(&mut self, act: &Act, writes: u64) -> anyhow::Result<Option<String>> {
        let rule = self.admin.inject(rules::no_more_writes(&self.witness.user, writes));
        let refused = self.act(act).await?;
        let (mut seen, mut quiet_since) = (u64::MAX, Instant::now());
        let deadline = Instant::now() + self.pace.timeout;
        // It is about to write once more; or it never will.
        while self.admin.hits(rule).unwrap_or_default() == 0 && Instant::now() < deadline {
            let count = activity(self.journal);
            if count != seen || !self.speaks() {
                (seen, quiet_since) = (count, Instant::now());
            }
            if quiet_since.elapsed() >= self.pace.rest {
                break;
            }
            sleep(PAUSE).await;
        }
        self.kill().await;
        self.admin.remove_fault(rule);
        Ok(refused)
    }

    /// Whether the program has made a request since it was started for the first time.
    fn speaks(&mut self) -> bool {
        self.requested = self.requested || self.requests() > 0;
        self.requested
    }

    /// Whether the program watches the kinds of the samples since it was started, but for those that it never does.
    fn is_watching(&mut self) -> bool {
        let known = self.known.lock();
        let collections: BTreeSet<&str> = self.samples.iter().map(|id| &*id.collection).collect();
        self.watching = self.watching
            || collections.into_iter().filter(|one| !known.unwatched.contains(*one)).all(|collection| {
                let watches = rules::of_collection(collection, &self.witness.user).verbs([Verb::Watch]);
                let last = self.admin.requests(&watches, 1).requests.pop();
                last.is_some_and(|last| last.time >= self.since)
            });
        self.watching
    }

    /// How many requests the program has made.
    fn requests(&self) -> u64 {
        let of_program = Match { user: Some(self.witness.user.clone()), ..Match::default() };
        self.admin.requests(&of_program, 0).counts.iter().map(|count| count.count).sum()
    }

    /// Starts the program again after a kill.
    async fn begin(&mut self) -> anyhow::Result<()> {
        self.actor.release_leases(&self.witness.user).await?;
        self.launch()
    }

    fn launch(&mut self) -> anyhow::Result<()> {
        (self.since, self.watching) = (self.admin.now(), false);
        self.watches_by = Instant::now() + LONGEST_WATCH;
        self.running = Some((self.start)()?);
        Ok(())
    }

    async fn kill(&mut self) {
        if let Some(mut running) = self.running.take() {
            let exit = running.has_ended();
            running.kill().await;
            self.lives.push(life(&mut running, exit));
        }
    }

    /// Starts the program again that has ended by itself under a fault; `false` where it stays down.
    async fn look_after_program(&mut self) -> anyhow::Result<bool> {
        let Some(running) = &mut self.running else { return Ok(false) };
        let Some(exit) = running.has_ended() else { return Ok(true) };
        let life = life(running, Some(exit));
        self.running = None;
        self.lives.push(life);
        if !self.meets_faults || self.lives.len() > LIVES {
            return Ok(false);
        }
        sleep(AGAIN).await;
        self.begin().await?;
        Ok(true)
    }

    /// Waits until nobody has written for a while, and for longer where the state is not what is expected.
    async fn rests(&mut self, step: &Step, from: Duration) -> anyhow::Result<(Rest, State)> {
        let deadline = Instant::now() + self.pace.timeout;
        let (mut seen, mut quiet_since) = (u64::MAX, Instant::now());
        let (mut written, mut work) = (Instant::now(), Work::default());
        let mut judged: Option<Judged> = None;
        loop {
            let count = activity(self.journal);
            if count != seen {
                written = Instant::now();
            }
            // Who computes between two writes, as for a key, is not at rest.
            let computes = work.goes_on(self.running.as_ref()) && written.elapsed() < LONGEST_COMPUTING;
            let is_at_work = self.speaks() && (self.is_watching() || Instant::now() >= self.watches_by);
            if count != seen || computes || !is_at_work {
                (seen, quiet_since) = (count, Instant::now());
                judged = None;
            }
            if !self.look_after_program().await? {
                return Ok((Rest::Exited, self.state()));
            }
            if quiet_since.elapsed() >= self.pace.rest {
                let is_reached = match &judged {
                    Some(judged) => judged.is_reached,
                    None => {
                        let writes = self.witness.writes(self.journal);
                        let state = state(&writes, self.samples);
                        let has_written = writes.iter().any(|write| write.at >= from && is_work(write));
                        let is_reached = self.known.lock().is_reached(&step.desired, &state, has_written);
                        judged = Some(Judged { is_reached, state });
                        is_reached
                    }
                };
                if is_reached || quiet_since.elapsed() >= self.pace.patience {
                    let state = judged.map(|judged| judged.state).unwrap_or_default();
                    return Ok((Rest::Quiet, state));
                }
            }
            if Instant::now() >= deadline && (quiet_since.elapsed() < self.pace.rest || !self.requested) {
                let rest = if self.requested { Rest::Busy } else { Rest::Silent };
                return Ok((rest, self.state()));
            }
            sleep(PAUSE).await;
        }
    }

    fn state(&self) -> State {
        state(&self.witness.writes(self.journal), self.samples)
    }

    /// Ends the program, and gives its lives.
    async fn end(mut self) -> Vec<Life> {
        if let Some(mut running) = self.running.take() {
            let exit = running.has_ended();
            let life = life(&mut running, exit);
            running.stop().await;
            self.lives.push(life);
        }
        self.lives
    }
}

/// How much a program computes, looked at from time to time.
#[derive(Default)]
struct Work {
    last: Option<(Instant, Duration)>,
    goes_on: bool,
}

impl Work {
    /// Whether the program has computed for more than a part of the time since it was looked at last.
    fn goes_on(&mut self, running: Option<&Running>) -> bool {
        if self.last.is_some_and(|(at, _)| at.elapsed() < LOOKED) {
            return self.goes_on;
        }
        let computed = running.and_then(Running::computed);
        self.goes_on = match (self.last, computed) {
            (Some((at, before)), Some(now)) => now.saturating_sub(before) > at.elapsed() / COMPUTES,
            _ => false,
        };
        self.last = computed.map(|computed| (Instant::now(), computed));
        self.goes_on
    }
}

/// What came of a silence.
struct Judged {
    /// Whether the state is the one that is expected.
    is_reached: bool,
    state: State,
}

/// Whether a write is the program's answer to something.
fn is_work(write: &Write) -> bool {
    write.by == Who::Program && !is_upkeep(&write.id.collection)
}

/// What a program has said, and how it ended.
fn life(running: &mut Running, exit: Option<String>) -> Life {
    let said = running.said();
    Life { exit, panics: panics(&said), tail: shortened(&said, TAIL) }
}
