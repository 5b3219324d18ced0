//! Events that people read: which are worth a write, as client-go's recorder decides it. Who writes them, and in which of the
//! API's two forms, is another's.

mod correlator;
mod spam_filter;

use std::fmt;

pub use correlator::{Correlator, Happening, Remembered, Write};
pub use spam_filter::SpamFilter;

/// The longest message that the API takes, in bytes.
pub const LONGEST_MESSAGE: usize = 1024;

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    /// What is expected to happen.
    Normal,
    /// What somebody should look at.
    Warning,
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        })
    }
}

/// `message`, cut between two characters so that it has at most [`LONGEST_MESSAGE`] bytes.
#[must_use]
pub fn shortened(message: &str) -> String {
    message[..message.floor_char_boundary(LONGEST_MESSAGE)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let message = format!("a{}", "ä".repeat(LONGEST_MESSAGE));
        assert_eq!(shortened(&message).len(), LONGEST_MESSAGE - 1);
        assert_eq!(shortened("ab"), "ab");
    }
}
