//! What commands say on standard output.

use std::io::{self, Write};

/// Says something to whoever reads standard output; that may be nobody any more.
///
/// # Errors
/// When it cannot be written for another reason.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
