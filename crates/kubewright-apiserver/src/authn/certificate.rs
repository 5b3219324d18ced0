//! Who a client certificate speaks for: the common name is the user, the organizations are the groups
//! (`k8s.io/apiserver/pkg/authentication/request/x509`).

use jiff::Timestamp;
use ring::digest::{SHA256, digest};
use x509_parser::prelude::{FromDer, X509Certificate, X509Name};

use super::user::{CREDENTIAL_ID, User};

/// The client certificate of a connection (DER), put into a request's extensions by the listener after the TLS
/// handshake has verified it against the cluster's CA.
#[derive(Clone, Debug)]
pub struct PeerCertificate(pub Vec<u8>);

/// Why a certificate is not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadCertificate {
    #[error("the client certificate cannot be read")]
    Unreadable,
    #[error("the client certificate has expired or is not yet valid")]
    OutOfTime,
    #[error("the client certificate has no single, non-empty uid")]
    Uid,
}

/// The attribute of a subject that holds a user's uid: 1.3.6.1.4.1.57683.2.
const UID_ATTRIBUTE: &str = "1.3.6.1.4.1.57683.2";

/// The user of a certificate at a time; `None` for one without a common name.
pub(crate) fn user(certificate: &PeerCertificate, now: Timestamp) -> Result<Option<User>, BadCertificate> {
    let (_, parsed) = X509Certificate::from_der(&certificate.0).map_err(|_| BadCertificate::Unreadable)?;
    let validity = parsed.validity();
    if now.as_second() < validity.not_before.timestamp() || now.as_second() > validity.not_after.timestamp() {
        return Err(BadCertificate::OutOfTime);
    }
    let subject = parsed.subject();
    let name = subject.iter_common_name().last().and_then(|name| name.as_str().ok()).unwrap_or_default();
    if name.is_empty() {
        return Ok(None);
    }
    let groups = subject.iter_organization().filter_map(|group| group.as_str().ok());
    let mut user = User::new(name, groups);
    user.uid = uid(subject)?;
    let print = digest(&SHA256, &certificate.0);
    let hex: String = print.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    user.extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={hex}")]);
    Ok(Some(user))
}

fn uid(subject: &X509Name<'_>) -> Result<String, BadCertificate> {
    let uids: Vec<_> =
        subject.iter_attributes().filter(|one| one.attr_type().to_id_string() == UID_ATTRIBUTE).collect();
    match uids.as_slice() {
        [] => Ok(String::new()),
        [one] => match one.as_str() {
            Ok(uid) if !uid.is_empty() => Ok(uid.to_owned()),
            _ => Err(BadCertificate::Uid),
        },
        _ => Err(BadCertificate::Uid),
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, date_time_ymd};

    use super::*;

    fn certificate(attributes: &[(DnType, &str)]) -> PeerCertificate {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in attributes {
            params.distinguished_name.push(kind.clone(), *value);
        }
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2027, 1, 1);
        PeerCertificate(params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec())
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn the_common_name_is_the_user_and_the_organization_the_group() {
        let kube_uid = DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
        let shown = certificate(&[
            (DnType::CommonName, "alice"),
            (DnType::OrganizationName, "team"),
            (kube_uid, "abc"),
        ]);
        let user = user(&shown, at("2026-06-01T00:00:00Z")).unwrap().unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("alice", "abc"));
        assert_eq!(user.groups, ["team"]);
        let id = &user.extra[CREDENTIAL_ID][0];
        assert!(id.starts_with("X509SHA256=") && id.len() == 11 + 64, "{id}");
    }

    #[test]
    fn a_certificate_is_good_only_between_its_dates() {
        let shown = certificate(&[(DnType::CommonName, "alice")]);
        for (when, good) in [
            ("2025-12-31T23:59:59Z", false),
            ("2026-01-01T00:00:00Z", true),
            ("2027-01-01T00:00:00Z", true),
            ("2027-01-01T00:00:01Z", false),
        ] {
            assert_eq!(user(&shown, at(when)).is_ok(), good, "{when}");
        }
    }

    #[test]
    fn a_certificate_without_a_name_speaks_for_nobody_and_rubbish_is_refused() {
        let now = at("2026-06-01T00:00:00Z");
        assert_eq!(user(&certificate(&[(DnType::OrganizationName, "team")]), now), Ok(None));
        assert_eq!(user(&PeerCertificate(vec![0x30, 0x82, 0xff]), now), Err(BadCertificate::Unreadable));
    }
}
