//! TLS: the certificate that a server shows, and the configuration around it.

use std::fmt;
use std::sync::Arc;

use kubewright_world::Clock;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self as pki_pem, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::time_provider::TimeProvider;
use rustls::{DistinguishedName, InconsistentKeys, RootCertStore, ServerConfig};

use crate::authority::Credentials;

/// HTTP/2, as clients choose it (ALPN).
pub const HTTP_2: &[u8] = b"h2";
/// HTTP/1.1; also what a client speaks that chooses nothing.
pub const HTTP_1: &[u8] = b"http/1.1";

/// Why there is no TLS, in Go's words where Go has some (`crypto/tls`, `X509KeyPair`).
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A text without a certificate.
    #[error("tls: failed to find any PEM data in certificate input")]
    NoCertificate,
    /// A text whose certificate cannot be read.
    #[error("tls: failed to find any PEM data in certificate input")]
    UnreadableCertificate(#[source] pki_pem::Error),
    /// A text without a key, or one that cannot be read.
    #[error("tls: failed to find any PEM data in key input")]
    UnreadableKey(#[source] pki_pem::Error),
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
    /// PKCS #1 or SEC 1. Whether it is the certificate's is seen by [`Self::certified`].
    ///
    /// # Errors
    /// When there is no certificate, or no key.
    pub fn of_pem(chain: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Result<Self, TlsError> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(chain.as_ref())
            .collect::<Result<_, _>>()
            .map_err(TlsError::UnreadableCertificate)?;
        if chain.is_empty() {
            return Err(TlsError::NoCertificate);
        }
        let key = PrivateKeyDer::from_pem_slice(key.as_ref()).map_err(TlsError::UnreadableKey)?;
        Ok(Self { chain, key })
    }

    /// A certificate for these names that nobody vouches for, with a key of the machine's entropy.
    ///
    /// # Errors
    /// When there is no entropy, or a name is none.
    pub fn self_signed(names: impl Into<Vec<String>>) -> Result<Self, rcgen::Error> {
        let made = rcgen::generate_simple_self_signed(names)?;
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        Ok(Self { chain: vec![made.cert.der().clone()], key })
    }

    /// The certificate and its key, ready to be shown.
    ///
    /// # Errors
    /// When the key is not the certificate's, or of a kind that cannot sign.
    pub fn certified(&self) -> Result<Arc<CertifiedKey>, TlsError> {
        let key = CertifiedKey::from_der(self.chain.clone(), self.key.clone_key(), &ring::default_provider());
        key.map(Arc::new).map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => TlsError::OtherKey,
            other => other.into(),
        })
    }

    /// The certificates, the server's own first.
    #[must_use]
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// The certificates and the key.
    #[must_use]
    pub fn into_parts(self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
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

impl fmt::Debug for ServingCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServingCertificate")
    }
}

/// What clients show.
#[derive(Debug)]
enum Clients {
    /// A certificate, if they like, of one of these authorities; nobody is asked where there are none.
    Asked(Vec<DistinguishedName>),
    /// A certificate that this accepts, or there is no connection.
    Verified(Arc<dyn ClientCertVerifier>),
}

/// The configuration of a server's TLS, 1.2 and 1.3: of HTTP/1.1, without client certificates, unless it is said otherwise.
#[derive(Debug)]
pub struct ServerTls {
    certificate: Arc<dyn ResolvesServerCert>,
    protocols: Vec<Vec<u8>>,
    clients: Clients,
    clock: Option<Clock>,
    resumption: bool,
}

impl ServerTls {
    /// Shows this certificate.
    #[must_use]
    pub fn showing(certificate: Arc<CertifiedKey>) -> Self {
        Self::showing_newest(move || Some(Arc::clone(&certificate)))
    }

    /// Shows whatever this gives at the moment of a handshake; none fails it.
    #[must_use]
    pub fn showing_newest(
        certificate: impl Fn() -> Option<Arc<CertifiedKey>> + Send + Sync + 'static,
    ) -> Self {
        let certificate = Arc::new(Newest(certificate));
        let (protocols, clients) = (vec![HTTP_1.to_vec()], Clients::Asked(Vec::new()));
        Self { certificate, protocols, clients, clock: None, resumption: true }
    }

    /// Speaks HTTP/2 with clients that do, too.
    #[must_use]
    pub fn http_2(mut self) -> Self {
        self.protocols.insert(0, HTTP_2.to_vec());
        self
    }

    /// Asks clients for a certificate, and tells them whom it trusts; with no subjects it does not ask.
    ///
    /// A client need not show one, and must prove that it has the key of what it shows. Whether that is trusted is for the
    /// service to say: a bad certificate does not end the handshake, as kube-apiserver's (`RequestClientCert` in
    /// `k8s.io/apiserver/pkg/server/secure_serving.go`) does not.
    #[must_use]
    pub fn asking_clients(mut self, subjects: Vec<DistinguishedName>) -> Self {
        self.clients = Clients::Asked(subjects);
        self
    }

    /// Ends the handshake with a client that does not show a certificate of one of these authorities, which are a text in PEM.
    ///
    /// # Errors
    /// When there is no certificate in it, or one that cannot be read.
    pub fn requiring_clients_of(mut self, authorities: impl AsRef<[u8]>) -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authorities.as_ref()) {
            roots.add(certificate.map_err(TlsError::UnreadableCertificate)?)?;
        }
        if roots.is_empty() {
            return Err(TlsError::NoCertificate);
        }
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
        self.clients =
            Clients::Verified(verifier.map_err(|error| rustls::Error::General(error.to_string()))?);
        Ok(self)
    }

    /// Has the time of those outside of a world.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Resumes no sessions: a handshake on the loopback takes a millisecond.
    #[must_use]
    pub fn without_resumption(mut self) -> Self {
        self.resumption = false;
        self
    }

    /// The configuration.
    ///
    /// # Errors
    /// Never, as long as ring knows ciphers of both versions.
    pub fn build(self) -> Result<Arc<ServerConfig>, rustls::Error> {
        let provider = Arc::new(ring::default_provider());
        let builder = match self.clock {
            Some(clock) => {
                ServerConfig::builder_with_details(Arc::clone(&provider), Arc::new(WorldTime(clock)))
            }
            None => ServerConfig::builder_with_provider(Arc::clone(&provider)),
        };
        let clients = match self.clients {
            Clients::Asked(subjects) => Arc::new(RequestedCertificate { provider, subjects }),
            Clients::Verified(verifier) => verifier,
        };
        let mut config = builder
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(clients)
            .with_cert_resolver(self.certificate);
        config.alpn_protocols = self.protocols;
        if !self.resumption {
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Ok(Arc::new(config))
    }
}

/// Shows whatever is the newest.
struct Newest<F>(F);

impl<F: Fn() -> Option<Arc<CertifiedKey>> + Send + Sync> ResolvesServerCert for Newest<F> {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0()
    }
}

impl<F> fmt::Debug for Newest<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Newest")
    }
}

/// The methods of rustls' verifiers, of clients as of servers, that say whether a handshake was signed with the key of the certificate
/// that was shown: as the algorithms of `self.provider` have it.
#[macro_export]
macro_rules! verify_handshake_signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &::rustls::pki_types::CertificateDer<'_>,
            signed: &::rustls::DigitallySignedStruct,
        ) -> Result<::rustls::client::danger::HandshakeSignatureValid, ::rustls::Error> {
            ::rustls::crypto::verify_tls12_signature(
                message,
                certificate,
                signed,
                &self.provider.signature_verification_algorithms,
            )
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &::rustls::pki_types::CertificateDer<'_>,
            signed: &::rustls::DigitallySignedStruct,
        ) -> Result<::rustls::client::danger::HandshakeSignatureValid, ::rustls::Error> {
            ::rustls::crypto::verify_tls13_signature(
                message,
                certificate,
                signed,
                &self.provider.signature_verification_algorithms,
            )
        }

        fn supported_verify_schemes(&self) -> Vec<::rustls::SignatureScheme> {
            self.provider.signature_verification_algorithms.supported_schemes()
        }
    };
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

    crate::verify_handshake_signatures!();
}

/// The clock of those outside of a world, for whoever checks certificates.
#[derive(Debug)]
pub struct WorldTime(pub Clock);

impl TimeProvider for WorldTime {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.outside().now().as_second()).unwrap_or_default();
        Some(UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kubewright_world::World;
    use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
    use rustls::{ClientConfig, ClientConnection, ServerConnection};

    use super::*;
    use crate::authority::Authority;

    /// A handshake in memory: what the server says of it.
    fn shake_hands(server: &Arc<ServerConfig>, client: ClientConfig) -> Result<(), rustls::Error> {
        let name = ServerName::try_from("localhost").expect("a name");
        let mut client = ClientConnection::new(Arc::new(client), name).expect("a client");
        let mut server = ServerConnection::new(Arc::clone(server)).expect("a server");
        while server.is_handshaking() {
            let mut sent = Vec::new();
            client.write_tls(&mut sent).expect("it writes to memory");
            server.read_tls(&mut &sent[..]).expect("it reads from memory");
            server.process_new_packets()?;
            let mut answered = Vec::new();
            server.write_tls(&mut answered).expect("it writes to memory");
            client.read_tls(&mut &answered[..]).expect("it reads from memory");
            client.process_new_packets().expect("the server is trusted");
        }
        Ok(())
    }

    #[test]
    fn a_client_that_the_authority_does_not_vouch_for_gets_no_connection() {
        let world = World::real();
        let (ours, others) = (Authority::new(&world).expect("one"), Authority::new(&world).expect("another"));
        let shown =
            ServingCertificate::from(ours.serving_certificate(&["localhost"]).expect("a certificate"));
        let shown = shown.certified().expect("its key");
        let server = ServerTls::showing(shown).requiring_clients_of(ours.ca_pem()).expect("an authority");
        let server = server.build().expect("a configuration");
        let mut roots = RootCertStore::empty();
        roots.add(ours.ca_der().clone()).expect("a root");
        let provider = Arc::new(ring::default_provider());
        let client = || {
            let builder = ClientConfig::builder_with_provider(provider.clone());
            builder
                .with_safe_default_protocol_versions()
                .expect("versions")
                .with_root_certificates(roots.clone())
        };
        let of = |authority: &Authority| {
            let shown =
                authority.client_certificate("api", &[], Duration::from_secs(60)).expect("a certificate");
            let key: PrivatePkcs8KeyDer<'static> = shown.key_der();
            client()
                .with_client_auth_cert(vec![shown.certificate_der().clone()], key.into())
                .expect("its key")
        };
        shake_hands(&server, of(&ours)).expect("the authority vouches for it");
        assert!(matches!(shake_hands(&server, of(&others)), Err(rustls::Error::InvalidCertificate(_))));
        let nothing = client().with_no_client_auth();
        assert_eq!(shake_hands(&server, nothing), Err(rustls::Error::NoCertificatesPresented));
    }

    #[test]
    fn an_authority_that_is_none_is_said() {
        let none = || ServerTls::showing_newest(|| None);
        assert!(matches!(none().requiring_clients_of(""), Err(TlsError::NoCertificate)));
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(none().requiring_clients_of(broken).is_err());
    }
}
