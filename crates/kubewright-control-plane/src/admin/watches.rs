//! The watches that are open, and what has been ordered of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;

use tokio::time::Instant;

use super::faults::RuleId;
use super::request_info::RequestInfo;
use super::rule::Rule;

/// The number of an open watch.
pub(super) type WatchId = u64;

/// How a watch ends before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// As if its time were over.
    Cleanly,
    /// With a connection that breaks.
    Reset,
    /// With 410.
    Expired,
}

/// What a watch is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// To go on.
    Tell,
    /// To tell nothing, until then or until it is asked to look again.
    Hold(Option<Instant>),
    /// To end.
    End(End),
}

/// All open watches, oldest first.
#[derive(Debug, Default)]
pub(super) struct Watches {
    open: BTreeMap<WatchId, Open>,
    last: WatchId,
}

#[derive(Debug)]
struct Open {
    info: Arc<RequestInfo>,
    end: Option<End>,
    holds: BTreeMap<RuleId, Option<Instant>>,
    waker: Option<Waker>,
}

impl Open {
    /// Has whoever reads the watch ask for orders.
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Watches {
    /// A watch has opened, held by these rules.
    pub(super) fn open(
        &mut self,
        info: Arc<RequestInfo>,
        holds: impl IntoIterator<Item = (RuleId, Option<Instant>)>,
    ) -> WatchId {
        self.last += 1;
        let open = Open { info, end: None, holds: holds.into_iter().collect(), waker: None };
        self.open.insert(self.last, open);
        self.last
    }

    /// A watch is not read any more.
    pub(super) fn close(&mut self, id: WatchId) {
        self.open.remove(&id);
    }

    /// What a watch is to do. Unless it is to end, `waker` is called when that changes.
    pub(super) fn order(&mut self, id: WatchId, now: Instant, waker: &Waker) -> Order {
        let Some(open) = self.open.get_mut(&id) else { return Order::Tell };
        if let Some(end) = open.end {
            return Order::End(end);
        }
        if open.waker.as_ref().is_none_or(|kept| !kept.will_wake(waker)) {
            open.waker = Some(waker.clone());
        }
        open.holds.retain(|_, until| until.is_none_or(|until| until > now));
        match open.holds.values().copied().reduce(|one, other| Some(one?.max(other?))) {
            Some(until) => Order::Hold(until),
            None => Order::Tell,
        }
    }

    /// Ends one watch.
    pub(super) fn end(&mut self, id: WatchId, end: End) {
        if let Some(open) = self.open.get_mut(&id) {
            open.end.get_or_insert(end);
            open.wake();
        }
    }

    /// Holds one watch back.
    pub(super) fn hold(&mut self, id: WatchId, by: RuleId, until: Option<Instant>) {
        if let Some(open) = self.open.get_mut(&id) {
            open.holds.insert(by, until);
            open.wake();
        }
    }

    /// The open watches that a rule means.
    pub(super) fn meant(&self, rule: &Rule) -> Vec<WatchId> {
        let meant = self.open.iter().filter(|(_, open)| open.end.is_none() && rule.matches(&open.info));
        meant.map(|(id, _)| *id).collect()
    }

    /// Lets the watches go that a rule has held.
    pub(super) fn release(&mut self, by: RuleId) {
        for open in self.open.values_mut() {
            if open.holds.remove(&by).is_some() {
                open.wake();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn one() -> (Watches, WatchId) {
        let mut watches = Watches::default();
        let info = RequestInfo { verb: "watch", resource: "pods".into(), ..RequestInfo::default() };
        let id = watches.open(Arc::new(info), []);
        (watches, id)
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_is_held_as_long_as_the_longest_hold_lasts() {
        let (mut watches, id) = one();
        let (now, waker) = (Instant::now(), Waker::noop());
        let later = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(watches.order(id, now, waker), Order::Tell);
        watches.hold(id, 1, Some(later(5)));
        watches.hold(id, 2, Some(later(3)));
        assert_eq!(watches.order(id, now, waker), Order::Hold(Some(later(5))));
        watches.release(1);
        assert_eq!(watches.order(id, now, waker), Order::Hold(Some(later(3))));
        watches.hold(id, 3, None);
        assert_eq!(watches.order(id, later(4), waker), Order::Hold(None));
        watches.release(3);
        assert_eq!(watches.order(id, later(4), waker), Order::Tell);
    }

    #[tokio::test]
    async fn a_watch_ends_once_and_in_the_first_way_even_while_it_is_held() {
        let (mut watches, id) = one();
        watches.hold(id, 1, None);
        watches.end(id, End::Reset);
        watches.end(id, End::Cleanly);
        assert_eq!(watches.order(id, Instant::now(), Waker::noop()), Order::End(End::Reset));
        assert!(watches.meant(&Rule::new(super::super::rule::ApiFault::ExpireWatch {})).is_empty());
    }
}
