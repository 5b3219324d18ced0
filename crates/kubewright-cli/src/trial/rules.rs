//! Faults of a plan as rules of the control plane.

use std::{collections::BTreeSet, time::Duration};

use kubewright_cluster::admin::{ApiFault, Match, NoAnswer, Rule, Schedule, Verb, WatchEnd};
use kubewright_trial::{plan::Fault, story::ObjectId};

/// For how long a fault lasts.
pub(super) const WINDOW: Duration = Duration::from_secs(3);
/// For how long a Lease cannot be renewed: longer than client-go tries.
const WINDOW_OF_LEASES: Duration = Duration::from_secs(16);

/// For how long a fault lasts.
pub(super) fn window(fault: Fault) -> Duration {
    if fault == Fault::LostLease { WINDOW_OF_LEASES } else { WINDOW }
}

/// Verbs of writes.
const WRITES: [Verb; 5] = [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::DeleteCollection];

/// What a program does, without its leases and Events.
fn work(user: &str) -> Match {
    let except = ["leases", "events"].map(str::to_owned).to_vec();
    Match { user: Some(user.to_owned()), except, ..Match::default() }
}

/// After so many writes of a user no other is carried out, nor answered.
pub(super) fn no_more_writes(user: &str, after: u64) -> Rule {
    let fault = ApiFault::Timeout { done: false, answer: NoAnswer::Cut };
    Rule::new(fault).on(work(user).verbs(WRITES)).at(Schedule { after, ..Schedule::always() })
}

/// One write of a user, the so-manieth, fails; or is done and not answered.
pub(super) fn one_write(fault: Fault, number: u64, user: &str) -> Rule {
    let fault = match fault {
        Fault::LateAnswer => ApiFault::Timeout { done: true, answer: NoAnswer::Cut },
        _ => ApiFault::Error { code: 500, reason: None, message: None },
    };
    let once = Schedule { after: number.saturating_sub(1), ..Schedule::default() };
    Rule::new(fault).on(work(user).verbs(WRITES)).at(once)
}

/// The rules of a fault that a user meets, on one resource (`<group>/<plural>`) or on all; a seed makes it strike at times.
pub(super) fn rules(fault: Fault, resource: Option<&str>, seed: Option<u64>, user: &str) -> Vec<Rule> {
    let mut meant = work(user);
    if let Some((group, plural)) = resource.and_then(|resource| resource.split_once('/')) {
        meant.group = Some(group.to_owned());
        meant.resource = Some(plural.to_owned());
    }
    let at_times = |chance: f64| seed.map_or_else(Schedule::always, |seed| Schedule::by_chance(chance, seed));
    let cut = |done| ApiFault::Timeout { done, answer: NoAnswer::Cut };
    let one = |fault, chance| vec![Rule::new(fault).on(meant.clone()).at(at_times(chance))];
    let writes = |fault, chance| vec![Rule::new(fault).on(meant.clone().verbs(WRITES)).at(at_times(chance))];
    match fault {
        Fault::Conflict => one(ApiFault::Conflict {}, 0.5),
        Fault::Throttle => one(ApiFault::TooManyRequests { retry_after: 1 }, 0.3),
        Fault::Error => {
            let fault = ApiFault::Error { code: 500, reason: None, message: None };
            // What fails without exception are the writes of a resource: reading it is how a program starts.
            if seed.is_none() { writes(fault, 1.0) } else { one(fault, 0.3) }
        }
        Fault::Lost => writes(cut(false), 0.5),
        Fault::LateAnswer => writes(cut(true), 0.5),
        Fault::Latency => one(ApiFault::Latency { by: Duration::from_millis(500) }, 1.0),
        Fault::DropWatch => one(ApiFault::DropWatch { how: WatchEnd::Reset }, 0.4),
        Fault::StaleWatch => one(ApiFault::HoldWatch { lasting: Some(WINDOW) }, 1.0),
        Fault::ExpireWatch => vec![Rule::new(ApiFault::ExpireWatch {}).on(meant)],
        Fault::RepeatWatch => one(ApiFault::RepeatWatch {}, 1.0),
        Fault::LostLease => {
            let group = Some("coordination.k8s.io".to_owned());
            let leases = Match { user: Some(user.to_owned()), group, ..Match::default() };
            vec![Rule::new(cut(false)).on(leases).at(Schedule::always())]
        }
        Fault::ServerAway => {
            let everything = Match { user: Some(user.to_owned()), ..Match::default() };
            vec![
                Rule::new(cut(false)).on(everything.clone()).at(Schedule::always()),
                Rule::new(ApiFault::DropWatch { how: WatchEnd::Reset }).on(everything),
            ]
        }
    }
}

/// Requests of a user for a collection.
pub(super) fn of_collection(collection: &str, user: &str) -> Match {
    let (group, plural) = collection.split_once('/').unwrap_or(("", collection));
    let group = Some(group.to_owned());
    Match { user: Some(user.to_owned()), group, resource: Some(plural.to_owned()), ..Match::default() }
}

/// A user's watches of these collections leave out what happens, and tell what comes later.
pub(super) fn unseen(collections: &BTreeSet<&str>, user: &str) -> Vec<Rule> {
    let skip = |collection: &&str| {
        Rule::new(ApiFault::SkipWatch {}).on(of_collection(collection, user)).at(Schedule::always())
    };
    collections.iter().map(skip).collect()
}

/// A user's watches of a collection end, and what was before is not there any more.
pub(super) fn expired(collection: &str, user: &str) -> Rule {
    Rule::new(ApiFault::ExpireWatch {}).on(of_collection(collection, user))
}

/// A user's lists of the kinds of these objects show an old state where they take any, and the watches of it tell nothing.
pub(super) fn past(revision: u64, objects: &[ObjectId], user: &str) -> Vec<Rule> {
    let collections: BTreeSet<&str> = objects.iter().map(|id| &*id.collection).collect();
    let rules = collections.into_iter().flat_map(|collection| {
        let meant = of_collection(collection, user);
        [
            Rule::new(ApiFault::OldList { revision }).on(meant.clone()).at(Schedule::always()),
            Rule::new(ApiFault::HoldWatch { lasting: None }).on(meant),
        ]
    });
    rules.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_a_resource_meets_the_program_there_and_never_its_leases() {
        for fault in Fault::ALL {
            for rule in rules(fault, Some("apps/deployments"), Some(1), "me") {
                assert_eq!(rule.matching.user.as_deref(), Some("me"), "{fault:?}");
                let is_of_server = matches!(fault, Fault::ServerAway | Fault::LostLease);
                assert_eq!(rule.matching.resource.is_none(), is_of_server, "{fault:?}");
                assert_eq!(rule.matching.except.is_empty(), is_of_server, "{fault:?}");
            }
        }
    }

    #[test]
    fn what_is_not_seen_is_left_out_of_the_watches_of_one_user_and_kind() {
        let found = unseen(&["apps/deployments"].into(), "me");
        let [rule] = &found[..] else { panic!("{found:?}") };
        assert_eq!((&rule.fault, rule.matching.user.as_deref()), (&ApiFault::SkipWatch {}, Some("me")));
        assert_eq!(rule.matching.resource.as_deref(), Some("deployments"));
        assert!(rule.schedule.is_some(), "each event that comes is meant, not the next alone");
    }

    #[test]
    fn without_a_seed_a_fault_strikes_each_time() {
        let probability =
            |seed| rules(Fault::Error, None, seed, "me")[0].schedule.map(|schedule| schedule.probability);
        assert_eq!((probability(None), probability(Some(3))), (Some(1.0), Some(0.3)));
    }
}
