//! What the server shows, and what the API server has to trust for it.

mod authorities;
mod files;
mod own;

use std::{path::PathBuf, sync::Arc};

use kube::Client;
use kubewright_serve::{
    files::CertificateFiles,
    tls::{ServingCertificate, TlsError},
};
use kubewright_world::World;
use rustls::sign::CertifiedKey;
use tokio::sync::watch;

pub use self::authorities::Lifetimes;
use crate::{Error, Key, metrics::CertificateMetrics};

/// Certificates of the webhook server: where they come from.
#[derive(Clone, Debug)]
pub struct Certificates(Source);

#[derive(Clone, Debug)]
enum Source {
    Memory(Lifetimes),
    Secret(Key, Lifetimes),
    Files { certificate: PathBuf, key: PathBuf, ca: PathBuf },
    Given { chain: String, key: String, ca: Option<String> },
}

impl Certificates {
    /// An authority of the server's own, in memory. For one replica: several would each write their own into the `caBundle`.
    #[must_use]
    pub fn in_memory() -> Self {
        Self(Source::Memory(Lifetimes::default()))
    }

    /// An authority of the operator's own that is kept in a Secret, where all replicas find it. The first one creates it;
    /// whoever comes first follows it by the next one. Which rights that takes is told by
    /// [`Server::rights`](super::Server::rights).
    pub fn in_secret(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self(Source::Secret(Key::namespaced(namespace, name), Lifetimes::default()))
    }

    /// The files `tls.crt`, `tls.key` and (where it is there) `ca.crt` of a folder: a mounted Secret of cert-manager. They
    /// are looked at every ten seconds.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        let file = |name: &str| folder.join(name);
        Self(Source::Files { certificate: file("tls.crt"), key: file("tls.key"), ca: file("ca.crt") })
    }

    /// As [`Certificates::in_folder`], of files that have other names.
    pub fn in_files(
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
        ca: impl Into<PathBuf>,
    ) -> Self {
        Self(Source::Files { certificate: certificate.into(), key: key.into(), ca: ca.into() })
    }

    /// These, in PEM: the server's certificate with those between it and its authority, its key, and (if it is to be
    /// written into the configurations) the authority.
    pub fn given(chain: impl Into<String>, key: impl Into<String>, ca: Option<String>) -> Self {
        Self(Source::Given { chain: chain.into(), key: key.into(), ca })
    }

    /// Other lifetimes, of an authority of its own.
    #[must_use]
    pub fn lifetimes(mut self, wanted: Lifetimes) -> Self {
        if let Source::Memory(lifetimes) | Source::Secret(_, lifetimes) = &mut self.0 {
            *lifetimes = wanted;
        }
        self
    }

    /// The Secret that an authority is kept in.
    pub(crate) fn secret(&self) -> Option<&Key> {
        if let Source::Secret(secret, _) = &self.0 { Some(secret) } else { None }
    }

    pub(crate) fn mistake(&self) -> Option<String> {
        match &self.0 {
            Source::Memory(lifetimes) | Source::Secret(_, lifetimes) => lifetimes.mistake(),
            Source::Files { .. } | Source::Given { .. } => None,
        }
    }

    /// Shows certificates for `names` in `shown`, again whenever there are others; counts how often files are read. Ends only when there can be none.
    ///
    /// # Errors
    /// When what was given cannot be used; whatever may become better by itself is tried again.
    pub(crate) async fn run(
        self,
        client: &Client,
        world: &World,
        names: &[String],
        counts: Option<&CertificateMetrics>,
        shown: &watch::Sender<Option<Shown>>,
    ) -> Result<(), Error> {
        match self.0 {
            Source::Given { chain, key, ca } => {
                shown.send_replace(Some(Shown::of_pem(&chain, &key, ca).map_err(Error::Misconfigured)?));
                std::future::pending().await
            }
            Source::Files { certificate, key, ca } => {
                files::run(CertificateFiles::new(certificate, key).with_ca(ca), counts, shown).await
            }
            Source::Memory(lifetimes) => own::in_memory(world, lifetimes, names, shown).await,
            Source::Secret(secret, lifetimes) => {
                own::in_secret(client, world, lifetimes, &secret, names, shown).await;
                Ok(())
            }
        }
    }
}

/// What is shown, and what vouches for it.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    key: Arc<CertifiedKey>,
    /// The `caBundle`; `None` when somebody else takes care of it.
    pub(crate) bundle: Option<Arc<str>>,
}

impl Shown {
    fn new(key: Arc<CertifiedKey>, bundle: Option<String>) -> Self {
        Self { key, bundle: bundle.map(Arc::from) }
    }

    fn of_pem(chain: &str, key: &str, bundle: Option<String>) -> Result<Self, String> {
        let given = ServingCertificate::of_pem(chain, key).and_then(|given| given.certified());
        let key = given.map_err(|error| match error {
            TlsError::NoCertificate => "there is no certificate".to_owned(),
            TlsError::UnreadableCertificate(why) => format!("the certificate cannot be read: {why}"),
            TlsError::UnreadableKey(why) => format!("the key cannot be read: {why}"),
            other => format!("the certificate and its key cannot be used: {other}"),
        })?;
        Ok(Self::new(key, bundle))
    }

    /// What a server shows.
    pub(crate) fn certified(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.key)
    }
}
