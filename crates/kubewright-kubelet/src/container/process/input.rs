//! The standard input of a container, which several may write to, one after the other or at once.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::Mutex;

/// How much waits for a program that does not read.
const WAITING: usize = 64 << 10;

/// Where a container reads from. Dropping it ends its input.
#[derive(Clone)]
pub(super) struct Input(Arc<Mutex<Option<Box<dyn AsyncWrite + Send + Unpin>>>>);

impl Input {
    pub(super) fn new(to: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(Box::new(to)))))
    }

    /// A way to write to it. `once` ends the input when this writer leaves.
    pub(super) fn join(&self, once: bool) -> DuplexStream {
        let (theirs, mut ours) = duplex(WAITING);
        let input = self.clone();
        tokio::spawn(async move {
            let mut block = vec![0; WAITING];
            while let Ok(length @ 1..) = ours.read(&mut block).await {
                let mut to = input.0.lock().await;
                let Some(open) = to.as_mut() else { return };
                if open.write_all(&block[..length]).await.is_err() {
                    *to = None;
                    return;
                }
            }
            if once {
                *input.0.lock().await = None;
            }
        });
        theirs
    }
}

impl std::fmt::Debug for Input {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Input")
    }
}
