//! Requests that create and change.

use rand::RngExt;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::Making;
use crate::conversation::{Ask, Payload};
use crate::edit::Edit;

impl Making<'_> {
    pub(super) fn create(&mut self, at: usize, broken: bool) {
        let place = self.known[at].place.clone();
        let mut object = self.known[at].object.clone();
        if broken {
            let edits = self.edits(at, 0.6);
            edits.iter().for_each(|edit| edit.apply(&mut object));
        }
        if self.rng.random_bool(0.05) {
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("name");
            }
            object["metadata"]["generateName"] = json!("gen-");
        }
        let mut ask = Ask::new("create", "POST", &place).collection().body(object.clone());
        if self.rng.random_bool(0.06) {
            ask = ask.header("Content-Type", "application/yaml");
            ask.what = "create/yaml".into();
        }
        let ask = self.in_protobuf(ask, at);
        let ask = self.with_options(ask, at);
        self.asks.push(ask);
    }

    pub(super) fn put(&mut self, at: usize) {
        let place = self.known[at].place.clone();
        let subresource = self.subresource(at);
        let edits =
            if self.rng.random_bool(0.1) { Vec::new() } else { self.edits_of(at, subresource.as_deref()) };
        let mut what = "update".to_owned();
        let mut ask = Ask::new("", "PUT", &place);
        if let Some(name) = subresource {
            what = format!("update/{name}");
            ask = ask.subresource(&name);
        }
        ask.what = what;
        ask.payload = Payload::Changed { otherwise: self.known[at].object.clone(), edits: edits.clone() };
        let ask = self.in_protobuf(ask, at);
        let ask = self.with_options(ask, at);
        self.asks.push(ask);
        self.remember(at, &edits);
    }

    pub(super) fn remember(&mut self, at: usize, edits: &[Edit]) {
        if self.rng.random_bool(0.5) {
            let object = &mut self.known[at].object;
            edits
                .iter()
                .filter(|edit| edit.path.first() != Some(&crate::edit::Step::Key("metadata".into())))
                .for_each(|edit| edit.apply(object));
        }
    }

    pub(super) fn patch(&mut self, at: usize) {
        let place = self.known[at].place.clone();
        let object = self.known[at].object.clone();
        let subresource = self.subresource(at);
        let edits = self.edits_of(at, subresource.as_deref());
        let (form, media, body) = match self.rng.random_range(0..3) {
            0 => {
                let mut operations: Vec<Value> =
                    edits.iter().map(|edit| edit.json_patch(self.rng.random_bool(0.5))).collect();
                if self.rng.random_bool(0.15) {
                    operations.insert(
                        0,
                        json!({"op": "test", "path": "/metadata/name", "value": object["metadata"]["name"]}),
                    );
                }
                if self.rng.random_bool(0.05) {
                    operations.push(
                        json!({"op": "copy", "from": "/metadata/name", "path": "/metadata/annotations"}),
                    );
                }
                ("json", "application/json-patch+json", Value::Array(operations))
            }
            1 => (
                "merge",
                "application/merge-patch+json",
                merged(edits.iter().map(|edit| edit.merge_patch(&object))),
            ),
            _ => (
                "strategic",
                "application/strategic-merge-patch+json",
                merged(edits.iter().map(|edit| edit.strategic_patch(&object))),
            ),
        };
        let mut ask =
            Ask::new(&format!("patch/{form}"), "PATCH", &place).body(body).header("Content-Type", media);
        if let Some(name) = subresource {
            ask.what = format!("patch/{form}/{name}");
            ask = ask.subresource(&name);
        }
        let ask = self.with_options(ask, at);
        self.asks.push(ask);
        self.remember(at, &edits);
    }

    pub(super) fn apply(&mut self, at: usize) {
        let place = self.known[at].place.clone();
        let mut object = self.known[at].object.clone();
        let subresource = self.subresource(at).filter(|name| name == "status");
        for edit in self.edits_of(at, subresource.as_deref()) {
            edit.apply(&mut object);
        }
        if self.rng.random_bool(0.4) {
            drop_some(&mut self.rng, &mut object, true);
        }
        let mut ask = Ask::new("patch/apply", "PATCH", &place)
            .body(object)
            .header("Content-Type", "application/apply-patch+yaml");
        if let Some(name) = subresource {
            ask.what = format!("patch/apply/{name}");
            ask = ask.subresource(&name);
        }
        if self.rng.random_bool(0.97) {
            ask = ask.query("fieldManager", *["m1", "m2"].choose(&mut self.rng).unwrap_or(&"m1"));
        }
        if self.rng.random_bool(0.4) {
            ask = ask.query("force", "true");
        }
        if self.known[at].dry {
            ask = ask.query("dryRun", "All");
        }
        let ask = self.with_accept(ask);
        self.asks.push(ask);
    }
}

fn merged(patches: impl Iterator<Item = Value>) -> Value {
    patches.fold(json!({}), |mut all, patch| {
        merge(&mut all, patch);
        all
    })
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

/// Leaves out members, but for those that say what object it is.
fn drop_some(rng: &mut ChaCha8Rng, object: &mut Value, top: bool) {
    if let Some(members) = object.as_object_mut() {
        let names: Vec<String> = members.keys().cloned().collect();
        for name in names {
            if top && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
                continue;
            }
            if rng.random_bool(0.12) {
                members.remove(&name);
            } else if let Some(inner) = members.get_mut(&name) {
                drop_some(rng, inner, false);
            }
        }
    }
}
