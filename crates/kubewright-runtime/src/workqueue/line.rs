//! The keys that are due, in the order in which workers get them.

use std::{cmp::Reverse, collections::BTreeMap};

use super::Priority;

/// Higher priorities first, and what came first among equals.
pub(super) type QueuePosition = (Reverse<Priority>, u64);

/// Beyond so many priorities, those are forgotten of which there is no key.
const FEW: usize = 32;

/// The keys by their places, and how many there are of each priority.
#[derive(Debug)]
pub(super) struct Line<T> {
    keys: BTreeMap<QueuePosition, T>,
    /// With zeros, so that a queue of one key now and then makes no new entry each time.
    depths: BTreeMap<Priority, usize>,
}

impl<T> Line<T> {
    pub(super) fn new() -> Self {
        Self { keys: BTreeMap::new(), depths: BTreeMap::new() }
    }

    pub(super) fn insert(&mut self, position: QueuePosition, key: T) {
        if self.keys.insert(position, key).is_none() {
            if self.depths.len() > FEW {
                self.depths.retain(|_, depth| *depth > 0);
            }
            *self.depths.entry(position.0.0).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, position: &QueuePosition) -> Option<T> {
        let key = self.keys.remove(position)?;
        self.count_out(position);
        Some(key)
    }

    /// Takes the first key of all.
    pub(super) fn pop_first(&mut self) -> Option<(QueuePosition, T)> {
        let (position, key) = self.keys.pop_first()?;
        self.count_out(&position);
        Some((position, key))
    }

    /// Takes the first key of the lowest priority.
    pub(super) fn pop_lowest(&mut self) -> Option<(QueuePosition, T)> {
        let (lowest, _) = *self.keys.last_key_value()?.0;
        let position = *self.keys.range((lowest, 0)..).next()?.0;
        self.remove(&position).map(|key| (position, key))
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// How many keys there are of each priority.
    pub(super) fn depths(&self) -> &BTreeMap<Priority, usize> {
        &self.depths
    }

    fn count_out(&mut self, (Reverse(priority), _): &QueuePosition) {
        if let Some(depth) = self.depths.get_mut(priority) {
            *depth -= 1;
        }
    }
}
