//! What a webhook has converted between the versions of a custom kind. Who owns what is a pure question, and a webhook has to be called:
//! what is not known yet is noted, and asked again once it is.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// Conversions that are known, and the first one that is not.
#[derive(Debug, Default)]
pub struct Conversions(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    known: Vec<(Wanted, Value)>,
    wanted: Option<Wanted>,
}

/// An object that is wanted in another version.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The object, which says its own version.
    pub object: Value,
    /// The `apiVersion` that it is wanted in.
    pub api_version: String,
}

impl Conversions {
    /// The object in that version. One that is not known is noted, when it is the first: what comes of it is of no use.
    pub(super) fn of(&self, object: &Value, api_version: &str) -> Option<Value> {
        let mut state = self.state();
        let is_it = |known: &Wanted| known.api_version == api_version && known.object == *object;
        let known = state.known.iter().find(|(wanted, _)| is_it(wanted)).map(|(_, object)| object.clone());
        if known.is_none() && state.wanted.is_none() {
            state.wanted = Some(Wanted { object: object.clone(), api_version: api_version.to_owned() });
        }
        known
    }

    /// What was asked for and is not known.
    #[must_use]
    pub fn take_wanted(&self) -> Option<Wanted> {
        self.state().wanted.take()
    }

    /// Takes down what a webhook has made of an object.
    pub fn know(&self, wanted: Wanted, object: Value) {
        self.state().known.push((wanted, object));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
