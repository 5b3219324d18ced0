//! Where a list goes on: the token of `metadata.continue` (`k8s.io/apiserver/pkg/storage/continue.go`).

use base64::engine::general_purpose::{self, GeneralPurpose};
use base64::{DecodeError, Engine, alphabet};
use kubewright_codec::json;
use kubewright_meta::ApiError;
use kubewright_store::Revision;

/// How tokens are written: Base64 for URLs; last bits that say nothing are taken as Go takes them.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&alphabet::URL_SAFE, general_purpose::NO_PAD.with_decode_allow_trailing_bits(true));

/// Where a list goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// The version of the first page; `None` when the rest is listed as it is now.
    pub(crate) revision: Option<Revision>,
    /// The key to go on at, relative to the namespace that is listed.
    start: String,
}

/// The first key of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start<'a> {
    /// This key, if it is there.
    At(&'a str),
    /// The first one behind this key.
    After(&'a str),
}

impl Token {
    /// A token for what comes behind a key.
    pub(crate) fn after(revision: Revision, key: &str) -> Self {
        Self { revision: Some(revision), start: format!("/{key}\0") }
    }

    /// The same place in what is there now, whatever has changed since the first page.
    pub(crate) fn inconsistent(&self) -> Self {
        Self { revision: None, start: self.start.clone() }
    }

    /// Where to go on.
    pub(crate) fn start(&self) -> Start<'_> {
        let key = self.start.strip_prefix('/').unwrap_or(&self.start);
        key.strip_suffix('\0').map_or(Start::At(key), Start::After)
    }

    /// Its text.
    pub(crate) fn write(&self) -> String {
        let revision = self.revision.map_or("-1".to_owned(), |revision| revision.0.to_string());
        let start = serde_json::Value::from(self.start.as_str());
        BASE64.encode(format!(r#"{{"v":"meta.k8s.io/v1","rv":{revision},"start":{start}}}"#))
    }

    /// Reads a text.
    ///
    /// # Errors
    /// 400 for what is no token.
    pub(crate) fn read(text: &str) -> Result<Self, ApiError> {
        Self::parse(text).map_err(|why| {
            ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
        })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let bytes = BASE64.decode(text).map_err(|error| {
            let at = match error {
                DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => at,
                DecodeError::InvalidLength(length) => length.saturating_sub(1),
                DecodeError::InvalidPadding => text.find('=').unwrap_or_default(),
            };
            format!("illegal base64 data at input byte {at}")
        })?;
        let value = json::decode(&bytes)?.value;
        match value["v"].as_str().unwrap_or_default() {
            "meta.k8s.io/v1" => {}
            other => return Err(format!("server does not recognize this encoded version {other}")),
        }
        let revision = match value["rv"].as_i64().unwrap_or_default() {
            0 => return Err("incorrect encoded start resourceVersion (version meta.k8s.io/v1)".to_owned()),
            number => u64::try_from(number).ok().map(Revision),
        };
        let start = value["start"].as_str().unwrap_or_default();
        if start.is_empty() {
            return Err("encoded start key empty (version meta.k8s.io/v1)".to_owned());
        }
        let key = start.strip_prefix('/').unwrap_or(start);
        if key.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(start.to_owned());
        }
        Ok(Self { revision, start: start.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Token::parse(text).expect_err(text)
    }

    fn of(json: &str) -> String {
        BASE64.encode(json)
    }

    /// Asked of kube-apiserver v1.36.3.
    #[test]
    fn what_is_no_token_is_told_why() {
        assert_eq!(refused("%%"), "illegal base64 data at input byte 0");
        assert_eq!(refused("a"), "illegal base64 data at input byte 0");
        assert_eq!(refused("e30"), "server does not recognize this encoded version ");
        assert_eq!(refused("bnVsbA"), "server does not recognize this encoded version ");
        assert_eq!(refused(&of(r#"{"v":"x","rv":1}"#)), "server does not recognize this encoded version x");
        assert_eq!(
            refused(&of(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#)),
            "incorrect encoded start resourceVersion (version meta.k8s.io/v1)"
        );
        assert_eq!(
            refused(&of(r#"{"v":"meta.k8s.io/v1","rv":1}"#)),
            "encoded start key empty (version meta.k8s.io/v1)"
        );
        assert_eq!(refused(&of(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../a"}"#)), "../a");
    }

    #[test]
    fn a_token_says_where_to_go_on() {
        let token = Token::after(Revision(474), "s1");
        assert_eq!(token.write(), "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NDc0LCJzdGFydCI6Ii9zMVx1MDAwMCJ9");
        assert_eq!(Token::read(&token.write()), Ok(token.clone()));
        assert_eq!(token.start(), Start::After("s1"));
        let inconsistent = Token::parse(&token.inconsistent().write()).expect("a token");
        assert_eq!((inconsistent.revision, inconsistent.start()), (None, Start::After("s1")));
        let plain = Token::parse(&of(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"a"}"#)).expect("a token");
        assert_eq!(plain.start(), Start::At("a"));
    }
}
