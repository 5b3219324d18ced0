//! TLS to programs whose certificates nobody vouches for: probes trust any (`k8s.io/kubernetes/pkg/probe/http`), those of a control
//! plane sign theirs themselves, and behind the API server's proxy anything may speak it (`CreateProxyTransport` in
//! `pkg/controlplane/apiserver`).

use std::io;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Speaks TLS with who listens at an address or under a name, whoever that is. Nothing secret is to be sent there.
///
/// # Errors
/// When the other side does not speak it.
pub async fn connect<S: AsyncRead + AsyncWrite + Unpin>(
    server: ServerName<'static>,
    stream: S,
) -> io::Result<TlsStream<S>> {
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    let config = builder.dangerous().with_custom_certificate_verifier(Arc::new(Whatever));
    let connector = TlsConnector::from(Arc::new(config.with_no_client_auth()));
    connector.connect(server, stream).await
}

/// Not even the signature of the handshake is looked at: webpki reads no certificates of X.509's first version, which Go does.
#[derive(Debug)]
struct Whatever;

impl ServerCertVerifier for Whatever {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        default_provider().signature_verification_algorithms.supported_schemes()
    }
}
