//! Content negotiation: which form of an answer a client accepts, and which form of a body it sent.
//!
//! Rules: `k8s.io/apiserver/pkg/endpoints/handlers/negotiation`, and go-restful's, whose routes answer for built-in kinds.

mod accept;
mod content_type;

use http::HeaderMap;
use http::header::{ACCEPT, USER_AGENT};
use kubewright_meta::ApiError;
use serde_json::json;

pub use content_type::{BodyEncoding, TextEncoding, media_type};

use super::protobuf;
use super::request::Query;
use accept::Clause;

/// The forms in which an answer can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// `application/json`.
    Json,
    /// `application/json`, in lines and indented.
    PrettyJson,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`.
    Protobuf,
}

impl Encoding {
    /// Its media type.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json | Self::PrettyJson => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => protobuf::MEDIA_TYPE,
        }
    }

    fn pretty_if(self, pretty: bool) -> Self {
        if pretty && self == Self::Json { Self::PrettyJson } else { self }
    }
}

/// The shape in which objects are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// As they are.
    Object,
    /// `PartialObjectMetadata`, for one object.
    Metadata(MetaVersion),
    /// `PartialObjectMetadataList`, for lists.
    MetadataList(MetaVersion),
    /// `Table`.
    Table(MetaVersion),
    /// `APIGroupDiscoveryList` of this version: only discovery has it.
    Discovery(DiscoveryVersion),
}

/// The versions of `meta.k8s.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaVersion {
    /// `v1`.
    V1,
    /// `v1beta1`.
    V1Beta1,
}

impl MetaVersion {
    /// `meta.k8s.io/v1`.
    #[must_use]
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
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

/// What is asked, which decides on the forms that can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// An object or a write of a built-in kind.
    Object,
    /// What is computed and never listed, such as a review: it has no table.
    Computed,
    /// A list of a built-in kind.
    List,
    /// A watch of a built-in kind.
    Watch,
    /// An object, a list or a write of a custom kind.
    Custom,
    /// A watch of a custom kind.
    CustomWatch,
    /// The versions of the core group, and aggregated discovery of it.
    Discovery,
    /// Discovery of one version.
    PlainDiscovery,
    /// The groups, and aggregated discovery of them.
    Groups,
    /// Discovery of the groups, or of one.
    PlainGroups,
    /// `/version` and its like: JSON alone.
    JsonAlone,
}

const STANDARD: [(&str, Encoding); 3] =
    [("json", Encoding::Json), ("yaml", Encoding::Yaml), ("vnd.kubernetes.protobuf", Encoding::Protobuf)];
const MEDIA_TYPES: [&str; 3] = ["application/json", "application/yaml", protobuf::MEDIA_TYPE];
const STREAMS: [&str; 2] =
    ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];

impl Offer {
    /// The forms, best first.
    fn encodings(self) -> &'static [(&'static str, Encoding)] {
        if self == Self::JsonAlone { &STANDARD[..1] } else { &STANDARD }
    }

    /// The media types that the router tells of; `None` where no router stands before.
    fn routed(self) -> Option<Vec<&'static str>> {
        match self {
            Self::Custom | Self::CustomWatch | Self::Groups | Self::PlainGroups => None,
            Self::JsonAlone => Some(vec![MEDIA_TYPES[0]]),
            Self::List | Self::Watch => Some(MEDIA_TYPES.into_iter().chain(STREAMS).collect()),
            Self::Object | Self::Computed | Self::Discovery | Self::PlainDiscovery => {
                Some(MEDIA_TYPES.to_vec())
            }
        }
    }

    fn is_watch(self) -> bool {
        matches!(self, Self::Watch | Self::CustomWatch)
    }

    fn shape(self, encoding: Encoding, clause: Option<AcceptClause<'_>>) -> Option<Shape> {
        let Some(clause) = clause else {
            // A custom resource has no messages; its metadata has.
            let custom = matches!(self, Self::Custom | Self::CustomWatch);
            return (!custom || encoding != Encoding::Protobuf).then_some(Shape::Object);
        };
        match self {
            Self::JsonAlone | Self::PlainDiscovery | Self::PlainGroups => None,
            Self::Discovery | Self::Groups => match clause {
                AcceptClause {
                    kind: "APIGroupDiscoveryList",
                    group: "apidiscovery.k8s.io",
                    version: "v2",
                } => Some(Shape::Discovery(DiscoveryVersion::V2)),
                AcceptClause {
                    kind: "APIGroupDiscoveryList",
                    group: "apidiscovery.k8s.io",
                    version: "v2beta1",
                } => Some(Shape::Discovery(DiscoveryVersion::V2Beta1)),
                _ => None,
            },
            _ => {
                let version = match (clause.group, clause.version) {
                    ("meta.k8s.io", "v1") => MetaVersion::V1,
                    ("meta.k8s.io", "v1beta1") => MetaVersion::V1Beta1,
                    _ => return None,
                };
                match clause.kind {
                    "Table" if self == Self::Computed => None,
                    "Table" if encoding != Encoding::Protobuf => Some(Shape::Table(version)),
                    "PartialObjectMetadata" => Some(Shape::Metadata(version)),
                    "PartialObjectMetadataList" => Some(Shape::MetadataList(version)),
                    _ => None,
                }
            }
        }
    }
}

/// The answer that a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaTypeOptions {
    /// How it is written.
    pub encoding: Encoding,
    /// What is written.
    pub shape: Shape,
}

impl MediaTypeOptions {
    /// Whether the `Accept` header leads to what has an offer at all: where it does not, kube-apiserver answers before the resource is
    /// known.
    #[must_use]
    pub fn is_routed(headers: &HeaderMap, offer: Offer) -> bool {
        let accept = accept(headers);
        accept.is_empty() || offer.routed().is_none_or(|routed| accept::names_any(accept, &routed))
    }

    /// What the `Accept` header asks for, of what is offered: its best clause that can be had.
    ///
    /// # Errors
    /// 406 when there is none.
    pub fn of(headers: &HeaderMap, query: &Query, offer: Offer) -> Result<Self, ApiError> {
        let accept = accept(headers);
        if let Some(routed) = offer.routed().filter(|_| !Self::is_routed(headers, offer)) {
            return Err(ApiError::new(
                http::StatusCode::NOT_ACCEPTABLE,
                "NotAcceptable",
                format!("406: Not Acceptable\n\nAvailable representations: {}", routed.join(", ")),
            )
            .with_details(json!({})));
        }
        let chosen = choose(accept, offer.encodings(), |clause, encoding| {
            let clause = AcceptClause::read(clause, encoding)?;
            offer.shape(encoding, clause.convert).map(|shape| (shape, clause.pretty))
        });
        match chosen {
            Some((encoding, _)) if offer.is_watch() && encoding == Encoding::Yaml => {
                Err(ApiError::not_acceptable(&STREAMS.join(", ")))
            }
            Some((encoding, (shape, pretty))) => {
                Ok(Self { encoding: encoding.pretty_if(pretty || is_pretty(headers, query)), shape })
            }
            None => Err(ApiError::not_acceptable(&MEDIA_TYPES.join(", "))),
        }
    }
}

/// Of the offered subtypes of `application`, the one that the best clause of the `Accept` header takes; `Err` if none does,
/// with whether the header has clauses at all (`k8s.io/kube-openapi/pkg/handler`).
pub fn first_of<'a, T>(headers: &HeaderMap, offered: &'a [(&str, T)]) -> Result<&'a T, bool> {
    let given = accept(headers);
    let clauses = Clause::all(if given.is_empty() { "*/*" } else { given });
    let takes = |clause: &Clause<'_>, subtype: &str| {
        matches!(clause.kind, "*" | "application") && (clause.subtype == "*" || clause.subtype == subtype)
    };
    let of = |clause| offered.iter().find(|(subtype, _)| takes(clause, subtype));
    clauses.iter().find_map(of).map(|(_, form)| form).ok_or(!clauses.is_empty())
}

/// How a Status is written for a client; where nothing that it accepts can be had, as indented JSON.
#[must_use]
pub fn for_status(headers: &HeaderMap, query: &Query) -> Encoding {
    let chosen = choose(accept(headers), &STANDARD, |clause, encoding| {
        AcceptClause::read(clause, encoding)
            .filter(|clause| clause.convert.is_none())
            .map(|clause| clause.pretty)
    });
    chosen.map_or(Encoding::PrettyJson, |(encoding, pretty)| {
        encoding.pretty_if(pretty || is_pretty(headers, query))
    })
}

fn accept(headers: &HeaderMap) -> &str {
    headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// The first clause and the first encoding that it takes for which `allow` has an answer.
fn choose<T>(
    accept: &str,
    encodings: &[(&str, Encoding)],
    allow: impl Fn(Clause<'_>, Encoding) -> Option<T>,
) -> Option<(Encoding, T)> {
    let all = if accept.is_empty() { "*/*" } else { accept };
    Clause::all(all).into_iter().find_map(|clause| {
        let taken = encodings.iter().filter(|(subtype, _)| clause.takes("application", subtype));
        taken.into_iter().find_map(|(_, encoding)| Some((*encoding, allow(clause, *encoding)?)))
    })
}

/// Whether a person reads the answer: the client says so, or is a browser, curl or wget.
fn is_pretty(headers: &HeaderMap, query: &Query) -> bool {
    match query.text("pretty") {
        "" => {
            let agent = headers.get(USER_AGENT).map(http::HeaderValue::as_bytes).unwrap_or_default();
            [&b"curl"[..], b"Wget", b"Mozilla/5.0"].iter().any(|human| agent.starts_with(human))
        }
        text => matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True"),
    }
}

/// The parameters of a clause.
struct Parameters<'a> {
    convert: Option<AcceptClause<'a>>,
    pretty: bool,
}

/// The type that an object is to become: `as`, `g`, `v`.
#[derive(Clone, Copy, Debug, Default)]
struct AcceptClause<'a> {
    kind: &'a str,
    group: &'a str,
    version: &'a str,
}

impl<'a> AcceptClause<'a> {
    /// The parameters of a clause; `None` when they cannot be met in this encoding.
    fn read(clause: Clause<'a>, encoding: Encoding) -> Option<Parameters<'a>> {
        let mut parameters = Parameters { convert: None, pretty: false };
        for (name, value) in clause.parameters() {
            match name {
                "as" => parameters.convert.get_or_insert_default().kind = value,
                "g" => parameters.convert.get_or_insert_default().group = value,
                "v" => parameters.convert.get_or_insert_default().version = value,
                "pretty" => parameters.pretty = value == "1",
                "stream" if value != "watch" || encoding == Encoding::Yaml => return None,
                "sv" if value != "v1" => return None,
                _ => {}
            }
        }
        Some(parameters)
    }
}

#[cfg(test)]
mod tests;
