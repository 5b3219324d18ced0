//! Watches a program and the runtime at once, each on a thread: not every machine can wait for both.

use std::sync::Arc;

use parking_lot::Mutex;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::Failure;
use super::shim::Kept;
use crate::container::wire::{Report, Wire};

/// Tells that the program runs, and does what the runtime says until the program has ended.
#[expect(clippy::disallowed_methods, reason = "a helper is no part of a cluster's run")]
pub(super) fn until_end(wire: &Wire, kept: Kept) -> Result<(), Failure> {
    // Where the runtime has gone, listening tells.
    let _ = wire.send(&Report::Started, &[]);
    let listener = wire.try_clone().map_err(Failure::of("listen"))?;
    let ended = Arc::new(Mutex::new(false));
    let has_ended = Arc::clone(&ended);
    std::thread::spawn(move || {
        loop {
            let word = listener.next_word();
            let ended = has_ended.lock();
            // From then on its number may be another's.
            if *ended {
                return;
            }
            kept.obey(word);
            if word.is_none() {
                return;
            }
        }
    });
    let exited = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    rustix::io::retry_on_intr(|| waitid(WaitId::Pid(kept.pid), exited)).map_err(Failure::of("wait"))?;
    *ended.lock() = true;
    Ok(())
}
