//! Where a webhook listens.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::Value;

/// What Go leaves as it is in a path (`net/url`, `encodePath`).
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b',')
    .remove(b'/')
    .remove(b':')
    .remove(b';')
    .remove(b'=')
    .remove(b'@');

/// The port of HTTPS.
const HTTPS: u16 = 443;

/// Where a webhook listens, and whose certificates it may show: a `clientConfig`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Host and port as they are written, such as `127.0.0.1:9443` or `hook.default.svc:443`.
    pub(super) authority: String,
    /// The host alone, without the brackets of an IPv6 address: the name that the certificate must have.
    pub(super) host: String,
    pub(super) port: u16,
    /// Escaped, without doubled slashes.
    pub(super) path: String,
    pub(super) service: Option<ServiceName>,
    /// The `caBundle`, in PEM.
    pub(super) bundle: Arc<[u8]>,
    /// How else the caller and the server know each other; none for what objects of the API name.
    pub(super) access: Option<Arc<Access>>,
}

/// What a kubeconfig says of a server beside its URL and its authority.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Access {
    /// The server's certificate is not looked at.
    pub(super) insecure: bool,
    /// The name that its certificate must have, where it is not the host of the URL.
    pub(super) server_name: Option<String>,
    /// The header `Authorization`.
    pub(super) authorization: Option<String>,
    pub(super) credentials: Option<Credentials>,
}

/// A client certificate and its key, in PEM.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Credentials {
    pub(super) chain: String,
    pub(super) key: String,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").field("insecure", &self.insecure).finish_non_exhaustive()
    }
}

/// The service that a webhook is behind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ServiceName {
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Target {
    /// What a `clientConfig` says: `url` or `service`, and `caBundle`.
    ///
    /// # Errors
    /// Why it cannot be called, in kube-apiserver's words.
    pub fn read(config: &Value) -> Result<Self, String> {
        let bundle = STANDARD.decode(config["caBundle"].as_str().unwrap_or_default()).unwrap_or_default();
        let bundle: Arc<[u8]> = bundle.into();
        if let Some(service) = config.get("service").filter(|service| !service.is_null()) {
            return Ok(Self::of_service(service, bundle));
        }
        match config["url"].as_str() {
            None | Some("") => Err("webhook configuration must have either service or URL".to_owned()),
            Some(url) => Self::of_url(url, bundle),
        }
    }

    fn of_service(service: &Value, bundle: Arc<[u8]>) -> Self {
        let text = |field: &str| service[field].as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (text("namespace"), text("name"));
        let given = service["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let port = given.filter(|port| *port != 0).unwrap_or(HTTPS);
        let host = format!("{name}.{namespace}.svc");
        Self {
            authority: format!("{host}:{port}"),
            host,
            port,
            path: escape(&clean(&text("path"))),
            service: Some(ServiceName { namespace, name }),
            bundle,
            access: None,
        }
    }

    fn of_url(url: &str, bundle: Arc<[u8]>) -> Result<Self, String> {
        let unparsable = || format!("Unparsable URL: parse {url:?}: it is not https://host[:port][/path]");
        let rest = url.strip_prefix("https://").ok_or_else(unparsable)?;
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (authority, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
        let uri: http::uri::Authority = authority.parse().map_err(|_| unparsable())?;
        let host = uri.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(unparsable());
        }
        let path = percent_decode_str(path).decode_utf8().map_err(|_| unparsable())?;
        Ok(Self {
            authority: authority.to_owned(),
            host,
            port: uri.port_u16().unwrap_or(HTTPS),
            path: escape(&clean(&path)),
            service: None,
            bundle,
            access: None,
        })
    }

    /// The server of a kubeconfig.
    ///
    /// # Errors
    /// When its URL is none of HTTPS.
    pub(super) fn of_server(server: &str, bundle: Arc<[u8]>, access: Arc<Access>) -> Result<Self, String> {
        let full = if server.contains("://") { server.to_owned() } else { format!("https://{server}") };
        Ok(Self { access: Some(access), ..Self::of_url(&full, bundle)? })
    }

    /// The API server behind a service, and how it and this one know each other.
    pub(super) fn of_api_server(
        (namespace, name, port): (&str, &str, u16),
        bundle: Arc<[u8]>,
        access: Access,
    ) -> Self {
        let host = format!("{name}.{namespace}.svc");
        Self {
            authority: format!("{host}:{port}"),
            host,
            port,
            path: String::new(),
            service: Some(ServiceName { namespace: namespace.to_owned(), name: name.to_owned() }),
            bundle,
            access: Some(Arc::new(access)),
        }
    }

    /// Another URL under the same bundle; one of the same host leads to the same service.
    ///
    /// # Errors
    /// When it is none of HTTPS.
    pub(super) fn moved_to(&self, url: &str) -> Result<Self, String> {
        let moved = Self::of_url(url, Arc::clone(&self.bundle))?;
        let same = moved.authority == self.authority;
        let service = self.service.clone().filter(|_| same);
        let access = self.access.clone().filter(|_| same);
        Ok(Self { service, access, ..moved })
    }

    /// Whether HTTP/2 may be spoken: to this machine only, so that requests to a service spread over its endpoints.
    pub(super) fn may_use_http2(&self) -> bool {
        let loopback = |address: std::net::IpAddr| address.is_loopback();
        self.service.is_none()
            && (self.host.eq_ignore_ascii_case("localhost") || self.host.parse().is_ok_and(loopback))
    }

    /// The URL of a call that may take `seconds`.
    pub(super) fn url(&self, seconds: u64) -> String {
        format!("https://{}{}?timeout={seconds}s", self.authority, self.path)
    }
}

/// A path without empty steps and dots, as Go's `path.Join` makes it.
fn clean(path: &str) -> String {
    let mut steps = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    format!("/{}", steps.join("/"))
}

fn escape(path: &str) -> String {
    utf8_percent_encode(path, PATH).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn url(config: &Value) -> String {
        Target::read(config).expect("a good configuration").url(2)
    }

    /// Each answer was asked of kube-apiserver v1.36.
    #[test]
    fn urls_are_called_as_go_joins_and_escapes_them() {
        for (given, called) in [
            ("https://127.0.0.1:1//x//y/", "https://127.0.0.1:1/x/y?timeout=2s"),
            ("https://127.0.0.1:1", "https://127.0.0.1:1/?timeout=2s"),
            ("https://127.0.0.1:1//mutate-v1-pod", "https://127.0.0.1:1/mutate-v1-pod?timeout=2s"),
            ("https://127.0.0.1:1/a/../b/./c/?x=y", "https://127.0.0.1:1/b/c?timeout=2s"),
            ("https://hook.example.com/../a", "https://hook.example.com/a?timeout=2s"),
            ("https://127.0.0.1:1/a%20b/%C3%BC?", "https://127.0.0.1:1/a%20b/%C3%BC?timeout=2s"),
            ("https://[::1]:1/a", "https://[::1]:1/a?timeout=2s"),
        ] {
            assert_eq!(url(&json!({"url": given})), called);
        }
    }

    #[test]
    fn the_port_is_that_of_https_where_none_is_given() {
        let port = |url: &str| Target::read(&json!({"url": url})).expect("a good URL").port;
        assert_eq!(
            (port("https://hook.example.com/x"), port("https://[::1]/x"), port("https://a:8443")),
            (443, 443, 8443)
        );
    }

    #[test]
    fn a_service_is_called_by_its_name_in_the_cluster() {
        let service = json!({"namespace": "ns", "name": "hook"});
        assert_eq!(url(&json!({"service": service})), "https://hook.ns.svc:443/?timeout=2s");
        let service = json!({"namespace": "ns", "name": "hook", "port": 9443, "path": "/validate"});
        assert_eq!(url(&json!({"service": service})), "https://hook.ns.svc:9443/validate?timeout=2s");
    }

    #[test]
    fn only_this_machine_is_spoken_to_in_http2() {
        let may = |url: &str| Target::read(&json!({"url": url})).expect("a good URL").may_use_http2();
        assert!(may("https://localhost:1/x") && may("https://127.0.0.1/x") && may("https://[::1]:2/x"));
        assert!(!may("https://hook.example.com/x") && !may("https://10.0.0.1/x"));
    }

    #[test]
    fn what_cannot_be_called_says_why() {
        let error = Target::read(&json!({})).expect_err("nothing to call");
        assert_eq!(error, "webhook configuration must have either service or URL");
        assert!(Target::read(&json!({"url": "http://a/"})).is_err());
        assert!(Target::read(&json!({"url": "https:///a"})).is_err());
    }
}
