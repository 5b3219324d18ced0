//! What happens besides writes: reconciles and queues of operators, requests, and what a test did to the cluster.

use jiff::Timestamp;
use kubewright_control_plane::admin::{Admin, AnsweredRequest, Match, Queue};
use kubewright_meta::access::Access;
use kubewright_recording::{Mark, Reconcile, Record, Request};
use serde::Serialize;

/// What a recording has besides writes, in its order.
#[derive(Debug, Default)]
pub(crate) struct Besides {
    pub(crate) requests: Vec<Request>,
    pub(crate) reconciles: Vec<Reconcile>,
    pub(crate) marks: Vec<Mark>,
}

impl FromIterator<Record> for Besides {
    fn from_iter<I: IntoIterator<Item = Record>>(records: I) -> Self {
        let mut besides = Self::default();
        for record in records {
            match record {
                Record::Write(_) => {}
                Record::Request(request) => besides.requests.push(request),
                Record::Reconcile(reconcile) => besides.reconciles.push(reconcile),
                Record::Mark(mark) => besides.marks.push(mark),
            }
        }
        besides
    }
}

/// A reconcile without what is not shown of it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReconcileRow {
    /// Milliseconds since 1970, in cluster time.
    pub time: i64,
    /// How many milliseconds it took.
    pub took: f64,
    /// How many milliseconds its key had waited.
    pub waited: f64,
    /// Whose operator it was.
    pub user: String,
    /// The program of the operator.
    pub program: String,
    /// The controller.
    pub controller: String,
    /// Namespace and name of what was reconciled.
    pub key: String,
    /// Why, for people.
    pub reasons: String,
    /// What came of it.
    pub outcome: String,
    /// Whether it went wrong.
    pub failed: bool,
    /// How many different reads it made, as far as its operator has told.
    pub reads: usize,
    /// How many different writes it made.
    pub writes: usize,
    /// What it read and wrote. The page asks for it by itself.
    #[serde(skip)]
    pub accesses: Vec<Access>,
    /// How many accesses are left out.
    #[serde(skip)]
    pub accesses_left_out: u64,
}

impl From<&Reconcile> for ReconcileRow {
    fn from(reconcile: &Reconcile) -> Self {
        let writes = reconcile.accesses.iter().filter(|access| access.is_write()).count();
        let milliseconds = |seconds: f64| (seconds * 1_000_000.0).round() / 1_000.0;
        Self {
            time: reconcile.time.as_millisecond(),
            took: milliseconds(reconcile.took),
            waited: milliseconds(reconcile.waited),
            user: reconcile.by.user.clone(),
            program: reconcile.by.program.clone(),
            controller: reconcile.controller.clone(),
            key: reconcile.key.clone(),
            reasons: reconcile.reasons.clone(),
            outcome: reconcile.outcome.clone(),
            failed: reconcile.failed,
            reads: reconcile.accesses.len() - writes,
            writes,
            accesses: reconcile.accesses.clone(),
            accesses_left_out: reconcile.accesses_left_out,
        }
    }
}

/// A mark as the page shows it on the timeline: a fault that came or went, or time that was let pass.
#[derive(Debug, Serialize)]
pub(crate) struct MarkRow {
    /// Milliseconds since 1970, in cluster time.
    time: i64,
    what: String,
    note: String,
}

impl From<&Mark> for MarkRow {
    fn from(mark: &Mark) -> Self {
        Self { time: mark.time.as_millisecond(), what: mark.what.clone(), note: mark.note.clone() }
    }
}

/// Reports since two positions.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reports {
    reconciles: Vec<ReconcileRow>,
    /// The position behind them.
    after: u64,
    marks: Vec<MarkRow>,
    marks_after: u64,
    queues: Vec<Queue>,
    /// Milliseconds since 1970, in cluster time, where that is known.
    now: Option<i64>,
}

impl Besides {
    /// What there is after these positions, of a recording.
    pub(crate) fn reports(&self, after: u64, marks_after: u64, limit: usize) -> Reports {
        let (reconciles, after) = part(&self.reconciles, after, limit);
        let (marks, marks_after) = part(&self.marks, marks_after, limit);
        Reports { reconciles, after, marks, marks_after, queues: Vec::new(), now: None }
    }
}

fn part<'a, T, R: From<&'a T>>(all: &'a [T], after: u64, limit: usize) -> (Vec<R>, u64) {
    let from = usize::try_from(after).unwrap_or(usize::MAX).min(all.len());
    let until = all.len().min(from.saturating_add(limit));
    (all[from..until].iter().map(R::from).collect(), until as u64)
}

/// What there is after these positions, of a cluster that runs.
pub(crate) fn live(admin: &Admin, after: u64, marks_after: u64, limit: usize) -> Reports {
    let (mut reconciles, end) = admin.reconciles_since(after);
    let surplus = reconciles.len().saturating_sub(limit);
    reconciles.truncate(limit);
    let (marks, marks_after) = admin.marks_since(marks_after);
    Reports {
        reconciles: reconciles.iter().map(ReconcileRow::from).collect(),
        after: end - surplus as u64,
        marks: marks.iter().map(MarkRow::from).collect(),
        marks_after,
        queues: admin.queues(),
        now: Some(admin.now().as_millisecond()),
    }
}

/// A request as the page lists it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestRow {
    time: Timestamp,
    pub(crate) user: String,
    pub(crate) user_agent: String,
    pub(crate) verb: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    patch: &'static str,
    /// `deployments.apps/status`, or a path; of a recording `apps/deployments/status`.
    pub(crate) what: String,
    /// Namespace and name.
    pub(crate) key: String,
    pub(crate) code: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fault: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    milliseconds: Option<f64>,
}

impl From<&Request> for RequestRow {
    fn from(request: &Request) -> Self {
        Self {
            time: request.time,
            user: request.by.user.clone(),
            user_agent: request.by.program.clone(),
            verb: request.verb.clone(),
            patch: "",
            what: request.resource.clone(),
            key: request.key.clone(),
            code: request.code,
            fault: request.fault,
            milliseconds: None,
        }
    }
}

impl From<&AnsweredRequest> for RequestRow {
    fn from(request: &AnsweredRequest) -> Self {
        let info = &request.info;
        let join = |parts: [&str; 2], between: &str| {
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(between)
        };
        let resource = join([&join([&info.resource, &info.group], "."), &info.subresource], "/");
        Self {
            time: request.time,
            user: info.user.clone(),
            user_agent: info.user_agent.clone(),
            verb: info.verb.to_owned(),
            patch: info.patch,
            what: if resource.is_empty() { info.path.clone() } else { resource },
            key: join([&info.namespace, &info.name], "/"),
            code: request.code,
            fault: request.fault,
            milliseconds: Some(request.milliseconds),
        }
    }
}

/// The last requests that are wanted, newest first, and how many there were and are not kept. No more are made rows of than are looked at.
pub(crate) fn requests(
    admin: Option<&Admin>,
    recorded: &Besides,
    wanted: impl Fn(&RequestRow) -> bool,
    limit: usize,
) -> (Vec<RequestRow>, u64, u64) {
    match admin {
        Some(admin) => {
            let all = admin.requests(&Match::default(), usize::MAX);
            let rows = all.requests.iter().rev().map(RequestRow::from).filter(wanted).take(limit);
            (rows.collect(), all.total, all.forgotten)
        }
        None => {
            let all = &recorded.requests;
            let rows = all.iter().rev().map(RequestRow::from).filter(wanted).take(limit);
            (rows.collect(), all.len() as u64, 0)
        }
    }
}
