//! Why a key is reconciled.

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use crate::{Key, object::Kept};

/// How many of the latest reasons are kept beside the first one.
const LATEST: usize = 3;

/// Reason for which a key is reconciled.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// A watched object leads to the key, and something happened to it.
    Object(ObjectReason),
    /// The last reconcile failed, and its back-off is over.
    Retry {
        /// How many reconciles in a row have failed.
        failures: u32,
    },
    /// The last reconcile asked for it ([`Outcome::RequeueAfter`](crate::Outcome::RequeueAfter)), and that time is over.
    Requeue,
    /// A source told of the key ([`Controller::source`](crate::Controller::source)).
    Source,
    /// It was put off, as the lease or the key was not this replica's.
    Turn,
    /// It was added to the queue by [`Workqueue::add`](crate::workqueue::Workqueue::add) and the like.
    Added,
}

/// What happened to which object.
#[derive(Clone)]
pub struct ObjectReason {
    pub(crate) change: ObjectChange,
    pub(crate) kind: Arc<str>,
    /// Shared with the cache: a queue of many keys holds no copies.
    pub(crate) object: Arc<dyn Kept>,
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectChange {
    /// It was there when the controller began to look, or is looked at again (a resync, another term of the lease).
    Listed,
    /// It was created.
    Created,
    /// It was changed.
    Updated,
    /// It was deleted.
    Deleted,
}

/// Reasons for which a key is reconciled: the first one since the reconcile before, the latest ones, and how many there were
/// between them. Displayed, they are one line.
#[derive(Clone, Debug, Default)]
pub struct Reasons {
    first: Option<Reason>,
    more: Option<Box<More>>,
    waited: Duration,
}

#[derive(Clone, Debug, Default)]
struct More {
    latest: VecDeque<Reason>,
    /// How many were between the first and the latest ones.
    omitted: usize,
}

impl ObjectReason {
    /// What happened.
    #[must_use]
    pub fn change(&self) -> ObjectChange {
        self.change
    }

    /// The kind of the object, such as `Deployment`.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Namespace and name of the object.
    #[must_use]
    pub fn key(&self) -> Key {
        Key::at(self.object.head())
    }

    /// The object's resource version after the change; of one that was deleted, the last that was known.
    #[must_use]
    pub fn resource_version(&self) -> Option<&str> {
        self.object.head().resource_version
    }
}

impl Reason {
    fn is_same_change(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Object(one), Self::Object(other))
            if one.change == other.change && Arc::ptr_eq(&one.object, &other.object))
    }
}

impl Reasons {
    /// The reasons that are known, the first one first. Never more than four.
    pub fn iter(&self) -> impl Iterator<Item = &Reason> {
        self.first.iter().chain(self.more.iter().flat_map(|more| &more.latest))
    }

    /// How many reasons came after the first one and before the others that are known.
    #[must_use]
    pub fn omitted(&self) -> usize {
        self.more.as_ref().map_or(0, |more| more.omitted)
    }

    /// How long the key waited in the queue since it was due.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// One more; the same change once more, which may lead to a key in several ways, is none.
    pub(crate) fn push(&mut self, reason: Reason) {
        let latest = self.more.as_ref().and_then(|more| more.latest.back()).or(self.first.as_ref());
        if latest.is_some_and(|latest| latest.is_same_change(&reason)) {
            return;
        }
        if self.first.is_none() {
            self.first = Some(reason);
            return;
        }
        let more = self.more.get_or_insert_default();
        if more.latest.len() == LATEST {
            more.latest.pop_front();
            more.omitted = more.omitted.saturating_add(1);
        }
        more.latest.push_back(reason);
    }

    /// The same of a key that waited so long.
    pub(crate) fn after(self, waited: Duration) -> Self {
        Self { waited, ..self }
    }
}

impl fmt::Debug for ObjectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for ObjectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let change = match self.change {
            ObjectChange::Listed => "listed",
            ObjectChange::Created => "created",
            ObjectChange::Updated => "updated",
            ObjectChange::Deleted => "deleted",
        };
        write!(f, "{} {} {change}", self.kind, self.key())?;
        self.resource_version().map_or(Ok(()), |version| write!(f, " at {version}"))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(object) => object.fmt(f),
            Self::Retry { failures: 1 } => f.write_str("retry after a failure"),
            Self::Retry { failures } => write!(f, "retry after {failures} failures"),
            Self::Requeue => f.write_str("requeue"),
            Self::Source => f.write_str("source"),
            Self::Turn => f.write_str("turn of this replica"),
            Self::Added => f.write_str("added"),
        }
    }
}

impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, reason) in self.iter().enumerate() {
            if number > 0 {
                f.write_str("; ")?;
            }
            reason.fmt(f)?;
            if number == 0 && self.omitted() > 0 {
                write!(f, "; {} more", self.omitted())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Secret;
    use kube::api::ObjectMeta;
    use proptest::prelude::*;

    use super::*;

    fn object(change: ObjectChange, version: &str) -> Reason {
        let metadata = ObjectMeta {
            namespace: Some("default".to_owned()),
            name: Some("a".to_owned()),
            resource_version: Some(version.to_owned()),
            ..ObjectMeta::default()
        };
        let object: Arc<dyn Kept> = Arc::new(Secret { metadata, ..Secret::default() });
        Reason::Object(ObjectReason { change, kind: "Secret".into(), object })
    }

    #[test]
    fn reasons_are_told_in_one_line_with_the_first_and_the_latest() {
        let mut reasons = Reasons::default();
        assert_eq!(reasons.to_string(), "");
        reasons.push(object(ObjectChange::Created, "7"));
        assert_eq!(reasons.to_string(), "Secret default/a created at 7");
        for version in ["8", "9", "10"] {
            reasons.push(object(ObjectChange::Updated, version));
        }
        reasons.push(Reason::Requeue);
        reasons.push(Reason::Retry { failures: 2 });
        assert_eq!(
            reasons.to_string(),
            "Secret default/a created at 7; 2 more; Secret default/a updated at 10; requeue; retry after 2 failures"
        );
    }

    proptest! {
        #[test]
        fn none_is_lost_uncounted_and_few_are_kept(count in 0_usize..50) {
            let mut reasons = Reasons::default();
            (0..count).for_each(|_| reasons.push(Reason::Source));
            let kept = reasons.iter().count();
            prop_assert_eq!(kept + reasons.omitted(), count);
            prop_assert!(kept <= 1 + LATEST);
        }
    }

    /// A queue holds one for each key that waits.
    #[test]
    fn reasons_of_a_key_take_little_memory() {
        assert!(size_of::<Reasons>() <= 64, "{}", size_of::<Reasons>());
    }
}
