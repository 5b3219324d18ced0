//! In which reconcile of an operator something was written: a pure function of what was noted.
//!
//! A request does not say which reconcile it comes from. Known is whose it was and when: where only one reconcile of that operator was under
//! way, it is that; of several at the same moment it is the only one of the object itself, or of its controlling owner. Otherwise nothing is said.

use jiff::{SignedDuration, Timestamp};
use kubewright_recording::Reconcile;
use serde_json::Value;

/// A write, as far as it is looked at.
pub(crate) struct Written<'a> {
    pub(crate) user: &'a str,
    pub(crate) time: Timestamp,
    /// Namespace and name.
    pub(crate) key: &'a str,
    pub(crate) object: &'a Value,
}

/// The reconcile that a write was made in.
pub(crate) fn because<'a>(written: &Written<'_>, reconciles: &'a [Reconcile]) -> Option<&'a Reconcile> {
    let under_way: Vec<&Reconcile> = reconciles.iter().filter(|one| is_under_way(one, written)).collect();
    match under_way.as_slice() {
        [] => None,
        [one] => Some(one),
        several => {
            let owner = owner(written);
            let is_about = |one: &&&Reconcile| one.key == written.key || owner.as_deref() == Some(&*one.key);
            let mut about = several.iter().filter(is_about);
            about.next().filter(|_| about.next().is_none()).copied()
        }
    }
}

fn is_under_way(reconcile: &Reconcile, written: &Written<'_>) -> bool {
    let took = SignedDuration::try_from_secs_f64(reconcile.took).unwrap_or_default();
    reconcile.by.user == written.user
        && reconcile.time <= written.time
        && written.time <= reconcile.time + took
}

/// The key of the controlling owner, which is in the same namespace.
fn owner(written: &Written<'_>) -> Option<String> {
    let owners = written.object["metadata"]["ownerReferences"].as_array()?;
    let name = owners.iter().find(|owner| owner["controller"] == true)?["name"].as_str()?;
    let namespace = written.key.split_once('/').map(|(namespace, _)| namespace);
    Some(namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}")))
}

#[cfg(test)]
mod tests {
    use kubewright_recording::Author;
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn reconcile(user: &str, key: &str, from: i64, to: i64) -> Reconcile {
        let by = Author { user: user.to_owned(), ..Author::default() };
        #[expect(clippy::cast_precision_loss, reason = "a few seconds")]
        let took = (to - from) as f64;
        Reconcile { time: at(from), by, key: key.to_owned(), took, ..Reconcile::default() }
    }

    fn found(key: &str, time: i64, reconciles: &[Reconcile]) -> Option<String> {
        let object = json!({"metadata": {"ownerReferences": [{"name": "web", "controller": true}]}});
        let written = Written { user: "me", time: at(time), key, object: &object };
        because(&written, reconciles).map(|one| one.key.clone())
    }

    #[test]
    fn a_write_is_of_the_reconcile_of_its_operator_that_was_under_way() {
        let all = [
            reconcile("me", "a/one", 1, 3),
            reconcile("other", "a/web", 1, 9),
            reconcile("me", "a/two", 5, 6),
        ];
        assert_eq!(found("a/x", 2, &all).as_deref(), Some("a/one"));
        assert_eq!(found("a/x", 5, &all).as_deref(), Some("a/two"));
        assert_eq!(found("a/x", 4, &all), None, "between two");
    }

    #[test]
    fn of_several_at_once_it_is_that_of_the_object_or_its_owner_or_none_is_told() {
        let all =
            [reconcile("me", "a/web", 1, 3), reconcile("me", "a/x", 1, 3), reconcile("me", "b/web", 1, 3)];
        assert_eq!(found("a/y", 2, &all).as_deref(), Some("a/web"));
        assert_eq!(found("b/y", 2, &all).as_deref(), Some("b/web"));
        assert_eq!(found("a/x", 2, &all), None, "it may be either");
        assert_eq!(found("c/y", 2, &all), None);
    }
}
