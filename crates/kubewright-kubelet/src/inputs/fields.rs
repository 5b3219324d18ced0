//! Fields of a pod, for its containers (`fieldRef`; `pkg/fieldpath`, `Kubelet.podFieldSelectorRuntimeValue`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{ObjectFieldSelector, Pod};

use super::place::{self, PodPlace};

/// What a `fieldRef` of an environment variable says.
pub(super) fn of_pod(
    selector: &ObjectFieldSelector,
    pod: &Pod,
    place: PodPlace<'_>,
) -> Result<String, String> {
    let spec = pod.spec.as_ref();
    let from_spec = |value: Option<&String>| value.cloned().unwrap_or_default();
    Ok(match known(selector)? {
        "spec.nodeName" => from_spec(spec.and_then(|spec| spec.node_name.as_ref())),
        "spec.serviceAccountName" => from_spec(spec.and_then(|spec| spec.service_account_name.as_ref())),
        "status.hostIP" => first(&place.node.addresses),
        "status.hostIPs" => all(&place.node.addresses),
        "status.podIP" => first(place.pod_ips),
        "status.podIPs" => all(place.pod_ips),
        path => of_metadata(path, pod)?,
    })
}

/// What a `fieldRef` of a volume says: only what can change while the pod runs (`ExtractFieldPathAsString`).
///
/// # Errors
/// The field is none of these.
pub(super) fn of_metadata(path: &str, pod: &Pod) -> Result<String, String> {
    let labels = pod.metadata.labels.as_ref();
    let annotations = pod.metadata.annotations.as_ref();
    if let Some((map, key)) = subscript(path) {
        let map = match map {
            "metadata.annotations" => annotations,
            "metadata.labels" => labels,
            _ => return Err(format!("fieldPath {path:?} does not support subscript")),
        };
        return Ok(map.and_then(|map| map.get(key)).cloned().unwrap_or_default());
    }
    Ok(match path {
        "metadata.annotations" => lines(annotations),
        "metadata.labels" => lines(labels),
        "metadata.name" => place::name(pod).to_owned(),
        "metadata.namespace" => place::namespace(pod).to_owned(),
        "metadata.uid" => place::uid(pod).to_owned(),
        _ => return Err(format!("unsupported fieldPath: {path}")),
    })
}

/// The field of a version 1 pod that a selector means (`ConvertDownwardAPIFieldLabel`).
fn known(selector: &ObjectFieldSelector) -> Result<&str, String> {
    let version = selector.api_version.as_deref().unwrap_or("v1");
    if version != "v1" {
        return Err(format!("unsupported pod version: {version}"));
    }
    let path = selector.field_path.as_str();
    match subscript(path) {
        Some(("metadata.annotations" | "metadata.labels", _)) => return Ok(path),
        Some(_) => return Err(format!("field label does not support subscript: {path}")),
        None => {}
    }
    match path {
        "metadata.annotations"
        | "metadata.labels"
        | "metadata.name"
        | "metadata.namespace"
        | "metadata.uid"
        | "spec.nodeName"
        | "spec.restartPolicy"
        | "spec.serviceAccountName"
        | "spec.schedulerName"
        | "status.phase"
        | "status.hostIP"
        | "status.hostIPs"
        | "status.podIP"
        | "status.podIPs" => Ok(path),
        "spec.host" => Ok("spec.nodeName"),
        _ => Err(format!("field label not supported: {path}")),
    }
}

/// The parts of `path['key']` (`SplitMaybeSubscriptedPath`).
fn subscript(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']")?.split_once("['").filter(|(map, _)| !map.is_empty())
}

/// A line `key="value"` for each entry, in the order of the keys, without an end of the last line (`FormatMap`).
fn lines(map: Option<&BTreeMap<String, String>>) -> String {
    let mut text = String::new();
    for (key, value) in map.into_iter().flatten() {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(key);
        text.push('=');
        quote(value, &mut text);
    }
    text
}

/// A text as Go quotes it (`strconv.AppendQuote`).
fn quote(value: &str, text: &mut String) {
    text.push('"');
    for letter in value.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            '\x07' => text.push_str("\\a"),
            '\x08' => text.push_str("\\b"),
            '\x0c' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\x0b' => text.push_str("\\v"),
            _ if is_printable(letter) => text.push(letter),
            _ => escape(u32::from(letter), text),
        }
    }
    text.push('"');
}

fn escape(code: u32, text: &mut String) {
    let written = match code {
        0..0x80 => write!(text, "\\x{code:02x}"),
        0x80..0x1_0000 => write!(text, "\\u{code:04x}"),
        _ => write!(text, "\\U{code:08x}"),
    };
    debug_assert!(written.is_ok(), "a String takes every text");
}

/// Whether a letter can be seen. What is not is escaped by `escape_debug`; a letter in front keeps it from escaping what
/// only joins the one before.
fn is_printable(letter: char) -> bool {
    letter == '\'' || String::from_iter(['a', letter]).escape_debug().count() == 2
}

fn first(addresses: &[IpAddr]) -> String {
    addresses.first().map(ToString::to_string).unwrap_or_default()
}

fn all(addresses: &[IpAddr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::inputs::fixture::{node, object};

    fn pod() -> Pod {
        object(json!({
            "metadata": {"name": "web", "namespace": "ns", "uid": "u1", "labels": {"b": "2", "a": "1"},
                "annotations": {"a.b/C": "x\"y\\\n\u{1}é\u{200b}", "z": ""}},
            "spec": {"nodeName": "n1", "serviceAccountName": "bot", "containers": []}}))
    }

    fn of(path: &str) -> Result<String, String> {
        let node = node(Path::new("/"));
        let pod_ips = ["10.1.0.7".parse().unwrap(), "fd00::7".parse().unwrap()];
        let place = PodPlace { node: &node, pod_ips: &pod_ips };
        of_pod(&ObjectFieldSelector { api_version: None, field_path: path.to_owned() }, &pod(), place)
    }

    #[test]
    fn every_field_of_the_api_is_there() {
        for (path, value) in [
            ("metadata.name", "web"),
            ("metadata.namespace", "ns"),
            ("metadata.uid", "u1"),
            ("metadata.labels", "a=\"1\"\nb=\"2\""),
            ("metadata.labels['b']", "2"),
            ("metadata.labels['none']", ""),
            ("metadata.annotations['a.b/C']", "x\"y\\\n\u{1}é\u{200b}"),
            ("metadata.annotations", "a.b/C=\"x\\\"y\\\\\\n\\x01é\\u200b\"\nz=\"\""),
            ("spec.nodeName", "n1"),
            ("spec.host", "n1"),
            ("spec.serviceAccountName", "bot"),
            ("status.hostIP", "10.0.0.1"),
            ("status.hostIPs", "10.0.0.1,fd00::1"),
            ("status.podIP", "10.1.0.7"),
            ("status.podIPs", "10.1.0.7,fd00::7"),
        ] {
            assert_eq!(of(path).as_deref(), Ok(value), "{path}");
        }
    }

    #[test]
    fn other_fields_are_refused_in_the_kubelets_words() {
        for (path, error) in [
            ("spec.replicas", "field label not supported: spec.replicas"),
            ("metadata.name['x']", "field label does not support subscript: metadata.name['x']"),
            ("status.phase", "unsupported fieldPath: status.phase"),
        ] {
            assert_eq!(of(path), Err(error.to_owned()));
        }
        assert_eq!(
            of_metadata("spec.nodeName", &pod()),
            Err("unsupported fieldPath: spec.nodeName".to_owned())
        );
    }
}
