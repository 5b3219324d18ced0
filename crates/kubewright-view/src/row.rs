//! A write as the page lists it: what the tree and the timeline need of it, and not the object.

use kubewright_control_plane::recording::{Did, Write};
use serde::Serialize;
use serde_json::Value;

use crate::state::{State, state};

/// A write without its object.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The revision that it made, or its number in the order in which it was seen.
    pub revision: u64,
    /// Milliseconds since 1970, in cluster time.
    pub time: i64,
    /// What it did.
    pub did: Did,
    /// Group and plural, as `apps/deployments`.
    pub collection: String,
    /// Namespace and name, as `default/web`.
    pub key: String,
    /// The kind.
    pub kind: String,
    /// The object's uid.
    pub uid: String,
    /// The uids of its owners, the controller first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<String>,
    /// How far the object is.
    pub state: State,
    /// Why it is that, in a few words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Who wrote it, where that is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// The program, or the field manager, that wrote it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub program: String,
}

impl Row {
    /// The namespace; empty where there is none.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.key.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.key.split_once('/').map_or(&self.key, |(_, name)| name)
    }

    /// The group and plural and the key, which no other object has at the same time.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}\n{}", self.collection, self.key)
    }
}

/// The most characters of a message.
const LONGEST: usize = 240;

impl From<&Write> for Row {
    fn from(write: &Write) -> Self {
        let object = write.object();
        let (state, mut message) = state(&object);
        if let Some((end, _)) = message.char_indices().nth(LONGEST) {
            message.truncate(end);
            message.push('…');
        }
        Self {
            revision: write.revision.0,
            time: write.time.as_millisecond(),
            did: write.did,
            collection: write.collection.to_string(),
            key: write.key.to_string(),
            kind: object["kind"].as_str().unwrap_or_else(|| plural(&write.collection)).to_owned(),
            uid: object["metadata"]["uid"].as_str().unwrap_or_default().to_owned(),
            owners: owners(&object),
            state,
            message,
            user: write.by.user.clone(),
            program: write.by.program.clone(),
        }
    }
}

fn plural(collection: &str) -> &str {
    collection.split_once('/').map_or(collection, |(_, plural)| plural)
}

/// The owners by their uids; an event is shown below what it is of.
fn owners(object: &Value) -> Vec<String> {
    let uid = |value: &Value| value["uid"].as_str().map(str::to_owned);
    if object["kind"] == "Event" {
        let of = [&object["involvedObject"], &object["regarding"]];
        return of.into_iter().find_map(uid).into_iter().collect();
    }
    let references = object["metadata"]["ownerReferences"].as_array();
    let mut references: Vec<&Value> = references.into_iter().flatten().collect();
    references.sort_by_key(|reference| reference["controller"] != true);
    references.into_iter().filter_map(uid).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_owner_that_is_the_controller_comes_first() {
        let object = json!({"metadata": {"ownerReferences": [
            {"uid": "1"}, {"uid": "2", "controller": true}]}});
        assert_eq!(owners(&object), ["2", "1"]);
    }

    #[test]
    fn an_event_stands_below_what_it_is_of() {
        assert_eq!(owners(&json!({"kind": "Event", "involvedObject": {"uid": "3"}})), ["3"]);
    }
}
