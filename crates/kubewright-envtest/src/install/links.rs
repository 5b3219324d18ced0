//! A folder of links by the names of the two programs.

use std::{
    env, fs,
    io::{self, ErrorKind},
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};

/// The programs that we are.
const OURS: [&str; 2] = ["etcd", "kube-apiserver"];

/// What only suites need that run kubectl themselves.
pub(super) const KUBECTL: &str = "kubectl";

/// How the file may be called that our links point to.
const TARGETS: [&str; 2] = ["kubewright", "kubewright-envtest"];

/// A folder with the links in it.
#[derive(Debug)]
pub(super) struct Installed {
    pub(super) folder: PathBuf,
    /// Whether there is a kubectl, too.
    pub(super) kubectl: bool,
}

impl Installed {
    /// Puts links to `program`, and to a kubectl, into a folder. Another process may do the same at the same time. What is
    /// right already is not touched.
    ///
    /// # Errors
    /// When there are real programs, unless they may be replaced by `force`, or the file system refuses.
    pub(super) fn at(
        folder: PathBuf,
        program: &Path,
        kubectl: Option<&Path>,
        force: bool,
    ) -> anyhow::Result<Self> {
        let context = || format!("cannot install into {}", folder.display());
        if is_right(&folder, program, kubectl) {
            let kubectl = folder.join(KUBECTL).exists();
            return Ok(Self { folder, kubectl });
        }
        if !folder.exists() {
            make(&folder, program, kubectl).with_context(context)?;
        }
        if !is_right(&folder, program, kubectl) {
            check_ours(&folder, force)?;
            fill(&folder, program, kubectl).with_context(context)?;
        }
        let kubectl = folder.join(KUBECTL).exists();
        Ok(Self { folder, kubectl })
    }

    /// The lines by which a shell makes a suite use these. `TEST_ASSET_...` counts even where a Makefile sets
    /// `KUBEBUILDER_ASSETS` itself (controller-runtime's `pkg/internal/testing/process/bin_path_finder.go`).
    ///
    /// # Errors
    /// When the folder's name is not UTF-8.
    pub(super) fn exports(&self) -> anyhow::Result<String> {
        let mut lines = vec![
            export("TEST_ASSET_KUBE_APISERVER", &self.folder.join("kube-apiserver"))?,
            export("TEST_ASSET_ETCD", &self.folder.join("etcd"))?,
        ];
        if self.kubectl {
            lines.push(export("TEST_ASSET_KUBECTL", &self.folder.join(KUBECTL))?);
        }
        lines.push(export("KUBEBUILDER_ASSETS", &self.folder)?);
        Ok(lines.concat())
    }
}

/// Makes the folder in one step: nobody sees it half full. When somebody else was faster, it is theirs.
fn make(folder: &Path, program: &Path, kubectl: Option<&Path>) -> io::Result<()> {
    let parent = folder.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent)?;
    let unfinished = parent.join(format!(".kubewright-{}", std::process::id()));
    fs::create_dir(&unfinished)?;
    let made = fill(&unfinished, program, kubectl).and_then(|()| fs::rename(&unfinished, folder));
    if made.is_err() {
        let _ = set_mode(&unfinished, 0o755);
        let _ = fs::remove_dir_all(&unfinished);
    }
    match made {
        Err(error) if matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists) => {
            Ok(())
        }
        made => made,
    }
}

/// Puts the links into a folder that is there; it is then read-only, as setup-envtest's are.
fn fill(folder: &Path, program: &Path, kubectl: Option<&Path>) -> io::Result<()> {
    set_mode(folder, 0o755)?;
    for name in OURS {
        link(program, &folder.join(name))?;
    }
    let there = folder.join(KUBECTL);
    if let Some(kubectl) = kubectl.filter(|_| !there.exists()) {
        link(kubectl, &there)?;
    }
    set_mode(folder, 0o555)
}

/// Whether nothing is to be done.
fn is_right(folder: &Path, program: &Path, kubectl: Option<&Path>) -> bool {
    OURS.iter().all(|name| fs::read_link(folder.join(name)).is_ok_and(|target| target == program))
        && (kubectl.is_none() || folder.join(KUBECTL).exists())
}

/// Whether the programs in a folder are ours to replace: links to one of ours, wherever that is or was.
fn check_ours(folder: &Path, force: bool) -> anyhow::Result<()> {
    for path in OURS.map(|name| folder.join(name)) {
        if !is_ours(&path) && fs::symlink_metadata(&path).is_ok() && !force {
            bail!(
                "{} is another program: --force replaces it, --dir and --version choose another folder",
                path.display()
            );
        }
    }
    Ok(())
}

/// Whether a file is a link to one of our programs, wherever that is or was.
fn is_ours(path: &Path) -> bool {
    let target = fs::read_link(path);
    target.is_ok_and(|target| target.file_name().is_some_and(|name| TARGETS.iter().any(|ours| name == *ours)))
}

/// Whether the programs in a folder are links to one of ours.
pub(super) fn has_ours(folder: &Path) -> bool {
    OURS.iter().all(|name| is_ours(&folder.join(name)))
}

/// Removes the links, and the folder unless somebody has put something else into it; gives whether it is gone.
pub(super) fn remove(folder: &Path) -> io::Result<bool> {
    set_mode(folder, 0o755)?;
    for name in OURS {
        fs::remove_file(folder.join(name))?;
    }
    let kubectl = folder.join(KUBECTL);
    if kubectl.is_symlink() {
        fs::remove_file(kubectl)?;
    }
    match fs::remove_dir(folder) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(false),
        Err(error) => Err(error),
    }
}

/// Makes a link, or replaces what is there, in one step.
fn link(target: &Path, path: &Path) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let temporary = path.with_file_name(name);
    symlink(target, &temporary)?;
    fs::rename(&temporary, path).inspect_err(|_| drop(fs::remove_file(&temporary)))
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// The first file of this name in the folders of a `PATH`.
pub(super) fn on_path(name: &str, path: &std::ffi::OsStr) -> Option<PathBuf> {
    env::split_paths(path).filter(|folder| folder.is_absolute()).map(|folder| folder.join(name)).find(
        |file| file.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0),
    )
}

/// A line that a POSIX shell understands, whatever is in the path.
fn export(variable: &str, path: &Path) -> anyhow::Result<String> {
    let path = path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))?;
    Ok(format!("export {variable}='{}'\n", path.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of its own for one test, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Self {
            let path = env::temp_dir().join(format!("kubewright-install-{test}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("a temporary folder");
            Self(path)
        }

        /// An executable file in it.
        fn program(&self, name: &str) -> PathBuf {
            let path = self.0.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(&path, "").expect("written");
            set_mode(&path, 0o755).expect("its mode");
            path
        }

        /// Where things are installed.
        fn store(&self) -> PathBuf {
            self.0.join("store/k8s/1.36.3-linux-amd64")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = set_mode(&self.store(), 0o755);
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("there").permissions().mode() & 0o777
    }

    fn names(path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).expect("a folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
        names.sort();
        names
    }

    #[test]
    fn both_programs_are_links_to_this_one_in_a_folder_that_is_read_only() {
        let folder = Folder::new("new");
        let (program, kubectl) = (folder.program("kubewright"), folder.program("bin/kubectl"));
        for _ in 0..2 {
            let installed = Installed::at(folder.store(), &program, Some(&kubectl), false)
                .expect("installed, or right already");
            assert!(installed.kubectl);
        }
        assert_eq!(names(&folder.store()), ["etcd", "kube-apiserver", "kubectl"]);
        assert_eq!(names(&folder.0.join("store/k8s")), ["1.36.3-linux-amd64"], "nothing unfinished is left");
        for name in OURS {
            assert_eq!(fs::read_link(folder.store().join(name)).expect("a link"), program);
        }
        assert_eq!(mode(&folder.store()), 0o555);
    }

    #[test]
    fn links_to_a_kubewright_that_has_moved_are_renewed() {
        let folder = Folder::new("moved");
        let (old, new) = (folder.program("old/kubewright"), folder.program("new/kubewright"));
        Installed::at(folder.store(), &old, None, false).expect("installed");
        fs::remove_file(&old).expect("moved");
        let installed = Installed::at(folder.store(), &new, None, false).expect("renewed");
        assert!(!installed.kubectl);
        assert_eq!(fs::read_link(folder.store().join("etcd")).expect("a link"), new);
        assert_eq!(names(&folder.store()), ["etcd", "kube-apiserver"]);
        assert_eq!(mode(&folder.store()), 0o555);
    }

    #[test]
    fn either_of_our_programs_may_take_the_place_of_the_other() {
        let folder = Folder::new("either");
        let (large, small) = (folder.program("kubewright"), folder.program("kubewright-envtest"));
        for program in [&large, &small, &large] {
            Installed::at(folder.store(), program, None, false).expect("installed");
            assert_eq!(fs::read_link(folder.store().join("kube-apiserver")).expect("a link"), *program);
        }
    }

    #[test]
    fn the_real_programs_are_replaced_only_by_force_and_their_kubectl_never() {
        let folder = Folder::new("real");
        let (program, kubectl) = (folder.program("kubewright"), folder.program("bin/kubectl"));
        let real = folder.program("store/k8s/1.36.3-linux-amd64/kube-apiserver");
        folder.program("store/k8s/1.36.3-linux-amd64/kubectl");
        let refused =
            Installed::at(folder.store(), &program, Some(&kubectl), false).expect_err("they are real");
        assert!(refused.to_string().contains("kube-apiserver is another program: --force"), "{refused}");
        assert!(!real.is_symlink());
        Installed::at(folder.store(), &program, Some(&kubectl), true).expect("forced");
        assert!(real.is_symlink() && !folder.store().join(KUBECTL).is_symlink());
    }

    #[test]
    fn what_is_removed_is_what_was_put_there() {
        let folder = Folder::new("removed");
        let (program, kubectl) = (folder.program("kubewright"), folder.program("bin/kubectl"));
        Installed::at(folder.store(), &program, Some(&kubectl), false).expect("installed");
        assert!(has_ours(&folder.store()) && remove(&folder.store()).expect("removed"));
        assert!(!folder.store().exists() && kubectl.exists() && program.exists());

        folder.program("store/k8s/1.36.3-linux-amd64/kubectl");
        Installed::at(folder.store(), &program, Some(&kubectl), false).expect("installed beside a kubectl");
        assert!(!remove(&folder.store()).expect("removed"), "its kubectl is somebody's own");
        assert_eq!(names(&folder.store()), ["kubectl"]);
    }

    #[test]
    fn a_shell_reads_back_any_path() {
        let installed = Installed { folder: "/a folder/o'clock $HOME".into(), kubectl: false };
        assert_eq!(
            installed.exports().expect("text"),
            r"export TEST_ASSET_KUBE_APISERVER='/a folder/o'\''clock $HOME/kube-apiserver'
export TEST_ASSET_ETCD='/a folder/o'\''clock $HOME/etcd'
export KUBEBUILDER_ASSETS='/a folder/o'\''clock $HOME'
"
        );
    }

    #[test]
    fn only_what_can_be_run_is_found_on_the_path() {
        let folder = Folder::new("path");
        let found = folder.program("second/kubectl");
        folder.program("first/kubectl");
        set_mode(&folder.0.join("first/kubectl"), 0o644).expect("its mode");
        let path = env::join_paths(["first", "second"].map(|name| folder.0.join(name))).expect("a path");
        assert_eq!(on_path(KUBECTL, &path), Some(found));
        assert_eq!(on_path("kubectl", "relative:".as_ref()), None);
    }
}
