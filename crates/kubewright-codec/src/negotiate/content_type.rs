//! The `Content-Type` of a request: which form a body has.

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use kubewright_meta::ApiError;

use crate::protobuf::{self, ObjectType};

/// The text forms of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextEncoding {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
}

/// The form of an object in a request body.
#[derive(Clone, Copy, Debug)]
pub enum BodyEncoding<'a> {
    /// JSON or YAML.
    Text(TextEncoding),
    /// Protobuf, of this type.
    Protobuf(ObjectType<'a>),
}

impl<'a> BodyEncoding<'a> {
    /// What the `Content-Type` says; JSON when there is none. `protobuf` is the type of the object, where it may come as
    /// protobuf.
    ///
    /// # Errors
    /// 415 for what is not understood, with what is.
    pub fn of(headers: &HeaderMap, protobuf: Option<ObjectType<'a>>) -> Result<Self, ApiError> {
        let value = headers.get(CONTENT_TYPE).map_or("", |value| value.to_str().unwrap_or("?"));
        let media_type = parse(value).map(str::to_ascii_lowercase);
        match (media_type.as_deref(), protobuf) {
            (Some("application/json"), _) => Ok(Self::Text(TextEncoding::Json)),
            (Some("application/yaml"), _) => Ok(Self::Text(TextEncoding::Yaml)),
            (Some(protobuf::MEDIA_TYPE), Some(object)) => Ok(Self::Protobuf(object)),
            _ if value.is_empty() => Ok(Self::Text(TextEncoding::Json)),
            (media_type, protobuf) => {
                // kube-apiserver names protobuf for custom resources, too, where it has no answer to it.
                let named = protobuf.is_some() || media_type != Some(protobuf::MEDIA_TYPE);
                let accepted = ["application/json", "application/yaml", protobuf::MEDIA_TYPE];
                Err(ApiError::unsupported_media_type(&accepted[..2 + usize::from(named)]))
            }
        }
    }
}

/// The media type of a request body without its parameters; empty when there is none.
#[must_use]
pub fn media_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}

/// The media type of a header whose parameters are all of the form `name=value` (Go's `mime.ParseMediaType`).
fn parse(value: &str) -> Option<&str> {
    let mut parts = value.split(';');
    let media_type = parts.next()?.trim();
    let is_token = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&byte))
    };
    let (kind, subtype) = media_type.split_once('/').unwrap_or((media_type, "x"));
    let rest: Vec<&str> = parts.map(str::trim).collect();
    // A semicolon at the end says nothing.
    let (last, others) = rest.split_last().unwrap_or((&"", &[]));
    let good = |parameter: &str| {
        parameter.split_once('=').is_some_and(|(name, value)| {
            let quoted = value.len() >= 2 && value.starts_with('"') && value.ends_with('"');
            is_token(name.trim()) && (quoted || is_token(value.trim()))
        })
    };
    let well_formed = is_token(kind) && is_token(subtype) && others.iter().all(|one| good(one));
    (well_formed && (last.is_empty() || good(last))).then_some(media_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &str) -> Result<TextEncoding, String> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, value.parse().unwrap());
        match BodyEncoding::of(&headers, None) {
            Ok(BodyEncoding::Text(encoding)) => Ok(encoding),
            Ok(BodyEncoding::Protobuf(_)) => unreachable!("it is not offered"),
            Err(error) => Err(error.message),
        }
    }

    /// Asked of kube-apiserver v1.36.3.
    #[test]
    fn media_types_are_read_as_go_reads_them() {
        for json in ["", "application/json", "APPLICATION/JSON", "application/json; charset=utf-8"] {
            assert_eq!(of(json), Ok(TextEncoding::Json), "{json}");
        }
        assert_eq!(of("application/yaml; x=y"), Ok(TextEncoding::Yaml));
        for other in
            ["application/json;foo", "text/plain", "garbage", "*/*", "application/json,application/yaml"]
        {
            assert_eq!(
                of(other),
                Err("the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf".to_owned()),
                "{other}"
            );
        }
    }
}
