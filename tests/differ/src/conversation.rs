//! Conversations as data: requests that name what earlier answers said, so that each server is sent its own.

use serde_json::Value;

use crate::edit::Edit;
use crate::schema::Resource;

/// How long others take to learn of what was written, in milliseconds.
pub(crate) const MOMENT: u64 = 300;

/// What a conversation is about: resources and the requests, in their order.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    pub(crate) seed: u64,
    pub(crate) asks: Vec<Ask>,
}

/// An object by its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) resource: Resource,
    /// With `@run@` where the name of this run belongs.
    pub(crate) name: String,
}

/// A body.
#[derive(Clone, Debug)]
pub(crate) enum Payload {
    None,
    Json(Value),
    /// As it stands, in whatever format the header says.
    Text(String),
    /// What the server last said of an object, changed. What to begin with where it said nothing.
    Changed {
        otherwise: Value,
        edits: Vec<Edit>,
    },
}

/// A request. In paths, queries and bodies `@run@` is the name of the run, `@ns@` its namespace, `@rv@` and `@uid@` what the
/// server last said of the object at `place`, `@uid.b@` the uid of the one that is named `b`, `@list@` the revision of the last list that
/// named none, `@continue@` the token of the last list.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// What it does, for coverage and for folding: `patch/apply`, `get/table`.
    pub(crate) what: String,
    pub(crate) method: &'static str,
    pub(crate) place: Place,
    /// Whether the path ends with the object's name.
    pub(crate) named: bool,
    /// In all namespaces.
    pub(crate) everywhere: bool,
    pub(crate) subresource: Option<String>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) payload: Payload,
    /// A watch: read until the end of the conversation.
    pub(crate) stream: bool,
    /// Others learn of what it wrote a moment later: they are given that moment, in milliseconds.
    pub(crate) pause: u64,
    /// Repeated until it is answered with 200, for what a server needs a moment for.
    pub(crate) until_ok: bool,
}

impl Ask {
    pub(crate) fn new(what: &str, method: &'static str, place: &Place) -> Self {
        Self {
            what: what.to_owned(),
            method,
            place: place.clone(),
            named: true,
            everywhere: false,
            subresource: None,
            query: Vec::new(),
            headers: Vec::new(),
            payload: Payload::None,
            stream: false,
            until_ok: false,
            pause: 0,
        }
    }

    pub(crate) fn collection(mut self) -> Self {
        self.named = false;
        self
    }

    pub(crate) fn query(mut self, key: &str, value: impl Into<String>) -> Self {
        self.query.push((key.to_owned(), value.into()));
        self
    }

    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn body(mut self, body: Value) -> Self {
        self.payload = Payload::Json(body);
        self
    }

    pub(crate) fn subresource(mut self, name: &str) -> Self {
        self.subresource = Some(name.to_owned());
        self
    }

    /// The path, with what is to be filled in.
    pub(crate) fn path(&self) -> String {
        let mut path = self.place.resource.path(if self.everywhere { None } else { Some("@ns@") });
        if self.named {
            path.push('/');
            path.push_str(&self.place.name);
        }
        if let Some(subresource) = &self.subresource {
            path.push('/');
            path.push_str(subresource);
        }
        path
    }

    /// The value of a header.
    pub(crate) fn header_value(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}
