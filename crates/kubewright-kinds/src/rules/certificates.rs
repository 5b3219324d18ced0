//! Requests for certificates (`pkg/apis/certificates/validation`).

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kubewright_identity::authn::User;
use kubewright_meta::FieldError;
use serde_json::{Value, json};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::at::At;
use super::errors::Errors;
use super::{Again, NameRule, Rules, fill, signers};

const RSA: &str = "1.2.840.113549.1.1.1";
const ED25519: &str = "1.3.101.112";
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// The rules of certificate signing requests. Who asks is what the server says, whoever has said something else.
pub(crate) const fn signing_requests() -> Rules {
    Rules {
        default: |request| {
            fill::object(request, "status");
        },
        prepare_create: |request| {
            fill::set(request, "status", json!({}));
        },
        author: set_requester,
        prepare_update: |new, old| fill::keep(new, old, "spec"),
        name: NameRule::Any,
        again: Again::Object,
        status_again: true,
        validate: |request| Errors::of(|errors| check_request(&At::root(request), errors)),
        validate_status: |new, old| {
            let mut found = Errors::of(|errors| check_conditions(&At::root(new), errors));
            found.extend(check_request_change(new, old));
            found
        },
        ..Rules::none()
    }
}

/// Who asks (`k8s.io/kubernetes/pkg/registry/certificates/certificates/strategy.go`, `PrepareForCreate`).
fn set_requester(request: &mut Value, user: &User) {
    let Some(spec) = fill::object(request, "spec") else { return };
    for field in ["uid", "groups", "extra"] {
        fill::remove(spec, field);
    }
    fill::set(spec, "username", user.name.as_str());
    if !user.uid.is_empty() {
        fill::set(spec, "uid", user.uid.as_str());
    }
    if !user.groups.is_empty() {
        fill::set(spec, "groups", json!(user.groups));
    }
    if !user.extra.is_empty() {
        fill::set(spec, "extra", json!(user.extra));
    }
}

fn check_request(request: &At<'_>, errors: &mut Errors) {
    let spec = request.get("spec");
    let encoded = spec.get("request");
    if let Err(why) = organizations(encoded.text()) {
        errors.invalid(&encoded, why);
    }
    let usages = spec.get("usages");
    errors.need(&usages);
    let mut seen = BTreeSet::new();
    for usage in usages.items() {
        errors.one_of(&usage, &USAGES);
        if !seen.insert(usage.text()) {
            errors.duplicate(&usage);
        }
    }
    let signer = spec.get("signerName");
    if signer.text() == "kubernetes.io/legacy-unknown" {
        errors.invalid(&signer, "the legacy signerName is not allowed via this API version");
    } else {
        signers::check(&signer, errors);
    }
    let lifetime = spec.get("expirationSeconds");
    if lifetime.number().is_some_and(|seconds| seconds < 600) {
        errors.invalid(&lifetime, "may not specify a duration less than 600 seconds (10 minutes)");
    }
    check_conditions(request, errors);
}

/// The conditions: approval and denial exclude each other.
fn check_conditions(request: &At<'_>, errors: &mut Errors) {
    let conditions = request.dig(&["status", "conditions"]);
    errors.unique(&conditions, "type");
    let mut decided: Option<&str> = None;
    for condition in conditions.items() {
        let (kind, status) = (condition.get("type"), condition.get("status"));
        errors.need(&kind);
        let allowed: &[&str] = if matches!(kind.text(), "Approved" | "Denied" | "Failed") {
            &["True"]
        } else {
            &["False", "True", "Unknown"]
        };
        errors.need_one_of(&status, allowed);
        if matches!(kind.text(), "Approved" | "Denied") {
            if decided.is_some_and(|other| other != kind.text()) {
                let place = At { path: conditions.path.clone(), ..kind.clone() };
                errors.invalid_text(&place, "Approved and Denied conditions are mutually exclusive");
            }
            decided = Some(kind.text());
        }
    }
}

/// The organizations (groups) of the subject that a request (PEM, in base64) names, which its own key has signed.
///
/// # Errors
/// What it is, when it is no request.
pub fn organizations(encoded: &str) -> Result<Vec<String>, &'static str> {
    const NO_PEM: &str = "PEM block type must be CERTIFICATE REQUEST";
    let text = STANDARD.decode(encoded).map_err(|_| NO_PEM)?;
    let block = pem::parse(text).ok().filter(|block| block.tag() == "CERTIFICATE REQUEST").ok_or(NO_PEM)?;
    let (_, request) =
        X509CertificationRequest::from_der(block.contents()).map_err(|_| "asn1: structure error")?;
    let algorithm = request.certification_request_info.subject_pki.algorithm.algorithm.to_id_string();
    request.verify_signature().map_err(|_| match algorithm.as_str() {
        RSA => "crypto/rsa: verification error",
        ED25519 => "x509: Ed25519 verification failure",
        _ => "x509: ECDSA verification failure",
    })?;
    let subject = &request.certification_request_info.subject;
    Ok(subject.iter_organization().filter_map(|name| name.as_str().ok()).map(str::to_owned).collect())
}

/// What is wrong with a write to `approval`: decisions stay, and the certificate is not its matter.
#[must_use]
pub fn validate_approval(new: &Value, old: &Value) -> Vec<FieldError> {
    Errors::of(|errors| {
        check_conditions(&At::root(new), errors);
        check_removal(&At::root(new).get("status"), &At::root(old).get("status"), errors);
    })
}

/// What may not change in a request's status: decisions are made by approval, and an issued certificate stays.
fn check_request_change(new: &Value, old: &Value) -> Vec<FieldError> {
    Errors::of(|errors| {
        let (new, old) = (At::root(new).get("status"), At::root(old).get("status"));
        check_removal(&new, &old, errors);
        for kind in ["Approved", "Denied"] {
            if count_conditions(&new, kind) > count_conditions(&old, kind) {
                let why = format!("updates may not add a condition of type {kind:?}");
                errors.forbidden(&new.get("conditions"), why);
            }
        }
        let (now, then) = (new.get("certificate"), old.get("certificate"));
        if now.text() == then.text() {
            return;
        }
        if let Err(why) = check_certificate(now.text()) {
            errors.invalid_as(&now, "<certificate data>", why);
        }
        if !then.is_empty() {
            errors.forbidden(&now, "updates may not modify existing certificate content");
        }
    })
}

fn count_conditions(status: &At<'_>, kind: &str) -> usize {
    status.get("conditions").items().filter(|condition| condition.get("type").text() == kind).count()
}

fn check_removal(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    for kind in ["Approved", "Denied", "Failed"] {
        if count_conditions(new, kind) < count_conditions(old, kind) {
            let why = format!("updates may not remove a condition of type {kind:?}");
            errors.forbidden(&new.get("conditions"), why);
        }
    }
}

/// That a certificate (in base64) is a chain of certificates in PEM (`validateCertificate`).
fn check_certificate(encoded: &str) -> Result<(), String> {
    let text = STANDARD.decode(encoded).unwrap_or_default();
    if text.is_empty() {
        return Ok(());
    }
    let blocks = pem::parse_many(&text).unwrap_or_default();
    for block in &blocks {
        if block.tag() != "CERTIFICATE" {
            return Err(format!("only CERTIFICATE PEM blocks are allowed, found {:?}", block.tag()));
        }
        if block.headers().iter().next().is_some() {
            return Err("no PEM block headers are permitted".to_owned());
        }
        if X509Certificate::from_der(block.contents()).is_err() {
            return Err("x509: malformed certificate".to_owned());
        }
    }
    if blocks.is_empty() { Err("must contain at least one CERTIFICATE PEM block".to_owned()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_request_signed_with_its_own_key_is_refused() {
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut parameters = rcgen::CertificateParams::default();
        parameters.distinguished_name.push(rcgen::DnType::OrganizationName, "group");
        let request = parameters.serialize_request(&key).expect("a request");
        let encoded = STANDARD.encode(request.pem().expect("PEM"));
        assert_eq!(organizations(&encoded), Ok(vec!["group".to_owned()]));
        let mut der = request.der().to_vec();
        *der.last_mut().expect("bytes") ^= 1;
        let forged = pem::encode(&pem::Pem::new("CERTIFICATE REQUEST", der));
        assert_eq!(organizations(&STANDARD.encode(forged)), Err("x509: ECDSA verification failure"));
        assert_eq!(
            organizations(&STANDARD.encode("junk")),
            Err("PEM block type must be CERTIFICATE REQUEST")
        );
        assert_eq!(organizations("%"), Err("PEM block type must be CERTIFICATE REQUEST"));
    }

    #[test]
    fn a_certificate_is_a_chain_in_pem() {
        let refused = |text: &str| check_certificate(&STANDARD.encode(text));
        assert_eq!(refused(""), Ok(()));
        assert_eq!(refused("hi"), Err("must contain at least one CERTIFICATE PEM block".to_owned()));
        let key = "-----BEGIN KEY-----\nAAAA\n-----END KEY-----\n";
        assert_eq!(refused(key), Err("only CERTIFICATE PEM blocks are allowed, found \"KEY\"".to_owned()));
    }
}
