//! What can go wrong between here and a registry.

use serde::Deserialize;

use super::CredentialsError;
use crate::{Error, error::one_line};

/// Why an image was not pushed or pulled. Each is one line; none has a secret in it.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Nobody answers, or not in HTTP.
    #[error("cannot reach the registry {registry}: {reason}{}", hint(*.plain_http))]
    Unreachable {
        /// Host and port.
        registry: String,
        /// What was said.
        reason: String,
        /// Whether it seems to speak HTTP without TLS, which is not allowed with it.
        plain_http: bool,
    },
    /// The registry wants to know who asks, and what it was told is not enough.
    #[error("{registry} wants {} for {repository}: {message}; `docker login {registry}` or `podman login {registry}` keeps credentials where they are found", wanted(*.known))]
    Unauthorized {
        /// Host and port.
        registry: String,
        /// The path in it.
        repository: String,
        /// Whether there were credentials for it.
        known: bool,
        /// What it said.
        message: String,
    },
    /// The registry knows who asks, and refuses.
    #[error("{registry} does not allow {action} {repository}: {message}")]
    Denied {
        /// Host and port.
        registry: String,
        /// What was to be done.
        action: &'static str,
        /// The path in it.
        repository: String,
        /// What it said.
        message: String,
    },
    /// The registry has no such image.
    #[error("{registry} has no {what}: {message}")]
    NotFound {
        /// Host and port.
        registry: String,
        /// What was asked for.
        what: String,
        /// What it said.
        message: String,
    },
    /// The registry refuses, or fails, also when asked again.
    #[error("{registry} answers {status} to {action}: {message}")]
    Refused {
        /// Host and port.
        registry: String,
        /// What was to be done.
        action: &'static str,
        /// The status.
        status: http::StatusCode,
        /// What it said.
        message: String,
    },
    /// What the registry says or sends is not what was asked for.
    #[error("{registry} is not to be trusted with this image: {reason}")]
    Wrong {
        /// Host and port.
        registry: String,
        /// What is wrong.
        reason: String,
    },
    /// TLS cannot be set up.
    #[error("cannot use TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The credentials cannot be read.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The image cannot be read or loaded.
    #[error(transparent)]
    Image(#[from] Error),
}

fn hint(plain_http: bool) -> &'static str {
    if plain_http { "; if it speaks HTTP without TLS and you trust the network, say --insecure" } else { "" }
}

fn wanted(known: bool) -> &'static str {
    if known { "other credentials than those that are known" } else { "credentials" }
}

/// What a registry says when it refuses (`docs/spec/api.md`, Errors): the codes and messages, in one line.
pub(super) fn message(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Errors {
        errors: Vec<One>,
    }
    #[derive(Deserialize)]
    struct One {
        #[serde(default)]
        code: String,
        #[serde(default)]
        message: String,
    }
    let one = |error: &One| match (&*error.code, &*error.message) {
        (code, "") => code.to_owned(),
        ("", message) => message.to_owned(),
        (code, message) => format!("{code}: {message}"),
    };
    let told = match serde_json::from_slice::<Errors>(body) {
        Ok(Errors { errors }) => errors.iter().map(one).collect::<Vec<_>>().join("; "),
        Err(_) => String::from_utf8_lossy(body).trim().to_owned(),
    };
    if told.is_empty() { "it does not say why".to_owned() } else { one_line(&told) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_registry_says_is_told_in_one_line() {
        let body =
            br#"{"errors":[{"code":"DENIED","message":"requested access\nis denied"},{"code":"UNKNOWN"}]}"#;
        assert_eq!(message(body), "DENIED: requested access\\nis denied; UNKNOWN");
        assert_eq!(message(b"<html>\x1b[31m"), "<html>\\u{1b}[31m");
        assert_eq!(message(b"  "), "it does not say why");
        assert_eq!(message(br#"{"errors":[]}"#), "it does not say why");
    }
}
