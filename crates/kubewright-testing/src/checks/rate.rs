//! An operator that has nothing to do asks for next to nothing.
//!
//! Judged: the requests of operators in some minutes in which nothing happens, and whether they ever ask without a pause
//! for many seconds on end. Not judged: leases, Events, and watches that are opened anew.

use jiff::SignedDuration;
use kubewright_cluster::admin::AnsweredRequest;

use super::Evidence;
use super::evidence::{collection, is_work, most};

/// More requests than this in each minute at rest are a loop: one in half a second.
const PER_MINUTE: usize = 120;
/// As many in a second are without a pause.
const RUSH: u64 = 100;
/// For so many seconds nobody works without a pause but in a loop.
const SECONDS: u32 = 5;

pub(super) fn judge(evidence: &Evidence) -> Option<String> {
    let rest = evidence.rest?;
    let counted = evidence.requests.iter().filter(|request| {
        rest.has(request.time) && request.info.verb != "watch" && is_work(&collection(request))
    });
    let counted: Vec<&AnsweredRequest> = counted.collect();
    // All of a loop, and not the burst of a timer: there is much of it in each minute.
    let minutes = (rest.to.duration_since(rest.from).as_secs() / 60).max(1);
    let in_minute = |minute: i64| {
        let (from, to) = (SignedDuration::from_mins(minute), SignedDuration::from_mins(minute + 1));
        let passed = |request: &&&AnsweredRequest| request.time.duration_since(rest.from);
        counted.iter().filter(|request| (from..to).contains(&passed(request))).count()
    };
    if (0..minutes).any(|minute| in_minute(minute) <= PER_MINUTE) {
        return None;
    }
    let what = counted.iter().map(|request| {
        let info = &request.info;
        format!("{} {} {}/{} by {}", info.verb, info.resource, info.namespace, info.name, info.user)
    });
    let (what, times) = most(what)?;
    let all = counted.len();
    Some(format!("{all} requests in {minutes} min in which nothing happened; {times} times {what}"))
}

/// Whether somebody asks without a pause, seen once in a second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rate {
    total: u64,
    rushed: u32,
}

impl Rate {
    /// Takes how many requests there were so far; whether they have come without a pause for too long.
    pub(crate) fn is_loop(&mut self, total: u64) -> bool {
        let rushes = total.saturating_sub(self.total) >= RUSH;
        self.total = total;
        self.rushed = if rushes { self.rushed + 1 } else { 0 };
        self.rushed >= SECONDS
    }
}

#[cfg(test)]
mod tests {
    use super::super::Span;
    use super::super::evidence::stories::{Story, at};
    use super::*;

    /// Two minutes at rest, with requests at these times.
    fn judged(verb: &'static str, times: impl Iterator<Item = f64>) -> Option<String> {
        let request = |story: Story, time| story.request(time, verb, "configmaps a", 200, false);
        let evidence = times.fold(Story::default(), request).evidence();
        judge(&Evidence { rest: Some(Span { from: at(0.0), to: at(120.0) }), ..evidence })
    }

    #[test]
    fn requests_all_the_time_are_found() {
        let found = judged("patch", (1..=1200).map(|number| f64::from(number) / 10.0)).expect("found");
        assert!(found.starts_with("1200 requests in 2 min"), "{found}");
        assert!(found.contains("1200 times patch configmaps default/a"), "{found}");
    }

    #[test]
    fn a_poll_in_each_second_the_burst_of_a_timer_and_watches_are_not() {
        assert_eq!(judged("get", (1..=120).map(f64::from)), None);
        assert_eq!(judged("create", (1..=500).map(|number| 30.0 + f64::from(number) / 1000.0)), None);
        assert_eq!(judged("watch", (1..=1200).map(|number| f64::from(number) / 10.0)), None);
    }

    #[test]
    fn a_rush_is_a_loop_when_it_does_not_end() {
        let mut rate = Rate::default();
        assert!((1..=4).all(|second| !rate.is_loop(second * 1000)));
        assert!(rate.is_loop(5000));
        let mut rate = Rate::default();
        let total = |second: u64| (second - second / 4) * 1000;
        assert!((1..=30).all(|second| !rate.is_loop(total(second))), "it pauses in every fourth second");
    }
}
