//! The runtime's end of a shim ([`helper`](crate::container::helper)).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as Pair;
use std::path::Path;
use std::process::Stdio;

use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use crate::container::helper::ARGUMENT;
use crate::container::wire::{self, HEAD, Order, Report, Word};

/// A shim that was started. It ends what it keeps when this is dropped.
#[derive(Debug)]
pub(super) struct Shim {
    child: Child,
    socket: UnixStream,
}

impl Shim {
    /// Starts a shim and gives it its order.
    pub(super) async fn start(launcher: &Path, order: &Order, files: &[BorrowedFd<'_>]) -> io::Result<Self> {
        let (ours, theirs) = Pair::pair()?;
        ours.set_nonblocking(true)?;
        let socket = UnixStream::from_std(ours)?;
        let mut command = Command::new(launcher);
        command.arg(ARGUMENT).env_clear().current_dir("/");
        command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null());
        // A terminal's signals are not for containers.
        command.process_group(0);
        let child = command
            .spawn()
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", launcher.display())))?;
        drop(command);
        let shim = Self { child, socket };
        shim.send(&wire::encode(order)?, files).await?;
        Ok(shim)
    }

    async fn send(&self, mut bytes: &[u8], mut files: &[BorrowedFd<'_>]) -> io::Result<()> {
        while !bytes.is_empty() {
            let send = || wire::send_some(self.socket.as_fd(), bytes, files);
            let sent = self.socket.async_io(Interest::WRITABLE, send).await?;
            bytes = &bytes[sent..];
            files = &[];
        }
        Ok(())
    }

    /// What it reports next, and what came with it; `None` when it has gone. Not to be asked again after it was given up.
    pub(super) async fn receive(&self) -> io::Result<Option<(Report, Vec<OwnedFd>)>> {
        let mut files = Vec::new();
        let mut head = [0; HEAD];
        if !self.fill(&mut head, &mut files).await? {
            return Ok(None);
        }
        let mut body = vec![0; wire::length(head)?];
        if !self.fill(&mut body, &mut files).await? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Some((wire::decode(&body)?, files)))
    }

    /// Whether there was something before the end.
    async fn fill(&self, buffer: &mut [u8], files: &mut Vec<OwnedFd>) -> io::Result<bool> {
        let mut filled = 0;
        while filled < buffer.len() {
            let receive = || wire::receive_some(self.socket.as_fd(), &mut buffer[filled..], files);
            match self.socket.async_io(Interest::READABLE, receive).await? {
                0 if filled == 0 => return Ok(false),
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                more => filled += more,
            }
        }
        Ok(true)
    }

    /// Says something, if the shim still listens.
    pub(super) async fn say(&self, word: Word) {
        if let Ok(bytes) = wire::encode(&word) {
            // Otherwise it has gone, and what it kept with it.
            let _ = self.send(&bytes, &[]).await;
        }
    }

    /// Its process, until it was waited for.
    pub(super) fn process(&self) -> Option<u32> {
        self.child.id()
    }

    /// Has it end what it keeps, and waits until it has.
    pub(super) async fn end(self) {
        let Self { mut child, socket } = self;
        drop(socket);
        // It is gone where it cannot be waited for.
        let _ = child.wait().await;
    }
}
