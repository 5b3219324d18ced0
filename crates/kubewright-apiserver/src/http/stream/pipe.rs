//! The ends of the streams that a client's connection carries. What carries them (channels of a WebSocket, streams of SPDY)
//! holds the other ends.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The most bytes that are read from a process or a port at a time.
const PIECE: usize = 32 << 10;
/// Pieces that wait for a connection whose client reads slowly, of all its streams.
const TO_CLIENT: usize = 4;
/// Pieces that wait for a process or a port that reads slowly. When there are more, the connection is not read.
const FROM_CLIENT: usize = 8;

/// What is to be sent to a client.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The stream that it is for.
    pub(super) stream: u32,
    pub(super) what: What,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum What {
    Bytes(Bytes),
    /// There will be no more.
    End,
    /// The stream is over, in both directions.
    Reset,
}

/// What streams send, on its way to the connection.
pub(super) fn to_client() -> (mpsc::Sender<Piece>, mpsc::Receiver<Piece>) {
    mpsc::channel(TO_CLIENT)
}

/// What a client sends on one stream.
pub(super) fn from_client() -> (mpsc::Sender<Bytes>, Input) {
    let (sender, receiver) = mpsc::channel(FROM_CLIENT);
    (sender, Input(receiver))
}

/// What a client sends on one stream, in its order.
#[derive(Debug)]
pub(super) struct Input(mpsc::Receiver<Bytes>);

impl Input {
    /// The next bytes; `None` when there are no more.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        self.0.recv().await
    }

    /// Writes all of it, and ends the writer. What a writer does not take any more is passed over: other streams of the
    /// connection have to go on.
    pub(super) async fn copy_to(mut self, mut writer: impl AsyncWrite + Unpin) {
        while let Some(bytes) = self.next().await {
            if writer.write_all(&bytes).await.is_err() || writer.flush().await.is_err() {
                break;
            }
        }
        // A writer that fails here has failed before.
        let _ = writer.shutdown().await;
        drop(writer);
        while self.next().await.is_some() {}
    }
}

/// The client does not listen to a stream any more.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Gone;

/// What a client is sent on one stream.
#[derive(Clone, Debug)]
pub(super) struct Output {
    stream: u32,
    connection: mpsc::Sender<Piece>,
    /// Cancelled when the client has reset the stream; who holds it knows that somebody may still send on it.
    gone: Arc<CancellationToken>,
}

impl Output {
    pub(super) fn new(stream: u32, connection: mpsc::Sender<Piece>, gone: Arc<CancellationToken>) -> Self {
        Self { stream, connection, gone }
    }

    /// Waits until the client does not want the stream any more.
    pub(super) async fn gone(&self) {
        self.gone.cancelled().await;
    }

    /// Sends bytes, once the connection has room for them.
    pub(super) async fn write(&self, bytes: Bytes) -> Result<(), Gone> {
        self.send(What::Bytes(bytes)).await
    }

    /// Tells that there is no more.
    pub(super) async fn end(self) {
        // Who has gone needs not be told.
        let _ = self.send(What::End).await;
    }

    /// Ends the stream in both directions.
    pub(super) async fn reset(self) {
        let _ = self.send(What::Reset).await;
    }

    async fn send(&self, what: What) -> Result<(), Gone> {
        if self.gone.is_cancelled() {
            return Err(Gone);
        }
        self.connection.send(Piece { stream: self.stream, what }).await.map_err(|_| Gone)
    }

    /// Sends all that a reader gives.
    ///
    /// # Errors
    /// The reader's. That the client has gone is none.
    pub(super) async fn copy_from(&self, mut reader: impl AsyncRead + Unpin) -> io::Result<()> {
        let mut buffer = BytesMut::with_capacity(PIECE);
        while reader.read_buf(&mut buffer).await? > 0 {
            if self.write(buffer.split().freeze()).await.is_err() {
                break;
            }
            buffer.reserve(PIECE);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_process_that_closes_its_input_does_not_hold_up_its_client() {
        let (sender, input) = from_client();
        let (writer, reader) = tokio::io::simplex(4);
        drop((reader, writer));
        let (writer, reader) = tokio::io::duplex(4);
        drop(reader);
        let copying = tokio::spawn(input.copy_to(writer));
        for _ in 0..100 {
            sender.send(Bytes::from_static(b"for nobody")).await.expect("it is taken");
        }
        drop(sender);
        copying.await.expect("no panic");
    }

    #[tokio::test]
    async fn a_client_that_reads_slowly_holds_up_the_process() {
        let (connection, mut pieces) = to_client();
        let output = Output::new(1, connection, Arc::default());
        let endless = tokio::io::repeat(7);
        let copying = tokio::spawn(async move { output.copy_from(endless).await });
        tokio::task::yield_now().await;
        assert_eq!(pieces.len(), TO_CLIENT);
        assert!(
            matches!(pieces.recv().await, Some(Piece { what: What::Bytes(bytes), .. }) if bytes.len() <= PIECE)
        );
        drop(pieces);
        copying.await.expect("no panic").expect("no error");
    }
}
