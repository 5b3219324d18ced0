//! Writes the kubeconfig of the cluster's administrator.

use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use kubewright_cluster::Secret;

/// The first line of a file that is ours to overwrite.
const MARK: &str = "# Written by kubewright up; it lasts as long as that runs.";

/// What kubectl needs in order to reach the cluster as its administrator.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// `https://127.0.0.1:6443`.
    pub(crate) server: String,
    /// The certificate authority of the server, PEM.
    pub(crate) ca: String,
    /// The administrator's token.
    pub(crate) token: Secret,
}

/// Why the kubeconfig was not written, with the remedy.
#[derive(Debug)]
pub(crate) enum NotWritten {
    /// The file is there, and another program's (or a human's).
    Foreign(PathBuf),
    /// The file system refused.
    Io(PathBuf, io::Error),
}

impl fmt::Display for NotWritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign(path) => write!(
                f,
                "{} exists and was not written by kubewright: choose another file with --kubeconfig",
                path.display()
            ),
            Self::Io(path, error) => write!(
                f,
                "cannot write the kubeconfig {}: {error}: choose a file in a writable folder with --kubeconfig",
                path.display()
            ),
        }
    }
}

impl std::error::Error for NotWritten {}

impl Access {
    /// Puts the kubeconfig at `path`, readable by this user only, in one step: a reader sees the old file or the new one.
    ///
    /// # Errors
    /// When a file is there that this function did not write, or the file system refuses.
    pub(crate) fn write(&self, path: &Path) -> Result<(), NotWritten> {
        check_ours(path)?;
        let temporary = temporary(path);
        let written =
            write_private(&temporary, &self.kubeconfig()).and_then(|()| fs::rename(&temporary, path));
        written.map_err(|error| {
            let _ = fs::remove_file(&temporary);
            NotWritten::Io(path.to_owned(), error)
        })
    }

    fn kubeconfig(&self) -> String {
        let (server, ca, token) = (&self.server, STANDARD.encode(&self.ca), self.token.reveal());
        format!(
            "{MARK}
apiVersion: v1
kind: Config
clusters:
- name: kubewright
  cluster:
    server: {server}
    certificate-authority-data: {ca}
users:
- name: kubewright-admin
  user:
    token: {token}
contexts:
- name: kubewright
  context:
    cluster: kubewright
    user: kubewright-admin
current-context: kubewright
"
        )
    }
}

/// Whether a kubeconfig may be put at `path`: nothing is there, or an older one of ours.
///
/// # Errors
/// When it may not.
pub(crate) fn check_ours(path: &Path) -> Result<(), NotWritten> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(NotWritten::Io(path.to_owned(), error)),
    };
    let mut first = Vec::new();
    let mut head = BufReader::new(io::Read::take(file, MARK.len() as u64 + 1));
    head.read_until(b'\n', &mut first).map_err(|error| NotWritten::Io(path.to_owned(), error))?;
    match first.trim_ascii_end() == MARK.as_bytes() {
        true => Ok(()),
        false => Err(NotWritten::Foreign(path.to_owned())),
    }
}

fn temporary(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    path.with_file_name(name)
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use kube::config::Kubeconfig;

    use super::*;

    /// A folder of its own for one test, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Self {
            let path = std::env::temp_dir().join(format!("kubewright-{test}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("a temporary folder");
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn access() -> Access {
        Access {
            server: "https://127.0.0.1:6443".to_owned(),
            ca: "the ca".to_owned(),
            token: Secret::of("the token"),
        }
    }

    #[test]
    fn what_is_written_is_a_kubeconfig_of_this_server() {
        let folder = Folder::new("kubeconfig-read");
        let path = folder.0.join("config");
        access().write(&path).expect("written");
        let read = Kubeconfig::read_from(&path).expect("kube reads it");
        assert_eq!(read.current_context.as_deref(), Some("kubewright"));
        let cluster = read.clusters[0].cluster.as_ref().expect("a cluster");
        assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:6443"));
        assert_eq!(cluster.certificate_authority_data, Some(STANDARD.encode("the ca")));
        let user = read.auth_infos[0].auth_info.as_ref().expect("a user");
        assert_eq!(serde_json::to_value(user).expect("JSON")["token"], "the token");
    }

    #[cfg(unix)]
    #[test]
    fn only_this_user_may_read_it_also_after_it_is_overwritten() {
        use std::os::unix::fs::PermissionsExt;
        let folder = Folder::new("kubeconfig-mode");
        let path = folder.0.join("config");
        for _ in 0..2 {
            access().write(&path).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("loosened");
        }
        access().write(&path).expect("written");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&folder.0).expect("a folder").count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_file_that_is_not_ours_is_left_as_it_is() {
        let folder = Folder::new("kubeconfig-foreign");
        let path = folder.0.join("config");
        for foreign in ["apiVersion: v1\nkind: Config\n", "", "\u{feff}not even a kubeconfig"] {
            fs::write(&path, foreign).expect("written");
            let refused = access().write(&path).expect_err("refused").to_string();
            assert!(refused.contains("--kubeconfig"), "{refused}");
            assert_eq!(fs::read_to_string(&path).expect("there"), foreign);
        }
    }

    #[test]
    fn a_folder_that_is_missing_is_told_with_the_remedy() {
        let folder = Folder::new("kubeconfig-missing");
        let path = folder.0.join("none").join("config");
        let refused = access().write(&path).expect_err("refused").to_string();
        assert!(refused.contains("No such file") && refused.contains("--kubeconfig"), "{refused}");
        assert!(!refused.contains('\n'));
    }
}
