//! Which certificates are vouched for: those of a bundle, and what these have signed.
//!
//! Go's verifier (`crypto/x509`, `Certificate.Verify`) is the model, in its order and its words. Unlike webpki it takes a
//! certificate that stands in the bundle itself, whatever signed it (test environments put leaf certificates there), and
//! it looks at the dates of the bundle's certificates too.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use pem::{EncodeConfig, LineEnding, Pem};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{CertificateError, DistinguishedName, RootCertStore};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;

/// The certificates of a bundle, such as that of `--client-ca-file` or a `caBundle`.
#[derive(Clone, Debug, Default)]
pub struct Bundle {
    roots: Vec<Root>,
}

/// One certificate of a bundle.
#[derive(Clone, Debug)]
struct Root {
    der: CertificateDer<'static>,
    /// Its subject, as rustls tells clients whom it trusts.
    subject: DistinguishedName,
    validity: Validity,
    /// What webpki builds chains to; none for a certificate that it cannot read.
    anchor: Option<TrustAnchor<'static>>,
}

/// From when to when a certificate is good, both included, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Validity {
    from: i64,
    until: i64,
}

/// Why a bundle cannot be used (`k8s.io/client-go/util/cert`, `ParseCertsPEM`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// There is no certificate in it.
    #[error("data does not contain any valid RSA or ECDSA certificates")]
    Empty,
    /// One of its certificates is none.
    #[error("x509: malformed certificate: {0}")]
    Malformed(String),
}

/// Why a certificate is not good, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("x509: {0}")]
pub struct NotGood(pub(crate) String);

/// What a certificate is shown for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// A server shows it to its clients.
    Server,
    /// A client shows it to a server.
    Client,
}

impl Bundle {
    /// Its certificates in PEM, one after the other.
    #[must_use]
    pub fn to_pem(&self) -> String {
        let lines = EncodeConfig::new().set_line_ending(LineEnding::LF);
        let blocks = self.roots.iter().map(|root| Pem::new("CERTIFICATE", root.der.to_vec()));
        blocks.map(|block| pem::encode_config(&block, lines)).collect()
    }

    /// The certificates of a text in PEM; what else stands in it is skipped.
    ///
    /// # Errors
    /// When there is none, or one cannot be read.
    pub fn of_pem(text: &[u8]) -> Result<Self, BundleError> {
        let blocks = pem::parse_many(text).unwrap_or_default();
        let certificates = blocks.into_iter().filter(|block| block.tag() == "CERTIFICATE");
        let bundle = Self::of_der(certificates.map(|block| block.into_contents().into()))?;
        if bundle.roots.is_empty() { Err(BundleError::Empty) } else { Ok(bundle) }
    }

    /// These certificates, of which there may be none.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn of_der(
        certificates: impl IntoIterator<Item = CertificateDer<'static>>,
    ) -> Result<Self, BundleError> {
        let roots = certificates.into_iter().map(Root::read).collect::<Result<_, _>>()?;
        Ok(Self { roots })
    }

    /// The certificates of both.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.roots.extend(other.roots.iter().cloned());
        self
    }

    /// Whether a certificate stands in both (`certificatesOverlap` of kube-apiserver's options).
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.roots.iter().any(|root| other.contains(&root.der))
    }

    /// Whom the bundle speaks for, as a server tells its clients.
    #[must_use]
    pub fn subjects(&self) -> Vec<DistinguishedName> {
        self.roots.iter().map(|root| root.subject.clone()).collect()
    }

    /// Whether the bundle vouches for a certificate, which is shown with others that may stand between: as a chain that
    /// starts with it. Its own dates are for [`check_validity`], its names for the caller.
    pub(crate) fn vouch(
        &self,
        shown: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        usage: Usage,
        now: UnixTime,
    ) -> Result<(), NotGood> {
        let (_, parsed) = X509Certificate::from_der(shown).map_err(|_| malformed())?;
        if self.contains(shown) {
            return if serves(&parsed, usage) { Ok(()) } else { Err(incompatible()) };
        }
        let anchors = self.roots.iter().filter(|root| root.validity.contains(seconds(now)));
        let roots = RootCertStore { roots: anchors.filter_map(|root| root.anchor.clone()).collect() };
        chain(roots, shown, others, usage, now).map_err(|error| match error {
            rustls::Error::InvalidCertificate(
                CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. },
            ) => incompatible(),
            _ => NotGood(format!("certificate signed by unknown authority{}", self.hint(&parsed))),
        })
    }

    /// The moments at which what [`Self::vouch`] says of a chain may change: where a certificate of the chain or of the
    /// bundle begins or ceases to be good.
    pub(crate) fn turning_points(&self, chain: &[CertificateDer<'_>]) -> BTreeSet<i64> {
        let shown = chain.iter().filter_map(|der| X509Certificate::from_der(der).ok());
        let shown = shown.map(|(_, parsed)| Validity::of(&parsed));
        let all = shown.chain(self.roots.iter().map(|root| root.validity));
        all.flat_map(|validity| [validity.from, validity.until.saturating_add(1)]).collect()
    }

    fn contains(&self, certificate: &CertificateDer<'_>) -> bool {
        self.roots.iter().any(|root| root.der == *certificate)
    }

    /// Names the certificate of the bundle that looks as if it had signed the one that is shown, but has not.
    fn hint(&self, shown: &X509Certificate<'_>) -> String {
        let parsed = self.roots.iter().filter_map(|root| X509Certificate::from_der(&root.der).ok());
        let mut named = parsed.filter(|(_, one)| one.subject().as_raw() == shown.issuer().as_raw());
        let Some((_, candidate)) = named.next() else { return String::new() };
        let why = match candidate.public_key().parsed() {
            Ok(PublicKey::EC(_)) => "x509: ECDSA verification failure",
            Ok(PublicKey::RSA(_)) => "crypto/rsa: verification error",
            _ => "x509: Ed25519 verification failure",
        };
        let name = candidate.subject().iter_common_name().chain(candidate.subject().iter_organization());
        let name = name.filter_map(|name| name.as_str().ok()).next().unwrap_or_default();
        format!(
            " (possibly because of {why:?} while trying to verify candidate authority certificate {name:?})"
        )
    }
}

impl Root {
    fn read(der: CertificateDer<'static>) -> Result<Self, BundleError> {
        let (_, parsed) =
            X509Certificate::from_der(&der).map_err(|error| BundleError::Malformed(error.to_string()))?;
        let validity = Validity::of(&parsed);
        let subject = DistinguishedName::from(parsed.subject().as_raw().to_vec());
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates([der.clone()]);
        Ok(Self { der, subject, validity, anchor: store.roots.pop() })
    }
}

impl Validity {
    fn of(certificate: &X509Certificate<'_>) -> Self {
        let validity = certificate.validity();
        Self { from: validity.not_before.timestamp(), until: validity.not_after.timestamp() }
    }

    fn contains(self, now: i64) -> bool {
        (self.from..=self.until).contains(&now)
    }
}

/// A chain from a certificate to one of the roots.
fn chain(
    roots: RootCertStore,
    shown: &CertificateDer<'_>,
    others: &[CertificateDer<'_>],
    usage: Usage,
    now: UnixTime,
) -> Result<(), rustls::Error> {
    let provider = ring::default_provider();
    match usage {
        Usage::Server => {
            let algorithms = provider.signature_verification_algorithms.all;
            let parsed = ParsedCertificate::try_from(shown)?;
            verify_server_cert_signed_by_trust_anchor(&parsed, &roots, others, now, algorithms)
        }
        Usage::Client if roots.is_empty() => Err(CertificateError::UnknownIssuer.into()),
        Usage::Client => {
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(provider)).build();
            let verifier = verifier.map_err(|_| CertificateError::UnknownIssuer)?;
            verifier.verify_client_cert(shown, others, now).map(|_| ())
        }
    }
}

/// Whether a certificate may be used so: it says so, or it does not say for what it is.
fn serves(certificate: &X509Certificate<'_>, usage: Usage) -> bool {
    let Ok(Some(usages)) = certificate.extended_key_usage() else { return true };
    let usages = usages.value;
    usages.any
        || match usage {
            Usage::Server => usages.server_auth,
            Usage::Client => usages.client_auth,
        }
}

/// Whether the time is between the dates of a certificate.
pub(crate) fn check_validity(certificate: &X509Certificate<'_>, now: UnixTime) -> Result<(), NotGood> {
    let now = seconds(now);
    let validity = Validity::of(certificate);
    let text = |seconds: i64| Timestamp::from_second(seconds).map(|at| at.to_string()).unwrap_or_default();
    let complain = |side: &str, bound: i64| {
        Err(NotGood(format!(
            "certificate has expired or is not yet valid: current time {} is {side} {}",
            text(now),
            text(bound)
        )))
    };
    if now < validity.from {
        complain("before", validity.from)
    } else if now > validity.until {
        complain("after", validity.until)
    } else {
        Ok(())
    }
}

/// A time as rustls wants it; before 1970 nothing is good.
pub(crate) fn unix_time(time: Timestamp) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(time.as_second()).unwrap_or(0)))
}

/// It is no certificate at all.
pub(crate) fn malformed() -> NotGood {
    NotGood("malformed certificate".to_owned())
}

fn incompatible() -> NotGood {
    NotGood("certificate specifies an incompatible key usage".to_owned())
}

fn seconds(time: UnixTime) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
