//! Where an HTTP probe asks.

use std::fmt;

/// A URL, as it is told in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    /// `http` or `https`.
    pub(crate) scheme: String,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// With the query.
    pub(crate) path: String,
}

impl Url {
    /// Host and port.
    pub(crate) fn authority(&self) -> String {
        authority(&self.host, self.port)
    }

    /// What a redirect leads to, where that is the same host.
    pub(crate) fn redirected(&self, location: &str) -> Option<Self> {
        let Some((scheme, rest)) = location.split_once("://") else {
            return location.starts_with('/').then(|| Self { path: location.to_owned(), ..self.clone() });
        };
        let (authority, path) = match rest.find('/') {
            Some(start) => rest.split_at(start),
            None => (rest, "/"),
        };
        let default = if scheme == "https" { 443 } else { 80 };
        let authority: http::uri::Authority = authority.parse().ok()?;
        let same = authority.host().trim_matches(['[', ']']) == self.host;
        let port = authority.port_u16().unwrap_or(default);
        same.then(|| Self { scheme: scheme.to_owned(), host: self.host.clone(), port, path: path.to_owned() })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority(), self.path)
    }
}

/// Host and port, as Go's `net.JoinHostPort`.
pub(crate) fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// A path with a slash in front.
pub(crate) fn path(text: &str) -> String {
    if text.starts_with('/') { text.to_owned() } else { format!("/{text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_is_followed_on_the_same_host_only() {
        let url = Url { scheme: "http".into(), host: "127.64.0.1".into(), port: 8080, path: "/".into() };
        let to = |location: &str| url.redirected(location).map(|url| url.to_string());
        assert_eq!(to("/b?c=d"), Some("http://127.64.0.1:8080/b?c=d".to_owned()));
        assert_eq!(to("https://127.64.0.1/x"), Some("https://127.64.0.1:443/x".to_owned()));
        assert_eq!(to("http://example.com/x"), None);
    }
}
