//! How much the caches hold.

use serde::Serialize;

use super::Informer;
use crate::Cached;

/// What one kind takes in a cache. Made by [`Cache::usage`](crate::Cache::usage).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The kind, as `<plural>.<group>`.
    pub resource: String,
    /// Which of its objects are watched, in words.
    pub scope: String,
    /// How many objects there are.
    pub objects: usize,
    /// About how much memory they take: an estimate from some of them, by the length of their JSON and the size of their
    /// type.
    pub bytes: usize,
}

/// How many objects are looked at.
const SAMPLE: usize = 64;

impl Usage {
    pub(super) fn of<K: Cached>(informer: &Informer<K>) -> Self {
        let objects = informer.list(None);
        let step = objects.len().div_ceil(SAMPLE).max(1);
        let sample: Vec<_> = objects.iter().step_by(step).map(|object| length(&**object)).collect();
        let text: usize = sample.iter().sum::<usize>() * objects.len() / sample.len().max(1);
        Self {
            resource: informer.resource(),
            scope: informer.scope().to_string(),
            objects: objects.len(),
            bytes: text + objects.len() * size_of::<K>(),
        }
    }
}

/// The length of an object as JSON, which is not kept.
fn length(object: &impl Serialize) -> usize {
    struct Length(usize);
    impl std::io::Write for Length {
        fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
            self.0 += text.len();
            Ok(text.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut length = Length(0);
    // An object that cannot be written is one of no length.
    let _ = serde_json::to_writer(&mut length, object);
    length.0
}
