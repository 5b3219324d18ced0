//! `install` and `env` of `kubewright envtest` and of `kubewright-envtest`: links by the names of the two programs, in the folder
//! where setup-envtest would have put the real ones.

use std::{
    env, fs,
    io::{self, ErrorKind},
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};

use super::{help::print, say};

/// The programs that we are.
const OURS: [&str; 2] = ["etcd", "kube-apiserver"];

/// What only suites need that run kubectl themselves.
const KUBECTL: &str = "kubectl";

/// How the file may be called that our links point to.
const TARGETS: [&str; 2] = ["kubewright", "kubewright-envtest"];

/// What `kubewright envtest` and `kubewright-envtest` do.
#[derive(Debug, Subcommand)]
pub enum EnvtestCommand {
    /// Put links named kube-apiserver and etcd where setup-envtest puts the real ones, and print what to export
    Install {
        /// Where they are put
        #[command(flatten)]
        place: EnvtestPlace,

        /// Replace the real programs if they are there
        #[arg(long)]
        force: bool,
    },
    /// Print what to export, for `eval "$(kubewright envtest env)"`; installs what is missing
    Env {
        /// Where they are
        #[command(flatten)]
        place: EnvtestPlace,
    },
}

/// Where the links are, as setup-envtest says it.
#[derive(Args, Debug)]
pub struct EnvtestPlace {
    /// setup-envtest's --bin-dir; by default the same as there
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,

    /// The version that setup-envtest is to take it for; of 1.35, 1.36 and 1.37 the API is served, of others that of 1.36
    #[arg(long, value_name = "X.Y.Z", default_value = "1.36.3", value_parser = version)]
    pub version: String,
}

/// A version as setup-envtest writes it into names of folders.
fn version(text: &str) -> Result<String, String> {
    let version = text.strip_prefix('v').unwrap_or(text);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match version.split('.').collect::<Vec<_>>()[..] {
        [major, minor, patch] if [major, minor, patch].into_iter().all(is_number) => Ok(version.to_owned()),
        _ => Err("a version has three numbers, such as 1.36.3".to_owned()),
    }
}

/// Lays the links out, and prints what a shell has to export.
///
/// # Errors
/// When the folder cannot be had, or has the real programs in it.
pub fn run(command: &EnvtestCommand) -> anyhow::Result<()> {
    let (place, force) = match command {
        EnvtestCommand::Install { place, force } => (place, *force),
        EnvtestCommand::Env { place } => (place, false),
    };
    let folder = folder(place)?;
    let program = env::current_exe().context("cannot tell where this program is")?;
    let kubectl = on_path(KUBECTL, env::var_os("PATH").unwrap_or_default().as_os_str());
    let installed = Installed::at(folder, &program, kubectl.as_deref(), force)?;
    if matches!(command, EnvtestCommand::Install { .. }) {
        say(&format!("etcd and kube-apiserver in {} are {}", installed.folder.display(), program.display()));
        if !installed.kubectl {
            say("There is no kubectl on the PATH: only suites that run it themselves (Kubectl()) need one.");
        }
    }
    Ok(print(&installed.exports()?)?)
}

/// A folder with the links in it.
#[derive(Debug)]
struct Installed {
    folder: PathBuf,
    /// Whether there is a kubectl, too.
    kubectl: bool,
}

impl Installed {
    /// Puts links to `program`, and to a kubectl, into a folder. Another process may do the same at the same time. What is
    /// right already is not touched.
    ///
    /// # Errors
    /// When there are real programs, unless they may be replaced by `force`, or the file system refuses.
    fn at(folder: PathBuf, program: &Path, kubectl: Option<&Path>, force: bool) -> anyhow::Result<Self> {
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
    fn exports(&self) -> anyhow::Result<String> {
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
        let ours = match fs::read_link(&path) {
            Ok(target) => target.file_name().is_some_and(|name| TARGETS.iter().any(|ours| name == *ours)),
            Err(error) => error.kind() == ErrorKind::NotFound,
        };
        if !ours && !force {
            bail!(
                "{} is another program: --force replaces it, --dir and --version choose another folder",
                path.display()
            );
        }
    }
    Ok(())
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

/// Where setup-envtest keeps a version (`store/store.go`, `store/helpers.go`).
fn folder(place: &EnvtestPlace) -> anyhow::Result<PathBuf> {
    let store = match &place.dir {
        Some(dir) => dir.clone(),
        None => default_store()?,
    };
    let name = format!("{}-{}-{}", place.version, os(), architecture());
    Ok(std::path::absolute(store.join("k8s").join(name))?)
}

fn default_store() -> anyhow::Result<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || set("HOME").context("HOME is not set: say where with --dir");
    if cfg!(target_os = "macos") {
        return Ok(home()?.join("Library/Application Support/io.kubebuilder.envtest"));
    }
    let data = match set("XDG_DATA_HOME") {
        Some(data) => data,
        None => home()?.join(".local/share"),
    };
    Ok(data.join("kubebuilder-envtest"))
}

/// As Go calls the operating system.
fn os() -> &'static str {
    match env::consts::OS {
        "macos" => "darwin",
        os => os,
    }
}

/// As Go calls the processor.
fn architecture() -> &'static str {
    match env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        architecture => architecture,
    }
}

/// The first file of this name in the folders of a `PATH`.
fn on_path(name: &str, path: &std::ffi::OsStr) -> Option<PathBuf> {
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
    fn versions_of_envtest_have_three_numbers() {
        assert_eq!(version("1.36.3").as_deref(), Ok("1.36.3"));
        assert_eq!(version("v1.29.0").as_deref(), Ok("1.29.0"));
        for bad in ["", "1.36", "1.36.x", "latest", "1.36.3.1", "1.36.3/..", "../1.2.3"] {
            assert!(version(bad).is_err(), "{bad}");
        }
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
