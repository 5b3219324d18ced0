//! Certificates in files that somebody else renews: cert-manager, a mounted Secret.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, fs, io};

use rustls::sign::CertifiedKey;

use crate::tls::{ServingCertificate, TlsError};

/// How often files are looked at (controller-runtime's certwatcher).
pub const INTERVAL: Duration = Duration::from_secs(10);

/// The largest file that is read.
const LARGEST: u64 = 1 << 20;

/// A certificate and its key in two files (PEM), and perhaps the certificates of its authority in a third.
#[derive(Debug)]
pub struct CertificateFiles {
    certificate: PathBuf,
    key: PathBuf,
    ca: Option<PathBuf>,
    /// What was in them when they could be read last.
    seen: Option<Contents>,
    has_looked: bool,
}

/// What files held.
#[derive(Debug)]
pub struct Loaded {
    /// The certificate and its key.
    pub certificate: Arc<CertifiedKey>,
    /// The certificates of its authority, in PEM, where there is a file with them.
    pub ca: Option<String>,
}

/// Why files give no certificate.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// One of them cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What one of them holds is no certificate, or no key.
    #[error("{}: {why}", path.display())]
    Malformed {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The certificate holds nothing.
    #[error("{} holds no certificate", .0.display())]
    Empty(PathBuf),
    /// They do not fit together. Seldom for long: files are not replaced in one step.
    #[error("the certificate and its key cannot be used: {0}")]
    Unusable(#[source] TlsError),
}

#[derive(Debug, PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    ca: Option<String>,
}

impl fmt::Display for CertificateFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.certificate.display().fmt(f)
    }
}

impl CertificateFiles {
    /// These two files.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { certificate: certificate.into(), key: key.into(), ca: None, seen: None, has_looked: false }
    }

    /// And a third one, which may be missing.
    #[must_use]
    pub fn with_ca(mut self, ca: impl Into<PathBuf>) -> Self {
        self.ca = Some(ca.into());
        self
    }

    /// Looks at the files: `None` when they are what they were.
    ///
    /// # Errors
    /// When they give no certificate: each time while they cannot be read, else once for the same contents.
    pub fn look(&mut self) -> Option<Result<Loaded, FileError>> {
        self.has_looked = true;
        match self.read() {
            Ok(found) if self.seen.as_ref() == Some(&found) => None,
            Ok(found) => {
                let loaded = self.load(&found);
                self.seen = Some(found);
                Some(loaded)
            }
            Err(error) => Some(Err(error)),
        }
    }

    /// Looks at the files until there is something to tell: at once when they were never looked at, else every
    /// [`INTERVAL`].
    ///
    /// # Errors
    /// As [`Self::look`].
    pub async fn next(&mut self) -> Result<Loaded, FileError> {
        loop {
            if self.has_looked {
                tokio::time::sleep(INTERVAL).await;
            }
            if let Some(found) = self.look() {
                return found;
            }
        }
    }

    fn read(&self) -> Result<Contents, FileError> {
        let ca = match self.ca.as_deref().map(limited) {
            None => None,
            Some(Err(FileError::Unreadable { source, .. })) if source.kind() == io::ErrorKind::NotFound => {
                None
            }
            Some(Err(error)) => return Err(error),
            Some(Ok(bytes)) => Some(String::from_utf8(bytes).map_err(|_| self.no_text())?),
        };
        Ok(Contents { certificate: limited(&self.certificate)?, key: limited(&self.key)?, ca })
    }

    fn no_text(&self) -> FileError {
        FileError::Malformed { path: self.ca.clone().unwrap_or_default(), why: "it is no text".to_owned() }
    }

    fn load(&self, contents: &Contents) -> Result<Loaded, FileError> {
        let malformed = |path: &Path, why: &dyn ToString| FileError::Malformed {
            path: path.to_owned(),
            why: why.to_string(),
        };
        let certificate = ServingCertificate::of_pem(&contents.certificate, &contents.key).map_err(
            |error| match error {
                TlsError::NoCertificate => FileError::Empty(self.certificate.clone()),
                TlsError::UnreadableCertificate(why) => malformed(&self.certificate, &why),
                TlsError::UnreadableKey(why) => malformed(&self.key, &why),
                other => FileError::Unusable(other),
            },
        )?;
        let certificate = certificate.certified().map_err(FileError::Unusable)?;
        Ok(Loaded { certificate, ca: contents.ca.clone() })
    }
}

fn limited(path: &Path) -> Result<Vec<u8>, FileError> {
    let read = || match fs::metadata(path)?.len() {
        length if length > LARGEST => Err(io::Error::other(format!("it is of {length} bytes"))),
        _ => fs::read(path),
    };
    read().map_err(|source| FileError::Unreadable { path: path.to_owned(), source })
}
