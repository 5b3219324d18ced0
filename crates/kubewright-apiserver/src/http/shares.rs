//! What several users share, so that none of them can take all of it.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// A number of places (or bytes) that users share. Who asks gets them as long as at least as many are left free as this user
/// then holds: one user alone holds half at most, and whoever comes later finds some.
#[derive(Debug)]
pub(super) struct Shares {
    most: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_user: HashMap<Arc<str>, usize>,
}

/// What somebody holds of [`Shares`]; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    of: Arc<Shares>,
    user: Arc<str>,
    amount: usize,
}

impl Shares {
    /// So many in all; 0 for any number.
    pub(super) fn new(most: usize) -> Arc<Self> {
        let most = if most == 0 { usize::MAX } else { most };
        Arc::new(Self { most, taken: Mutex::default() })
    }

    /// So many for a user; `None` when that is more than the user's share.
    pub(super) fn take(self: &Arc<Self>, user: &str, amount: usize) -> Option<Share> {
        let mut taken = self.taken.lock();
        let free = self.most.saturating_sub(taken.all);
        let (user, held) = match taken.by_user.get_key_value(user) {
            Some((user, held)) => (Arc::clone(user), *held),
            None => (user.into(), 0),
        };
        let holds = held.saturating_add(amount);
        // Half of an odd number is rounded up, so that there is a place at all where there is one.
        if amount > free || holds > (free - amount).saturating_add(1) {
            return None;
        }
        taken.all += amount;
        taken.by_user.insert(Arc::clone(&user), holds);
        Some(Share { of: Arc::clone(self), user, amount })
    }

    fn give_back(&self, user: &Arc<str>, amount: usize) {
        let mut taken = self.taken.lock();
        taken.all -= amount;
        let held = taken.by_user.get_mut(user).map_or(0, |held| {
            *held -= amount;
            *held
        });
        if held == 0 {
            taken.by_user.remove(user);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.give_back(&self.user, self.amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(shares: &Arc<Shares>, user: &str) -> Vec<Share> {
        std::iter::from_fn(|| shares.take(user, 1)).collect()
    }

    #[test]
    fn one_user_takes_half_and_who_comes_later_finds_some() {
        let shares = Shares::new(200);
        let held: Vec<_> = ["a", "b", "c", "d"].map(|user| all(&shares, user)).into();
        assert_eq!(held.iter().map(Vec::len).collect::<Vec<_>>(), [100, 50, 25, 13]);
        assert!(shares.take("a", 1).is_none());
    }

    #[test]
    fn what_is_given_back_can_be_taken_again_and_nothing_is_kept_of_who_holds_nothing() {
        let shares = Shares::new(200);
        for _ in 0..3 {
            assert_eq!(all(&shares, "a").len(), 100);
        }
        assert_eq!(shares.taken.lock().all, 0);
        assert!(shares.taken.lock().by_user.is_empty());
    }

    #[test]
    fn amounts_count_by_what_they_are() {
        let shares = Shares::new(100);
        let large = shares.take("a", 40).expect("less than half");
        assert!(shares.take("a", 20).is_none());
        let _other = shares.take("b", 30).expect("half of what is left");
        drop(large);
        assert!(shares.take("a", 35).is_some());
        assert!(shares.take("a", 36).is_none());
    }

    #[test]
    fn a_single_place_is_for_who_comes_first_and_none_is_no_limit() {
        let shares = Shares::new(1);
        let place = shares.take("a", 1).expect("the only one");
        assert!(shares.take("b", 1).is_none());
        drop(place);
        assert!(shares.take("b", 1).is_some());
        let any = Shares::new(0);
        assert!((0..1000).map(|_| any.take("a", 1)).collect::<Vec<_>>().iter().all(Option::is_some));
    }
}
