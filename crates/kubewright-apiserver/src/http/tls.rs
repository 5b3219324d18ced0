//! What TLS means here: the server's certificate, and the check of the certificate that a client may show.

use std::sync::Arc;
use std::time::Duration;

use kubewright_world::Clock;
use rustls::crypto::ring;
use rustls::pki_types::UnixTime;
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::time_provider::TimeProvider;
use rustls::{RootCertStore, ServerConfig};

use super::authority::{Authority, AuthorityError};

/// The protocols that a client can choose from (ALPN), best first. One that names none speaks HTTP/1.1.
pub(super) const HTTP_2: &[u8] = b"h2";
const HTTP_1: &[u8] = b"http/1.1";

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// No certificate for the server.
    #[error(transparent)]
    Certificate(#[from] AuthorityError),
    /// The authority's certificate cannot be trusted.
    #[error(transparent)]
    Verifier(#[from] VerifierBuilderError),
    /// The certificate and the key cannot be used.
    #[error(transparent)]
    Rustls(#[from] rustls::Error),
}

/// TLS 1.2 and 1.3 for a server that is reached under `names` (DNS names and IP addresses).
///
/// A client need not show a certificate. If it does, the authority must have signed it, and the [`World`]'s clock must
/// find it good; else the handshake fails. Sessions are not resumed: a resumed one would not look at the certificate
/// again, and a handshake on the loopback takes a millisecond.
///
/// [`World`]: kubewright_world::World
///
/// # Errors
/// When a name is neither a DNS name nor an IP address, or a key cannot be made.
pub fn server_config(authority: &Authority, names: &[&str]) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let mut trusted = RootCertStore::empty();
    trusted.add(authority.ca_der().clone())?;
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(trusted), Arc::clone(&provider))
        .allow_unauthenticated()
        .build()?;
    let server = authority.serving_certificate(names)?;
    let mut config =
        ServerConfig::builder_with_details(provider, Arc::new(WorldTime(authority.world().clock)))
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(clients)
            .with_single_cert(vec![server.certificate_der().clone()], server.key_der().into())?;
    config.alpn_protocols = vec![HTTP_2.to_vec(), HTTP_1.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// The world's clock, for whoever checks certificates.
#[derive(Debug)]
pub(crate) struct WorldTime(pub(crate) Clock);

impl TimeProvider for WorldTime {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.now().as_second()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}
