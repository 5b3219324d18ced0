//! What outlives a cluster: the folder of `kubewright up --data`.

mod stamp;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use kubewright_identity::authn::{KeyError, Secret, TokenKey};
use kubewright_kinds::Summary;
use kubewright_serve::authority::{Authority, AuthorityError};
use kubewright_spec::Version;
use kubewright_store::{Disk, DiskOptions, OpenError, Store};
use kubewright_world::World;

use self::stamp::Stamp;
pub use self::stamp::version_of;
use crate::front_proxy::profile;

/// The folder of the store, and that of what a cluster makes when it is started for the first time.
const STORE: &str = "store";
const CREDENTIALS: &str = "credentials";

/// The credentials while they are written.
const UNFINISHED: &str = "credentials.new";

const CA_CERTIFICATE: &str = "ca.crt";
const CA_KEY: &str = "ca.key";
const TOKEN_KEY: &str = "sa.key";
const ADMIN_TOKEN: &str = "admin.token";
/// The certificate of the authority that vouches for this server before API servers behind it, and its key.
const PROXY_AUTHORITY: &str = "front-proxy-ca.pem";

/// A folder of this machine that keeps a cluster: its objects in `store`, and in `credentials` the certificate authority,
/// that of what API servers behind the cluster are shown, the key of the service account tokens and the administrator's
/// token. So whoever had access before still has it after a restart. Only this user may read it.
///
/// A file `version` says which version of Kubernetes has written the objects. A newer one goes on with them, as an upgraded
/// kube-apiserver does; an older one does not open them: it would lose what it does not know.
///
/// No other process can have it at the same time; it is let go when the cluster has ended and its clients are dropped.
pub struct DataDirectory {
    pub(crate) store: Disk<Summary>,
    pub(crate) kubernetes: Version,
    credentials: PathBuf,
}

/// Error of a folder that cannot keep a cluster.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// There is something else in it.
    #[error("{} is not empty and keeps no cluster of kubewright", .0.display())]
    Foreign(PathBuf),
    /// Its objects are of a newer version of Kubernetes than the one that is to go on with them.
    #[error(
        "{} keeps a cluster of Kubernetes v{written}, which v{opened} cannot read: go on with it as v{written} or newer \
         (--kubernetes-version {written}), or keep a cluster of v{opened} in another folder",
        path.display()
    )]
    Newer {
        /// The folder.
        path: PathBuf,
        /// The version that has written it.
        written: Version,
        /// The version that was to open it.
        opened: Version,
    },
    /// It was written by a program that knows more than this one.
    #[error("{} was written by a newer kubewright ({what}): open it with that one", path.display())]
    NewerProgram {
        /// The folder.
        path: PathBuf,
        /// What this one does not know.
        what: String,
    },
    /// The store in it cannot be opened.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The file system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// The credentials cannot be made.
    #[error("no certificates: {0}")]
    Authority(#[from] AuthorityError),
    /// The credentials cannot be made.
    #[error("no key for tokens: {0}")]
    Key(#[from] KeyError),
    /// A file with a credential does not hold one.
    #[error("{} is damaged: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl DataDirectory {
    /// Opens a folder for a cluster of a version of Kubernetes; what is not there is made. Objects of an older version are read as
    /// this version reads them.
    ///
    /// # Errors
    /// [`DataError`]: it is another program's, its objects are of a newer version, another process has it, or what is in it is
    /// damaged. Then nothing in it has changed.
    pub fn open(path: &Path, world: &World, version: Version) -> Result<Self, DataError> {
        let folder = path.join(STORE);
        let (store, said) = loop {
            if !folder.exists() && !is_empty(path)? {
                return Err(DataError::Foreign(path.to_owned()));
            }
            let said = Stamp::read(path)?;
            // Before the store repairs anything.
            if let Some(said) = said {
                said.check(version, path)?;
            }
            let written_before = Stamp::written_before(said, version);
            // The store first: from then on no other process is here.
            let store = Disk::open_as(&folder, DiskOptions::default(), |stored: &_| {
                kubewright_engine::reopened(version, written_before, stored)
            })?;
            // One that was here in between may have changed what the folder is.
            if Stamp::read(path)? == said {
                break (store, said);
            }
        };
        let revision = store.snapshot().revision();
        let now = Stamp::from_now_on(said, version, revision, path)?;
        if said != Some(now) {
            now.write(path)?;
        }
        let credentials = path.join(CREDENTIALS);
        if !credentials.exists() {
            make_credentials(path, world)?;
        }
        Ok(Self { store, kubernetes: version, credentials })
    }

    /// The administrator's token.
    ///
    /// # Errors
    /// When it is not there, or is empty.
    pub fn admin_token(&self) -> Result<Secret, DataError> {
        let token = self.read(ADMIN_TOKEN)?;
        match token.trim() {
            "" => Err(self.damaged(ADMIN_TOKEN, "it is empty")),
            token => Ok(Secret::of(token)),
        }
    }

    /// The key that has signed the tokens of service accounts.
    ///
    /// # Errors
    /// When it is not there, or is none.
    pub(crate) fn token_key(&self) -> Result<TokenKey, DataError> {
        TokenKey::of_pem(&self.read(TOKEN_KEY)?).map_err(|_| self.damaged(TOKEN_KEY, "it holds no key"))
    }

    /// The certificate authority.
    ///
    /// # Errors
    /// When it is not there, or is none.
    pub(crate) fn authority(&self, world: &World) -> Result<Authority, DataError> {
        let (certificate, key) = (self.read(CA_CERTIFICATE)?, self.read(CA_KEY)?);
        Authority::load(world, &certificate, &key)
            .map_err(|error| self.damaged(CA_CERTIFICATE, &error.to_string()))
    }

    /// The authority of what is shown to API servers behind this one. A folder of an older version has none: it gets one.
    ///
    /// # Errors
    /// When it cannot be read, or is none.
    pub(crate) fn proxy_authority(&self, world: &World) -> Result<Authority, DataError> {
        let path = self.credentials.join(PROXY_AUTHORITY);
        if !path.exists() {
            let authority = Authority::with_profile(world, profile())?;
            let unfinished = self.credentials.join("front-proxy-ca.new");
            let write = || {
                write_secret(private().create(true).truncate(true), &unfinished, &both(&authority))?;
                fs::rename(&unfinished, &path)?;
                File::open(&self.credentials)?.sync_all()
            };
            write().map_err(|source| DataError::Io { path: unfinished.clone(), source })?;
            return Ok(authority);
        }
        let text = self.read(PROXY_AUTHORITY)?;
        let authorities = Authority::load_all(world, profile(), text.as_bytes(), text.as_bytes());
        let found = authorities.ok().and_then(|mut found| found.pop());
        found.ok_or_else(|| self.damaged(PROXY_AUTHORITY, "it holds no certificate authority and its key"))
    }

    fn read(&self, name: &str) -> Result<String, DataError> {
        let path = self.credentials.join(name);
        match fs::read(&path) {
            Ok(bytes) => String::from_utf8(bytes).map_err(|_| self.damaged(name, "it is no text")),
            Err(source) => Err(DataError::Io { path, source }),
        }
    }

    fn damaged(&self, name: &str, why: &str) -> DataError {
        DataError::Damaged { path: self.credentials.join(name), why: why.to_owned() }
    }
}

impl std::fmt::Debug for DataDirectory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataDirectory").field("store", &self.store).finish_non_exhaustive()
    }
}

/// Whether there is nothing at `path`.
fn is_empty(path: &Path) -> Result<bool, DataError> {
    match fs::read_dir(path) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(source) => Err(DataError::Io { path: path.to_owned(), source }),
    }
}

/// How a file is made that only this user may read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes the credentials: all of them, or none.
fn make_credentials(path: &Path, world: &World) -> Result<(), DataError> {
    let authority = Authority::new(world)?;
    let token = Secret::random().map_err(|_| KeyError::Entropy)?;
    let files = [
        (CA_CERTIFICATE, authority.ca_pem()),
        (CA_KEY, authority.key_pem()),
        (TOKEN_KEY, TokenKey::generate_pem()?),
        (ADMIN_TOKEN, token.reveal().to_owned()),
        (PROXY_AUTHORITY, both(&Authority::with_profile(world, profile())?)),
    ];
    let unfinished = path.join(UNFINISHED);
    let write = || {
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished)?;
        }
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&unfinished)?;
        for (name, text) in &files {
            write_secret(private().create_new(true), &unfinished.join(name), text)?;
        }
        File::open(&unfinished)?.sync_all()?;
        fs::rename(&unfinished, path.join(CREDENTIALS))?;
        File::open(path)?.sync_all()
    };
    write().map_err(|source| DataError::Io { path: unfinished.clone(), source })
}

/// The certificate of an authority and its key, in one text.
fn both(authority: &Authority) -> String {
    authority.ca_pem() + &authority.key_pem()
}

/// Writes a file that is on the disk when this returns.
fn write_secret(made: &OpenOptions, path: &Path, text: &str) -> io::Result<()> {
    let mut file = made.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests;
