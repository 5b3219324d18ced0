//! Content negotiation: which form of an answer a client accepts, and which form of a body it sent.
//!
//! Rules: `k8s.io/apiserver/pkg/endpoints/handlers/negotiation`.

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};

use super::protobuf::{self, ObjectType};
use crate::error::ApiError;

/// The encodings that are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
}

impl Encoding {
    /// Its media type.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
        }
    }
}

/// The shape in which objects are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// As they are.
    Object,
    /// `PartialObjectMetadata` and its list.
    Metadata,
    /// `Table`.
    Table,
    /// `APIGroupDiscoveryList` of this version: only discovery has it.
    Discovery(DiscoveryVersion),
}

/// The versions of aggregated discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscoveryVersion {
    /// `v2`.
    V2,
    /// `v2beta1`.
    V2Beta1,
}

impl DiscoveryVersion {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V2 => "v2",
            Self::V2Beta1 => "v2beta1",
        }
    }
}

/// The answer that a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// How it is written.
    pub encoding: Encoding,
    /// What is written.
    pub shape: Shape,
}

const OFFERED: &str = "application/json, application/yaml";

impl Wanted {
    /// JSON objects.
    pub const JSON: Self = Self { encoding: Encoding::Json, shape: Shape::Object };

    /// What the `Accept` header asks for: the first of its alternatives that is offered, by quality. Objects can be had
    /// as they are, as metadata and as a table.
    ///
    /// # Errors
    /// 406 when none is offered.
    pub fn object(headers: &HeaderMap) -> Result<Self, ApiError> {
        Self::choose(headers, |parameters| match parameters {
            Asked { kind: "", .. } => Some(Shape::Object),
            Asked { kind: "Table", group: "meta.k8s.io", version: "v1" | "v1beta1" } => Some(Shape::Table),
            Asked {
                kind: "PartialObjectMetadata" | "PartialObjectMetadataList",
                group: "meta.k8s.io",
                version: "v1" | "v1beta1",
            } => Some(Shape::Metadata),
            _ => None,
        })
    }

    /// What the `Accept` header asks of discovery.
    ///
    /// # Errors
    /// 406 when none is offered.
    pub fn discovery(headers: &HeaderMap) -> Result<Self, ApiError> {
        Self::choose(headers, |parameters| match parameters {
            Asked { kind: "", .. } => Some(Shape::Object),
            Asked { kind: "APIGroupDiscoveryList", group: "apidiscovery.k8s.io", version: "v2" } => {
                Some(Shape::Discovery(DiscoveryVersion::V2))
            }
            Asked { kind: "APIGroupDiscoveryList", group: "apidiscovery.k8s.io", version: "v2beta1" } => {
                Some(Shape::Discovery(DiscoveryVersion::V2Beta1))
            }
            _ => None,
        })
    }

    fn choose(headers: &HeaderMap, offers: impl Fn(Asked<'_>) -> Option<Shape>) -> Result<Self, ApiError> {
        let Some(accept) = headers.get(ACCEPT).and_then(|value| value.to_str().ok()) else {
            return Ok(Self::JSON);
        };
        let mut known_encoding = accept.trim().is_empty();
        let mut best: Option<(f32, Self)> = if known_encoding { Some((1.0, Self::JSON)) } else { None };
        for alternative in accept.split(',') {
            let mut parts = alternative.split(';').map(str::trim);
            let encoding = match parts.next().unwrap_or_default() {
                "application/json" | "*/*" => Encoding::Json,
                "application/yaml" => Encoding::Yaml,
                _ => continue,
            };
            known_encoding = true;
            let (asked, quality) = Asked::read(parts);
            let Some(shape) = offers(asked) else { continue };
            if quality > best.map_or(0.0, |(quality, _)| quality) {
                best = Some((quality, Self { encoding, shape }));
            }
        }
        match best {
            Some((_, wanted)) => Ok(wanted),
            None if known_encoding => Err(ApiError::not_acceptable(OFFERED)),
            None => Err(ApiError::new(
                http::StatusCode::NOT_ACCEPTABLE,
                "NotAcceptable",
                format!("406: Not Acceptable\n\nAvailable representations: {OFFERED}"),
            )
            .with_details(serde_json::json!({}))),
        }
    }
}

/// The parameters of an alternative: `as`, `g`, `v`.
#[derive(Clone, Copy, Debug, Default)]
struct Asked<'a> {
    kind: &'a str,
    group: &'a str,
    version: &'a str,
}

impl<'a> Asked<'a> {
    fn read(parameters: impl Iterator<Item = &'a str>) -> (Self, f32) {
        let mut asked = Self::default();
        let mut quality = 1.0;
        for parameter in parameters {
            match parameter.split_once('=') {
                Some(("as", kind)) => asked.kind = kind,
                Some(("g", group)) => asked.group = group,
                Some(("v", version)) => asked.version = version,
                Some(("q", number)) => quality = number.parse().unwrap_or(0.0),
                _ => {}
            }
        }
        (asked, quality)
    }
}

/// The form of an object in a request body.
#[derive(Clone, Copy, Debug)]
pub enum BodyEncoding<'a> {
    /// JSON or YAML.
    Text(Encoding),
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
        match (media_type(headers), protobuf) {
            ("" | "application/json", _) => Ok(Self::Text(Encoding::Json)),
            ("application/yaml", _) => Ok(Self::Text(Encoding::Yaml)),
            (protobuf::MEDIA_TYPE, Some(object)) => Ok(Self::Protobuf(object)),
            (_, protobuf) => {
                let accepted = ["application/json", "application/yaml", protobuf::MEDIA_TYPE];
                Err(ApiError::unsupported_media_type(&accepted[..2 + usize::from(protobuf.is_some())]))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(value: &str) -> Result<Wanted, ApiError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, value.parse().unwrap());
        Wanted::object(&headers)
    }

    #[test]
    fn kubectls_table_header_gets_a_table() {
        let asked = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(accept(asked).unwrap().shape, Shape::Table);
    }

    #[test]
    fn protobuf_with_json_as_second_choice_gets_json() {
        assert_eq!(accept("application/vnd.kubernetes.protobuf,application/json"), Ok(Wanted::JSON));
    }

    #[test]
    fn what_is_not_offered_is_406() {
        for asked in ["text/html", "application/*", "application/json;as=Nope;g=meta.k8s.io;v=v1"] {
            assert_eq!(accept(asked).unwrap_err().code, 406, "{asked}");
        }
    }
}
