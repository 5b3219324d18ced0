use std::time::Duration;

use jiff::SignedDuration;
use kubewright_world::{SIMULATION_START, World};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, date_time_ymd};

use super::*;
use kubewright_serve::authority::Authority;

/// A certificate that signs itself, good in 2026, and the bundle that holds it: as those of jenvtest.
fn certificate(attributes: &[(DnType, &str)]) -> (PeerCertificate, Arc<Bundle>) {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    for (kind, value) in attributes {
        params.distinguished_name.push(kind.clone(), *value);
    }
    params.not_before = date_time_ymd(2026, 1, 1);
    params.not_after = date_time_ymd(2027, 1, 1);
    let der = params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone();
    let bundle = Bundle::of_der([der.clone()]).unwrap();
    (PeerCertificate::new(vec![der]).unwrap(), Arc::new(bundle))
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn the_common_name_is_the_user_and_the_organization_the_group() {
    let kube_uid = DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
    let (shown, bundle) =
        certificate(&[(DnType::CommonName, "alice"), (DnType::OrganizationName, "team"), (kube_uid, "abc")]);
    let user = shown.user(&bundle, at("2026-06-01T00:00:00Z")).unwrap().unwrap();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("alice", "abc"));
    assert_eq!(user.groups, ["team", "system:authenticated"]);
    let id = &user.extra[CREDENTIAL_ID][0];
    assert!(id.starts_with("X509SHA256=") && id.len() == 11 + 64, "{id}");
}

#[test]
fn a_certificate_is_good_only_between_its_dates_on_one_connection_too() {
    let (shown, bundle) = certificate(&[(DnType::CommonName, "alice")]);
    for (when, good) in [
        ("2026-01-01T00:00:00Z", true),
        ("2025-12-31T23:59:59Z", false),
        ("2027-01-01T00:00:00Z", true),
        ("2027-01-01T00:00:01Z", false),
        ("2026-06-01T00:00:00Z", true),
    ] {
        assert_eq!(shown.user(&bundle, at(when)).is_ok(), good, "{when}");
    }
}

#[test]
fn a_certificate_without_a_name_speaks_for_nobody_and_rubbish_is_refused() {
    let now = at("2026-06-01T00:00:00Z");
    let (shown, bundle) = certificate(&[(DnType::OrganizationName, "team")]);
    assert_eq!(shown.user(&bundle, now), Ok(None));
    let rubbish = PeerCertificate::new(vec![vec![0x30, 0x82, 0xff].into()]).unwrap();
    assert_eq!(rubbish.user(&bundle, now), Err(BadCertificate::Unreadable));
    assert!(PeerCertificate::new(Vec::new()).is_none());
}

/// What envtest mints: no SAN, for clients only, signed by the authority of `--client-ca-file`.
#[tokio::test(start_paused = true)]
async fn only_what_the_authority_has_signed_for_clients_is_trusted() {
    let world = World::simulated(1);
    let (ours, theirs) = (Authority::new(&world).unwrap(), Authority::new(&world).unwrap());
    let bundle = Arc::new(Bundle::of_der([ours.ca_der().clone()]).unwrap());
    let hour = Duration::from_secs(3600);
    let show = |credentials: &kubewright_serve::authority::Credentials| {
        PeerCertificate::new(vec![credentials.certificate_der().clone()]).unwrap()
    };
    let admin = show(&ours.client_certificate("admin", &["system:masters", "b"], hour).unwrap());
    let user = admin.user(&bundle, SIMULATION_START).unwrap().unwrap();
    assert_eq!(user.groups, ["system:masters", "b", "system:authenticated"]);
    let late = SIMULATION_START + SignedDuration::from_hours(1) + SignedDuration::from_secs(1);
    assert!(
        matches!(admin.user(&bundle, late), Err(BadCertificate::Untrusted(why)) if why.contains("expired"))
    );

    let forged = show(&theirs.client_certificate("admin", &["system:masters"], hour).unwrap());
    assert!(matches!(
        forged.user(&bundle, SIMULATION_START),
        Err(BadCertificate::Untrusted(why)) if why.starts_with("x509: certificate signed by unknown authority")
    ));
    let serving = show(&ours.serving_certificate(&["localhost"]).unwrap());
    assert_eq!(
        serving.user(&bundle, SIMULATION_START),
        Err(BadCertificate::Untrusted("x509: certificate specifies an incompatible key usage".to_owned()))
    );
}

#[test]
fn what_one_bundle_says_is_not_taken_for_another() {
    let now = at("2026-06-01T00:00:00Z");
    let (shown, bundle) = certificate(&[(DnType::CommonName, "alice")]);
    let none = Arc::new(Bundle::default());
    for _ in 0..2 {
        assert!(shown.user(&bundle, now).is_ok());
        assert!(shown.user(&none, now).is_err());
    }
}
