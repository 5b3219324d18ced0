use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    date_time_ymd,
};

use super::*;

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn params(name: &str, until: i32) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(2025, 1, 1);
    params.not_after = date_time_ymd(until, 1, 1);
    params
}

fn authority_params(name: &str, until: i32) -> CertificateParams {
    let mut params = params(name, until);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

fn authority(name: &str, until: i32) -> Issuer {
    CertifiedIssuer::self_signed(authority_params(name, until), KeyPair::generate().unwrap()).unwrap()
}

fn leaf(issuer: &Issuer, until: i32, usages: &[ExtendedKeyUsagePurpose]) -> CertificateDer<'static> {
    let mut params = params("leaf", until);
    params.extended_key_usages = usages.to_vec();
    params.signed_by(&KeyPair::generate().unwrap(), issuer).unwrap().der().clone()
}

fn bundle(certificates: &[&CertificateDer<'static>]) -> Bundle {
    Bundle::of_der(certificates.iter().map(|one| (*one).clone())).unwrap()
}

/// What a bundle says of a client certificate in the middle of a year.
fn vouch(bundle: &Bundle, shown: &[&CertificateDer<'static>], year: i16) -> Result<(), String> {
    let now = unix_time(jiff::civil::date(year, 6, 1).in_tz("UTC").unwrap().timestamp());
    let (own, others) = shown.split_first().unwrap();
    let others: Vec<_> = others.iter().map(|one| (*one).clone()).collect();
    let (_, parsed) = X509Certificate::from_der(own).unwrap();
    check_validity(&parsed, now)
        .and_then(|()| bundle.vouch(own, &others, Usage::Client, now))
        .map_err(|why| why.to_string())
}

const CLIENT: &[ExtendedKeyUsagePurpose] = &[ExtendedKeyUsagePurpose::ClientAuth];
const SERVER: &[ExtendedKeyUsagePurpose] = &[ExtendedKeyUsagePurpose::ServerAuth];
const UNKNOWN: &str = "x509: certificate signed by unknown authority";
const INCOMPATIBLE: &str = "x509: certificate specifies an incompatible key usage";

#[test]
fn a_bundle_vouches_for_what_its_authorities_have_signed() {
    let (ours, theirs) = (authority("ours", 2030), authority("theirs", 2030));
    let trusted = bundle(&[ours.der()]);
    assert_eq!(vouch(&trusted, &[&leaf(&ours, 2030, CLIENT)], 2026), Ok(()));
    assert_eq!(vouch(&trusted, &[&leaf(&ours, 2030, &[])], 2026), Ok(()), "what says no use is for all");
    assert_eq!(vouch(&trusted, &[&leaf(&theirs, 2030, CLIENT)], 2026), Err(UNKNOWN.to_owned()));
    assert_eq!(vouch(&trusted, &[&leaf(&ours, 2030, SERVER)], 2026), Err(INCOMPATIBLE.to_owned()));
    assert_eq!(
        vouch(&Bundle::default(), &[&leaf(&ours, 2030, CLIENT)], 2026),
        Err(UNKNOWN.to_owned()),
        "nobody is trusted by nobody"
    );
}

#[test]
fn an_authority_between_comes_with_the_certificate() {
    let root = authority("root", 2030);
    let between = authority_params("between", 2030);
    let between = CertifiedIssuer::signed_by(between, KeyPair::generate().unwrap(), &root).unwrap();
    let mut params = params("leaf", 2030);
    params.extended_key_usages = CLIENT.to_vec();
    let shown = params.signed_by(&KeyPair::generate().unwrap(), &between).unwrap().der().clone();
    let trusted = bundle(&[root.der()]);
    assert_eq!(vouch(&trusted, &[&shown, between.der()], 2026), Ok(()));
    assert!(vouch(&trusted, &[&shown], 2026).unwrap_err().starts_with(UNKNOWN));
}

#[test]
fn a_certificate_that_stands_in_the_bundle_is_good_whatever_signed_it() {
    let issuer = authority("nobody's", 2030);
    for (usages, found) in [
        (CLIENT, Ok(())),
        (&[][..], Ok(())),
        (&[ExtendedKeyUsagePurpose::Any][..], Ok(())),
        (SERVER, Err(INCOMPATIBLE.to_owned())),
    ] {
        let shown = leaf(&issuer, 2027, usages);
        assert_eq!(vouch(&bundle(&[&shown]), &[&shown], 2026), found, "{usages:?}");
        let late = vouch(&bundle(&[&shown]), &[&shown], 2028).unwrap_err();
        assert_eq!(
            late,
            "x509: certificate has expired or is not yet valid: current time 2028-06-01T00:00:00Z is after 2027-01-01T00:00:00Z"
        );
        assert!(vouch(&bundle(&[&shown]), &[&shown], 2024).unwrap_err().contains(" is before "));
    }
}

/// webpki does not look at the dates of its roots, Go does.
#[test]
fn an_authority_that_has_expired_vouches_for_nobody() {
    let old = authority("old", 2027);
    let shown = leaf(&old, 2030, CLIENT);
    let trusted = bundle(&[old.der()]);
    assert_eq!(vouch(&trusted, &[&shown], 2026), Ok(()));
    assert!(vouch(&trusted, &[&shown], 2028).unwrap_err().starts_with(UNKNOWN));
}

#[test]
fn turning_points_are_where_an_answer_may_change() {
    let issuer = authority("ours", 2029);
    let shown = leaf(&issuer, 2027, CLIENT);
    let turns = bundle(&[issuer.der()]).turning_points(std::slice::from_ref(&shown));
    let year = |year: i16| jiff::civil::date(year, 1, 1).in_tz("UTC").unwrap().timestamp().as_second();
    assert_eq!(turns.into_iter().collect::<Vec<_>>(), [year(2025), year(2027) + 1, year(2029) + 1]);
}

#[test]
fn bundles_that_hold_nothing_are_told_so() {
    assert_eq!(Bundle::of_pem(b"").unwrap_err(), BundleError::Empty);
    assert_eq!(Bundle::of_pem(b"no PEM").unwrap_err(), BundleError::Empty);
    let other = pem::encode(&pem::Pem::new("PRIVATE KEY", b"x".to_vec()));
    assert_eq!(Bundle::of_pem(other.as_bytes()).unwrap_err(), BundleError::Empty);
    let broken = pem::encode(&pem::Pem::new("CERTIFICATE", b"x".to_vec()));
    assert!(matches!(Bundle::of_pem(broken.as_bytes()), Err(BundleError::Malformed(_))));
}

#[test]
fn bundles_overlap_in_their_certificates() {
    let (one, two) = (authority("one", 2030), authority("two", 2030));
    let both = bundle(&[one.der()]).and(&bundle(&[two.der()]));
    assert!(both.overlaps(&bundle(&[two.der()])) && bundle(&[one.der()]).overlaps(&both));
    assert!(!bundle(&[one.der()]).overlaps(&bundle(&[two.der()])));
    assert_eq!(both.subjects().len(), 2);
}
