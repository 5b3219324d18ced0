//! Which certificates a webhook may show: those that its `caBundle` vouches for.
//!
//! Go's verifier (`crypto/x509`, `Certificate.Verify`) is the model, in its order and its words: validity, then names,
//! then the chain ([`crate::trust`]).

use std::sync::Arc;

use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, OtherError};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::trust::{self, Bundle, BundleError, NotGood, Usage};

/// Vouches for the certificates of one webhook.
#[derive(Debug)]
pub(super) struct Trust {
    provider: Arc<CryptoProvider>,
    bundle: Bundle,
    /// Any certificate will do.
    blind: bool,
}

impl Trust {
    /// Trusts the certificates of a bundle in PEM.
    ///
    /// # Errors
    /// When there is text in the bundle, but no certificate.
    pub(super) fn new(provider: Arc<CryptoProvider>, bundle: &[u8]) -> Result<Self, String> {
        let wrong = |why: &str| format!("unable to load root certificates: {why}");
        if bundle.is_empty() {
            return Ok(Self { provider, bundle: Bundle::default(), blind: false });
        }
        if pem::parse_many(bundle).unwrap_or_default().is_empty() {
            return Err(wrong("unable to parse bytes as PEM block"));
        }
        let bundle = Bundle::of_pem(bundle).map_err(|error| match error {
            BundleError::Empty => wrong("no valid certificate authority data seen"),
            BundleError::Malformed(why) => wrong(&format!("failed to parse certificate: {why}")),
        })?;
        Ok(Self { provider, bundle, blind: false })
    }

    /// Trusts whoever it is (`insecure-skip-tls-verify`).
    pub(super) fn blind(self) -> Self {
        Self { blind: true, ..self }
    }

    fn verify(
        &self,
        shown: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), NotGood> {
        if self.blind {
            return Ok(());
        }
        let (_, parsed) = X509Certificate::from_der(shown).map_err(|_| trust::malformed())?;
        trust::check_validity(&parsed, now)?;
        let certificate = ParsedCertificate::try_from(shown);
        if !certificate.is_ok_and(|found| verify_server_name(&found, name).is_ok()) {
            return Err(NotGood(wrong_name(&parsed, name)));
        }
        self.bundle.vouch(shown, others, Usage::Server, now)
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

    kubewright_serve::verify_handshake_signatures!();
}
