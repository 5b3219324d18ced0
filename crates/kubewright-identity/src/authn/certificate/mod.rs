//! Who a client certificate speaks for: the common name is the user, the organizations are the groups
//! (`k8s.io/apiserver/pkg/authentication/request/x509`).

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate, X509Name};

use super::user::{CREDENTIAL_ID, User};
use crate::trust::{self, Bundle, Usage};

/// The certificate that a client has shown, with those that came with it, put into a request's extensions by the listener.
/// The handshake has proved that the client has its key, and nothing else: whether it is trusted is for the
/// [`Authenticator`](super::Authenticator), as in kube-apiserver, where a certificate of strangers is answered with 401.
///
/// All requests of a connection share it, and with it what was found out about it.
#[derive(Clone, Debug)]
pub struct PeerCertificate(Arc<Shown>);

#[derive(Debug)]
struct Shown {
    chain: Vec<CertificateDer<'static>>,
    subject: OnceLock<Result<CertificateSubject, BadCertificate>>,
    verdicts: Mutex<Vec<Verification>>,
}

/// Whether a bundle vouches for the certificate, in a time in which the answer does not change.
#[derive(Debug)]
struct Verification {
    bundle: Arc<Bundle>,
    holds: Range<i64>,
    found: Result<(), BadCertificate>,
}

/// Whom a certificate names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CertificateSubject {
    common_name: String,
    user: User,
}

/// Why a certificate is not good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCertificate {
    /// It is no certificate.
    #[error("the client certificate cannot be read")]
    Unreadable,
    /// The bundle does not vouch for it, in Go's words.
    #[error("{0}")]
    Untrusted(String),
    /// It names several uids, or an empty one.
    #[error("the client certificate has no single, non-empty uid")]
    Uid,
}

/// The attribute of a subject that holds a user's uid: 1.3.6.1.4.1.57683.2.
const UID_ATTRIBUTE: &str = "1.3.6.1.4.1.57683.2";

impl PeerCertificate {
    /// What a client has shown: its own certificate first. `None` when it has shown none.
    #[must_use]
    pub fn new(chain: Vec<CertificateDer<'static>>) -> Option<Self> {
        if chain.is_empty() {
            return None;
        }
        Some(Self(Arc::new(Shown { chain, subject: OnceLock::new(), verdicts: Mutex::default() })))
    }

    /// The client's own certificate (DER).
    #[must_use]
    pub fn der(&self) -> &[u8] {
        self.0.chain.first().map_or(&[], |certificate| certificate)
    }

    /// The user whom the certificate speaks for; `None` for one without a common name.
    ///
    /// # Errors
    /// The certificate is not good.
    pub fn user(&self, bundle: &Arc<Bundle>, now: Timestamp) -> Result<Option<User>, BadCertificate> {
        self.verify(bundle, now)?;
        let subject = self.subject()?;
        Ok(Some(subject)
            .filter(|subject| !subject.common_name.is_empty())
            .map(|subject| subject.user.clone()))
    }

    /// The common name of a certificate that the bundle vouches for.
    ///
    /// # Errors
    /// The certificate is not good.
    pub fn common_name(&self, bundle: &Arc<Bundle>, now: Timestamp) -> Result<&str, BadCertificate> {
        self.verify(bundle, now)?;
        Ok(&self.subject()?.common_name)
    }

    fn subject(&self) -> Result<&CertificateSubject, BadCertificate> {
        self.0.subject.get_or_init(|| CertificateSubject::read(self.der())).as_ref().map_err(Clone::clone)
    }

    /// Whether the bundle vouches for the certificate at a time. Signatures are looked at once, not with every request.
    fn verify(&self, bundle: &Arc<Bundle>, now: Timestamp) -> Result<(), BadCertificate> {
        let second = now.as_second();
        let mut verdicts = self.0.verdicts.lock();
        let known =
            verdicts.iter().find(|one| Arc::ptr_eq(&one.bundle, bundle) && one.holds.contains(&second));
        if let Some(known) = known {
            return known.found.clone();
        }
        let found = self.vouched(bundle, now);
        let turns = bundle.turning_points(&self.0.chain);
        let from = turns.range(..=second).next_back().copied().unwrap_or(i64::MIN);
        let until = turns.range(second + 1..).next().copied().unwrap_or(i64::MAX);
        verdicts.retain(|one| !Arc::ptr_eq(&one.bundle, bundle));
        verdicts.push(Verification { bundle: Arc::clone(bundle), holds: from..until, found: found.clone() });
        found
    }

    fn vouched(&self, bundle: &Bundle, now: Timestamp) -> Result<(), BadCertificate> {
        let (own, others) = self.0.chain.split_first().ok_or(BadCertificate::Unreadable)?;
        let (_, parsed) = X509Certificate::from_der(own).map_err(|_| BadCertificate::Unreadable)?;
        let now = trust::unix_time(now);
        trust::check_validity(&parsed, now)
            .and_then(|()| bundle.vouch(own, others, Usage::Client, now))
            .map_err(|why| BadCertificate::Untrusted(why.to_string()))
    }
}

impl CertificateSubject {
    fn read(certificate: &[u8]) -> Result<Self, BadCertificate> {
        let (_, parsed) = X509Certificate::from_der(certificate).map_err(|_| BadCertificate::Unreadable)?;
        let subject = parsed.subject();
        let name = subject.iter_common_name().last().and_then(|name| name.as_str().ok()).unwrap_or_default();
        let groups = subject.iter_organization().filter_map(|group| group.as_str().ok());
        let mut user = User::new(name, groups);
        user.uid = uid(subject)?;
        let print = digest(&SHA256, certificate);
        let hex: String = print.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        user.extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={hex}")]);
        Ok(Self { common_name: name.to_owned(), user: user.authenticated() })
    }
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
mod tests;
