//! A proxy in front of the server that says who makes a request: the flags `--requestheader-*`
//! (`k8s.io/apiserver/pkg/authentication/request/headerrequest`).

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderMap;
use jiff::Timestamp;
use percent_encoding::percent_decode_str;

use super::certificate::{BadCertificate, PeerCertificate};
use super::published::list;
use super::user::User;
use crate::trust::Bundle;

/// Which proxies are believed, and in which headers they say who makes a request.
///
/// Names of headers are compared without regard to case; of several, the first that is there tells the name and the uid,
/// while groups and extra values of all are taken together.
#[derive(Clone, Debug)]
pub struct FrontProxy {
    ca: Arc<Bundle>,
    allowed_names: Vec<String>,
    username: Vec<String>,
    uid: Vec<String>,
    group: Vec<String>,
    extra_prefixes: Vec<String>,
}

/// A header without a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("empty header {0:?}")]
pub struct EmptyHeader(pub String);

impl FrontProxy {
    /// A proxy that shows a certificate of this authority (`--requestheader-client-ca-file`), with the headers
    /// `X-Remote-User`, `X-Remote-Uid`, `X-Remote-Group` and `X-Remote-Extra-`.
    #[must_use]
    pub fn new(ca: Bundle) -> Self {
        let one = |name: &str| vec![name.to_owned()];
        Self {
            ca: Arc::new(ca),
            allowed_names: Vec::new(),
            username: one("x-remote-user"),
            uid: one("x-remote-uid"),
            group: one("x-remote-group"),
            extra_prefixes: one("x-remote-extra-"),
        }
    }

    /// The certificate must have one of these common names (`--requestheader-allowed-names`). None: any will do.
    #[must_use]
    pub fn allowed_names(mut self, names: Vec<String>) -> Self {
        self.allowed_names = names;
        self
    }

    /// `--requestheader-username-headers`.
    ///
    /// # Errors
    /// When one has no name.
    pub fn username_headers(mut self, names: &[String]) -> Result<Self, EmptyHeader> {
        self.username = headers(names)?;
        Ok(self)
    }

    /// `--requestheader-uid-headers`.
    ///
    /// # Errors
    /// When one has no name.
    pub fn uid_headers(mut self, names: &[String]) -> Result<Self, EmptyHeader> {
        self.uid = headers(names)?;
        Ok(self)
    }

    /// `--requestheader-group-headers`.
    ///
    /// # Errors
    /// When one has no name.
    pub fn group_headers(mut self, names: &[String]) -> Result<Self, EmptyHeader> {
        self.group = headers(names)?;
        Ok(self)
    }

    /// `--requestheader-extra-headers-prefix`.
    ///
    /// # Errors
    /// When one is empty.
    pub fn extra_header_prefixes(mut self, prefixes: &[String]) -> Result<Self, EmptyHeader> {
        self.extra_prefixes = headers(prefixes)?;
        Ok(self)
    }

    /// The authority of the proxies.
    #[must_use]
    pub fn ca(&self) -> &Bundle {
        &self.ca
    }

    /// What other servers are told of the proxies.
    pub(super) fn published(&self) -> BTreeMap<String, String> {
        let usual = |names: &[String]| list(&names.iter().map(|name| usual(name)).collect::<Vec<_>>());
        let told = [
            ("requestheader-allowed-names", list(&self.allowed_names)),
            ("requestheader-client-ca-file", self.ca.to_pem()),
            ("requestheader-extra-headers-prefix", usual(&self.extra_prefixes)),
            ("requestheader-group-headers", usual(&self.group)),
            ("requestheader-uid-headers", usual(&self.uid)),
            ("requestheader-username-headers", usual(&self.username)),
        ];
        told.map(|(key, value)| (key.to_owned(), value)).into()
    }

    /// Whom a proxy says that a request is of; `None` when it says nothing.
    pub(super) fn user(
        &self,
        shown: &PeerCertificate,
        told: &HeaderMap,
        now: Timestamp,
    ) -> Result<Option<User>, BadCertificate> {
        let name = shown.common_name(&self.ca, now)?;
        if !self.allowed_names.is_empty() && !self.allowed_names.iter().any(|allowed| allowed == name) {
            return Err(BadCertificate::Untrusted(format!(
                "x509: subject with cn={name} is not in the allowed list"
            )));
        }
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let first = |names: &[String]| {
            let mut values = names.iter().filter_map(|name| told.get(name)).map(text);
            values.find(|value| !value.is_empty()).unwrap_or_default()
        };
        let user = first(&self.username);
        if user.is_empty() {
            return Ok(None);
        }
        let groups = self.group.iter().flat_map(|name| told.get_all(name)).map(text);
        Ok(Some(User {
            name: user,
            uid: first(&self.uid),
            groups: groups.filter(|group| !group.is_empty()).collect(),
            extra: self.extra(told),
        }))
    }

    fn extra(&self, told: &HeaderMap) -> BTreeMap<String, Vec<String>> {
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for prefix in &self.extra_prefixes {
            for (name, value) in told {
                let Some(key) = name.as_str().strip_prefix(prefix.as_str()) else { continue };
                let key = percent_decode_str(key).decode_utf8().map_or_else(|_| key.to_owned(), Into::into);
                extra.entry(key).or_default().push(String::from_utf8_lossy(value.as_bytes()).into_owned());
            }
        }
        extra
    }
}

/// The name of a header with capital letters, as it is usually written.
fn usual(name: &str) -> String {
    let words = name.split('-').map(|word| {
        let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        first.to_uppercase() + rest
    });
    words.collect::<Vec<_>>().join("-")
}

/// Names of headers as requests have them.
fn headers(names: &[String]) -> Result<Vec<String>, EmptyHeader> {
    let read = |name: &String| match name.trim() {
        "" => Err(EmptyHeader(name.clone())),
        some => Ok(some.to_lowercase()),
    };
    names.iter().map(read).collect()
}

#[cfg(test)]
mod tests;
