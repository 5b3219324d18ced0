use kubewright_world::{SIMULATION_START, World};
use rcgen::ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
use rcgen::{CertificateParams, DnType, KeyPair};
use x509_parser::prelude::X509Certificate;

use super::*;

const HOUR: u64 = 3600;

fn authority() -> Authority {
    Authority::new(&World::simulated(7)).expect("an authority")
}

fn request_of(key: &KeyPair, names: &[&str]) -> Pem {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("names");
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "team");
    params.distinguished_name.push(DnType::CommonName, "ada");
    Pem::new("CERTIFICATE REQUEST", params.serialize_request(key).expect("a request").der().to_vec())
}

fn request(names: &[&str]) -> CertificateRequest {
    let key = KeyPair::generate().expect("a key");
    CertificateRequest::read(pem::encode(&request_of(&key, names)).as_bytes()).expect("a request")
}

fn signed(request: &CertificateRequest, extended: &[ExtendedKeyUsagePurpose], hours: u64) -> Pem {
    let authority = authority();
    let ttl = Duration::from_secs(hours * HOUR);
    let purposes = Purposes { key: vec![KeyUsagePurpose::DigitalSignature], extended: extended.to_vec() };
    let text = authority.sign(request, purposes, ttl).expect("a certificate");
    assert!(!text.contains('\r') && text.ends_with("-----END CERTIFICATE-----\n"));
    pem::parse(text).expect("PEM")
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_for_whom_and_what_the_request_says() {
    let request = request(&["node", "10.0.0.1"]);
    assert_eq!((request.common_name(), request.organizations()), ("ada", &["team".to_owned()][..]));
    assert_eq!(
        (&request.alternatives().dns[..], request.alternatives().ip.len()),
        (&["node".to_owned()][..], 1)
    );
    let ipsec_user = ExtendedKeyUsagePurpose::Other(vec![1, 3, 6, 1, 5, 5, 7, 3, 7]);
    let pem = signed(&request, &[ServerAuth, ClientAuth, ipsec_user], 100);
    let (_, certificate) = X509Certificate::from_der(pem.contents()).expect("a certificate");
    assert_eq!(certificate.subject().as_raw(), request.subject);
    let names = certificate.subject_alternative_name().expect("readable").expect("present");
    assert!(!names.critical);
    let expected = [GeneralName::DNSName("node"), GeneralName::IPAddress(&[10, 0, 0, 1])];
    assert_eq!(names.value.general_names, expected);
    let usage = certificate.extended_key_usage().expect("readable").expect("present").value;
    assert!(usage.client_auth && usage.server_auth && usage.other.len() == 1 && !usage.any);
    assert!(!certificate.is_ca() && certificate.basic_constraints().expect("readable").is_some());
}

#[tokio::test(start_paused = true)]
async fn only_a_short_life_is_not_shortened_by_what_it_is_backdated() {
    let request = request(&[]);
    let start = SIMULATION_START.as_second();
    for (hours, left) in [(1, 3600), (7, 7 * 3600), (8, 8 * 3600 - 300), (1_000_000, 10 * 365 * 86_400)] {
        let pem = signed(&request, &[ClientAuth], hours);
        let (_, certificate) = X509Certificate::from_der(pem.contents()).expect("a certificate");
        assert_eq!(certificate.validity().not_before.timestamp(), start - 300);
        assert_eq!(certificate.validity().not_after.timestamp(), start + left, "{hours}");
        assert_eq!(certificate.subject_alternative_name(), Ok(None));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_request_of_its_own_key_is_refused() {
    let key = KeyPair::generate().expect("a key");
    let good = request_of(&key, &[]);
    let mut forged = good.contents().to_vec();
    *forged.last_mut().expect("bytes") ^= 1;
    let refused = |tag: &str, der: &[u8]| {
        let text = pem::encode(&Pem::new(tag, der));
        CertificateRequest::read(text.as_bytes()).expect_err("no request").to_string()
    };
    assert_eq!(refused("KEY", good.contents()), "PEM block type must be CERTIFICATE REQUEST");
    assert_eq!(refused("CERTIFICATE REQUEST", b"0"), "unable to parse certificate request");
    let forged = refused("CERTIFICATE REQUEST", &forged);
    assert_eq!(forged, "unable to verify certificate request signature");
}

#[tokio::test(start_paused = true)]
async fn an_authority_whose_time_is_over_signs_nothing() {
    let authority = authority();
    tokio::time::sleep(Duration::from_secs(11 * 365 * 24 * HOUR)).await;
    let refused = authority.sign(&request(&[]), Purposes::default(), Duration::from_secs(HOUR));
    assert!(matches!(refused, Err(AuthorityError::Expired(end)) if end == authority.not_after));
}
