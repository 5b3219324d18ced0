//! Requests for certificates of pods (`pkg/registry/certificates/podcertificaterequest`, `pkg/apis/certificates/validation`).
//!
//! Not checked, as nothing here knows the curve: the signature of a request with a key on P-521.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use kubewright_meta::FieldError;
use serde_json::{Value, json};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::at::At;
use super::errors::{Errors, IMMUTABLE};
use super::metadata::check_annotations_size;
use super::{Rules, conditions, fill, pem_blocks, signers, text};

const MAX_UID: usize = 128;
const MAX_REQUEST: usize = 10 * 1024;
const MAX_CHAIN: usize = 100 * 1024;
const SHORTEST: i64 = 60 * 60;
const LONGEST: i64 = 91 * 24 * 60 * 60;
const LONGEST_OF_KUBERNETES: i64 = 24 * 60 * 60;
const STATES: [&str; 3] = ["Issued", "Denied", "Failed"];

/// The rules of requests for certificates of pods. A new status is checked by [`status_errors`], which has to know the time.
pub(crate) const fn rules() -> Rules {
    Rules {
        prepare_create: |request| fill::set(request, "status", json!({})),
        validate: |request| Errors::of(|errors| check(&At::root(request).get("spec"), errors)),
        validate_update: |new, old| {
            let (new, old) = (At::root(new).get("spec"), At::root(old).get("spec"));
            if new.same(&old) {
                return Vec::new();
            }
            vec![FieldError::invalid(&new.path, Value::Null, IMMUTABLE).printed(printed(&new))]
        },
        ..Rules::none()
    }
}

fn check(spec: &At<'_>, errors: &mut Errors) {
    let signer = spec.get("signerName");
    signers::check(&signer, errors);
    check_user_annotations(&spec.get("unverifiedUserAnnotations"), errors);
    for (name, uid) in
        [("podName", "podUID"), ("serviceAccountName", "serviceAccountUID"), ("nodeName", "nodeUID")]
    {
        errors.text(&spec.get(name), text::subdomain);
        let uid = spec.get(uid);
        if uid.is_empty() {
            errors.invalid_text(&uid, "must not be empty");
        }
        if uid.text().len() > MAX_UID {
            errors.push(FieldError::too_long(&uid.path, MAX_UID));
        }
    }
    let lifetime = spec.get("maxExpirationSeconds");
    let Some(seconds) = lifetime.number() else { return errors.required(&lifetime, "must be set") };
    let longest = longest_lifetime(signer.text());
    if !(SHORTEST..=longest).contains(&seconds) {
        errors.invalid(&lifetime, format!("must be in the range [{SHORTEST}, {longest}]"));
    }
    let stub = spec.get("stubPKCS10Request");
    if stub.is_empty() {
        let why = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set";
        return errors.push(FieldError::omitted(&spec.path, why));
    }
    let der = STANDARD.decode(stub.text()).unwrap_or_default();
    if der.len() > MAX_REQUEST {
        errors.push(FieldError::too_long(&stub.path, MAX_REQUEST));
    } else {
        errors.extend(request_trouble(&stub, &der));
    }
}

/// The longest lifetime in seconds that may be asked of a signer.
pub(super) fn longest_lifetime(signer: &str) -> i64 {
    if signers::is_of_kubernetes(signer) { LONGEST_OF_KUBERNETES } else { LONGEST }
}

/// Annotations for a signer: each key has a domain, and there is a limit on all of them together (`ValidateUserAnnotations`).
pub(super) fn check_user_annotations(annotations: &At<'_>, errors: &mut Errors) {
    for key in annotations.entries().map(|(key, _)| key.to_lowercase()) {
        let wrong = text::label_key(&key);
        if key.is_empty() {
            errors.required(annotations, "");
        } else if !wrong.is_empty() {
            wrong.into_iter().for_each(|why| errors.invalid_as(annotations, key.as_str(), why));
        } else if !key.contains('/') {
            let why = "must be a domain-prefixed key (such as \"acme.io/foo\")";
            errors.invalid_as(annotations, key.as_str(), why);
        }
    }
    check_annotations_size(annotations, errors);
}

/// What is wrong with a request for a certificate (DER): its key and its signature (`validateStubPKCS10Request`).
fn request_trouble(at: &At<'_>, der: &[u8]) -> Option<FieldError> {
    let omitted = |why: &str| Some(FieldError::omitted(&at.path, why));
    let Some(request) = parsed_request(der) else { return omitted("must be a valid PKCS#10 CSR") };
    match key_of(&request.certification_request_info.subject_pki) {
        Key::Good | Key::Unverifiable => {}
        Key::Curve(name) => {
            let why = "elliptic public keys must use curve P256, P384, or P521";
            return Some(FieldError::invalid(&at.path, format!("curve {name}"), why));
        }
        Key::Modulus(bits) => {
            let why = "RSA keys must have modulus size 3072 or 4096";
            return Some(FieldError::invalid(&at.path, format!("{bits}-bit modulus"), why));
        }
        Key::Unknown => {
            return omitted("unknown public key type; supported types are Ed25519, ECDSA, and RSA");
        }
        Key::Unreadable => return omitted("must be a valid PKCS#10 CSR"),
    }
    let unverifiable = key_of(&request.certification_request_info.subject_pki) == Key::Unverifiable;
    if !unverifiable && request.verify_signature().is_err() {
        return omitted("invalid signature");
    }
    None
}

fn parsed_request(der: &[u8]) -> Option<X509CertificationRequest<'_>> {
    X509CertificationRequest::from_der(der).ok().filter(|(rest, _)| rest.is_empty()).map(|(_, parsed)| parsed)
}

/// What is thought of a public key.
#[derive(Debug, PartialEq)]
enum Key {
    Good,
    /// It is good, but what it has signed cannot be checked.
    Unverifiable,
    /// It is on a curve that is not allowed.
    Curve(&'static str),
    /// Its modulus has a size in bits that is not allowed.
    Modulus(usize),
    /// It is of a kind that is not known here.
    Unknown,
    /// It is no key.
    Unreadable,
}

fn key_of(key: &SubjectPublicKeyInfo<'_>) -> Key {
    match (key.algorithm.algorithm.to_id_string().as_str(), key.parsed()) {
        ("1.3.101.112", _) => Key::Good,
        ("1.2.840.10045.2.1", _) => {
            let curve = key.algorithm.parameters.as_ref().and_then(|curve| curve.as_oid().ok());
            match curve.map(|curve| curve.to_id_string()).as_deref() {
                Some("1.2.840.10045.3.1.7" | "1.3.132.0.34") => Key::Good,
                Some("1.3.132.0.35") => Key::Unverifiable,
                Some("1.3.132.0.33") => Key::Curve("P-224"),
                _ => Key::Unreadable,
            }
        }
        ("1.2.840.113549.1.1.1", Ok(PublicKey::RSA(key))) => {
            let digits = key.modulus.iter().skip_while(|digit| **digit == 0).count();
            match digits * 8 {
                3072 | 4096 => Key::Good,
                bits => Key::Modulus(bits),
            }
        }
        ("1.2.840.113549.1.1.1", _) => Key::Unreadable,
        _ => Key::Unknown,
    }
}

/// A spec as errors show it, with Go's own names.
fn printed(spec: &At<'_>) -> String {
    let text = |field: &str| Value::from(spec.get(field).text()).to_string();
    format!(
        "{{\"SignerName\":{},\"PodName\":{},\"PodUID\":{},\"ServiceAccountName\":{},\"ServiceAccountUID\":{},\"NodeName\":{},\"NodeUID\":{},\"MaxExpirationSeconds\":{},\"PKIXPublicKey\":null,\"ProofOfPossession\":null,\"StubPKCS10Request\":{},\"UnverifiedUserAnnotations\":{}}}",
        text("signerName"),
        text("podName"),
        text("podUID"),
        text("serviceAccountName"),
        text("serviceAccountUID"),
        text("nodeName"),
        text("nodeUID"),
        spec.get("maxExpirationSeconds").value,
        spec.get("stubPKCS10Request").value,
        spec.get("unverifiedUserAnnotations").value,
    )
}

/// What is wrong with a new status (`ValidatePodCertificateRequestStatusUpdate`). A certificate is issued now: by one of these
/// clocks, as a simulation has its own and certificates may be made by the one outside.
#[must_use]
pub fn status_errors(new: &Value, old: &Value, clocks: &[Timestamp]) -> Vec<FieldError> {
    let (new, old) = (At::root(new), At::root(old));
    let found = Errors::of(|errors| check_conditions(&new.dig(&["status", "conditions"]), errors));
    if !found.is_empty() {
        return found;
    }
    let (status, before) = (new.get("status"), old.get("status"));
    let is = |request: &At<'_>, state: &str| {
        let conditions = request.dig(&["status", "conditions"]);
        conditions.items().any(|one| one.get("type").text() == state && one.get("status").text() == "True")
    };
    let refused = |why: &str| vec![FieldError::omitted(&status.path, why)];
    if STATES.iter().any(|state| is(&old, state)) {
        return match status.same(&before) {
            true => Vec::new(),
            false => refused("immutable after PodCertificateRequest is issued, denied, or failed"),
        };
    }
    if is(&new, "Denied") || is(&new, "Failed") {
        let others = ["certificateChain", "notBefore", "beginRefreshAt", "notAfter"];
        return match others.iter().all(|field| status.get(field).is_empty()) {
            true => Vec::new(),
            false => refused(
                "non-condition status fields must be empty when denying or failing the PodCertificateRequest",
            ),
        };
    }
    if is(&new, "Issued") {
        return Errors::of(|errors| check_issued(&status, &old.get("spec"), clocks, errors));
    }
    match status.same_or_empty(&before) {
        true => Vec::new(),
        false => refused("status is immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\""),
    }
}

fn check_conditions(list: &At<'_>, errors: &mut Errors) {
    for (index, condition) in list.items().enumerate() {
        // The index of these two stands where a field would.
        let part =
            |field: &str| At { path: format!("status.conditions.[{index}].{field}"), ..condition.get(field) };
        let (kind, status) = (part("type"), part("status"));
        if !STATES.contains(&kind.text()) {
            errors.not_supported(&kind, &STATES);
            continue;
        }
        if index > 0 && list.items().take(index).any(|one| STATES.contains(&one.get("type").text())) {
            let why = "There may be at most one condition with type \"Issued\", \"Denied\", or \"Failed\"";
            errors.invalid(&kind, why);
        }
        errors.one_of(&status, &["True"]);
    }
    conditions::check(list, errors);
}

/// That what is issued is for the key that was asked for, and that what the status says of it is true.
fn check_issued(status: &At<'_>, spec: &At<'_>, clocks: &[Timestamp], errors: &mut Errors) {
    let chain = status.get("certificateChain");
    if chain.text().len() > MAX_CHAIN {
        return errors.push(FieldError::too_long(&chain.path, MAX_CHAIN));
    }
    let blocks = pem_blocks::of(chain.text());
    let Some(first) = blocks.first() else {
        return errors.invalid_text(&chain, "issued certificate chain must contain at least one certificate");
    };
    if first.tag() != "CERTIFICATE" {
        let why = "issued certificate chain must consist entirely of CERTIFICATE PEM blocks";
        return errors.invalid_text(&chain, why);
    }
    let Some(leaf) = parsed_certificate(first.contents()) else {
        return errors.invalid_text(&chain, "leaf certificate does not parse as valid X.509");
    };
    check_names(&chain, &leaf, errors);
    let der = STANDARD.decode(spec.get("stubPKCS10Request").text()).unwrap_or_default();
    let Some(request) = parsed_request(&der) else {
        return errors.push(FieldError::omitted("spec.stubPKCS10Request", "must be a valid PKCS#10 CSR"));
    };
    let (wanted, given) = (&request.certification_request_info.subject_pki, leaf.public_key());
    if wanted.algorithm.algorithm != given.algorithm.algorithm
        || wanted.subject_public_key.data != given.subject_public_key.data
    {
        let why = "leaf certificate was not issued to the requested public key";
        return errors.invalid_text(&chain, why);
    }
    let consistent = "must be present and consistent with the issued certificate";
    let between = "must be present and in the range [notbefore+10min, notafter-10min]";
    let [begin, end, refresh] = ["notBefore", "notAfter", "beginRefreshAt"].map(|field| status.get(field));
    for (time, why) in [(&begin, consistent), (&end, consistent), (&refresh, between)] {
        if time.is_empty() {
            errors.required(time, why);
        }
    }
    let of = |time: &At<'_>| time.text().parse::<Timestamp>().ok();
    let times = (of(&begin), of(&end), of(&refresh));
    let ((Some(from), Some(until), Some(again)), 0) = (times, errors.count()) else { return };
    check_times(status, &leaf, (from, until, again), spec, clocks, errors);
    if errors.count() > 0 {
        return;
    }
    for block in blocks.iter().skip(1) {
        if block.tag() != "CERTIFICATE" {
            // Kubernetes spells it so.
            let why = "issued certificate chain must consist entirely of CERTFICATE PEM blocks";
            return errors.invalid_text(&chain, why);
        }
        if parsed_certificate(block.contents()).is_none() {
            return errors.invalid_text(&chain, "intermediate certificate does not parse as valid X.509");
        }
    }
}

/// The first thing that is wrong with the times that the status tells: from when, until when, and when to refresh.
fn check_times(
    status: &At<'_>,
    leaf: &X509Certificate<'_>,
    (from, until, again): (Timestamp, Timestamp, Timestamp),
    spec: &At<'_>,
    clocks: &[Timestamp],
    errors: &mut Errors,
) {
    const HOUR: i64 = 60 * 60;
    let [chain, begin, end, refresh] =
        ["certificateChain", "notBefore", "notAfter", "beginRefreshAt"].map(|field| status.get(field));
    let validity = leaf.validity();
    let (starts, ends) = (validity.not_before.timestamp(), validity.not_after.timestamp());
    if from.as_second() != starts {
        let why = "must be set to the NotBefore time encoded in the leaf certificate";
        return errors.invalid(&begin, why);
    }
    let near = SignedDuration::from_mins(5);
    if !clocks.iter().any(|now| from.duration_since(*now).abs() < near) {
        let why = "must be set to within 5 minutes of kube-apiserver's current time";
        return errors.invalid(&begin, why);
    }
    if until.as_second() != ends {
        let why = "must be set to the NotAfter time encoded in the leaf certificate";
        return errors.invalid(&end, why);
    }
    let lifetime = ends - starts;
    let nanoseconds = lifetime.saturating_mul(1_000_000_000);
    let longest = spec.get("maxExpirationSeconds").number().unwrap_or_default();
    if lifetime < HOUR {
        return errors.invalid_as(&chain, nanoseconds, "leaf certificate lifetime must be >= 1 hour");
    }
    if lifetime > longest {
        let why = format!("leaf certificate lifetime must be <= spec.maxExpirationSeconds ({longest})");
        return errors.invalid_as(&chain, nanoseconds, why);
    }
    let margin = SignedDuration::from_mins(10);
    if again.duration_since(from) < margin {
        return errors.invalid(&refresh, "must be at least 10 minutes after status.notBefore");
    }
    if until.duration_since(again) < margin {
        errors.invalid(&refresh, "must be at least 10 minutes before status.notAfter");
    }
}

fn parsed_certificate(der: &[u8]) -> Option<X509Certificate<'_>> {
    X509Certificate::from_der(der).ok().filter(|(rest, _)| rest.is_empty()).map(|(_, parsed)| parsed)
}

fn check_names(chain: &At<'_>, leaf: &X509Certificate<'_>, errors: &mut Errors) {
    let names = leaf.subject_alternative_name().ok().flatten();
    let names = || names.iter().flat_map(|extension| &extension.value.general_names);
    for name in names() {
        let GeneralName::DNSName(name) = *name else { continue };
        if name.is_empty() {
            errors.invalid_as(chain, name, "leaf certificate should not contain empty DNSName");
        }
        if name.contains("..") {
            errors.invalid_as(chain, name, "leaf certificate's DNSName should not contain '..'");
        }
        if name.starts_with('.') || name.ends_with('.') {
            let why = "leaf certificate's DNSName should not start or end with '.'";
            errors.invalid_as(chain, name, why);
        }
    }
    for name in names() {
        let GeneralName::RFC822Name(address) = *name else { continue };
        if !is_address(address) {
            errors.invalid_as(chain, address, "leaf certificate should not contain invalid EmailAddress");
        }
    }
}

/// Whether it is an address of mail: two parts, each with something between its dots.
fn is_address(text: &str) -> bool {
    let good = |part: &str| {
        let fits = |byte: u8| byte.is_ascii_graphic() && !b"()<>[]:;@\\,\"".contains(&byte) || byte >= 128;
        part.split('.').all(|atom| !atom.is_empty() && atom.bytes().all(fits))
    };
    text.rsplit_once('@').is_some_and(|(local, domain)| good(local) && good(domain))
}

#[cfg(test)]
mod tests;
