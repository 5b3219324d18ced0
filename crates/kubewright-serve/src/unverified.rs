//! TLS to programs whose certificates nobody vouches for: those of a control plane sign theirs themselves
//! (`k8s.io/kubernetes/pkg/probe/http`), and behind the proxy anything may speak it (`CreateProxyTransport` in
//! `pkg/controlplane/apiserver`).

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Speaks TLS with who listens at an address, whoever that is.
///
/// # Errors
/// When the other side does not speak it.
pub(super) async fn connect<S: AsyncRead + AsyncWrite + Unpin>(
    address: IpAddr,
    stream: S,
) -> io::Result<TlsStream<S>> {
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    let config = builder.dangerous().with_custom_certificate_verifier(Arc::new(Whatever));
    let connector = TlsConnector::from(Arc::new(config.with_no_client_auth()));
    connector.connect(ServerName::from(address), stream).await
}

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
