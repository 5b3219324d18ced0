//! Which certificates a webhook may show: those that its `caBundle` vouches for.
//!
//! Go's verifier (`crypto/x509`, `Certificate.Verify`) is the model, in its order and its words: validity, then names,
//! then the chain. Unlike webpki it takes a certificate that stands in the bundle itself, whatever signed it: test
//! environments put the serving certificate there.

use std::sync::Arc;

use jiff::Timestamp;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;

/// Vouches for the certificates of one webhook.
#[derive(Debug)]
pub(super) struct Trust {
    provider: Arc<CryptoProvider>,
    roots: RootCertStore,
    bundle: Vec<CertificateDer<'static>>,
}

/// Why a certificate is not good, in Go's words.
#[derive(Debug, thiserror::Error)]
#[error("x509: {0}")]
struct NotGood(String);

impl Trust {
    /// Trusts the certificates of a bundle in PEM.
    ///
    /// # Errors
    /// When there is text in the bundle, but no certificate.
    pub(super) fn new(provider: Arc<CryptoProvider>, bundle: &[u8]) -> Result<Self, String> {
        let wrong = |why: &str| format!("unable to load root certificates: {why}");
        let blocks = pem::parse_many(bundle).unwrap_or_default();
        if blocks.is_empty() && !bundle.is_empty() {
            return Err(wrong("unable to parse bytes as PEM block"));
        }
        let certificates: Vec<CertificateDer<'static>> = blocks
            .into_iter()
            .filter(|block| block.tag() == "CERTIFICATE")
            .map(|block| CertificateDer::from(block.into_contents()))
            .collect();
        if certificates.is_empty() && !bundle.is_empty() {
            return Err(wrong("no valid certificate authority data seen"));
        }
        if let Some(error) = certificates.iter().find_map(|der| X509Certificate::from_der(der).err()) {
            return Err(wrong(&format!("failed to parse certificate: {error}")));
        }
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates.iter().cloned());
        Ok(Self { provider, roots, bundle: certificates })
    }

    fn verify(
        &self,
        shown: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), NotGood> {
        let not_good = |why: &str| NotGood(why.to_owned());
        let (_, parsed) = X509Certificate::from_der(shown).map_err(|_| not_good("malformed certificate"))?;
        check_validity(&parsed, now)?;
        let certificate = ParsedCertificate::try_from(shown);
        let named = certificate.as_ref().is_ok_and(|found| verify_server_name(found, name).is_ok());
        if !named {
            return Err(NotGood(wrong_name(&parsed, name)));
        }
        if self.bundle.iter().any(|one| one == shown) {
            return Ok(());
        }
        let algorithms = self.provider.signature_verification_algorithms.all;
        certificate
            .and_then(|found| {
                verify_server_cert_signed_by_trust_anchor(&found, &self.roots, others, now, algorithms)
            })
            .map_err(|error| match error {
                rustls::Error::InvalidCertificate(
                    CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. },
                ) => not_good("certificate specifies an incompatible key usage"),
                _ => NotGood(format!("certificate signed by unknown authority{}", self.hint(&parsed))),
            })
    }

    /// Names the certificate of the bundle that looks as if it had signed the one that is shown, but has not.
    fn hint(&self, shown: &X509Certificate<'_>) -> String {
        let parsed = self.bundle.iter().filter_map(|der| X509Certificate::from_der(der).ok());
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

fn check_validity(certificate: &X509Certificate<'_>, now: UnixTime) -> Result<(), NotGood> {
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let validity = certificate.validity();
    let (from, until) = (validity.not_before.timestamp(), validity.not_after.timestamp());
    let text = |seconds: i64| Timestamp::from_second(seconds).map(|at| at.to_string()).unwrap_or_default();
    let complain = |side: &str, bound: i64| {
        Err(NotGood(format!(
            "certificate has expired or is not yet valid: current time {} is {side} {}",
            text(seconds),
            text(bound)
        )))
    };
    if seconds < from {
        complain("before", from)
    } else if seconds > until {
        complain("after", until)
    } else {
        Ok(())
    }
}

/// Why a certificate is not one of `name` (`crypto/x509`, `HostnameError`).
fn wrong_name(certificate: &X509Certificate<'_>, name: &ServerName<'_>) -> String {
    let host = name.to_str();
    let extension = certificate.subject_alternative_name().ok().flatten();
    let names = extension.map_or(&[][..], |extension| &extension.value.general_names);
    let dns: Vec<&str> = names
        .iter()
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(*name),
            _ => None,
        })
        .collect();
    let addresses: Vec<String> = names
        .iter()
        .filter_map(|name| match name {
            GeneralName::IPAddress(bytes) => address(bytes),
            _ => None,
        })
        .collect();
    if names.is_empty() && certificate.subject().iter_common_name().next().is_some() {
        return "certificate relies on legacy Common Name field, use SANs instead".to_owned();
    }
    let valid = if matches!(name, ServerName::IpAddress(_)) {
        if addresses.is_empty() {
            return format!("cannot validate certificate for {host} because it doesn't contain any IP SANs");
        }
        addresses.join(", ")
    } else {
        dns.join(", ")
    };
    if valid.is_empty() {
        format!("certificate is not valid for any names, but wanted to match {host}")
    } else {
        format!("certificate is valid for {valid}, not {host}")
    }
}

fn address(bytes: &[u8]) -> Option<String> {
    let four = <[u8; 4]>::try_from(bytes).map(|bytes| std::net::Ipv4Addr::from(bytes).to_string());
    let sixteen = || <[u8; 16]>::try_from(bytes).map(|bytes| std::net::Ipv6Addr::from(bytes).to_string());
    four.or_else(|_| sixteen()).ok()
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.verify(end_entity, intermediates, server_name, now) {
            Ok(()) => Ok(ServerCertVerified::assertion()),
            Err(why) => {
                Err(rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(why)))))
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
