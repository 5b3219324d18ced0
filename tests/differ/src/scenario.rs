//! A conversation as `tests/golden/golden.py record` takes it.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::conversation::Conversation;
use crate::hold::Got;

/// The file: requests as the reference was sent them, with the names of this run as variables.
pub(crate) fn write(conversation: &Conversation, got: &[Got], run: &str, sort: &str) -> String {
    let mut known: Vec<(String, String)> = Vec::new();
    let mut steps: Vec<Value> = Vec::new();
    for (at, (ask, got)) in conversation.asks.iter().zip(got).enumerate() {
        let mut step = Map::new();
        let fill = |text: &str| {
            known.iter().fold(text.replace(run, "${ns}"), |text, (value, name)| {
                text.replace(value, &format!("${{{name}}}"))
            })
        };
        step.insert("id".into(), json!(ask.what));
        step.insert("method".into(), json!(got.sent.method));
        step.insert("path".into(), json!(fill(&got.sent.path)));
        let headers: Map<String, Value> =
            got.sent.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        step.insert("headers".into(), Value::Object(headers));
        if let Some(body) = &got.sent.body {
            let text = fill(body);
            step.insert("body".into(), serde_json::from_str(&text).unwrap_or(Value::String(text)));
        }
        if ask.stream {
            step.insert("watch".into(), json!({"events": 50, "timeout": 2}));
        }
        if ask.until_ok {
            step.insert("until".into(), json!({"status": 200, "timeout": 10}));
        }
        let answer = serde_json::from_slice::<Value>(&got.body).unwrap_or_default();
        let mut capture = Map::new();
        for (key, short) in [("uid", "uid"), ("resourceVersion", "rv")] {
            let later = answer["metadata"][key]
                .as_str()
                .filter(|value| value.len() > 2 && !known.iter().any(|(known, _)| known == value));
            if let Some(value) = later.map(str::to_owned) {
                let name = format!("{short}{at}");
                capture.insert(name.clone(), json!(format!("metadata.{key}")));
                known.push((value, name));
            }
        }
        if !capture.is_empty() {
            step.insert("capture".into(), Value::Object(capture));
        }
        steps.push(Value::Object(step));
    }
    let mut text = String::new();
    let name = format!("seed-{}", conversation.seed);
    let _ = writeln!(text, "# {}", sort.replace('\n', " "));
    let _ = writeln!(
        text,
        "import json\nSCENARIOS = [json.loads(r'''{}''')]",
        json!({"name": name, "area": "differ", "steps": steps})
            .to_string()
            .replace("'''", "\\u0027\\u0027\\u0027")
    );
    text
}
