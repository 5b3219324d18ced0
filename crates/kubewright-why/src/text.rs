//! Words for people.

use jiff::Timestamp;

use crate::object::Object;

/// The longest message of others that is repeated in a line.
const LONGEST: usize = 400;

/// A message of others in one line and of bounded length, without what moves a terminal's cursor.
pub(crate) fn one_line(message: &str) -> String {
    let mut line: String = message.split_whitespace().collect::<Vec<_>>().join(" ");
    line.retain(|letter| !letter.is_control());
    if line.chars().count() > LONGEST {
        line = line.chars().take(LONGEST).chain(['…']).collect();
    }
    line
}

/// `event FailedScheduling: 0/1 nodes are available`.
pub(crate) fn event_line(event: &Object) -> String {
    format!("event {}: {}", event.text("/reason"), one_line(event.text("/message")))
}

/// How long ago something was: `3m`.
pub(crate) fn ago(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second().saturating_sub(then.as_second()).max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// `a, b and 3 more`: the first few of them.
pub(crate) fn few(names: &[String]) -> String {
    const FEW: usize = 5;
    match names.len() {
        0..=FEW => names.join(", "),
        more => format!("{} and {} more", names[..FEW].join(", "), more - FEW),
    }
}

/// `-n shop`, or nothing for what is in no namespace.
pub(crate) fn in_namespace(namespace: &str) -> String {
    if namespace.is_empty() { String::new() } else { format!(" -n {namespace}") }
}
