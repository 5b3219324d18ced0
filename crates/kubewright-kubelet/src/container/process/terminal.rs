//! The runtime's end of a pseudo terminal.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;

use crate::container::TerminalSize;

/// Where a program with a terminal writes to and reads from.
#[derive(Clone, Debug)]
pub(super) struct Terminal(Arc<AsyncFd<OwnedFd>>);

impl Terminal {
    pub(super) fn new(file: OwnedFd) -> io::Result<Self> {
        fcntl_setfl(&file, fcntl_getfl(&file)? | OFlags::NONBLOCK)?;
        #[expect(
            deprecated,
            reason = "an OwnedFd stays open until it is deregistered; its heir is unsafe to call"
        )]
        let file = AsyncFd::new(file)?;
        Ok(Self(Arc::new(file)))
    }

    /// Takes new sizes until nobody gives any.
    pub(super) fn sizes(&self) -> mpsc::Sender<TerminalSize> {
        let (sender, mut sizes) = mpsc::channel::<TerminalSize>(4);
        let terminal = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            while let Some(size) = sizes.recv().await {
                let Some(terminal) = terminal.upgrade() else { return };
                let size = Winsize { ws_row: size.height, ws_col: size.width, ws_xpixel: 0, ws_ypixel: 0 };
                // A terminal that nobody uses any more has no size.
                let _ = tcsetwinsize(terminal.get_ref(), size);
            }
        });
        sender
    }
}

impl AsyncRead for Terminal {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.0.poll_read_ready(context))?;
            let read = guard.try_io(|file| Ok(rustix::io::read(file, buffer.initialize_unfilled())?));
            match read {
                Ok(Ok(length)) => {
                    buffer.advance(length);
                    return Poll::Ready(Ok(()));
                }
                // Nobody has the other side any more.
                Ok(Err(error)) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_) => {}
            }
        }
    }
}

impl AsyncWrite for Terminal {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.0.poll_write_ready(context))?;
            if let Ok(written) = guard.try_io(|file| Ok(rustix::io::write(file, bytes)?)) {
                return Poll::Ready(written);
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
