//! Definitions that lack a name because others have it: who is to be looked at again when names become free, without a
//! look at all definitions there are.

use std::collections::BTreeMap;

use kubewright_meta::object;
use serde_json::Value;

use super::definitions;

/// The definitions whose names are not accepted, with their groups.
#[derive(Default)]
pub(super) struct Waiting(BTreeMap<String, String>);

impl Waiting {
    /// Keeps in mind whether this definition, as it is now, waits.
    pub(super) fn note(&mut self, definition: &Value) {
        if definitions::condition(definition, "NamesAccepted") {
            self.forget(object::name(definition));
        } else {
            self.0.insert(object::name(definition).to_owned(), group(definition).to_owned());
        }
    }

    /// There is no definition of this name.
    pub(super) fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Those of a group.
    pub(super) fn of_group(&self, group: &str) -> Vec<String> {
        self.0.iter().filter(|(_, of)| *of == group).map(|(name, _)| name.clone()).collect()
    }

    /// Those of the same group as this one.
    pub(super) fn beside(&self, definition: &Value) -> Vec<String> {
        let beside = |(name, in_group): &(&String, &String)| {
            **in_group == group(definition) && **name != object::name(definition)
        };
        self.0.iter().filter(beside).map(|(name, _)| name.clone()).collect()
    }
}

fn group(definition: &Value) -> &str {
    definition["spec"]["group"].as_str().unwrap_or_default()
}
