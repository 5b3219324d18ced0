//! What one request asks for.

use std::fmt;

use http::{Method, Uri};

use super::{Verb, rights::ResourceAttributes};

/// A right as an authorizer is asked for it: to do one thing with objects, somewhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural, with the subresource behind a slash: `deployments/scale`.
    pub resource: String,
    /// To do what.
    pub verb: Verb,
    /// In which namespace; `None` for all of them, and for kinds that live in none.
    pub namespace: Option<String>,
    /// With which object, where the request tells.
    pub name: Option<String>,
}

impl Right {
    /// What a request asks for; `None` for what is no request about objects (discovery, `/version`). The rules are those of
    /// `k8s.io/apiserver/pkg/endpoints/request/requestinfo.go`.
    #[must_use]
    pub fn of(method: &Method, uri: &Uri) -> Option<Self> {
        let mut parts = uri.path().split('/').filter(|part| !part.is_empty());
        let group = match parts.next()? {
            "api" => String::new(),
            "apis" => parts.next()?.to_owned(),
            _ => return None,
        };
        let _version = parts.next()?;
        let parts: Vec<&str> = parts.collect();
        // `namespaces/<name>/<what>`, but for the parts of a namespace itself.
        let (namespace, parts) = match parts.as_slice() {
            ["namespaces", namespace, rest @ ..]
                if rest.first().is_some_and(|part| !matches!(*part, "status" | "finalize")) =>
            {
                (Some((*namespace).to_owned()), rest)
            }
            all => (None, all),
        };
        let resource = match parts {
            [] => return None,
            [plural] | [plural, _] => (*plural).to_owned(),
            [plural, _, subresource, ..] => format!("{plural}/{subresource}"),
        };
        let name = parts.get(1).map(|name| (*name).to_owned());
        let asked = |parameter: &str| asked(uri, parameter);
        let verb = match (method.as_str(), &name) {
            ("GET" | "HEAD", Some(_)) => Verb::Get,
            ("GET" | "HEAD", None)
                if asked("watch").is_some_and(|on| !matches!(on.as_str(), "0" | "false")) =>
            {
                Verb::Watch
            }
            ("GET" | "HEAD", None) => Verb::List,
            ("POST", _) => Verb::Create,
            ("PUT", _) => Verb::Update,
            ("PATCH", _) => Verb::Patch,
            ("DELETE", Some(_)) => Verb::Delete,
            ("DELETE", None) => Verb::DeleteCollection,
            _ => return None,
        };
        let name = name.or_else(|| {
            let selector = asked("fieldSelector")?;
            selector
                .strip_prefix("metadata.name=")
                .filter(|name| !name.contains([',', '=']))
                .map(str::to_owned)
        });
        Some(Self { group, resource, verb, namespace, name })
    }

    /// Whether a rule about `subject` is about it.
    pub(super) fn is_about(&self, attributes: &ResourceAttributes) -> bool {
        self.group == attributes.group
            && self.resource == attributes.resource
            && (attributes.name.is_none() || attributes.name == self.name)
    }

    /// `apps/deployments patch`.
    pub(super) fn short(&self) -> String {
        let slash = if self.group.is_empty() { "" } else { "/" };
        format!("{}{slash}{} {}", self.group, self.resource, self.verb)
    }
}

/// A parameter of a request.
fn asked(uri: &Uri, parameter: &str) -> Option<String> {
    let query = uri.query()?.as_bytes();
    form_urlencoded::parse(query).find(|(name, _)| name == parameter).map(|(_, value)| value.into_owned())
}

impl fmt::Display for Right {
    /// `apps/deployments patch (in the namespace default, on web)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())?;
        match &self.namespace {
            Some(namespace) => write!(f, " (in the namespace {namespace}")?,
            None => f.write_str(" (cluster-wide")?,
        }
        // A rule can name objects, but for what is done before they have a name.
        match self.name.as_ref().filter(|_| !matches!(self.verb, Verb::Create | Verb::DeleteCollection)) {
            Some(name) => write!(f, ", on {name})"),
            None => f.write_str(")"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right_of(method: &str, uri: &str) -> Option<String> {
        let method: Method = method.parse().expect("a method");
        Right::of(&method, &uri.parse().expect("a path")).map(|right| right.to_string())
    }

    #[test]
    fn a_request_is_read_as_the_authorizer_reads_it() {
        for (method, uri, right) in [
            ("GET", "/api/v1/nodes", "nodes list (cluster-wide)"),
            ("GET", "/api/v1/nodes?watch=true&x=y", "nodes watch (cluster-wide)"),
            ("GET", "/api/v1/nodes?watch=false", "nodes list (cluster-wide)"),
            ("GET", "/api/v1/nodes/n/status", "nodes/status get (cluster-wide, on n)"),
            ("GET", "/api/v1/namespaces/a", "namespaces get (cluster-wide, on a)"),
            ("PUT", "/api/v1/namespaces/a/finalize", "namespaces/finalize update (cluster-wide, on a)"),
            ("POST", "/api/v1/namespaces/a/pods", "pods create (in the namespace a)"),
            (
                "GET",
                "/api/v1/namespaces/a/pods/p/exec?command=ls",
                "pods/exec get (in the namespace a, on p)",
            ),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/a/deployments/d/scale?",
                "apps/deployments/scale patch (in the namespace a, on d)",
            ),
            (
                "DELETE",
                "/apis/apps/v1/namespaces/a/deployments/d",
                "apps/deployments delete (in the namespace a, on d)",
            ),
            (
                "DELETE",
                "/apis/apps/v1/namespaces/a/deployments",
                "apps/deployments deletecollection (in the namespace a)",
            ),
            (
                "GET",
                "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Dca&watch=1",
                "secrets watch (in the namespace a, on ca)",
            ),
        ] {
            assert_eq!(right_of(method, uri).as_deref(), Some(right), "{method} {uri}");
        }
        for uri in ["/version", "/apis", "/apis/apps/v1", "/api/v1", "/"] {
            assert_eq!(right_of("GET", uri), None, "{uri}");
        }
    }
}
