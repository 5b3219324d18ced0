//! Events for people (`kubectl describe`, `kubectl events`), in the two forms that the API has for them.

mod core;
mod correlator;
mod series;

use std::fmt;

use kube::Client;
use kubewright_world::World;

use crate::{Error, Object};

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    /// What is expected to happen.
    Normal,
    /// What somebody should look at.
    Warning,
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        })
    }
}

/// Which API events are recorded by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `events.k8s.io/v1`.
    Series,
    /// `v1`.
    Core,
}

/// Records the events of one source.
#[derive(Clone)]
pub(crate) enum Recorder {
    Series(series::Recorder),
    Core(core::Recorder),
}

impl Recorder {
    /// `source` is who tells.
    pub(crate) fn new(form: Form, client: Client, world: World, source: &str) -> Self {
        match form {
            Form::Series => Self::Series(series::Recorder::new(client, world, source)),
            Form::Core => Self::Core(core::Recorder::new(client, world, source)),
        }
    }

    /// Records an event, or that it happened once more.
    pub(crate) async fn record<K: Object>(
        &self,
        object: &K,
        event_type: EventType,
        reason: &str,
        note: &str,
    ) -> Result<(), Error> {
        match self {
            Self::Series(recorder) => recorder.record(object, event_type, reason, note).await,
            Self::Core(recorder) => recorder.record(object, event_type, reason, note).await,
        }
    }
}

/// The name of a new event about an object; a random one where the object's name leaves no room for more
/// (`GenerateEventName` in `k8s.io/client-go/tools/record/util`).
fn name(world: &World, object: &str) -> String {
    let name = format!("{object}.{}", world.dice.suffix(16));
    let is_subdomain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    if name.len() <= 253 && !object.is_empty() && name.chars().all(is_subdomain) {
        name
    } else {
        world.dice.uid()
    }
}

/// `text`, cut at a character so that it has at most `limit` bytes.
fn shortened(text: &str, limit: usize) -> String {
    let end = (0..=limit.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_note_is_cut_between_characters() {
        assert_eq!(shortened("äöü", 3), "ä");
        assert_eq!(shortened("ab", 3), "ab");
    }

    #[tokio::test]
    async fn an_object_whose_name_leaves_no_room_gets_events_with_random_names() {
        let world = World::simulated(0);
        assert!(name(&world, "web").starts_with("web."));
        assert_eq!(name(&world, &"a".repeat(240)).len(), 36);
        assert_eq!(name(&world, "system:node").len(), 36);
    }
}
