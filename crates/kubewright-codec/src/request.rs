//! What a request asks for: the place and the options, read from its URL.
//!
//! The grammar is that of `k8s.io/apiserver/pkg/endpoints/request/requestinfo.go`.

use http::Method;
use kubewright_meta::ApiError;
use percent_encoding::percent_decode_str;

/// The place of the API that a URL names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// API group; empty for core.
    pub group: String,
    /// API version.
    pub version: String,
    /// Namespace; empty for cluster-wide requests.
    pub namespace: String,
    /// Plural of the resource.
    pub resource: String,
    /// Object; empty for the whole resource.
    pub name: String,
    /// Subresource; empty for the object itself.
    pub subresource: String,
    /// The path that is asked for behind a proxy, where the URL goes on after it.
    pub behind: Option<String>,
    /// Whether the path itself asks for a watch (`/api/v1/watch/…`, the old way of asking).
    pub watch: bool,
}

impl Target {
    /// What a request does, in the words of RBAC; empty for a method that does nothing.
    #[must_use]
    pub fn verb(&self, method: &Method, query: &Query) -> &'static str {
        let reads = matches!(*method, Method::GET | Method::HEAD);
        match *method {
            _ if reads && (self.watch || self.name.is_empty() && query.flag("watch")) => "watch",
            _ if reads && self.name.is_empty() => "list",
            _ if reads => "get",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if self.name.is_empty() => "deletecollection",
            Method::DELETE => "delete",
            _ => "",
        }
    }
}

/// What a path is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Path {
    /// Objects of the API.
    Resource(Target),
    /// Anything else: discovery, health, OpenAPI; the segments between the slashes. A slash at the end is an empty last
    /// segment.
    Other(Vec<String>),
}

impl Path {
    /// Reads a URL path. What is percent-encoded is decoded first, slashes too; what is no UTF-8 is replaced.
    #[must_use]
    pub fn parse(path: &str) -> Self {
        let decoded = percent_decode_str(path).decode_utf8_lossy();
        let inside = decoded.strip_prefix('/').unwrap_or(&decoded);
        if inside.is_empty() {
            return Self::Other(Vec::new());
        }
        let segments: Vec<&str> = inside.split('/').collect();
        let named = segments.split_last().map_or(&segments[..], |(last, others)| match *last {
            "" => others,
            _ => &segments[..],
        });
        match target(named) {
            Some(mut target) => {
                // A slash at the end is one for who is behind a proxy.
                if named.len() < segments.len() && target.subresource == "proxy" {
                    target.behind.get_or_insert_default().push('/');
                }
                Self::Resource(target)
            }
            None => Self::Other(segments.into_iter().map(str::to_owned).collect()),
        }
    }
}

/// The place that segments name, when they name objects.
fn target(segments: &[&str]) -> Option<Target> {
    if segments.contains(&"") {
        return None;
    }
    let (group, version, mut rest) = match segments {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return None,
    };
    let watch = matches!(rest, ["watch", _, ..]);
    if watch {
        rest = &rest[1..];
    }
    let mut namespace = "";
    if let ["namespaces", inside, more @ ..] = rest
        && !matches!(more, [] | ["status" | "finalize"])
    {
        namespace = inside;
        rest = more;
    }
    let (resource, name, subresource) = match rest {
        [resource] => (*resource, "", ""),
        [resource, name] => (*resource, *name, ""),
        // What follows is the path that is asked for behind the proxy.
        [resource, name, "proxy", ..] => (*resource, *name, "proxy"),
        [resource, name, subresource] => (*resource, *name, *subresource),
        _ => return None,
    };
    Some(Target {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace: namespace.to_owned(),
        resource: resource.to_owned(),
        name: name.to_owned(),
        subresource: subresource.to_owned(),
        behind: match rest {
            [_, _, "proxy", behind @ ..] if !behind.is_empty() => Some(format!("/{}", behind.join("/"))),
            _ => None,
        },
        watch,
    })
}

/// The parameters after the `?`.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads a query string; a missing one has no parameters. A pair that is not well-formed is passed over (Go's
    /// `url.ParseQuery`).
    #[must_use]
    pub fn parse(query: Option<&str>) -> Self {
        let pairs = query.unwrap_or_default().split('&').filter(|pair| is_well_formed(pair));
        Self(pairs.flat_map(|pair| form_urlencoded::parse(pair.as_bytes()).into_owned()).collect())
    }

    /// The first value of a parameter.
    #[inline]
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The first value of a parameter; empty when it is not given.
    #[inline]
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// All values of a parameter.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A yes or no as Go's conversion reads it: absent, `0` and `false` (in any case) are no, all else is yes
    /// (`k8s.io/apimachinery/pkg/runtime/converter`, `Convert_Slice_string_To_bool`).
    #[inline]
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// A whole number, when it is given.
    ///
    /// # Errors
    /// 400 in the words of Go's `strconv`.
    pub fn number(&self, name: &str) -> Result<Option<i64>, ApiError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            let digits = text.trim_start_matches(['-', '+']);
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            let why = if is_number { "value out of range" } else { "invalid syntax" };
            ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
        })
    }
}

/// Whether a pair of a query has no semicolon, and hexadecimal digits behind each percent sign.
fn is_well_formed(pair: &str) -> bool {
    let mut escapes = pair.split('%');
    let hexadecimal = |escape: &str| {
        let bytes = escape.as_bytes();
        bytes.len() >= 2 && bytes[..2].iter().all(u8::is_ascii_hexdigit)
    };
    !pair.contains(';') && escapes.next().is_some() && escapes.all(hexadecimal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(path: &str) -> Target {
        match Path::parse(path) {
            Path::Resource(target) => target,
            other => panic!("{path} is no resource: {other:?}"),
        }
    }

    #[test]
    fn a_path_names_group_version_namespace_resource_name_and_subresource() {
        let target = resource("/apis/apps/v1/namespaces/default/deployments/web/scale");
        assert_eq!(
            (
                &*target.group,
                &*target.version,
                &*target.namespace,
                &*target.resource,
                &*target.name,
                &*target.subresource
            ),
            ("apps", "v1", "default", "deployments", "web", "scale")
        );
    }

    #[test]
    fn a_namespace_is_an_object_and_a_place() {
        assert_eq!(resource("/api/v1/namespaces/a").name, "a");
        assert_eq!(resource("/api/v1/namespaces/a/finalize").subresource, "finalize");
        assert_eq!(resource("/api/v1/namespaces/a/pods").namespace, "a");
        assert_eq!(resource("/api/v1/namespaces").resource, "namespaces");
    }

    #[test]
    fn a_path_may_ask_for_a_watch() {
        let target = resource("/api/v1/watch/namespaces/default/secrets/b");
        assert_eq!(
            (target.watch, &*target.namespace, &*target.resource, &*target.name),
            (true, "default", "secrets", "b")
        );
        assert!(!resource("/api/v1/namespaces/watch/secrets").watch);
    }

    #[test]
    fn other_paths_are_segments() {
        for path in ["/", "/healthz", "/api", "/api/v1", "/apis/apps/v1", "/openapi/v3/apis/apps/v1"] {
            assert!(matches!(Path::parse(path), Path::Other(_)), "{path}");
        }
    }

    #[test]
    fn what_is_encoded_is_read_as_what_it_means() {
        assert_eq!(resource("/api/v1/pods/%2e%2e").name, "..");
        assert_eq!(resource("/api/v1/pods/a%2Fstatus").subresource, "status");
        assert_eq!(resource("/api/v1/pods/%ff").name, "\u{fffd}");
        assert_eq!(resource("/api/v1/pods/").resource, "pods");
        assert_eq!(resource("/api/v1/pods/a/proxy/x/y").subresource, "proxy");
    }

    #[test]
    fn an_empty_segment_names_nothing() {
        for path in ["//api/v1/pods", "/api//v1/pods", "/api/v1/namespaces//pods"] {
            assert!(matches!(Path::parse(path), Path::Other(_)), "{path}");
        }
        assert_eq!(Path::parse("/healthz/"), Path::Other(vec!["healthz".to_owned(), String::new()]));
    }

    #[test]
    fn pairs_that_make_no_sense_are_passed_over() {
        let query = Query::parse(Some("limit=%zz&a;b=1&watch=%74rue&x=%2"));
        assert_eq!(query.number("limit"), Ok(None));
        assert!(query.flag("watch"));
        assert_eq!((query.get("a"), query.get("x")), (None, None));
    }

    #[test]
    fn queries_may_start_with_an_ampersand() {
        let query = Query::parse(Some("&limit=500&watch=true&labelSelector=a%3Db"));
        assert_eq!(query.number("limit"), Ok(Some(500)));
        assert!(query.flag("watch"));
        assert_eq!(query.text("labelSelector"), "a=b");
    }
}
