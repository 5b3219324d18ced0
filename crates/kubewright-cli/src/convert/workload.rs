//! Deployments and their like, and what has only moved.

use anyhow::bail;
use serde_json::{Value, json};

use super::object::{Members, Note};

/// Where what is told of these groups and versions went; `None` for what is gone for good.
fn today(version: &str, kind: &str) -> Option<Option<&'static str>> {
    Some(match (version, kind) {
        (
            "extensions/v1beta1" | "apps/v1beta1" | "apps/v1beta2",
            "Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet",
        ) => Some("apps/v1"),
        ("extensions/v1beta1", "Job") | ("batch/v1beta1" | "batch/v2alpha1", "CronJob") => Some("batch/v1"),
        ("extensions/v1beta1", _)
        | (
            "apps/v1beta1"
            | "apps/v1beta2"
            | "batch/v1beta1"
            | "batch/v2alpha1"
            | "apiextensions.k8s.io/v1beta1",
            _,
        ) => None,
        _ => return None,
    })
}

pub(super) fn convert(
    version: &str,
    kind: &str,
    members: &mut Members,
    notes: &mut Vec<Note>,
) -> anyhow::Result<Option<Members>> {
    let Some(today) = today(version, kind) else {
        return Ok(None); // It is passed on as it is.
    };
    let Some(today) = today else {
        bail!("{version} {kind} is not served any more, and what it is today is not known here");
    };
    members.insert("apiVersion".to_owned(), json!(today));
    notes.push(Note::Done(format!("{version} is now {today}")));
    members.remove("status");
    let Some(spec) = members.get_mut("spec").and_then(Value::as_object_mut) else { bail!("spec is missing") };
    match kind {
        "Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet" => {
            selector(spec, notes)?;
            defaults(version, kind, spec, notes);
        }
        "Job" => job(spec, notes),
        "CronJob" => {
            if let Some(spec) =
                spec.get_mut("jobTemplate").and_then(|template| template.get_mut("spec")?.as_object_mut())
            {
                job(spec, notes);
            }
        }
        _ => {}
    }
    Ok(None)
}

/// The selector must be there, and match.
fn selector(spec: &mut Members, notes: &mut Vec<Note>) -> anyhow::Result<()> {
    if spec.get("selector").is_some_and(|selector| !selector.is_null()) {
        return Ok(());
    }
    let labels =
        spec.get("template").map(|template| template["metadata"]["labels"].clone()).unwrap_or_default();
    if labels.as_object().is_none_or(Members::is_empty) {
        bail!("spec.selector is missing, and spec.template.metadata.labels, which it was made of, is empty");
    }
    notes.push(Note::Done("spec.selector is the labels of the template, as it was by default".to_owned()));
    spec.insert("selector".to_owned(), json!({"matchLabels": labels}));
    Ok(())
}

/// What was meant where nothing was said, where that is another thing today (`pkg/apis/extensions/v1beta1/defaults.go`).
fn defaults(version: &str, kind: &str, spec: &mut Members, notes: &mut Vec<Note>) {
    for gone in ["rollbackTo", "templateGeneration"] {
        if spec.remove(gone).is_some() {
            notes.push(Note::Lost(format!("spec.{gone}, which apps/v1 does not have")));
        }
    }
    if version == "extensions/v1beta1" && kind == "Deployment" && !spec.contains_key("strategy") {
        let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}});
        spec.insert("strategy".to_owned(), rolling);
        notes.push(Note::Done(
            "spec.strategy says what was the default: one more and one less at a time".to_owned(),
        ));
    }
    let deletes = (version, kind) == ("extensions/v1beta1", "DaemonSet")
        || (version, kind) == ("apps/v1beta1", "StatefulSet");
    if deletes && !spec.contains_key("updateStrategy") {
        spec.insert("updateStrategy".to_owned(), json!({"type": "OnDelete"}));
        notes.push(Note::Done("spec.updateStrategy says what was the default: OnDelete".to_owned()));
    }
}

/// A Job's selector is the API server's to make.
fn job(spec: &mut Members, notes: &mut Vec<Note>) {
    spec.remove("autoSelector");
    if spec.get("manualSelector") != Some(&json!(true)) && spec.remove("selector").is_some() {
        notes.push(Note::Done("the selector is left out: the API server makes one".to_owned()));
    }
}
