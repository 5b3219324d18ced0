//! Conditions of a status, as Kubernetes' conventions have them (`k8s.io/apimachinery/pkg/api/meta/conditions.go`).

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::Object;

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is so.
    True,
    /// It is not so.
    False,
    /// Nobody knows.
    Unknown,
}

impl Status {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Status {
    fn from(is_so: bool) -> Self {
        if is_so { Self::True } else { Self::False }
    }
}

/// Desired condition: what it is to say; since when is found out by [`set`].
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_runtime::{World, conditions::{self, Status, NewCondition}};
///
/// # fn example(world: &World, widget: &ConfigMap) {
/// let mut conditions = Vec::new();
/// let ready = NewCondition::new("Ready", Status::True, "AllReplicasReady").message("3 of 3 replicas are ready").of(widget);
/// assert!(conditions::set(&mut conditions, &ready, world.clock.now()));
/// assert!(!conditions::set(&mut conditions, &ready, world.clock.now()), "nothing changed");
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCondition {
    type_: String,
    status: Status,
    reason: String,
    message: String,
    observed_generation: Option<i64>,
}

/// What [`NewCondition`] was called.
#[deprecated(since = "0.1.0", note = "is called `NewCondition`")]
pub type Wanted = NewCondition;

impl NewCondition {
    /// A condition of this type, for this reason: a CamelCase word for programs, which the API requires.
    #[must_use]
    pub fn new(type_: impl Into<String>, status: Status, reason: impl Into<String>) -> Self {
        let (type_, reason) = (type_.into(), reason.into());
        Self { type_, status, reason, message: String::new(), observed_generation: None }
    }

    /// The same for people.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Says which generation of the object was looked at: who reads the condition knows whether it is about what they wrote.
    #[must_use]
    pub fn of<K: Object>(mut self, object: &K) -> Self {
        self.observed_generation = object.meta().generation;
        self
    }

    /// As [`NewCondition::of`], of an object with this generation, unless it says of which it is.
    pub(crate) fn or_of(mut self, generation: Option<i64>) -> Self {
        self.observed_generation = self.observed_generation.or(generation);
        self
    }
}

/// The condition of this type.
#[must_use]
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of this type is there and true.
#[must_use]
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == Status::True.as_str())
}

/// Makes the condition say what is wanted; tells whether it did not. `lastTransitionTime` is `now` when the status changed, and
/// stays what it was when only reason, message or generation did.
pub fn set(conditions: &mut Vec<Condition>, wanted: &NewCondition, now: Timestamp) -> bool {
    let known = conditions.iter_mut().find(|condition| condition.type_ == wanted.type_);
    let since = known.as_ref().filter(|known| known.status == wanted.status.as_str());
    let condition = Condition {
        last_transition_time: since.map_or(Time(now), |known| known.last_transition_time.clone()),
        message: wanted.message.clone(),
        observed_generation: wanted.observed_generation,
        reason: wanted.reason.clone(),
        status: wanted.status.as_str().to_owned(),
        type_: wanted.type_.clone(),
    };
    match known {
        Some(known) if *known == condition => false,
        Some(known) => {
            *known = condition;
            true
        }
        None => {
            conditions.push(condition);
            true
        }
    }
}

/// Takes the condition of this type away; tells whether it was there.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != type_);
    conditions.len() < before
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kubewright_world::SIMULATION_START;

    use super::*;

    #[test]
    fn the_transition_time_changes_with_the_status_only() {
        let (now, mut conditions) = (SIMULATION_START, Vec::new());
        let ready = |status, message: &str| NewCondition::new("Ready", status, "Because").message(message);
        assert!(set(&mut conditions, &ready(Status::False, "a"), now));
        let began = conditions[0].last_transition_time.clone();
        let later = now + Duration::from_secs(60);
        assert!(!set(&mut conditions, &ready(Status::False, "a"), later));
        assert!(set(&mut conditions, &ready(Status::False, "b"), later));
        assert_eq!(conditions[0].last_transition_time, began);
        assert!(!is_true(&conditions, "Ready"));
        assert!(set(&mut conditions, &ready(true.into(), "b"), later));
        assert_ne!(conditions[0].last_transition_time, began);
        assert!(is_true(&conditions, "Ready") && conditions.len() == 1);
        assert!(remove(&mut conditions, "Ready") && !remove(&mut conditions, "Ready"));
    }
}
