//! The lines that an operator writes to its log.

use std::{io, sync::Arc};

use parking_lot::Mutex;
use tracing::{Level, subscriber::DefaultGuard};
use tracing_subscriber::fmt::MakeWriter;

/// What is logged from when it was made, by this test: at the level that operators run with, `info`.
pub(crate) struct Lines {
    text: Text,
    _guard: DefaultGuard,
}

#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl Lines {
    pub(crate) fn listen() -> Self {
        let text = Text::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(Level::INFO)
            .with_ansi(false)
            .without_time()
            .with_writer(text.clone())
            .finish();
        Self { text, _guard: tracing::subscriber::set_default(subscriber) }
    }

    /// The SDK's lines since the last time.
    pub(crate) fn take(&self) -> Vec<String> {
        let text = std::mem::take(&mut *self.text.0.lock());
        let lines = String::from_utf8_lossy(&text);
        let of_the_sdk = |line: &&str| line.contains("kubewright_runtime");
        lines.lines().filter(of_the_sdk).map(str::to_owned).collect()
    }
}

impl io::Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Text {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
