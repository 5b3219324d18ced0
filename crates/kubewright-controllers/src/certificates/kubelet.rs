//! What a certificate of a kubelet may be (`pkg/apis/certificates/helpers.go`).

use std::collections::BTreeSet;

use kubewright_serve::authority::CertificateRequest;

const NODES: &str = "system:nodes";
const NODE: &str = "system:node:";

/// Whether a kubelet may have it to show it to the API server.
pub(super) fn check_client(request: &CertificateRequest, usages: &[String]) -> Result<(), String> {
    check_organization(request)?;
    let names = request.alternatives();
    let kinds = [
        ("DNS", names.dns.is_empty()),
        ("Email", names.email.is_empty()),
        ("IP", names.ip.is_empty()),
        ("URI", names.uri.is_empty()),
    ];
    none_of(&kinds)?;
    check_name(request)?;
    check_usages(usages, "client auth")
}

/// Whether a kubelet may have it to show it to its clients.
pub(super) fn check_serving(request: &CertificateRequest, usages: &[String]) -> Result<(), String> {
    check_organization(request)?;
    let names = request.alternatives();
    if names.dns.is_empty() && names.ip.is_empty() {
        return Err("DNS or IP subjectAltName is required".to_owned());
    }
    none_of(&[("Email", names.email.is_empty()), ("URI", names.uri.is_empty())])?;
    check_usages(usages, "server auth")?;
    check_name(request)
}

fn none_of(kinds: &[(&str, bool)]) -> Result<(), String> {
    match kinds.iter().find(|(_, absent)| !absent) {
        Some((kind, _)) => Err(format!("{kind} subjectAltNames are not allowed")),
        None => Ok(()),
    }
}

fn check_organization(request: &CertificateRequest) -> Result<(), String> {
    match request.organizations() {
        [only] if only == NODES => Ok(()),
        _ => Err("subject organization is not system:nodes".to_owned()),
    }
}

fn check_name(request: &CertificateRequest) -> Result<(), String> {
    match request.common_name().starts_with(NODE) {
        true => Ok(()),
        false => Err("subject common name does not begin with system:node:".to_owned()),
    }
}

/// Digital signatures and this; keys other than RSA encipher none.
fn check_usages(usages: &[String], own: &str) -> Result<(), String> {
    let all = BTreeSet::from([own, "digital signature", "key encipherment"]);
    let mut given: BTreeSet<_> = usages.iter().map(String::as_str).collect();
    given.insert("key encipherment");
    if given == all {
        return Ok(());
    }
    let all: Vec<_> = all.into_iter().collect();
    Err(format!("usages did not match [{}]", all.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{request, strings};
    use super::*;

    const CLIENT: [&str; 2] = ["digital signature", "client auth"];
    const SERVING: [&str; 3] = ["server auth", "digital signature", "key encipherment"];

    fn client(request: &CertificateRequest, usages: &[&str]) -> Result<(), String> {
        check_client(request, &strings(usages))
    }

    fn serving(request: &CertificateRequest, usages: &[&str]) -> Result<(), String> {
        check_serving(request, &strings(usages))
    }

    #[test]
    fn a_client_is_a_node_without_other_names() {
        let good = request(NODES, "system:node:a", &[]);
        assert_eq!(client(&good, &CLIENT), Ok(()));
        assert_eq!(client(&good, &["client auth", "key encipherment", "digital signature"]), Ok(()));
        for usages in [&["client auth"][..], &["server auth", "digital signature"], &[]] {
            let why = "usages did not match [client auth digital signature key encipherment]";
            assert_eq!(client(&good, usages), Err(why.to_owned()));
        }
        for (organization, name, others, why) in [
            ("x", "system:node:a", &[][..], "subject organization is not system:nodes"),
            (NODES, "a", &[], "subject common name does not begin with system:node:"),
            (NODES, "a", &["a.example.com"], "DNS subjectAltNames are not allowed"),
            (NODES, "a", &["10.0.0.1"], "IP subjectAltNames are not allowed"),
        ] {
            assert_eq!(client(&request(organization, name, others), &CLIENT), Err(why.to_owned()));
        }
    }

    #[test]
    fn a_server_is_a_node_with_a_name_or_an_address() {
        let good = request(NODES, "system:node:a", &["10.0.0.1"]);
        assert_eq!(serving(&good, &SERVING), Ok(()));
        assert_eq!(serving(&good, &SERVING[..2]), Ok(()));
        let why = "usages did not match [digital signature key encipherment server auth]";
        assert_eq!(serving(&good, &CLIENT), Err(why.to_owned()));
        let bare = request(NODES, "system:node:a", &[]);
        assert_eq!(serving(&bare, &SERVING), Err("DNS or IP subjectAltName is required".to_owned()));
        let named = request(NODES, "a", &["10.0.0.1"]);
        let why = "subject common name does not begin with system:node:";
        assert_eq!(serving(&named, &SERVING), Err(why.to_owned()));
    }
}
