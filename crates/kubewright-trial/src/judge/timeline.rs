//! Who wrote what in a step, line by line.

use std::collections::BTreeMap;

use crate::{
    stable,
    state::{State, Volatile, differences},
    story::{Did, ObjectId, Passed, Story, Who, Write, is_upkeep},
};

/// The most lines that are told.
const MOST: usize = 40;
/// The most fields of one write that are told.
const FIELDS: usize = 4;

/// The writes of a step, oldest first, with what they changed.
pub(super) fn timeline(story: &Story, step: &Passed) -> Vec<String> {
    let mut last: BTreeMap<&ObjectId, &Write> = BTreeMap::new();
    let mut lines = Vec::new();
    for write in story.writes.iter().filter(|write| !is_upkeep(&write.id.collection)) {
        let before = last.insert(&write.id, write);
        if write.at < step.from || write.at > step.until || write.by == Who::Cluster && is_quiet(write) {
            continue;
        }
        lines.push(line(write, before));
    }
    if lines.len() > MOST {
        let left = lines.len() - MOST;
        lines.truncate(MOST);
        lines.push(format!("... and {left} more writes"));
    }
    lines
}

/// Whether a write of the cluster itself tells nothing of the operator.
fn is_quiet(write: &Write) -> bool {
    !matches!(&*write.id.collection, "/pods" | "apps/deployments" | "apps/statefulsets" | "batch/jobs")
        && write.did != Did::Delete
}

fn line(write: &Write, before: Option<&Write>) -> String {
    let who = match write.by {
        Who::Program => "program",
        Who::Trial => "trial",
        Who::Cluster => "cluster",
    };
    let at = write.at.as_secs_f64();
    let part = if write.subresource.is_empty() { String::new() } else { format!(" ({})", write.subresource) };
    let what = format!("{at:8.3} {who:<7} {} {}{part}", write.did.word(), write.id);
    let Some(before) = before.filter(|before| write.did == Did::Update && before.did != Did::Delete) else {
        return what;
    };
    let fields = changed(before, write);
    if fields.is_empty() { what } else { format!("{what}: {}", fields.join(", ")) }
}

/// The fields that a write changed, as `/spec/replicas 1 -> 2`.
pub(super) fn changed(before: &Write, after: &Write) -> Vec<String> {
    let one = |write: &Write| {
        State::from([(write.id.clone(), stable::without_volatile(&write.object, true, &|_| None))])
    };
    let all = differences(&one(before), &one(after), &Volatile::default());
    let more = all.len().saturating_sub(FIELDS);
    let short = |value: Option<&String>| {
        let text = value.map_or("nothing", String::as_str);
        let end = text.floor_char_boundary(60);
        if end < text.len() { format!("{}...", &text[..end]) } else { text.to_owned() }
    };
    let mut fields: Vec<String> = all
        .iter()
        .take(FIELDS)
        .map(|one| {
            format!("{} {} -> {}", one.field, short(one.expected.as_ref()), short(one.reached.as_ref()))
        })
        .collect();
    if more > 0 {
        fields.push(format!("{more} more fields"));
    }
    fields
}
