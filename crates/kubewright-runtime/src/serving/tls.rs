//! The certificates of an endpoint.

use std::{fmt, path::PathBuf, sync::Arc};

use kubewright_serve::{
    files::{CertificateFiles, FileError},
    tls::{ServerTls, ServingCertificate},
};
use rustls::{ServerConfig, sign::CertifiedKey};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    Error,
    metrics::{CertificateMetrics, Metrics},
};

/// TLS of an endpoint: how it is encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
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
        let tls = match self {
            Self::Off => return Ok(None),
            Self::SelfSigned => {
                let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
                let made = ServingCertificate::self_signed(names).map_err(|error| misconfigured(&error))?;
                ServerTls::showing(made.certified().map_err(|error| misconfigured(&error))?)
            }
            Self::Files { certificate, key } => {
                let files = CertificateFiles::new(certificate, key);
                let shown = watch(files, metrics.certificates().clone(), stop.clone())
                    .map_err(|error| misconfigured(&error))?;
                ServerTls::showing_newest(move || shown.borrow().clone())
            }
        };
        tls.build().map(Some).map_err(|error| misconfigured(&error))
    }
}

fn misconfigured(error: &dyn fmt::Display) -> Error {
    Error::Misconfigured(format!("no certificate to serve with: {error}"))
}

/// The certificate of two files as they are now. When they cannot be read, or do not fit together, it stays what it was.
fn watch(
    mut files: CertificateFiles,
    counts: CertificateMetrics,
    stop: CancellationToken,
) -> Result<watch::Receiver<Option<Arc<CertifiedKey>>>, FileError> {
    // The first look always finds something to tell.
    let first = files.look().transpose();
    counts.read(first.is_ok());
    let (sender, shown) = watch::channel(first?.map(|loaded| loaded.certificate));
    tokio::spawn(async move {
        // What was said last of files that cannot be read: it is said once.
        let mut said = None;
        loop {
            let read = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                read = files.next() => read,
            };
            counts.read(read.is_ok());
            match read {
                Ok(loaded) => {
                    sender.send_replace(Some(loaded.certificate));
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
    Ok(shown)
}
