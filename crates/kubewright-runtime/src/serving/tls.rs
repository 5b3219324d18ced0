//! The certificates of an endpoint.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::RwLock;
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio_util::sync::CancellationToken;

use crate::{BoxError, Error, metrics::Metrics};

/// How often files are looked at again (certwatcher's interval).
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// How an endpoint is encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Tls {
    /// Not at all: plain HTTP.
    Off,
    /// With a certificate that is made at start and that nobody vouches for: who reads has to skip verification, as with
    /// the metrics of kube-controller-manager. What is sent cannot be overheard.
    #[default]
    SelfSigned,
    /// With the certificate (and chain) and the key of these PEM files, which are read again when they change.
    Files {
        /// The certificate, and those that vouch for it.
        certificate: PathBuf,
        /// Its key.
        key: PathBuf,
    },
}

impl Tls {
    pub(super) fn server_config(
        &self,
        metrics: &Metrics,
        stop: &CancellationToken,
    ) -> Result<Option<Arc<ServerConfig>>, Error> {
        let resolver: Arc<dyn ResolvesServerCert> = match self {
            Self::Off => return Ok(None),
            Self::SelfSigned => {
                Arc::new(Fixed(Arc::new(self_signed().map_err(|error| misconfigured(&error))?)))
            }
            Self::Files { certificate, key } => {
                let files = Files { certificate: certificate.clone(), key: key.clone() };
                Arc::new(
                    Watched::start(files, metrics.clone(), stop.clone())
                        .map_err(|error| misconfigured(&error))?,
                )
            }
        };
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| misconfigured(&error.into()))?;
        let mut config = config.with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Some(Arc::new(config)))
    }
}

fn misconfigured(error: &BoxError) -> Error {
    Error::Misconfigured(format!("no certificate to serve with: {error}"))
}

fn self_signed() -> Result<CertifiedKey, BoxError> {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names)?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
    certified(vec![made.cert.der().clone()], &key)
}

fn certified(chain: Vec<CertificateDer<'static>>, key: &PrivateKeyDer<'_>) -> Result<CertifiedKey, BoxError> {
    let certified = CertifiedKey::new(chain, ring::sign::any_supported_type(key)?);
    certified.keys_match()?;
    Ok(certified)
}

#[derive(Debug)]
struct Fixed(Arc<CertifiedKey>);

impl ResolvesServerCert for Fixed {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

impl Files {
    /// The bytes of both, to see whether they changed.
    fn read(&self) -> Result<(Vec<u8>, Vec<u8>), BoxError> {
        let read = |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
        Ok((read(&self.certificate)?, read(&self.key)?))
    }

    fn parse(&self, certificate: &[u8], key: &[u8]) -> Result<CertifiedKey, BoxError> {
        let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| format!("{}: {error}", self.certificate.display()))?;
        if chain.is_empty() {
            return Err(format!("{} holds no certificate", self.certificate.display()).into());
        }
        let key =
            PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("{}: {error}", self.key.display()))?;
        certified(chain, &key)
    }
}

/// The certificate of two files as they are now. When they cannot be read, or do not fit together, it stays what it was.
struct Watched(Arc<RwLock<Arc<CertifiedKey>>>);

impl Watched {
    fn start(files: Files, metrics: Metrics, stop: CancellationToken) -> Result<Self, BoxError> {
        let mut seen = files.read()?;
        let first = files.parse(&seen.0, &seen.1);
        metrics.certificates().read(first.is_ok());
        let current = Arc::new(RwLock::new(Arc::new(first?)));
        let kept = current.clone();
        tokio::spawn(async move {
            // What was said last of files that cannot be read: it is said once.
            let mut said = None;
            loop {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(LOOK_AGAIN) => {}
                }
                let now = match files.read() {
                    Ok(now) if now == seen => continue,
                    now => now,
                };
                let read = now.and_then(|now| {
                    let parsed = files.parse(&now.0, &now.1);
                    seen = now;
                    parsed
                });
                metrics.certificates().read(read.is_ok());
                match read {
                    Ok(certificate) => {
                        *kept.write() = Arc::new(certificate);
                        said = None;
                        tracing::info!("serving with a new certificate");
                    }
                    Err(error) => {
                        let error = error.to_string();
                        if said.as_ref() != Some(&error) {
                            tracing::error!(error, "cannot read the certificate; serving with the last one");
                        }
                        said = Some(error);
                    }
                }
            }
        });
        Ok(Self(current))
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Watched {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().clone())
    }
}
