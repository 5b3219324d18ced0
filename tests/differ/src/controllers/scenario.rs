//! A story as `tests/golden/golden.py record` takes it: the steps, and the state to wait for and to compare at the end.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::controllers::hold::Outcome;
use crate::controllers::kinds::{collection, kind};
use crate::controllers::story::{Pick, Step, Story};

/// The file.
pub(crate) fn write(story: &Story, outcome: Option<&Outcome>, sort: &str) -> String {
    let mut steps = Vec::new();
    for (at, step) in story.steps.iter().enumerate() {
        if let Some(pick) = &step.pick {
            steps.push(picking(at, pick));
        }
        steps.push(asked(at, step));
    }
    let kinds: BTreeSet<&String> =
        outcome.iter().flat_map(|outcome| outcome.reference.keys().map(|(kind, _)| kind)).collect();
    for name in kinds {
        if kind(name).is_some_and(|kind| kind.namespaced) {
            steps.push(json!({"id": format!("final-{}", name.to_lowercase()), "wait": 3, "path": filled(&collection(name)),
                "unordered": ["items"], "distinct": ["items"], "only": ["items"]}));
        }
    }
    let scenario = json!({"name": format!("seed-{}", story.seed), "area": "differ", "service_account": true, "steps": steps});
    let mut text = String::new();
    let _ = writeln!(text, "# {}", sort.replace('\n', " "));
    let _ = writeln!(
        text,
        "import json\nSCENARIOS = [json.loads(r'''{}''')]",
        scenario.to_string().replace("'''", "\\u0027\\u0027\\u0027")
    );
    text
}

fn filled(text: &str) -> String {
    text.replace("@run@", "${ns}").replace("@now@", "2026-01-01T00:00:00Z")
}

/// Captures the name of what a step picks.
fn picking(at: usize, pick: &Pick) -> Value {
    let query = pick
        .label
        .as_ref()
        .map_or_else(String::new, |(key, value)| format!("?labelSelector={key}%3D{value}"));
    json!({"id": format!("pick{at}"), "wait": 3, "path": format!("{}{query}", filled(&collection(pick.kind))),
        "capture": {format!("pick{at}"): "items.0.metadata.name"}, "only": ["kind"]})
}

fn asked(at: usize, step: &Step) -> Value {
    let fill = |text: &str| filled(text).replace("@pick@", &format!("${{pick{at}}}"));
    let mut asked = Map::new();
    asked.insert("id".into(), json!(step.what));
    asked.insert("method".into(), json!(step.method));
    asked.insert("path".into(), json!(fill(&step.path)));
    asked.insert("headers".into(), json!({"Content-Type": step.media}));
    if let Some(body) = &step.body {
        asked.insert("body".into(), serde_json::from_str(&fill(&body.to_string())).unwrap_or_default());
    }
    asked.insert("only".into(), json!(["kind", "reason"]));
    Value::Object(asked)
}
