//! What a write changed, line by line.

use std::sync::Arc;

use kubewright_control_plane::recording::{Did, Write};
use serde::Serialize;
use serde_json::Value;

use crate::fields::yaml;
use crate::row::Row;
use crate::secrets::Secrets;

/// A write with what it changed.
#[derive(Debug, Serialize)]
pub(crate) struct Change {
    #[serde(flatten)]
    row: Row,
    /// Lines with ` `, `+` or `-` before them, and `@` before each place. Empty where nothing that is shown has changed.
    diff: Vec<String>,
    /// Lines that are not told, as there are too many.
    #[serde(skip_serializing_if = "is_zero")]
    more: usize,
}

/// The most lines of a change.
const LONGEST: usize = 2_000;
/// Objects beyond this are not compared line by line: the work grows with the square of what differs.
const LARGEST: usize = 512 << 10;

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Change {
    /// What `write` changed of what `before` had left.
    pub(crate) fn new(write: &Write, before: Option<&Arc<Write>>, secrets: Secrets) -> Self {
        let shown = |write: &Write| without_noise(secrets.shown(&write.collection, write.object()));
        let empty = String::new;
        let too_large = write.bytes.len() > LARGEST || before.is_some_and(|one| one.bytes.len() > LARGEST);
        let (old, new) = match (write.did, before) {
            _ if too_large => (empty(), empty()),
            (Did::Delete, _) => (yaml(&shown(write)), empty()),
            (Did::Create, _) | (Did::Update, None) => (empty(), yaml(&shown(write))),
            (Did::Update, Some(before)) => (yaml(&shown(before)), yaml(&shown(write))),
        };
        let mut diff = if too_large {
            vec!["@the object is too large to be compared".to_owned()]
        } else {
            diff(&old, &new)
        };
        let more = diff.len().saturating_sub(LONGEST);
        diff.truncate(LONGEST);
        Self { row: Row::from(write), diff, more }
    }
}

/// Without what changes with every write.
fn without_noise(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    object
}

/// The lines that differ, with three others around them.
fn diff(old: &str, new: &str) -> Vec<String> {
    let patch = diffy::create_patch(old, new);
    let mut lines = Vec::new();
    for hunk in patch.hunks() {
        lines.push(format!("@{}", hunk.new_range().start()));
        lines.extend(hunk.lines().iter().map(|line| match line {
            diffy::Line::Context(line) => format!(" {}", line.trim_end_matches('\n')),
            diffy::Line::Delete(line) => format!("-{}", line.trim_end_matches('\n')),
            diffy::Line::Insert(line) => format!("+{}", line.trim_end_matches('\n')),
        }));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::config_map;

    fn lines(did: Did, before: Option<&str>, after: &str) -> Vec<String> {
        let before = before.map(|text| Arc::new(config_map(1, Did::Create, "default/a", text)));
        Change::new(&config_map(2, did, "default/a", after), before.as_ref(), Secrets::Hidden).diff
    }

    #[test]
    fn an_update_shows_the_lines_that_differ_and_not_the_version() {
        let shown = lines(Did::Update, Some("one"), "two");
        assert!(shown.contains(&"-  text: one".to_owned()) && shown.contains(&"+  text: two".to_owned()));
        assert!(!shown.iter().any(|line| line.contains("resourceVersion")), "{shown:?}");
        assert_eq!(lines(Did::Update, Some("one"), "one"), [""; 0]);
    }

    #[test]
    fn a_creation_is_all_new_and_a_deletion_all_gone() {
        assert!(lines(Did::Create, None, "x").iter().all(|line| line.starts_with(['+', '@'])));
        assert!(lines(Did::Delete, Some("x"), "x").iter().all(|line| line.starts_with(['-', '@'])));
    }
}
