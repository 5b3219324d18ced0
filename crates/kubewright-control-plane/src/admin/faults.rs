//! The rules in force, and what they decide. Decisions are made from the requests that came before and from dice with a
//! seed; nothing here waits, and nothing is done to anybody.

use std::collections::BTreeMap;
use std::time::Duration;

use kubewright_store::Revision;
use kubewright_world::Dice;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::request_info::RequestInfo;
use super::rule::{ApiFault, Rule};
use super::schedule::Tally;

/// The number of a rule.
pub type RuleId = u64;

/// The rules in force, in the order in which requests pass them: one that strikes keeps a request from those behind it.
#[derive(Debug, Default)]
pub(super) struct Faults {
    rules: BTreeMap<RuleId, Armed>,
    last: RuleId,
}

#[derive(Debug)]
struct Armed {
    rule: Rule,
    seed: u64,
    dice: Dice,
    tally: Tally,
    since: Since,
}

/// When a rule was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Since {
    pub(super) time: Instant,
    pub(super) revision: Revision,
}

/// What becomes of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Intervention {
    /// It comes so much later.
    pub(super) delay: Duration,
    /// What is wrong with it then.
    pub(super) fault: Option<ApiFault>,
    /// The last rule that struck it.
    pub(super) by: Option<RuleId>,
}

impl Armed {
    fn strikes(&mut self) -> bool {
        self.rule.schedule.unwrap_or_default().strikes(&mut self.tally, &self.dice)
    }

    /// Until when it holds watches; `None` when it does not, `Some(None)` when there is no end.
    fn holds(&self, now: Instant) -> Option<Option<Instant>> {
        match (&self.rule.fault, self.rule.schedule) {
            (ApiFault::HoldWatch { lasting: None }, None) => Some(None),
            (ApiFault::HoldWatch { lasting: Some(lasting) }, None) => {
                let until = self.since.time + *lasting;
                (until > now).then_some(Some(until))
            }
            _ => None,
        }
    }

    fn is_spent(&self, now: Instant) -> bool {
        match (&self.rule.fault, self.rule.schedule) {
            (ApiFault::HoldWatch { .. }, None) => self.holds(now).is_none(),
            (ApiFault::ExpireWatch {}, None) => false,
            (ApiFault::DropWatch { .. }, None) => true,
            (_, schedule) => schedule.unwrap_or_default().is_spent(&self.tally),
        }
    }
}

impl Faults {
    /// A new rule, behind all others.
    pub(super) fn add(&mut self, rule: Rule, dice: &Dice, since: Since) -> RuleId {
        self.last += 1;
        let seed = rule.schedule.and_then(|schedule| schedule.seed).unwrap_or_else(|| {
            let mut bytes = [0; 4];
            dice.fill(&mut bytes);
            u32::from_le_bytes(bytes).into()
        });
        let armed = Armed { rule, seed, dice: Dice::from_seed(seed), tally: Tally::default(), since };
        self.rules.insert(self.last, armed);
        self.last
    }

    /// Takes a rule away; `false` when there is none of that number.
    pub(super) fn remove(&mut self, id: RuleId) -> bool {
        self.rules.remove(&id).is_some()
    }

    /// The numbers of all rules.
    pub(super) fn ids(&self) -> Vec<RuleId> {
        self.rules.keys().copied().collect()
    }

    /// What becomes of a request.
    pub(super) fn on_request(&mut self, info: &RequestInfo) -> Intervention {
        let mut intervention = Intervention::default();
        for (id, armed) in &mut self.rules {
            if armed.rule.fault.is_of_watches() || !armed.rule.matches(info) || !armed.strikes() {
                continue;
            }
            intervention.by = Some(*id);
            match &armed.rule.fault {
                ApiFault::Latency { by } => intervention.delay = intervention.delay.saturating_add(*by),
                fault => {
                    intervention.fault = Some(fault.clone());
                    break;
                }
            }
        }
        intervention
    }

    /// What happens to a watch that is about to tell some events.
    pub(super) fn on_delivery(&mut self, info: &RequestInfo) -> Option<(RuleId, ApiFault)> {
        let mut rules = self.rules.iter_mut().filter(|(_, armed)| {
            armed.rule.fault.is_of_watches() && !armed.rule.is_of_open_watches() && armed.rule.matches(info)
        });
        rules.find_map(|(id, armed)| armed.strikes().then(|| (*id, armed.rule.fault.clone())))
    }

    /// The rules that hold a watch which opens now, and until when.
    pub(super) fn on_open(&mut self, info: &RequestInfo, now: Instant) -> Vec<(RuleId, Option<Instant>)> {
        let mut holds = Vec::new();
        for (id, armed) in &mut self.rules {
            let until = armed.holds(now).filter(|_| armed.rule.matches(info));
            if let Some(until) = until {
                armed.tally.hits += 1;
                holds.push((*id, until));
            }
        }
        holds
    }

    /// The oldest version whose history is there for a request, where a rule has done away with some.
    pub(super) fn oldest(&self, info: &RequestInfo) -> Option<Revision> {
        let expired = self.rules.values().filter(|armed| {
            matches!(armed.rule.fault, ApiFault::ExpireWatch {})
                && armed.rule.schedule.is_none()
                && armed.rule.matching.concerns(info)
        });
        expired.map(|armed| armed.since.revision).max()
    }

    /// Counts what a rule has done outside of its schedule.
    pub(super) fn struck(&mut self, id: RuleId, times: u64) {
        if let Some(armed) = self.rules.get_mut(&id) {
            armed.tally.hits += times;
        }
    }

    /// The rule of a number, for people.
    pub(super) fn show(&self, id: RuleId, now: Instant) -> Option<Value> {
        let armed = self.rules.get(&id)?;
        let mut shown = armed.rule.write(armed.seed);
        shown.insert("id".to_owned(), id.into());
        shown.insert("hits".to_owned(), armed.tally.hits.into());
        shown.insert("spent".to_owned(), armed.is_spent(now).into());
        if !armed.rule.fault.is_of_watches() || armed.rule.schedule.is_some() {
            shown.insert("seen".to_owned(), armed.tally.seen.into());
        }
        Some(Value::Object(shown))
    }

    /// How often a rule has struck.
    pub(super) fn hits(&self, id: RuleId) -> Option<u64> {
        self.rules.get(&id).map(|armed| armed.tally.hits)
    }

    /// Whether a rule may still strike that does more than to make requests slow, or to have done away with a history.
    pub(super) fn may_strike(&self, now: Instant) -> bool {
        let mut rules = self.rules.values();
        rules.any(|armed| {
            let harmless = match armed.rule.fault {
                ApiFault::Latency { .. } => true,
                ApiFault::ExpireWatch {} => armed.rule.schedule.is_none(),
                _ => false,
            };
            !harmless && !armed.is_spent(now)
        })
    }

    /// All rules, for people.
    pub(super) fn show_all(&self, now: Instant) -> Value {
        json!({"faults": self.rules.keys().filter_map(|id| self.show(*id, now)).collect::<Vec<_>>()})
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::super::matching::{Match, Verb};
    use super::super::schedule::Schedule;
    use super::*;

    fn since() -> Since {
        Since { time: Instant::now(), revision: Revision(10) }
    }

    fn armed(rules: impl IntoIterator<Item = Rule>) -> Faults {
        let mut faults = Faults::default();
        for rule in rules {
            faults.add(rule, &Dice::from_seed(0), since());
        }
        faults
    }

    fn info(verb: &'static str, resource: &str) -> RequestInfo {
        RequestInfo { verb, resource: resource.into(), version: "v1".into(), ..RequestInfo::default() }
    }

    fn error(code: u16) -> ApiFault {
        ApiFault::Error { code, reason: None, message: None }
    }

    fn codes(faults: &mut Faults, info: &RequestInfo, requests: usize) -> Vec<u16> {
        (0..requests)
            .map(|_| match faults.on_request(info).fault {
                Some(ApiFault::Error { code, .. }) => code,
                None => 200,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[tokio::test]
    async fn a_request_that_one_rule_strikes_is_not_seen_by_those_behind_it() {
        let twice = Schedule::times(NonZeroU64::new(2).expect("not zero"));
        let mut faults = armed([Rule::new(error(500)).at(twice), Rule::new(error(503))]);
        assert!(faults.may_strike(Instant::now()));
        assert_eq!(codes(&mut faults, &info("get", "pods"), 4), [500, 500, 503, 200]);
        assert!(!faults.may_strike(Instant::now()));
        let shown = faults.show_all(Instant::now());
        assert_eq!((&shown["faults"][0]["hits"], &shown["faults"][0]["spent"]), (&2.into(), &true.into()));
        assert_eq!((&shown["faults"][1]["seen"], &shown["faults"][1]["hits"]), (&2.into(), &1.into()));
    }

    #[tokio::test]
    async fn latencies_add_up_and_let_the_request_go_on_to_the_next_rule() {
        let second = ApiFault::Latency { by: Duration::from_secs(1) };
        let mut faults = armed([
            Rule::new(second.clone()),
            Rule::new(second).at(Schedule::always()),
            Rule::new(error(500)),
        ]);
        let first = faults.on_request(&info("get", "pods"));
        assert_eq!((first.delay, first.fault), (Duration::from_secs(2), Some(error(500))));
        let second = faults.on_request(&info("get", "pods"));
        assert_eq!((second.delay, second.fault, second.by), (Duration::from_secs(1), None, Some(2)));
    }

    #[tokio::test]
    async fn only_a_change_meets_a_conflict() {
        let mut faults = armed([Rule::new(ApiFault::Conflict {}).at(Schedule::always())]);
        for (verb, meets) in [
            ("update", true),
            ("patch", true),
            ("delete", true),
            ("create", false),
            ("get", false),
            ("watch", false),
        ] {
            assert_eq!(faults.on_request(&info(verb, "pods")).fault.is_some(), meets, "{verb}");
        }
    }

    #[tokio::test]
    async fn requests_that_do_not_match_are_not_counted() {
        let rule = Rule::new(error(500)).on(Match::resource("pods").verbs([Verb::Create]));
        let mut faults = armed([rule]);
        assert_eq!(codes(&mut faults, &info("create", "secrets"), 2), [200, 200]);
        assert_eq!(codes(&mut faults, &info("get", "pods"), 2), [200, 200]);
        assert_eq!(codes(&mut faults, &info("create", "pods"), 2), [500, 200]);
    }

    #[tokio::test]
    async fn a_fault_of_watches_with_a_schedule_strikes_what_they_are_about_to_tell() {
        let second = Schedule { after: 1, ..Schedule::default() };
        let dropped = ApiFault::DropWatch { how: super::super::rule::WatchEnd::Reset };
        let mut faults = armed([Rule::new(dropped.clone()).at(second)]);
        let watch = info("watch", "pods");
        assert_eq!(faults.on_request(&watch), Intervention::default());
        assert_eq!(faults.on_delivery(&info("list", "pods")), None);
        assert_eq!(faults.on_delivery(&watch), None);
        assert_eq!(faults.on_delivery(&watch), Some((1, dropped)));
        assert_eq!(faults.on_delivery(&watch), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_hold_takes_in_the_watches_that_open_while_it_lasts() {
        let lasting = Duration::from_secs(5);
        let mut faults = armed([Rule::new(ApiFault::HoldWatch { lasting: Some(lasting) })]);
        let (watch, start) = (info("watch", "pods"), Instant::now());
        assert_eq!(faults.on_open(&watch, start), [(1, Some(start + lasting))]);
        assert_eq!(faults.on_open(&watch, start + lasting), []);
        assert_eq!(faults.show(1, start + lasting).expect("a rule")["spent"], true);
    }

    #[tokio::test]
    async fn history_is_gone_for_those_whom_a_rule_means_until_it_is_removed() {
        let mut faults = armed([Rule::new(ApiFault::ExpireWatch {}).on(Match::resource("pods"))]);
        for verb in ["watch", "list"] {
            assert_eq!(faults.oldest(&info(verb, "pods")), Some(Revision(10)));
            assert_eq!(faults.oldest(&info(verb, "secrets")), None);
        }
        assert!(faults.remove(1) && !faults.remove(1));
        assert_eq!(faults.oldest(&info("watch", "pods")), None);
    }
}
