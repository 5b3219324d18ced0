//! Doing a step on one side.

use std::time::Duration;

use anyhow::Result;
use http::Request;
use serde_json::Value;

use crate::controllers::mirror::Mirror;
use crate::controllers::state::without_structs;
use crate::controllers::story::{Pick, Step};

/// What a step was answered: its status, and why where it was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) status: u16,
    pub(crate) message: String,
}

/// Does it.
///
/// # Errors
/// Where the side does not answer.
pub(crate) async fn act(mirror: &Mirror, step: &Step, run: &str) -> Result<Done> {
    let picked = match &step.pick {
        None => String::new(),
        Some(pick) => match picked(mirror, pick, run) {
            Some(name) => name,
            None => return Ok(Done { status: 0, message: "there is none".into() }),
        },
    };
    let fill = |text: &str| {
        uids(mirror, run, &text.replace("@pick@", &picked).replace("@now@", &now()).replace("@run@", run))
    };
    let body = step.body.as_ref().map(|body| fill(&body.to_string())).unwrap_or_default();
    let request = Request::builder()
        .method(step.method)
        .uri(fill(&step.path))
        .header("Accept", "application/json")
        .header("User-Agent", "differ/1")
        .header("Content-Type", step.media)
        .body(body.into_bytes())?;
    mirror.touch(run);
    let answer = mirror.side.send(request).await?;
    let message = serde_json::from_slice::<Value>(&answer.body)
        .ok()
        .and_then(|body| body["message"].as_str().map(str::to_owned))
        .unwrap_or_default();
    let message = if answer.status < 300 {
        String::new()
    } else {
        without_structs(mirror.room(run).names.text(run, &message))
    };
    Ok(Done { status: answer.status, message })
}

/// The name of what is picked: of those that are not being deleted, in the order of what both sides say of them.
fn picked(mirror: &Mirror, pick: &Pick, run: &str) -> Option<String> {
    let room = mirror.room(run);
    let mut found: Vec<(String, String)> = room
        .objects
        .iter()
        .filter(|((kind, _), object)| {
            *kind == pick.kind
                && object["metadata"]["deletionTimestamp"].is_null()
                && pick
                    .label
                    .as_ref()
                    .is_none_or(|(key, value)| object["metadata"]["labels"][key] == value.as_str())
        })
        .map(|((_, name), object)| {
            let ready = object["status"]["conditions"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
            let phase = &object["status"]["phase"];
            let (labels, images) =
                (&object["metadata"]["labels"]["app"], &object["spec"]["containers"][0]["image"]);
            let held = &object["metadata"]["finalizers"];
            let said = &object["metadata"]["annotations"];
            let owner = &object["metadata"]["ownerReferences"][0]["kind"];
            let known = format!("{phase} {ready} {labels} {images} {held} {said} {owner}");
            (format!("{} {}", room.names.text(run, name), room.names.text(run, &known)), name.clone())
        })
        .collect();
    found.sort();
    let count = found.len();
    if count == 0 { None } else { Some(found.swap_remove(pick.nth % count).1) }
}

/// Fills in the uids of objects.
fn uids(mirror: &Mirror, run: &str, text: &str) -> String {
    let mut parts = text.split("@uid:");
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (object, rest) = part.split_once('@').unwrap_or((part, ""));
        let (kind, name) = object.split_once('/').unwrap_or((object, ""));
        let uid = crate::controllers::kinds::kind(kind)
            .and_then(|kind| mirror.object(run, kind.name, name))
            .and_then(|object| object["metadata"]["uid"].as_str().map(str::to_owned));
        told.push_str(uid.as_deref().unwrap_or("11111111-1111-1111-1111-111111111111"));
        told.push_str(rest);
    }
    told
}

fn now() -> String {
    k8s_openapi::jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Waits until nothing has been written on either side for a while: at most as long as the patience.
pub(crate) async fn rest(sides: [&Mirror; 2], run: &str, quiet: Duration, patience: Duration) {
    let end = std::time::Instant::now() + patience;
    while std::time::Instant::now() < end {
        let least = sides.iter().map(|side| side.quiet(run)).min().unwrap_or_default();
        if least >= quiet {
            return;
        }
        tokio::time::sleep((quiet - least).max(Duration::from_millis(50))).await;
    }
}
