use rcgen::{CertificateParams, CertificateSigningRequestParams, Issuer, KeyPair, SignatureAlgorithm};

use super::*;

/// When certificates are issued here.
const NOW: &str = "2026-01-01T00:00:00Z";

fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

/// What a kubelet makes: a key's empty request, in DER.
fn stub(algorithm: &'static SignatureAlgorithm) -> Vec<u8> {
    let key = KeyPair::generate_for(algorithm).expect("a key");
    CertificateParams::default().serialize_request(&key).expect("a request").der().to_vec()
}

fn request_with(stub: &[u8]) -> Value {
    json!({"metadata": {"name": "r", "namespace": "n"}, "spec": {
        "signerName": "example.com/s",
        "podName": "p", "podUID": "1",
        "serviceAccountName": "a", "serviceAccountUID": "2",
        "nodeName": "n", "nodeUID": "3",
        "maxExpirationSeconds": 86400,
        "stubPKCS10Request": STANDARD.encode(stub),
    }, "status": {}})
}

fn said(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn refused(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut request = request_with(&stub(&rcgen::PKCS_ECDSA_P256_SHA256));
    change(&mut request["spec"]);
    said(&rules().errors_on_create(&request, true))
}

#[test]
fn a_request_with_a_good_key_passes() {
    for algorithm in [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ED25519] {
        let request = request_with(&stub(algorithm));
        assert_eq!(said(&rules().errors_on_create(&request, true)), Vec::<String>::new(), "{algorithm:?}");
    }
}

#[test]
fn each_mistake_is_told() {
    assert_eq!(
        refused(|spec| spec["podUID"] = json!("")),
        ["spec.podUID: Invalid value: \"\": must not be empty"]
    );
    let long = "x".repeat(129);
    assert_eq!(
        refused(|spec| spec["nodeUID"] = json!(long)),
        ["spec.nodeUID: Too long: may not be more than 128 bytes"]
    );
    assert_eq!(
        refused(|spec| spec["maxExpirationSeconds"] = Value::Null),
        ["spec.maxExpirationSeconds: Required value: must be set"]
    );
    assert_eq!(
        refused(|spec| spec["maxExpirationSeconds"] = json!(3599)),
        ["spec.maxExpirationSeconds: Invalid value: 3599: must be in the range [3600, 7862400]"]
    );
    assert_eq!(
        refused(|spec| {
            spec["signerName"] = json!("kubernetes.io/kube-apiserver-client-pod");
            spec["maxExpirationSeconds"] = json!(86401);
        }),
        ["spec.maxExpirationSeconds: Invalid value: 86401: must be in the range [3600, 86400]"]
    );
    assert_eq!(
        refused(|spec| spec["stubPKCS10Request"] = json!("")),
        [
            "spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set"
        ]
    );
    let of_stub = |why: &str| vec![format!("spec.stubPKCS10Request: Invalid value: {why}")];
    assert_eq!(
        refused(|spec| spec["stubPKCS10Request"] = json!("AAAA")),
        of_stub("must be a valid PKCS#10 CSR")
    );
    let mut forged = stub(&rcgen::PKCS_ED25519);
    *forged.last_mut().expect("bytes") ^= 1;
    assert_eq!(
        refused(|spec| spec["stubPKCS10Request"] = json!(STANDARD.encode(&forged))),
        of_stub("invalid signature")
    );
    assert_eq!(
        refused(|spec| spec["unverifiedUserAnnotations"] = json!({"a": "b"})),
        [
            "spec.unverifiedUserAnnotations: Invalid value: \"a\": must be a domain-prefixed key (such as \"acme.io/foo\")"
        ]
    );
}

#[test]
fn a_spec_stays_as_it_is() {
    let old = request_with(b"x");
    let mut new = old.clone();
    new["spec"]["podName"] = json!("q");
    assert_eq!(
        said(&rules().errors_on_update(&new, &old, true)),
        [
            "spec: Invalid value: {\"SignerName\":\"example.com/s\",\"PodName\":\"q\",\"PodUID\":\"1\",\"ServiceAccountName\":\"a\",\"ServiceAccountUID\":\"2\",\"NodeName\":\"n\",\"NodeUID\":\"3\",\"MaxExpirationSeconds\":86400,\"PKIXPublicKey\":null,\"ProofOfPossession\":null,\"StubPKCS10Request\":\"eA==\",\"UnverifiedUserAnnotations\":null}: field is immutable"
        ]
    );
}

/// A request, and the status that a signer gives it: a certificate for two hours, from now on.
fn issued() -> (Value, Value) {
    let der = stub(&rcgen::PKCS_ECDSA_P256_SHA256);
    let old = request_with(&der);
    let mut parameters =
        CertificateSigningRequestParams::from_der(&der.into()).expect("a request that can be read");
    parameters.params.not_before = rcgen::date_time_ymd(2026, 1, 1);
    parameters.params.not_after = parameters.params.not_before + std::time::Duration::from_secs(7200);
    let key = KeyPair::generate().expect("a key");
    let issuer = Issuer::new(CertificateParams::default(), key);
    let mut new = old.clone();
    new["status"] = json!({
        "conditions": [{
            "type": "Issued", "status": "True", "reason": "Signed", "message": "",
            "lastTransitionTime": NOW,
        }],
        "certificateChain": parameters.signed_by(&issuer).expect("a certificate").pem(),
        "notBefore": NOW,
        "beginRefreshAt": "2026-01-01T01:00:00Z",
        "notAfter": "2026-01-01T02:00:00Z",
    });
    (new, old)
}

fn refused_status(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let (mut new, old) = issued();
    change(&mut new["status"]);
    said(&status_errors(&new, &old, &[time(NOW)]))
}

#[test]
fn a_certificate_for_the_key_and_from_now_on_is_issued() {
    assert_eq!(refused_status(|_| {}), Vec::<String>::new());
    let (new, old) = issued();
    let late = time("2026-01-01T00:05:00Z");
    assert_eq!(
        said(&status_errors(&new, &old, &[late])),
        [format!(
            "status.notBefore: Invalid value: {NOW:?}: must be set to within 5 minutes of kube-apiserver's current time"
        )]
    );
    assert!(status_errors(&new, &old, &[late, time(NOW)]).is_empty());
}

#[test]
fn what_a_signer_says_has_to_fit_the_certificate() {
    let (other, _) = issued();
    let said =
        refused_status(|status| status["certificateChain"] = other["status"]["certificateChain"].clone());
    assert!(said[0].ends_with(": leaf certificate was not issued to the requested public key"), "{said:?}");
    assert_eq!(
        refused_status(|status| status["beginRefreshAt"] = Value::Null),
        [
            "status.beginRefreshAt: Required value: must be present and in the range [notbefore+10min, notafter-10min]"
        ]
    );
    assert_eq!(
        refused_status(|status| status["notAfter"] = json!("2026-01-01T02:00:01Z")),
        [
            "status.notAfter: Invalid value: \"2026-01-01T02:00:01Z\": must be set to the NotAfter time encoded in the leaf certificate"
        ]
    );
    assert_eq!(
        refused_status(|status| status["beginRefreshAt"] = json!("2026-01-01T00:09:59Z")),
        [
            "status.beginRefreshAt: Invalid value: \"2026-01-01T00:09:59Z\": must be at least 10 minutes after status.notBefore"
        ]
    );
    assert_eq!(
        refused_status(|status| status["certificateChain"] = json!("x")),
        [
            "status.certificateChain: Invalid value: \"x\": issued certificate chain must contain at least one certificate"
        ]
    );
    assert_eq!(
        refused_status(|status| status["conditions"][0]["status"] = json!("False")),
        ["status.conditions.[0].status: Unsupported value: \"False\": supported values: \"True\""]
    );
    assert_eq!(
        refused_status(|status| status["conditions"][0]["type"] = json!("Done")),
        [
            "status.conditions.[0].type: Unsupported value: \"Done\": supported values: \"Issued\", \"Denied\", \"Failed\""
        ]
    );
}

#[test]
fn what_is_decided_stays_so() {
    let (issued, old) = issued();
    let mut again = issued.clone();
    again["status"]["beginRefreshAt"] = json!("2026-01-01T01:00:01Z");
    let why = "immutable after PodCertificateRequest is issued, denied, or failed";
    assert_eq!(said(&status_errors(&again, &issued, &[])), [format!("status: Invalid value: {why}")]);
    assert!(status_errors(&issued, &issued, &[]).is_empty());

    let mut denied = issued.clone();
    denied["status"]["conditions"][0]["type"] = json!("Denied");
    let why = "non-condition status fields must be empty when denying or failing the PodCertificateRequest";
    assert_eq!(said(&status_errors(&denied, &old, &[])), [format!("status: Invalid value: {why}")]);

    let mut half = issued.clone();
    half["status"]["conditions"] = json!([]);
    let why = "status is immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\"";
    assert_eq!(said(&status_errors(&half, &old, &[])), [format!("status: Invalid value: {why}")]);
    assert!(status_errors(&old, &old, &[]).is_empty());
}
