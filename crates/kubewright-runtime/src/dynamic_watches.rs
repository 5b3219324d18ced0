//! The watches that a controller's reconciles began.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::{Key, source::Replay};

/// Watches that reconciles began, and that are replayed as those are that controllers declare; clones share them.
#[derive(Clone, Default)]
pub(crate) struct DynamicWatches(Arc<Mutex<Vec<Watch>>>);

struct Watch {
    /// Held as long as it is to be replayed.
    alive: Weak<()>,
    replay: Arc<Replay>,
}

impl DynamicWatches {
    /// One more, as long as `alive` is held.
    pub(crate) fn add(&self, alive: &Arc<()>, replay: Replay) {
        let mut watches = self.0.lock();
        watches.retain(|watch| watch.alive.strong_count() > 0);
        watches.push(Watch { alive: Arc::downgrade(alive), replay: Arc::new(replay) });
    }

    /// Delivers what they know.
    pub(crate) fn replay(&self, accepts: &dyn Fn(&Key) -> bool) {
        let held: Vec<Arc<Replay>> = {
            let watches = self.0.lock();
            let held = watches.iter().filter(|watch| watch.alive.strong_count() > 0);
            held.map(|watch| watch.replay.clone()).collect()
        };
        // Outside of the lock: a mapping is anybody's.
        held.iter().for_each(|replay| replay(accepts));
    }
}
