//! What a test's operator logs.

use std::{
    cell::RefCell,
    io::{self, Write},
    sync::Once,
};

use tracing_subscriber::{Layer, filter::dynamic_filter_fn, fmt, prelude::*, registry};

thread_local! {
    /// What the test of this thread has logged: each has a thread, and a runtime on it, of its own.
    static KEPT: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Log of a test: what is logged in it, at every level, from the moment that it is [kept](Log::keep).
///
/// ```
/// use kubewright::testing::{Cluster, Log};
///
/// # mod hidden { use super::*;
/// #[kubewright::test]
/// async fn the_operator_says_hello(_cluster: Cluster) {
///     let log = Log::keep();
///     tracing::info!(name = "x", "hello");
///     assert_eq!(log.of(module_path!().split("::").next().unwrap_or_default()), ["hello name=\"x\""]);
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Log(());

impl Log {
    /// Keeps what this thread logs from now on. Tests of other threads have logs of their own.
    ///
    /// # Panics
    /// When something else gets what this process logs.
    #[must_use]
    pub fn keep() -> Self {
        static ONCE: Once = Once::new();
        // For the whole process: which lines are wanted at all is a fact of the process.
        ONCE.call_once(|| {
            let is_kept = dynamic_filter_fn(|_, _| KEPT.with_borrow(Option::is_some));
            let lines = fmt::layer().with_writer(|| Kept).with_ansi(false).with_filter(is_kept);
            registry().with(lines).init();
        });
        KEPT.set(Some(Vec::new()));
        Self(())
    }

    /// All of it, as it would be written to a terminal without colours.
    #[must_use]
    pub fn text(&self) -> String {
        KEPT.with_borrow(|log| String::from_utf8_lossy(log.as_deref().unwrap_or_default()).into_owned())
    }

    /// The lines of a crate, by its name in code (`kubewright_at`): what was said, with its fields, without time, level, spans and
    /// module.
    #[must_use]
    pub fn of(&self, name: &str) -> Vec<String> {
        let text = self.text();
        let said = text.lines().filter_map(|line| {
            let (_, rest) = line.split_once(&format!(" {name}"))?;
            rest.starts_with(':').then(|| rest.split_once(": ")).flatten()
        });
        said.map(|(_, said)| said.to_owned()).collect()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        KEPT.set(None);
    }
}

struct Kept;

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        KEPT.with_borrow_mut(|log| {
            if let Some(log) = log {
                log.extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
