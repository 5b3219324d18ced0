//! What a container writes: kept in its log, and passed to those who are attached.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::sync::mpsc;
use tracing::warn;

use crate::container::log::{Log, Stream};

/// How much is read at once.
const BLOCK: usize = 16 << 10;

/// How many blocks wait for somebody who is attached and reads too slowly.
const WAITING: usize = 64;

/// Clients that are attached to one stream. None of them slows the container down: who falls too far behind is let go.
#[derive(Debug)]
pub(super) struct AttachedStreams(Mutex<Option<Vec<mpsc::Sender<Block>>>>);

/// Some output, or what stands for the rest of it.
type Block = Result<Bytes, Behind>;

/// Stands for what somebody missed.
#[derive(Clone, Copy, Debug)]
struct Behind;

impl AttachedStreams {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Some(Vec::new()))))
    }

    /// What is written from now on; nothing, after the end.
    pub(super) fn join(&self) -> AttachedStream {
        let (sender, receiver) = mpsc::channel(WAITING + 1);
        if let Some(listeners) = &mut *self.0.lock() {
            listeners.push(sender);
        }
        AttachedStream { receiver, block: Bytes::new() }
    }

    fn send(&self, bytes: &[u8]) {
        let mut listeners = self.0.lock();
        let Some(listeners) = listeners.as_mut().filter(|listeners| !listeners.is_empty()) else { return };
        let bytes = Bytes::copy_from_slice(bytes);
        listeners.retain(|listener| match listener.capacity() {
            0 => false,
            // The last place is for saying so.
            1 => {
                let _ = listener.try_send(Err(Behind));
                false
            }
            _ => listener.try_send(Ok(bytes.clone())).is_ok(),
        });
    }

    pub(super) fn close(&self) {
        *self.0.lock() = None;
    }
}

/// Output as one attached client reads it.
#[derive(Debug)]
pub(super) struct AttachedStream {
    receiver: mpsc::Receiver<Block>,
    block: Bytes,
}

impl AsyncRead for AttachedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.block.is_empty() {
            match ready!(self.receiver.poll_recv(context)) {
                Some(Ok(block)) => self.block = block,
                Some(Err(Behind)) => {
                    let text = "the output was read too slowly: the rest is in the container's log only";
                    return Poll::Ready(Err(io::Error::other(text)));
                }
                None => return Poll::Ready(Ok(())),
            }
        }
        let length = self.block.len().min(buffer.remaining());
        buffer.put_slice(&self.block[..length]);
        self.block.advance(length);
        Poll::Ready(Ok(()))
    }
}

/// Passes on what is read, until the end.
pub(super) async fn pump(
    mut from: impl AsyncRead + Unpin,
    stream: Stream,
    log: Arc<Log>,
    attached: Arc<AttachedStreams>,
) {
    let mut block = vec![0; BLOCK];
    let mut kept = true;
    while let Ok(length @ 1..) = from.read(&mut block).await {
        let bytes = &block[..length];
        if let Err(error) = log.write(stream, bytes)
            && std::mem::take(&mut kept)
        {
            warn!(?log, %error, "what a container writes is not kept");
        }
        attached.send(bytes);
    }
    attached.close();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_reads_too_slowly_is_let_go_and_nobody_waits() {
        let attached = AttachedStreams::new();
        let (mut slow, mut late) = (attached.join(), None);
        for number in 0..WAITING * 2 {
            if number == WAITING + 10 {
                late = Some(attached.join());
            }
            attached.send(b"x");
        }
        attached.close();
        let mut text = String::new();
        assert!(slow.read_to_string(&mut text).await.is_err());
        let mut late = late.unwrap();
        late.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "x".repeat(WAITING - 10));
        assert_eq!(attached.join().read_to_string(&mut text).await.unwrap(), 0);
    }
}
