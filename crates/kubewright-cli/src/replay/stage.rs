//! The world in which a program is replayed, and the program in it.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context, bail};
use jiff::Timestamp;
use kubewright_cluster::{
    admin::{Admin, Match},
    journal::Journal,
    recording::Did,
};
use kubewright_recording::{Did as RecordedDid, Write};
use kubewright_trial::story::{ObjectId, is_upkeep};
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    report::{Moment, Report},
    step::Step,
    verdict::{self, Side, Verdict},
    world::Others,
};
use crate::{
    play::Speed,
    stand::{Stand, activity, program::Running},
};

/// How often it is looked what the program has done.
const PAUSE: Duration = Duration::from_millis(25);
/// How long a program asks for nothing when it has started.
const STARTED: Duration = Duration::from_millis(300);

/// How fast a recording is replayed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// How long nobody writes when all is at rest.
    pub(super) rest: Duration,
    pub(super) timeout: Duration,
    pub(super) speed: Option<Speed>,
}

/// A replay that goes on.
pub(super) struct Stage<'a> {
    admin: &'a Admin,
    journal: &'a Journal,
    user: &'a str,
    running: Running,
    pace: Pace,
    has_hashes: bool,
    others: Others,
    then: Side,
    now: Side,
    /// How much of the journal is in `now`.
    position: u64,
    report: Report,
}

impl<'a> Stage<'a> {
    /// On a stand that began with this state, with a program that has just been started as this user.
    ///
    /// # Errors
    /// When the stand notes nothing.
    pub(super) fn new(
        stand: &'a Stand,
        user: &'a str,
        running: Running,
        pace: Pace,
        has_hashes: bool,
        state: &[Write],
    ) -> anyhow::Result<Self> {
        let admin = stand.cluster.admin().context("the control plane keeps no log")?;
        let journal = stand.cluster.journal().context("the control plane keeps no journal")?;
        let (mut then, mut now) = (Side::default(), Side::default());
        let mut uids = std::collections::BTreeMap::new();
        for write in state {
            let object: Value = serde_json::from_str(write.object.get())?;
            if let Some(uid) = object["metadata"]["uid"].as_str() {
                uids.insert(uid.to_owned(), uid.to_owned());
            }
            let is_gone = write.did == RecordedDid::Delete;
            now.note(id(write), object.clone(), is_gone, false);
            then.note(id(write), object, is_gone, false);
        }
        let others = Others::new(&stand.access.client, uids);
        let report = Report::default();
        Ok(Self { admin, journal, user, running, pace, has_hashes, others, then, now, position: 0, report })
    }

    /// Plays the steps, and compares what the program does.
    ///
    /// # Errors
    /// When the program ends, or never speaks to its control plane.
    pub(super) async fn play(&mut self, steps: &[Step<'_>]) -> anyhow::Result<()> {
        self.started().await?;
        let clock = self.pace.speed.map(|speed| (Instant::now(), speed));
        let first = steps.iter().find_map(Step::last).map(|last| last.time);
        for step in steps {
            for write in &step.others {
                self.wait_for_its_time(clock, first, write.time).await?;
                let id = id(write);
                let before = self.then.object(&id).cloned();
                self.note_then(write, false)?;
                self.others.play(write, before.as_ref()).await?;
            }
            for write in &step.own {
                self.note_then(write, true)?;
            }
            self.report.writes.0 += step.own.len();
            let own: BTreeSet<ObjectId> = step.own.iter().map(|write| id(write)).collect();
            self.answered(&own, step.is_judged).await?;
            for id in &own {
                if let (Some(then), Some(now)) = (self.then.object(id), self.now.object(id)) {
                    self.others.learn(then, now);
                }
            }
            if step.is_judged {
                self.judge(step);
            }
        }
        Ok(())
    }

    fn note_then(&mut self, write: &Write, is_own: bool) -> anyhow::Result<()> {
        let object: Value = serde_json::from_str(write.object.get())?;
        self.then.note(id(write), object, write.did == RecordedDid::Delete, is_own);
        Ok(())
    }

    fn judge(&mut self, step: &Step<'_>) {
        let last = step.last();
        let time = last.map(|last| format!("{:.0}", last.time)).unwrap_or_default();
        let moment = Moment { revision: last.map_or(0, |last| last.revision), time };
        let compared = verdict::judge(&self.then, &self.now, self.has_hashes);
        self.report.compared.extend(compared.into_iter().map(|one| (moment.clone(), one)));
        self.then.rest();
        self.now.rest();
    }

    async fn wait_for_its_time(
        &mut self,
        clock: Option<(Instant, Speed)>,
        first: Option<Timestamp>,
        time: Timestamp,
    ) -> anyhow::Result<()> {
        let Some(((began, speed), first)) = clock.zip(first) else { return Ok(()) };
        let since = Duration::try_from(time.duration_since(first)).unwrap_or_default();
        let Some(due) = began.checked_add(speed.after(since)) else { return Ok(()) };
        tokio::select! {
            biased;
            status = self.running.ended() => bail!("program ended ({status}){}", self.running.tail()),
            () = sleep_until(due) => Ok(()),
        }
    }

    /// Waits until the program has asked for what it watches.
    async fn started(&mut self) -> anyhow::Result<()> {
        let of_program = Match { user: Some(self.user.to_owned()), ..Match::default() };
        let deadline = Instant::now() + self.pace.timeout;
        let (mut seen, mut quiet_since) = (0, Instant::now());
        loop {
            self.look_after_program("before it was at rest for the first time")?;
            let count: u64 = self.admin.requests(&of_program, 0).counts.iter().map(|count| count.count).sum();
            if count != seen {
                (seen, quiet_since) = (count, Instant::now());
            }
            if count > 0 && quiet_since.elapsed() >= STARTED {
                return Ok(());
            }
            if Instant::now() >= deadline {
                if count > 0 {
                    return Ok(());
                }
                bail!(
                    "program has not spoken to its control plane in time: it has to find it by $KUBECONFIG{}",
                    self.running.tail()
                );
            }
            sleep(PAUSE).await;
        }
    }

    /// Waits until these objects are as they were then, or nobody has written for a while; for that in any case where all is to be
    /// at rest.
    async fn answered(&mut self, own: &BTreeSet<ObjectId>, is_rest: bool) -> anyhow::Result<()> {
        let deadline = Instant::now() + self.pace.timeout;
        let (mut seen, mut quiet_since) = (u64::MAX, Instant::now());
        loop {
            self.look_after_program("in the midst of the replay")?;
            let count = activity(self.journal);
            if count != seen {
                (seen, quiet_since) = (count, Instant::now());
                self.note_now();
                let is_answered = !is_rest && verdict::are_same(own, &self.then, &self.now, self.has_hashes);
                if is_answered {
                    return Ok(());
                }
            }
            if quiet_since.elapsed() >= self.pace.rest {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let warning =
                    "the program was not at rest within --timeout; what it had done by then is compared";
                if self.report.warnings.iter().all(|known| known != warning) {
                    self.report.warnings.push(warning.to_owned());
                }
                return Ok(());
            }
            sleep(PAUSE).await;
        }
    }

    fn look_after_program(&mut self, when: &str) -> anyhow::Result<()> {
        match self.running.has_ended() {
            Some(status) => bail!("program ended ({status}) {when}{}", self.running.tail()),
            None => Ok(()),
        }
    }

    /// Takes over what was written here since.
    fn note_now(&mut self) {
        let (written, lost) = self.journal.since(self.position);
        self.position += lost + written.len() as u64;
        for one in written {
            let is_own =
                one.by.as_ref().is_some_and(|by| by.user == self.user) && !is_upkeep(&one.collection);
            self.report.writes.1 += usize::from(is_own);
            let object = serde_json::from_slice(&one.bytes).unwrap_or_default();
            let id = ObjectId::new(&*one.collection, &*one.key);
            self.now.note(id, object, Did::from(one.happening) == Did::Delete, is_own);
        }
    }

    /// Ends the program, and gives what it came to.
    ///
    /// # Errors
    /// What the replay failed with.
    pub(super) async fn end(self, played: anyhow::Result<()>) -> anyhow::Result<Report> {
        let Self { running, mut report, others, .. } = self;
        running.stop().await;
        played?;
        report.played = others.played;
        for (why, (first, count)) in &others.refused {
            report
                .warnings
                .push(format!("{count} writes of others could not be played: {why}, first {first}"));
        }
        if report.compared.iter().all(|(_, one)| one.verdict == Verdict::NotDone) && report.writes.1 == 0 {
            report.warnings.push("the program wrote nothing: --logs shows what it says".to_owned());
        }
        Ok(report)
    }
}

fn id(write: &Write) -> ObjectId {
    ObjectId::new(&*write.collection, &*write.key)
}
