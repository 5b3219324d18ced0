//! History that a rule has done away with, or goes back to: what a client is told who asks for it
//! (`k8s.io/apiserver/pkg/storage/{cacher,etcd3}`).

use http::Request;
use kubewright_codec::request::Query;
use kubewright_engine::verbs::expired_page;
use kubewright_meta::ApiError;
use kubewright_store::Revision;

use super::request_info::RequestInfo;

/// What a request is told whose history is gone.
#[derive(Debug, PartialEq)]
pub(super) enum Gone {
    /// A watch is told by an event.
    Watch(ApiError),
    /// A list, by its answer.
    List(ApiError),
}

/// What a request is told when nothing before `oldest` is there any more; `None` when it does not need it.
pub(super) fn gone(info: &RequestInfo, query: &Query, oldest: Revision) -> Option<Gone> {
    let version = Revision(query.text("resourceVersion").parse().unwrap_or(0));
    let old = version > Revision(0) && version < oldest;
    match info.verb {
        "watch" if old && !query.flag("sendInitialEvents") => {
            let why = format!("too old resource version: {} ({})", version.0, oldest.0);
            Some(Gone::Watch(ApiError::expired(why)))
        }
        "list" if !query.text("continue").is_empty() => {
            let (version, error) = expired_page(query.text("continue"))?;
            (version < oldest).then_some(Gone::List(error))
        }
        "list" if old && query.text("resourceVersionMatch") == "Exact" => {
            Some(Gone::List(ApiError::expired("The resourceVersion for the provided list is too old.")))
        }
        _ => None,
    }
}

/// A list that takes any state, as a list of the state at a revision; any other request as it is.
pub(super) fn as_of<B>(mut request: Request<B>, revision: u64) -> Request<B> {
    let uri = request.uri();
    let parameters: Vec<&str> = uri.query().unwrap_or_default().split('&').collect();
    if !parameters.contains(&"resourceVersion=0") {
        return request;
    }
    let is_other = |parameter: &&&str| !parameter.starts_with("resourceVersion");
    let mut query: Vec<String> = parameters.iter().filter(is_other).map(|one| (*one).to_owned()).collect();
    query.push(format!("resourceVersion={revision}&resourceVersionMatch=Exact"));
    let path = format!("{}?{}", uri.path(), query.join("&"));
    if let Ok(uri) = path.parse() {
        *request.uri_mut() = uri;
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(verb: &'static str, query: &str) -> Option<String> {
        let info = RequestInfo { verb, resource: "pods".into(), ..RequestInfo::default() };
        gone(&info, &Query::parse(Some(query)), Revision(10)).map(|gone| match gone {
            Gone::Watch(error) | Gone::List(error) => error.message,
        })
    }

    #[test]
    fn a_watch_from_an_old_version_on_is_told_so_and_one_that_lists_first_is_not() {
        let gone_message = message("watch", "resourceVersion=9");
        assert_eq!(gone_message.as_deref(), Some("too old resource version: 9 (10)"));
        for fine in [
            "",
            "resourceVersion=0",
            "resourceVersion=10",
            "resourceVersion=9&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
        ] {
            assert_eq!(message("watch", fine), None, "{fine}");
        }
    }

    #[test]
    fn a_list_is_told_so_that_goes_on_or_wants_an_exact_version() {
        // {"v":"meta.k8s.io/v1","rv":9,"start":"/a\0"}, and with "rv":-1.
        let page = "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6OSwic3RhcnQiOiIvYVx1MDAwMCJ9";
        let gone_message = message("list", page).expect("gone");
        assert!(gone_message.starts_with("The provided continue parameter is too old"), "{gone_message}");
        let now = "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiL2FcdTAwMDAifQ";
        assert_eq!(message("list", now), None);
        assert!(message("list", "resourceVersion=9&resourceVersionMatch=Exact").is_some());
        assert_eq!(message("list", "resourceVersion=9"), None);
    }

    #[test]
    fn only_a_list_that_takes_any_state_becomes_an_old_one() {
        let query = |query: &str| {
            let request = Request::get(format!("/api/v1/pods?{query}")).body(()).unwrap();
            as_of(request, 7).uri().query().map(str::to_owned)
        };
        let old = "limit=500&resourceVersion=7&resourceVersionMatch=Exact";
        assert_eq!(query("limit=500&resourceVersion=0").as_deref(), Some(old));
        for other in ["limit=500", "resourceVersion=3", "resourceVersion=&limit=1"] {
            assert_eq!(query(other).as_deref(), Some(other));
        }
    }
}
