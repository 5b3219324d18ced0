//! Writes the kubeconfig of the cluster's administrator.

use std::{
    fmt,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, BufRead, BufReader, Read, Seek, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
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

/// Where the kubeconfig goes, and the flag that says so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) path: &'a Path,
    pub(crate) flag: &'static str,
}

/// Why the kubeconfig was not written, with the remedy.
#[derive(Debug)]
pub(crate) struct NotWritten {
    path: PathBuf,
    flag: &'static str,
    why: Why,
}

#[derive(Debug)]
enum Why {
    /// The file is there, and another program's (or a human's).
    Foreign,
    /// It is that of a control plane that runs, at this server.
    InUse(String),
    /// The file system refused.
    Io(io::Error),
}

impl fmt::Display for NotWritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, flag, why } = self;
        let path = path.display();
        match why {
            Why::Foreign => {
                write!(f, "{path} exists and was not written by kubewright: choose another file with {flag}")
            }
            Why::InUse(server) => write!(
                f,
                "{path} is the kubeconfig of a control plane that runs{server}: end that one, or choose another file with {flag}"
            ),
            Why::Io(error) => write!(
                f,
                "cannot write the kubeconfig {path}: {error}: choose a file in a writable folder with {flag}"
            ),
        }
    }
}

impl std::error::Error for NotWritten {}

/// A kubeconfig that was written. The file is locked while this is there, by which others know that its control plane
/// runs; the kernel unlocks it when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Written {
    path: PathBuf,
    file: File,
}

impl Written {
    /// Removes the file, unless it is another one by now.
    pub(crate) fn remove(self) {
        if is_same(&self.file, fs::symlink_metadata(&self.path)) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Access {
    /// Puts the kubeconfig at its place, readable by this user only, in one step: a reader sees the old file or the new one.
    /// Of two who do so at the same time one is refused.
    ///
    /// # Errors
    /// When a file is there that this function did not write, or that of a control plane that runs, or the file system
    /// refuses.
    pub(crate) fn write(&self, place: Place<'_>) -> Result<Written, NotWritten> {
        let temporary = temporary(place.path);
        let written = write_private(&temporary, &self.kubeconfig()).map_err(Why::Io).and_then(|file| {
            // Whoever finds it finds it locked.
            let _ = file.try_lock();
            put(&temporary, place.path)?;
            Ok(Written { path: place.path.to_owned(), file })
        });
        let _ = fs::remove_file(&temporary);
        written.map_err(|why| place.not_written(why))
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

impl Place<'_> {
    /// Whether a kubeconfig may be put there: nothing is there, or one of ours whose control plane has ended.
    ///
    /// # Errors
    /// When it may not.
    pub(crate) fn check_free(self) -> Result<(), NotWritten> {
        match open(self.path).and_then(|file| check(&file).map(|()| file)) {
            Ok(file) => match file.try_lock_shared() {
                Err(TryLockError::WouldBlock) => Err(self.not_written(Why::InUse(server(&file)))),
                _ => Ok(()),
            },
            Err(Why::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(why) => Err(self.not_written(why)),
        }
    }

    fn not_written(self, why: Why) -> NotWritten {
        NotWritten { path: self.path.to_owned(), flag: self.flag, why }
    }
}

/// Moves a file to its place, where nothing is or an older one of ours. Only who has locked the older one replaces it, and
/// a link is made only where nothing is.
fn put(temporary: &Path, path: &Path) -> Result<(), Why> {
    loop {
        let older = match open(path) {
            Ok(older) => older,
            Err(Why::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                match fs::hard_link(temporary, path) {
                    Ok(()) => return Ok(()),
                    // Somebody was faster; unless what is there is a link to nothing.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !is_link(path) => continue,
                    // A file system without links, too.
                    Err(_) => return fs::rename(temporary, path).map_err(Why::Io),
                }
            }
            Err(why) => return Err(why),
        };
        check(&older)?;
        if matches!(older.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(Why::InUse(server(&older)));
        }
        // A link is followed, as it was when the older one was opened.
        if is_same(&older, fs::metadata(path)) {
            return fs::rename(temporary, path).map_err(Why::Io);
        }
    }
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|there| there.is_symlink())
}

fn open(path: &Path) -> Result<File, Why> {
    File::open(path).map_err(Why::Io)
}

/// Whether a file is one of ours.
fn check(file: &File) -> Result<(), Why> {
    let mut first = Vec::new();
    let mut head = BufReader::new(file.take(MARK.len() as u64 + 1));
    head.read_until(b'\n', &mut first).map_err(Why::Io)?;
    if first.trim_ascii_end() == MARK.as_bytes() { Ok(()) } else { Err(Why::Foreign) }
}

/// Where the server of one of our files is, in words.
fn server(mut file: &File) -> String {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.take(1 << 20).read_to_string(&mut text));
    let found = text.lines().find_map(|line| line.trim().strip_prefix("server: "));
    read.ok().and(found).map_or_else(String::new, |server| format!(" at {server}"))
}

/// Whether this is the file that was looked at.
fn is_same(file: &File, other: io::Result<fs::Metadata>) -> bool {
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), other) {
        (Ok(one), Ok(other)) => identity(one) == identity(other),
        _ => false,
    }
}

fn temporary(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    path.with_file_name(name)
}

fn write_private(path: &Path, text: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    Ok(file)
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

    fn place(path: &Path) -> Place<'_> {
        Place { path, flag: "--kubeconfig" }
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
        access().write(place(&path)).expect("written");
        let read = Kubeconfig::read_from(&path).expect("kube reads it");
        assert_eq!(read.current_context.as_deref(), Some("kubewright"));
        let cluster = read.clusters[0].cluster.as_ref().expect("a cluster");
        assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:6443"));
        assert_eq!(cluster.certificate_authority_data, Some(STANDARD.encode("the ca")));
        let user = read.auth_infos[0].auth_info.as_ref().expect("a user");
        assert_eq!(kubewright_objects::to_value(user).expect("JSON")["token"], "the token");
    }

    #[cfg(unix)]
    #[test]
    fn only_this_user_may_read_it_also_after_it_is_overwritten() {
        use std::os::unix::fs::PermissionsExt;
        let folder = Folder::new("kubeconfig-mode");
        let path = folder.0.join("config");
        for _ in 0..2 {
            access().write(place(&path)).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("loosened");
        }
        access().write(place(&path)).expect("written");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&folder.0).expect("a folder").count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_file_that_is_not_ours_is_left_as_it_is() {
        let folder = Folder::new("kubeconfig-foreign");
        let path = folder.0.join("config");
        for foreign in ["apiVersion: v1\nkind: Config\n", "", "\u{feff}not even a kubeconfig"] {
            fs::write(&path, foreign).expect("written");
            let refused = access().write(place(&path)).expect_err("refused").to_string();
            assert!(refused.contains("--kubeconfig"), "{refused}");
            assert_eq!(fs::read_to_string(&path).expect("there"), foreign);
        }
    }

    #[test]
    fn a_folder_that_is_missing_is_told_with_the_remedy() {
        let folder = Folder::new("kubeconfig-missing");
        let path = folder.0.join("none").join("config");
        let refused = access().write(place(&path)).expect_err("refused").to_string();
        assert!(refused.contains("No such file") && refused.contains("--kubeconfig"), "{refused}");
        assert!(!refused.contains('\n'));
    }

    #[test]
    fn the_file_of_a_control_plane_that_runs_is_refused_and_left_as_it_is() {
        let folder = Folder::new("kubeconfig-live");
        let path = folder.0.join("config");
        let running = access().write(place(&path)).expect("written");
        let before = fs::read_to_string(&path).expect("there");
        let other = Access { server: "https://127.0.0.1:7777".to_owned(), ..access() };
        for refused in [place(&path).check_free().map(drop), other.write(place(&path)).map(drop)] {
            let refused = refused.expect_err("it is in use").to_string();
            assert!(
                refused.ends_with(
                    "config is the kubeconfig of a control plane that runs at https://127.0.0.1:6443: \
                     end that one, or choose another file with --kubeconfig"
                ),
                "{refused}"
            );
        }
        assert_eq!(fs::read_to_string(&path).expect("there"), before);
        assert_eq!(fs::read_dir(&folder.0).expect("a folder").count(), 1, "no temporary file is left");

        drop(running);
        place(&path).check_free().expect("it has ended");
        other.write(place(&path)).expect("written").remove();
        assert!(!path.exists(), "it is removed at its end");
    }

    #[test]
    fn a_link_is_replaced_wherever_it_leads() {
        let folder = Folder::new("kubeconfig-link");
        let (path, elsewhere) = (folder.0.join("config"), folder.0.join("elsewhere"));
        for is_there in [false, true] {
            if is_there {
                drop(access().write(place(&elsewhere)).expect("written"));
            }
            std::os::unix::fs::symlink(&elsewhere, &path).expect("a link");
            let written = access().write(place(&path)).expect("written");
            assert!(!is_link(&path), "it is a file of its own");
            written.remove();
            assert!(!path.exists());
            assert_eq!(elsewhere.exists(), is_there);
        }
    }

    #[test]
    fn only_the_file_that_was_written_is_removed() {
        let folder = Folder::new("kubeconfig-removed");
        let path = folder.0.join("config");
        let first = access().write(place(&path)).expect("written");
        fs::remove_file(&path).expect("removed");
        let second = access().write(place(&path)).expect("nothing is there");
        first.remove();
        assert!(path.exists(), "it is the second one's");
        second.remove();
        assert!(!path.exists());
    }

    #[test]
    fn of_those_who_write_at_the_same_time_one_wins() {
        let folder = Folder::new("kubeconfig-race");
        let path = folder.0.join("config");
        for older in [false, true] {
            if older {
                drop(access().write(place(&path)).expect("written"));
            }
            // Each in a file of its own that is put there, as by processes of their own.
            let written: Vec<_> = std::thread::scope(|scope| {
                let writers = (0..8).map(|number| {
                    let (path, temporary) = (&path, folder.0.join(format!("temporary-{older}-{number}")));
                    scope.spawn(move || {
                        let file = write_private(&temporary, &access().kubeconfig()).expect("written");
                        file.try_lock().expect("it is ours");
                        let done = put(&temporary, path);
                        let _ = fs::remove_file(&temporary);
                        done.map(|()| file)
                    })
                });
                let writers: Vec<_> = writers.collect();
                writers.into_iter().map(|writer| writer.join().expect("no panic")).collect()
            });
            assert_eq!(written.iter().filter(|written| written.is_ok()).count(), 1, "{older}");
            let refused = written.iter().filter_map(|written| written.as_ref().err());
            assert!(refused.into_iter().all(|why| matches!(why, Why::InUse(_))), "{older}");
        }
    }
}
