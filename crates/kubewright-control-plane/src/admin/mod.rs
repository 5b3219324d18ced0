//! What a test may do to a cluster from outside the API: let time pass, empty it, make requests and watches fail, and see
//! who called what.
//!
//! [`Admin`] is that, for a test in this process. Over HTTP it is the same, at `/kubewright` on the API server's own port
//! (`endpoint`), for who comes from this machine and may use these paths under the authorization of the cluster.
//!
//! Both stand in front of the API server (`service`): faults affect clients, not the built-in controllers. A cluster that is
//! not asked for it ([`Builder::admin`](crate::Builder::admin)) has nothing of this in the way of its requests.

mod body;
mod duration;
pub(crate) mod endpoint;
mod faults;
mod history;
mod log;
mod marks;
mod matching;

mod reconciles;
mod refusal;
mod report;
mod request_info;
mod rule;
mod schedule;
pub(crate) mod service;
#[cfg(test)]
mod tests;
mod watches;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::time::Duration;

use jiff::Timestamp;
use kubewright_apiserver::http::WeakApiServer;
use kubewright_engine::verbs;
use kubewright_meta::ApiError;
use kubewright_recording::{Author, Mark, Reconcile};
use kubewright_store::Revision;
use kubewright_world::{Pacer, World};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use faults::RuleId;
pub use log::{AnsweredRequest, Count, Requests};
pub use matching::{Match, Verb};
pub use reconciles::{FailingKey, Queue};
pub use request_info::RequestInfo;
pub use rule::{ApiFault, NoAnswer, Rule, WatchEnd};
pub use schedule::Schedule;

/// What [`RequestInfo`] was called.
#[deprecated(since = "0.1.0", note = "is called `RequestInfo`")]
pub type Asked = RequestInfo;

/// What [`AnsweredRequest`] was called.
#[deprecated(since = "0.1.0", note = "is called `AnsweredRequest`")]
pub type Answered = AnsweredRequest;

/// What [`WatchEnd`] was called.
#[deprecated(since = "0.1.0", note = "is called `WatchEnd`")]
pub type Ending = WatchEnd;

/// What [`ApiFault`] was called.
#[deprecated(since = "0.1.0", note = "is called `ApiFault`")]
pub type Fault = ApiFault;

use faults::{Faults, Intervention, Since};
use log::Log;
use marks::Marks;
use reconciles::{OperatorReport, Reconciles};
use watches::{End, Order, WatchId, Watches};

/// The most that time passes at once: ten years.
const FARTHEST: Duration = Duration::from_secs(10 * 366 * 24 * 3600);

/// Error of an advance: why time does not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdvanceError {
    /// It is the machine's.
    #[error(
        "the cluster lives by the machine's clock: start it with --clock (KUBEWRIGHT_CLOCK for kube-apiserver), such as 2030-01-01T00:00:00Z or speed=1"
    )]
    Machine,
    /// It is too much at once.
    #[error("time passes by at most ten years at once")]
    TooFar,
    /// The cluster is ending.
    #[error("the cluster is ending")]
    Ended,
}

/// Time, faults and the log of a cluster; clones are of the same one.
#[derive(Clone)]
pub struct Admin(Arc<Inner>);

struct Inner {
    /// Not kept: an answer that is still read must not keep a cluster.
    server: WeakApiServer,
    world: World,
    pacer: Option<Pacer>,
    shutdown: CancellationToken,
    /// Whether clients find it at `/kubewright`.
    is_served: bool,
    /// Whether operators are asked for their reconciles.
    asks: AtomicBool,
    state: Mutex<State>,
    /// The last revision of what was there before the last reset.
    resets: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    faults: Faults,
    watches: Watches,
    log: Log,
    marks: Marks,
    reconciles: Reconciles,
}

impl State {
    fn remove_fault(&mut self, id: RuleId, now: Timestamp) -> bool {
        self.watches.release(id);
        let is_removed = self.faults.remove(id);
        if is_removed {
            self.marks.add(now, "fault", format!("removed: {id}"));
        }
        is_removed
    }
}

impl Admin {
    pub(crate) fn new(
        server: WeakApiServer,
        world: World,
        pacer: Option<Pacer>,
        shutdown: CancellationToken,
        is_served: bool,
    ) -> Self {
        let resets = watch::Sender::new(0);
        let (asks, state) = (AtomicBool::new(false), Mutex::default());
        Self(Arc::new(Inner { server, world, pacer, shutdown, is_served, asks, state, resets }))
    }

    fn is_served(&self) -> bool {
        self.0.is_served
    }

    /// What time it is in the cluster.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.0.world.clock.now()
    }

    /// Whether [`Self::advance`] can let time pass.
    #[must_use]
    pub fn can_advance(&self) -> bool {
        self.0.pacer.is_some() || self.0.world.clock.may_jump()
    }

    /// Lets so much cluster time pass, with everything that falls due in it in this process, in its order; gives the time
    /// after it.
    ///
    /// # Errors
    /// When the cluster lives by the machine's clock.
    pub async fn advance(&self, by: Duration) -> Result<Timestamp, AdvanceError> {
        if by > FARTHEST {
            return Err(AdvanceError::TooFar);
        }
        match &self.0.pacer {
            Some(pacer) => pacer.advance(by).await.map_err(|_| AdvanceError::Ended)?,
            None if self.0.world.clock.may_jump() => tokio::time::sleep(by).await,
            None => return Err(AdvanceError::Machine),
        }
        let now = self.now();
        self.0.state.lock().marks.add(now, "clock", format!("{by:?} passed"));
        Ok(now)
    }

    /// Makes the cluster as it was when it started ([`verbs::reset`]), removes all faults, and empties the log. Time does
    /// not go back. The cluster's own nodes register again, as after its start: a moment after this has returned.
    ///
    /// # Errors
    /// When the store has failed, or the cluster has ended.
    pub async fn reset(&self) -> Result<(), ApiError> {
        let server = self.0.server.upgrade().ok_or_else(|| ApiError::internal("the cluster has ended"))?;
        self.remove_faults();
        verbs::reset(server.engine()).await?;
        self.forget_requests();
        self.0.resets.send_replace(server.engine().store().revision().0);
        Ok(())
    }

    /// Tells of each reset that has been done: the revision up to which everything is of before it. Programs that register themselves when
    /// they start, such as kubelets, do it again then.
    #[must_use]
    pub fn resets(&self) -> watch::Receiver<u64> {
        self.0.resets.subscribe()
    }

    /// Makes requests or watches fail. A fault of watches without a schedule has affected those that are open when this
    /// returns.
    pub fn inject(&self, rule: Rule) -> RuleId {
        let revision =
            self.0.server.upgrade().map_or(Revision(0), |server| server.engine().store().revision());
        let since = Since { time: Instant::now(), revision };
        let mut state = self.0.state.lock();
        let State { faults, watches, marks, .. } = &mut *state;
        let now_open = if rule.is_of_open_watches() { watches.meant(&rule) } else { Vec::new() };
        let fault = rule.fault.clone();
        let id = faults.add(rule, &self.0.world.dice, since);
        faults.struck(id, now_open.len() as u64);
        for watch in now_open {
            apply(watches, watch, id, &fault, since.time);
        }
        let shown = faults.show(id, since.time).unwrap_or_default();
        marks.add(self.now(), "fault", format!("injected: {shown}"));
        id
    }

    /// Removes a rule, and lets the watches go that it held; `false` when there is none of that number.
    pub fn remove_fault(&self, id: RuleId) -> bool {
        self.0.state.lock().remove_fault(id, self.now())
    }

    /// Removes all rules.
    pub fn remove_faults(&self) {
        let mut state = self.0.state.lock();
        for id in state.faults.ids() {
            state.remove_fault(id, self.now());
        }
    }

    /// How often a rule has struck; `None` when there is none of that number.
    #[must_use]
    pub fn hits(&self, id: RuleId) -> Option<u64> {
        self.0.state.lock().faults.hits(id)
    }

    /// Whether a rule is in force that may still strike. One that only makes requests slow does not count, nor one that did
    /// away with the history of watches when it was made.
    #[must_use]
    pub fn has_faults(&self) -> bool {
        self.0.state.lock().faults.may_strike(Instant::now())
    }

    /// The requests that `wanted` means (all of them, if it says nothing): counted, and the last `limit` in full.
    #[must_use]
    pub fn requests(&self, wanted: &Match, limit: usize) -> Requests {
        self.0.state.lock().log.requests(wanted, limit)
    }

    /// How many requests there were since the log was last emptied.
    #[must_use]
    pub fn requested(&self) -> u64 {
        self.0.state.lock().log.total()
    }

    /// The requests after the first `position` since the log was last emptied, and how many of these are not kept any more.
    pub(crate) fn requests_since(&self, position: u64) -> (Vec<AnsweredRequest>, u64) {
        self.0.state.lock().log.since(position)
    }

    /// What was done to the cluster after the first `position` of such, and the position behind all.
    #[must_use]
    pub fn marks_since(&self, position: u64) -> (Vec<Mark>, u64) {
        self.0.state.lock().marks.since(position)
    }

    /// Asks operators from now on, by a header of each answer, to tell of their reconciles and queues.
    pub fn ask_for_reconciles(&self) {
        self.0.asks.store(true, Ordering::Relaxed);
    }

    fn asks_for_reconciles(&self) -> bool {
        self.0.asks.load(Ordering::Relaxed)
    }

    /// Notes a reconcile of an operator in this process.
    pub fn note_reconcile(&self, reconcile: Reconcile) {
        self.0.state.lock().reconciles.add(reconcile);
    }

    /// Notes what an operator tells.
    fn note_report(&self, by: &Author, report: OperatorReport) {
        self.0.state.lock().reconciles.record(by, self.now(), report);
    }

    /// The reconciles after the first `position` that are kept, in the order in which they ended, and the position behind all.
    #[must_use]
    pub fn reconciles_since(&self, position: u64) -> (Vec<Reconcile>, u64) {
        self.0.state.lock().reconciles.since(position)
    }

    /// The reconcile after the first `position`, if it is kept.
    #[must_use]
    pub fn reconcile_at(&self, position: u64) -> Option<Reconcile> {
        self.0.state.lock().reconciles.at(position).cloned()
    }

    /// The queues of the controllers whose operators have told of them.
    #[must_use]
    pub fn queues(&self) -> Vec<Queue> {
        self.0.state.lock().reconciles.queues()
    }

    /// Changes with all that operators tell.
    #[must_use]
    pub fn reconciled(&self) -> watch::Receiver<u64> {
        self.0.state.lock().reconciles.count.subscribe()
    }

    /// Empties the log of requests.
    pub fn forget_requests(&self) {
        self.0.state.lock().log.clear();
    }

    fn show_reconciles(&self) -> Value {
        self.0.state.lock().reconciles.show(self.now())
    }

    fn show_faults(&self) -> Value {
        self.0.state.lock().faults.show_all(Instant::now())
    }

    fn show_fault(&self, id: RuleId) -> Option<Value> {
        self.0.state.lock().faults.show(id, Instant::now())
    }

    fn shutdown(&self) -> &CancellationToken {
        &self.0.shutdown
    }

    /// What becomes of a request.
    fn judge(&self, info: &RequestInfo) -> Intervention {
        self.0.state.lock().faults.on_request(info)
    }

    /// The oldest version whose history is there for a request, where a rule has done away with some.
    fn oldest(&self, info: &RequestInfo) -> Option<Revision> {
        self.0.state.lock().faults.oldest(info)
    }

    fn note(
        &self,
        time: Timestamp,
        info: Arc<RequestInfo>,
        took: Duration,
        code: Option<u16>,
        fault: Option<RuleId>,
    ) {
        self.0.state.lock().log.add(time, info, took, code, fault);
    }

    fn watch_opens(&self, info: &Arc<RequestInfo>) -> WatchId {
        let mut state = self.0.state.lock();
        let holds = state.faults.on_open(info, Instant::now());
        state.watches.open(Arc::clone(info), holds)
    }

    fn watch_closes(&self, id: WatchId) {
        self.0.state.lock().watches.close(id);
    }

    fn watch_order(&self, id: WatchId, waker: &Waker) -> Order {
        self.0.state.lock().watches.order(id, Instant::now(), waker)
    }

    /// What happens to a watch that is about to tell some events.
    fn deliver_watch_event(&self, id: WatchId, info: &RequestInfo) -> WatchDelivery {
        let mut state = self.0.state.lock();
        match state.faults.on_delivery(info) {
            None => WatchDelivery::Once,
            Some((_, ApiFault::RepeatWatch {})) => WatchDelivery::Twice,
            Some((_, ApiFault::SkipWatch {})) => WatchDelivery::Never,
            Some((rule, fault)) => {
                apply(&mut state.watches, id, rule, &fault, Instant::now());
                WatchDelivery::Ordered
            }
        }
    }
}

/// How a watch tells a piece of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchDelivery {
    /// As it is.
    Once,
    /// Each event two times.
    Twice,
    /// Not at all.
    Never,
    /// As it is now ordered to.
    Ordered,
}

/// Applies a fault to a watch.
fn apply(watches: &mut Watches, watch: WatchId, rule: RuleId, fault: &ApiFault, now: Instant) {
    match fault {
        ApiFault::DropWatch { how: WatchEnd::Cleanly } => watches.end(watch, End::Cleanly),
        ApiFault::DropWatch { how: WatchEnd::Reset } => watches.end(watch, End::Reset),
        ApiFault::ExpireWatch {} => watches.end(watch, End::Expired),
        ApiFault::HoldWatch { lasting } => watches.hold(watch, rule, lasting.map(|lasting| now + lasting)),
        _ => {}
    }
}
