//! The rules one by one, and a world in which everything goes wrong that can: never two leaders.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use kubewright_world::{Dice, SIMULATION_START};
use proptest::prelude::*;
use tokio::time::Instant;

use super::{
    decision::{Candidate, LeaseAction},
    record::Record,
};

const LEASE: Duration = Duration::from_secs(15);
const DEADLINE: Duration = Duration::from_secs(10);
const TIMEOUT: u64 = 5_000;

fn candidate(name: &str) -> Candidate {
    Candidate::new(name.to_owned(), LEASE, DEADLINE)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Reads, and has accepted what is to be written.
fn take(candidate: &mut Candidate, found: Option<&Record>, now: Instant) -> Record {
    let LeaseAction::Write(record) = candidate.read(found.cloned(), now, SIMULATION_START) else {
        panic!("nothing to write")
    };
    candidate.accepted(record.clone(), now);
    record
}

#[test]
fn a_lease_is_taken_when_it_is_not_there_is_released_or_did_not_change_for_its_duration() {
    let now = Instant::now();
    let (mut first, mut second, mut third) = (candidate("first"), candidate("second"), candidate("third"));
    let held = take(&mut first, None, now);
    assert_eq!((held.holder.as_str(), held.transitions), ("first", 0));
    assert_eq!(second.read(Some(held.clone()), now, SIMULATION_START), LeaseAction::Wait);
    let almost = now + seconds(15) - Duration::from_millis(1);
    assert_eq!(second.read(Some(held.clone()), almost, SIMULATION_START), LeaseAction::Wait);
    let taken = take(&mut second, Some(&held), now + seconds(15));
    assert_eq!((taken.holder.as_str(), taken.transitions), ("second", 1));
    let released = second.resign(SIMULATION_START).expect("it led");
    assert_eq!((released.holder.as_str(), released.duration, released.transitions), ("", seconds(1), 1));
    assert_eq!(take(&mut third, Some(&released), now + seconds(16)).transitions, 2);
}

#[test]
fn the_time_in_a_record_says_nothing_only_that_it_changes() {
    let now = Instant::now();
    let (mut first, mut second) = (candidate("first"), candidate("second"));
    let mut held = take(&mut first, None, now);
    for hours in [-3, 5, -100] {
        held.renewed = Some(SIMULATION_START + jiff::SignedDuration::from_hours(hours));
        assert_eq!(second.read(Some(held.clone()), now + seconds(60), SIMULATION_START), LeaseAction::Wait);
    }
}

#[test]
fn what_a_holder_promised_counts_not_what_others_would() {
    let now = Instant::now();
    let mut patient = candidate("patient");
    let held = Record { duration: seconds(60), ..take(&mut candidate("first"), None, now) };
    assert_eq!(patient.read(Some(held.clone()), now, SIMULATION_START), LeaseAction::Wait);
    assert_eq!(patient.read(Some(held.clone()), now + seconds(59), SIMULATION_START), LeaseAction::Wait);
    assert!(matches!(patient.read(Some(held), now + seconds(60), SIMULATION_START), LeaseAction::Write(_)));
}

#[test]
fn a_term_is_lost_to_another_holder_an_emptied_record_and_to_time() {
    let now = Instant::now();
    let own = take(&mut candidate("first"), None, now);
    let stolen = Record { holder: "thief".into(), ..own.clone() };
    let emptied = Record { holder: String::new(), ..own.clone() };
    let namesake = Record { transitions: 1, ..own.clone() };
    for (found, at) in [(stolen, 1), (emptied, 1), (namesake, 1), (own.clone(), 10)] {
        let mut first = candidate("first");
        assert_eq!(take(&mut first, None, now), own);
        assert_eq!(first.read(Some(found), now + seconds(at), SIMULATION_START), LeaseAction::Lost);
    }
}

#[test]
fn a_label_that_somebody_sets_and_a_deletion_do_not_end_a_term() {
    let now = Instant::now();
    let mut first = candidate("first");
    let own = take(&mut first, None, now);
    assert!(matches!(first.read(Some(own), now + seconds(1), SIMULATION_START), LeaseAction::Write(_)));
    let LeaseAction::Write(again) = first.read(None, now + seconds(2), SIMULATION_START) else {
        panic!("lost")
    };
    assert_eq!(again.transitions, 0);
}

#[test]
fn a_deleted_lease_is_left_to_its_holder_for_its_duration_and_counts_on() {
    let now = Instant::now();
    let mut second = candidate("second");
    let held = take(&mut candidate("first"), None, now);
    assert_eq!(second.read(Some(held), now, SIMULATION_START), LeaseAction::Wait);
    assert_eq!(second.read(None, now + seconds(60), SIMULATION_START), LeaseAction::Wait);
    let LeaseAction::Write(record) = second.read(None, now + seconds(75), SIMULATION_START) else {
        panic!("waits")
    };
    assert_eq!(record.transitions, 1);
}

#[test]
fn a_candidate_knows_its_own_write_when_the_answer_was_lost_but_not_that_of_a_namesake() {
    let now = Instant::now();
    let (mut first, mut namesake) = (candidate("same"), candidate("same"));
    let LeaseAction::Write(written) = first.read(None, now, SIMULATION_START) else { panic!("it is free") };
    assert!(matches!(first.read(Some(written.clone()), now, SIMULATION_START), LeaseAction::Write(_)));
    assert_eq!(namesake.read(Some(written), now, SIMULATION_START), LeaseAction::Wait);
}

/// What the server has: the record, with a version that changes with every write.
#[derive(Default)]
struct Server {
    lease: Option<Record>,
    version: u64,
}

#[derive(Clone)]
enum Request {
    Read,
    /// Over this version; `None` creates.
    Write(Option<u64>, Record),
}

#[derive(Clone)]
enum Answer {
    Found(Option<Record>, u64),
    Accepted(u64),
    Conflict,
}

enum Happening {
    Wake(usize),
    Arrive(usize, u64, Request),
    Answered(usize, u64, Answer),
    TimedOut(usize, u64),
    Deleted,
}

/// A process, as [`super::Elector`] runs it.
struct Process {
    candidate: Candidate,
    /// The lease's version as it was last seen.
    version: Option<u64>,
    /// The request that is waited for, what it writes, and when it was sent.
    waits_for: Option<(u64, Option<Record>, u64)>,
    paused_until: u64,
    /// By how much its wall clock is off.
    skew: i64,
}

struct Simulation {
    dice: Dice,
    start: Instant,
    now: u64,
    server: Server,
    processes: Vec<Process>,
    /// By time in milliseconds; the number keeps the order of equal times.
    plan: BTreeMap<(u64, u64), Happening>,
    number: u64,
    faults: bool,
    /// Whether the Lease was deleted, or will be soon.
    deleted: bool,
    leaders: BTreeSet<usize>,
}

impl Simulation {
    fn new(seed: u64, processes: usize) -> Self {
        let process = |at: usize| Process {
            candidate: candidate(&format!("p{at}")),
            version: None,
            waits_for: None,
            paused_until: 0,
            skew: 0,
        };
        let mut simulation = Self {
            dice: Dice::from_seed(seed),
            start: Instant::now(),
            now: 0,
            server: Server::default(),
            processes: (0..processes).map(process).collect(),
            plan: BTreeMap::new(),
            number: 0,
            faults: true,
            deleted: false,
            leaders: BTreeSet::new(),
        };
        (0..processes).for_each(|at| simulation.plan(0, Happening::Wake(at)));
        simulation
    }

    fn roll(&self, below: u64) -> u64 {
        self.dice.below(usize::try_from(below).expect("small")) as u64
    }

    fn one_in(&self, chances: u64) -> bool {
        self.faults && self.roll(chances) == 0
    }

    fn plan(&mut self, after: u64, happening: Happening) {
        self.number += 1;
        self.plan.insert((self.now + after, self.number), happening);
    }

    fn instant(&self, at: u64) -> Instant {
        self.start + Duration::from_millis(at)
    }

    fn wall(&self, at: usize) -> Timestamp {
        let millis = i64::try_from(self.now).expect("small") + self.processes[at].skew;
        SIMULATION_START + jiff::SignedDuration::from_millis(millis)
    }

    fn run(&mut self, until: u64) {
        while let Some(((at, _), happening)) = self.plan.pop_first() {
            if at > until {
                return;
            }
            self.now = at;
            self.happen(happening);
            let leaders: Vec<_> = self.leaders_now().collect();
            assert!(leaders.len() <= 1, "{leaders:?} lead at {at} ms");
            self.leaders.extend(leaders);
        }
    }

    fn leaders_now(&self) -> impl Iterator<Item = usize> {
        let is_leader = |process: &Process| {
            process.candidate.term().is_some_and(|term| self.instant(self.now) < term.valid_until)
        };
        (0..self.processes.len()).filter(move |at| is_leader(&self.processes[*at]))
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Wake(at) | Happening::Answered(at, ..) | Happening::TimedOut(at, _)
                if self.processes[at].paused_until > self.now =>
            {
                let after = self.processes[at].paused_until - self.now;
                self.plan(after, happening);
            }
            Happening::Wake(at) => self.wake(at),
            Happening::Arrive(at, id, request) => self.arrive(at, id, request),
            Happening::Answered(at, id, answer) => self.answered(at, id, answer),
            Happening::TimedOut(at, id) => {
                if self.processes[at].waits_for.as_ref().is_some_and(|waits| waits.0 == id) {
                    self.processes[at].waits_for = None;
                    self.plan(2_000, Happening::Wake(at));
                }
            }
            Happening::Deleted => self.server = Server { lease: None, version: self.server.version + 1 },
        }
    }

    fn wake(&mut self, at: usize) {
        if self.one_in(20) {
            self.processes[at].paused_until = self.now + self.roll(40_000);
        }
        if self.one_in(20) {
            self.processes[at].skew = i64::try_from(self.roll(7_200_000)).expect("small") - 3_600_000;
        }
        // Once, and not before all have seen it: see the module's limits.
        let all_know = self.processes.iter().all(|process| process.version.is_some());
        if all_know && !self.deleted && self.now > 100_000 && self.one_in(20) {
            self.deleted = true;
            self.plan(self.roll(2_000), Happening::Deleted);
        }
        let wall = self.wall(at);
        let expired = |term: super::decision::Term| self.instant(self.now) >= term.valid_until;
        if self.processes[at].candidate.term().is_some_and(expired) {
            self.processes[at].candidate.resign(wall);
        }
        let process = &self.processes[at];
        let request = match (process.candidate.renew(wall), process.version) {
            (Some(record), version @ Some(_)) => Request::Write(version, record),
            _ => Request::Read,
        };
        self.send(at, request);
    }

    fn send(&mut self, at: usize, request: Request) {
        self.number += 1;
        let id = self.number;
        let written = if let Request::Write(_, record) = &request { Some(record.clone()) } else { None };
        self.processes[at].waits_for = Some((id, written, self.now));
        self.plan(TIMEOUT, Happening::TimedOut(at, id));
        if !self.one_in(10) {
            self.plan(self.delay(), Happening::Arrive(at, id, request));
        }
    }

    fn delay(&self) -> u64 {
        if self.one_in(8) { self.roll(20_000) } else { self.roll(50) }
    }

    fn arrive(&mut self, at: usize, id: u64, request: Request) {
        let server = &mut self.server;
        let answer = match request {
            Request::Read => Answer::Found(server.lease.clone(), server.version),
            Request::Write(over, record) => {
                if server.lease.as_ref().map(|_| server.version) == over {
                    *server = Server { lease: Some(record), version: server.version + 1 };
                    Answer::Accepted(server.version)
                } else {
                    Answer::Conflict
                }
            }
        };
        if !self.one_in(10) {
            self.plan(self.delay(), Happening::Answered(at, id, answer));
        }
    }

    fn answered(&mut self, at: usize, id: u64, answer: Answer) {
        let (now, wall) = (self.instant(self.now), self.wall(at));
        let Some((_, written, sent)) = self.processes[at].waits_for.take_if(|waits| waits.0 == id) else {
            return;
        };
        let sent = self.instant(sent);
        let process = &mut self.processes[at];
        match answer {
            Answer::Found(found, version) => {
                process.version = found.as_ref().map(|_| version);
                match process.candidate.read(found, now, wall) {
                    LeaseAction::Write(record) => {
                        let request = Request::Write(process.version, record);
                        return self.send(at, request);
                    }
                    LeaseAction::Lost => drop(process.candidate.resign(wall)),
                    LeaseAction::Wait => {}
                }
            }
            Answer::Accepted(version) => {
                process.version = Some(version);
                process.candidate.accepted(written.expect("a write was accepted"), sent);
            }
            Answer::Conflict => return self.send(at, Request::Read),
        }
        self.plan(2_000, Happening::Wake(at));
    }
}

proptest! {
    #[test]
    fn no_two_ever_lead_and_when_the_faults_end_one_does(seed: u64, processes in 2..5_usize) {
        let mut simulation = Simulation::new(seed, processes);
        simulation.run(600_000);
        simulation.faults = false;
        simulation.run(700_000);
        prop_assert_eq!(simulation.leaders_now().count(), 1);
        prop_assert!(!simulation.leaders.is_empty());
    }
}
