//! Reads objects into a picture, within limits; what cannot be read is noted, and the rest goes on.

use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use http::Request;
use kube::Client;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::kinds::{ServedKind, ServedKinds};
use crate::object::{Id, Object};
use crate::picture::{Picture, Unread};

/// How many objects of a kind are read in one list.
pub(super) const LIMIT: usize = 500;
/// How many requests are under way at a time.
const AT_A_TIME: usize = 8;
/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// What asks for metadata alone.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
/// What names have that a URL takes as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b':');

/// A list that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listing {
    pub(super) kind: ServedKind,
    /// Nothing for those of the whole cluster.
    pub(super) namespace: String,
    pub(super) metadata_only: bool,
    /// `fieldSelector=...`, or nothing.
    pub(super) query: String,
}

/// What reads.
pub(super) struct Reader<'a> {
    pub(super) client: &'a Client,
    pub(super) kinds: &'a ServedKinds,
    pub(super) picture: &'a mut Picture,
}

/// Whether data of a kind is nobody's business here.
pub(super) fn is_private(kind: &str) -> bool {
    matches!(kind, "Secret" | "ConfigMap")
}

impl Reader<'_> {
    /// Reads lists, several at a time; a kind that is not served is none.
    pub(super) async fn lists(&mut self, listings: Vec<Listing>) {
        let client = self.client;
        let reads = listings.into_iter().map(|listing| async move {
            let path = format!("{}?limit={LIMIT}{}", listing.kind.path(&listing.namespace), listing.query);
            let accept = if listing.metadata_only { METADATA_LIST } else { "application/json" };
            let answer = get(client, &path, accept).await;
            (listing, answer)
        });
        let answers: Vec<_> = stream::iter(reads).buffered(AT_A_TIME).collect().await;
        for (listing, answer) in answers {
            self.take_list(&listing, answer);
        }
    }

    fn take_list(&mut self, listing: &Listing, answer: Result<Value, ReadError>) {
        let Listing { kind, namespace, .. } = listing;
        let place = if namespace.is_empty() { String::new() } else { format!(" in {namespace}") };
        let what = format!("{}{place}", kind.full_name());
        let mut list = match answer {
            Ok(list) => list,
            Err(ReadError::Absent) => return,
            Err(ReadError::Other(why)) => return self.picture.unread.push(Unread { what, why }),
        };
        let is_whole = list.pointer("/metadata/continue").and_then(Value::as_str).is_none_or(str::is_empty);
        for mut object in list["items"].as_array_mut().map(std::mem::take).unwrap_or_default() {
            object["apiVersion"] = kind.api_version().into();
            object["kind"] = kind.kind.clone().into();
            self.picture.add(Object::new(object));
        }
        if !is_whole {
            let why = format!("there are more than {LIMIT}; the first {LIMIT} were read");
            self.picture.unread.push(Unread { what, why });
        } else if listing.query.is_empty() {
            self.picture.whole.insert((kind.group.clone(), kind.kind.clone(), namespace.clone()));
        }
    }

    /// Reads single objects, several at a time; what does not exist is noted as absent. Of what is private the metadata alone.
    pub(super) async fn objects(&mut self, ids: Vec<Id>) {
        let (client, kinds) = (self.client, self.kinds);
        let mut wanted: Vec<Id> = ids.into_iter().filter(|id| !self.picture.has(id)).collect();
        wanted.sort();
        wanted.dedup();
        if wanted.len() > LIMIT {
            let what = format!("{} objects", wanted.len() - LIMIT);
            self.picture.unread.push(Unread { what, why: format!("{LIMIT} at most are read by name") });
            wanted.truncate(LIMIT);
        }
        let reads = wanted.into_iter().filter_map(|id| {
            let kind = kinds.get(&id.group, &id.kind)?.clone();
            Some(async move {
                let path = format!("{}/{}", kind.path(&id.namespace), utf8_percent_encode(&id.name, PLAIN));
                let accept = if is_private(&id.kind) { METADATA } else { "application/json" };
                (get(client, &path, accept).await, id, kind)
            })
        });
        let answers: Vec<_> = stream::iter(reads).buffered(AT_A_TIME).collect().await;
        for (answer, id, kind) in answers {
            match answer {
                Ok(mut object) => {
                    object["apiVersion"] = kind.api_version().into();
                    object["kind"] = kind.kind.into();
                    self.picture.add(Object::new(object));
                }
                Err(ReadError::Absent) => drop(self.picture.absent.insert(id)),
                Err(ReadError::Other(why)) => {
                    self.picture.unread.push(Unread { what: id.to_string(), why });
                }
            }
        }
    }
}

/// Why something was not read.
#[derive(Debug)]
pub(super) enum ReadError {
    /// It does not exist.
    Absent,
    /// What the server, or the way to it, says.
    Other(String),
}

/// Reads what is at a path.
pub(super) async fn get(client: &Client, path: &str, accept: &str) -> Result<Value, ReadError> {
    let request = Request::get(path).header(http::header::ACCEPT, accept).body(Vec::new());
    let request = request.map_err(|error| ReadError::Other(error.to_string()))?;
    let answer = tokio::time::timeout(PATIENCE, client.request_text(request)).await;
    let text = match answer {
        Ok(Ok(text)) => text,
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => return Err(ReadError::Absent),
        Ok(Err(kube::Error::Api(status))) => return Err(ReadError::Other(status.message.clone())),
        Ok(Err(error)) => return Err(ReadError::Other(error.to_string())),
        Err(_) => return Err(ReadError::Other(format!("no answer within {}s", PATIENCE.as_secs()))),
    };
    serde_json::from_str(&text).map_err(|error| ReadError::Other(error.to_string()))
}
