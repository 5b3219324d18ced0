//! What TLS means here: the server's certificate, and the certificate that a client may show.

use std::sync::Arc;

use kubewright_world::Clock;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::time_provider::TimeProvider;
use rustls::{DigitallySignedStruct, DistinguishedName, InconsistentKeys, ServerConfig, SignatureScheme};

use super::authority::{AuthorityError, Credentials};
use crate::trust::{self, Bundle};

/// The protocols that a client can choose from (ALPN), best first. One that names none speaks HTTP/1.1.
pub(super) const HTTP_2: &[u8] = b"h2";
const HTTP_1: &[u8] = b"http/1.1";

/// Why there is no TLS, in Go's words where Go has some (`crypto/tls`, `X509KeyPair`).
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// No certificate for the server.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// A text without a certificate.
    #[error("tls: failed to find any PEM data in certificate input")]
    NoCertificate,
    /// A text without a key.
    #[error("tls: failed to find any PEM data in key input")]
    NoKey,
    /// The key is not the certificate's.
    #[error("tls: private key does not match public key")]
    OtherKey,
    /// The certificate and the key cannot be used.
    #[error("tls: {0}")]
    Rustls(#[from] rustls::Error),
}

/// The certificate that a server shows, with those between it and its authority, and its key.
pub struct ServingCertificate {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl ServingCertificate {
    /// What two texts in PEM hold, such as those of `--tls-cert-file` and `--tls-private-key-file`. The key is of PKCS #8,
    /// PKCS #1 or SEC 1. Whether it is the certificate's is seen by [`server_config`].
    ///
    /// # Errors
    /// When there is no certificate, or no key.
    pub fn of_pem(chain: &str, key: &str) -> Result<Self, TlsError> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(chain.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|_| TlsError::NoCertificate)?;
        if chain.is_empty() {
            return Err(TlsError::NoCertificate);
        }
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| TlsError::NoKey)?;
        Ok(Self { chain, key })
    }

    /// The certificates and the key.
    pub(crate) fn into_parts(self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        (self.chain, self.key)
    }

    /// The certificates as a text in PEM, the server's own first.
    #[must_use]
    pub fn chain_pem(&self) -> String {
        let pems: Vec<_> = self.chain.iter().map(|der| pem::Pem::new("CERTIFICATE", der.to_vec())).collect();
        pem::encode_many(&pems)
    }

    /// The key as a text in PEM.
    #[must_use]
    pub fn key_pem(&self) -> String {
        let tag = match &self.key {
            PrivateKeyDer::Pkcs1(_) => "RSA PRIVATE KEY",
            PrivateKeyDer::Sec1(_) => "EC PRIVATE KEY",
            _ => "PRIVATE KEY",
        };
        pem::encode(&pem::Pem::new(tag, self.key.secret_der()))
    }
}

impl From<Credentials> for ServingCertificate {
    fn from(issued: Credentials) -> Self {
        Self { chain: vec![issued.certificate_der().clone()], key: issued.key_der().into() }
    }
}

impl std::fmt::Debug for ServingCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServingCertificate")
    }
}

/// TLS 1.2 and 1.3 for a server of this certificate.
///
/// A client need not show one, and is not asked when `clients` is empty. It is told whom that bundle speaks for, and must prove that it has the key of what
/// it shows; whether that is trusted is for [`crate::authn`] to say: a bad certificate does not end the handshake, as
/// kube-apiserver's (`RequestClientCert` in `k8s.io/apiserver/pkg/server/secure_serving.go`) does not. Sessions are not
/// resumed, as a handshake on the loopback takes a millisecond.
///
/// # Errors
/// When the key is not the certificate's, or of a kind that cannot sign.
pub fn server_config(
    certificate: &ServingCertificate,
    clients: &Bundle,
    clock: Clock,
) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let requested =
        Arc::new(RequestedCertificate { provider: Arc::clone(&provider), subjects: clients.subjects() });
    let mut config = ServerConfig::builder_with_details(provider, Arc::new(WorldTime(clock)))
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(requested)
        .with_single_cert(certificate.chain.clone(), certificate.key.clone_key())
        .map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => TlsError::OtherKey,
            other => other.into(),
        })?;
    config.alpn_protocols = vec![HTTP_2.to_vec(), HTTP_1.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// Asks clients for a certificate, and takes any whose key they have.
#[derive(Debug)]
struct RequestedCertificate {
    provider: Arc<CryptoProvider>,
    subjects: Vec<DistinguishedName>,
}

impl ClientCertVerifier for RequestedCertificate {
    fn offer_client_auth(&self) -> bool {
        !self.subjects.is_empty()
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.subjects
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
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

/// The clock of those outside, for whoever checks certificates.
#[derive(Debug)]
pub(crate) struct WorldTime(pub(crate) Clock);

impl TimeProvider for WorldTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(trust::unix_time(self.0.outside().now()))
    }
}
