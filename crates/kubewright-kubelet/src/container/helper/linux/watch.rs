//! Watches a program and the runtime at once. A process with a pid namespace for its children can have no second thread.

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{PidfdFlags, pidfd_open};

use super::super::Failure;
use super::super::shim::Kept;
use crate::container::wire::{Report, Wire};

/// Tells that the program runs, and does what the runtime says until the program has ended.
pub(in crate::container::helper) fn until_end(wire: &Wire, kept: Kept) -> Result<(), Failure> {
    let process = pidfd_open(kept.pid, PidfdFlags::empty()).map_err(Failure::of("pidfd_open"))?;
    // Where the runtime has gone, listening tells.
    let _ = wire.send(&Report::Started, &[process.as_fd()]);
    let mut listening = true;
    loop {
        let mut watched = [PollFd::new(&process, PollFlags::IN), PollFd::new(wire, PollFlags::IN)];
        let watched = if listening { &mut watched[..] } else { &mut watched[..1] };
        match poll(watched, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Failure::of("poll")(error)),
        }
        if !watched[0].revents().is_empty() {
            return Ok(());
        }
        if listening && !watched[1].revents().is_empty() {
            let word = wire.next_word();
            listening = word.is_some();
            kept.obey(word);
        }
    }
}
