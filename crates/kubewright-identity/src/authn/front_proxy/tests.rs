use std::time::Duration;

use http::{HeaderName, HeaderValue};
use kubewright_world::{SIMULATION_START, World};

use super::*;
use kubewright_serve::authority::Authority;

fn authority() -> Authority {
    Authority::new(&World::simulated(1)).unwrap()
}

fn proxy(authority: &Authority) -> FrontProxy {
    FrontProxy::new(Bundle::of_der([authority.ca_der().clone()]).unwrap())
}

fn shown(authority: &Authority, name: &str) -> PeerCertificate {
    let issued = authority.client_certificate(name, &[], Duration::from_secs(3600)).unwrap();
    PeerCertificate::new(vec![issued.certificate_der().clone()]).unwrap()
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let parse = |(name, value): &(&str, &str)| {
        (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
    };
    pairs.iter().map(parse).collect()
}

#[tokio::test(start_paused = true)]
async fn a_trusted_proxy_says_who_makes_a_request() {
    let authority = authority();
    let told = headers(&[
        ("X-Remote-User", "alice"),
        ("X-Remote-Uid", "7"),
        ("X-Remote-Group", "dev"),
        ("X-Remote-Group", ""),
        ("X-Remote-Group", "ops"),
        ("X-Remote-Extra-Acme.com%2FScope", "a"),
        ("X-Remote-Extra-acme.com%2fscope", "b"),
    ]);
    let user = proxy(&authority).user(&shown(&authority, "proxy"), &told, SIMULATION_START).unwrap().unwrap();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("alice", "7"));
    assert_eq!(user.groups, ["dev", "ops"]);
    assert_eq!(user.extra, [("acme.com/scope".to_owned(), vec!["a".to_owned(), "b".to_owned()])].into());
}

#[tokio::test(start_paused = true)]
async fn a_proxy_that_names_nobody_says_nothing() {
    let authority = authority();
    let told = headers(&[("X-Remote-Group", "system:masters")]);
    let said = proxy(&authority).user(&shown(&authority, "proxy"), &told, SIMULATION_START);
    assert_eq!(said, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn headers_of_strangers_and_of_names_that_are_not_allowed_are_not_believed() {
    let authority = authority();
    let told = headers(&[("X-Remote-User", "alice")]);
    let stranger = Authority::new(&World::simulated(2)).unwrap();
    assert!(proxy(&authority).user(&shown(&stranger, "proxy"), &told, SIMULATION_START).is_err());
    let strict = proxy(&authority).allowed_names(vec!["aggregator".to_owned()]);
    assert!(strict.user(&shown(&authority, "aggregator"), &told, SIMULATION_START).unwrap().is_some());
    assert_eq!(
        strict.user(&shown(&authority, "proxy"), &told, SIMULATION_START),
        Err(BadCertificate::Untrusted("x509: subject with cn=proxy is not in the allowed list".to_owned()))
    );
}

#[tokio::test(start_paused = true)]
async fn the_first_header_that_is_there_names_the_user_whatever_its_case() {
    let authority = authority();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let proxy = proxy(&authority)
        .username_headers(&names(&[" X-First ", "x-second"]))
        .and_then(|proxy| proxy.group_headers(&names(&["X-A", "X-B"])))
        .unwrap();
    let told = headers(&[("x-second", "bob"), ("x-b", "1"), ("x-a", "2"), ("x-remote-user", "alice")]);
    let user = proxy.user(&shown(&authority, "proxy"), &told, SIMULATION_START).unwrap().unwrap();
    assert_eq!((user.name.as_str(), user.groups), ("bob", names(&["2", "1"])));
    assert_eq!(proxy.uid_headers(&names(&[" "])).unwrap_err().to_string(), "empty header \" \"");
}
