//! Protobuf bodies: objects are written as such, and answers are read back to JSON, to be compared as any other.

use kubewright_codec::protobuf::wire::Reader;
use kubewright_codec::protobuf::{MEDIA_TYPE, ObjectType, encode};
use serde_json::{Map, Value, json};

const MAGIC: &[u8] = b"k8s\0";

/// Whether a header names it.
pub(crate) fn is_meant(media: &str) -> bool {
    media.starts_with(MEDIA_TYPE)
}

/// The body of an object that is given as JSON. What has no message stays as it is.
pub(crate) fn write(text: &str) -> Vec<u8> {
    serde_json::from_str::<Value>(text)
        .ok()
        .and_then(|object| encode(&object))
        .unwrap_or_else(|| text.as_bytes().to_vec())
}

/// Whether objects of a kind can be written so.
pub(crate) fn has_message(group: &str, version: &str, kind: &str) -> bool {
    ObjectType::of(group, version, kind).is_some()
}

/// The object of an answer. `None` where it cannot be read.
pub(crate) fn read(body: &[u8]) -> Option<Value> {
    let mut envelope = Reader::new(body.strip_prefix(MAGIC)?);
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    while let Some((number, wire)) = envelope.field().ok()? {
        match number {
            1 => {
                let mut of_type = Reader::new(wire.bytes("").ok()?);
                while let Some((number, wire)) = of_type.field().ok()? {
                    match number {
                        1 => api_version = wire.text("").ok()?,
                        2 => kind = wire.text("").ok()?,
                        _ => {}
                    }
                }
            }
            2 => raw = wire.bytes("").ok()?,
            _ => {}
        }
    }
    object(&api_version, &kind, raw).or_else(|| list(&api_version, kind.strip_suffix("List")?, raw))
}

fn object(api_version: &str, kind: &str, raw: &[u8]) -> Option<Value> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let group = if ["Status", "PartialObjectMetadata"].contains(&kind) { "meta.k8s.io" } else { group };
    let mut object = ObjectType::of(group, version, kind)?.decode(&enveloped(raw)).ok()?;
    object["apiVersion"] = api_version.into();
    Some(object)
}

fn list(api_version: &str, kind: &str, raw: &[u8]) -> Option<Value> {
    let mut items = Vec::new();
    let mut metadata = Map::new();
    let mut reader = Reader::new(raw);
    while let Some((number, wire)) = reader.field().ok()? {
        match number {
            1 => {
                let mut of_list = Reader::new(wire.bytes("").ok()?);
                while let Some((number, wire)) = of_list.field().ok()? {
                    let (name, value) = match number {
                        2 => ("resourceVersion", json!(wire.text("").ok()?)),
                        3 => ("continue", json!(wire.text("").ok()?)),
                        4 => ("remainingItemCount", json!(wire.varint("").ok()?)),
                        _ => continue,
                    };
                    if value != "" {
                        metadata.insert(name.to_owned(), value);
                    }
                }
            }
            2 => items.push(object(api_version, kind, wire.bytes("").ok()?)?),
            _ => {}
        }
    }
    Some(
        json!({"apiVersion": api_version, "kind": format!("{kind}List"), "metadata": metadata, "items": items}),
    )
}

/// A message in an envelope that leaves its type out.
fn enveloped(raw: &[u8]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    kubewright_codec::protobuf::encode::delimited(2, &mut out, |out| out.extend_from_slice(raw));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
        assert_eq!(read(&write(&object.to_string())), Some(object));
    }

    #[test]
    fn a_status_is_read() {
        let status = json!({"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "message": "no", "code": 404});
        assert_eq!(read(&write(&status.to_string())), Some(status));
    }
}
