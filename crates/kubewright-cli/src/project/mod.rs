//! The project that a command works on: a Cargo package with a program, which for most commands is an operator.

mod program;
mod select;

use std::{
    env, fmt,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, bail};
use clap::Args;
use kubewright_layout::About;
use serde::Deserialize;
use serde_json::Value;

pub(crate) use self::program::Program;

/// Which project, and which of its programs.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Selection {
    /// The project's Cargo.toml; by default the nearest, from this folder upwards
    #[arg(long, value_name = "PATH")]
    pub(crate) manifest_path: Option<PathBuf>,

    /// The package, where a workspace has several
    #[arg(long, short, value_name = "NAME")]
    pub(crate) package: Option<String>,

    /// The program, where a package has several
    #[arg(long, value_name = "NAME")]
    pub(crate) bin: Option<String>,
}

/// Which project, and how it is built.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ProjectArgs {
    #[command(flatten)]
    pub(crate) selection: Selection,

    /// Build with optimisations
    #[arg(long)]
    pub(crate) release: bool,
}

/// What was asked for makes no sense here: the command ends with 2.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// What a package has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needed {
    /// One with a program.
    Program,
    /// One with a program that depends on the SDK.
    Operator,
}

/// A Cargo package and its program, which is an operator where one is needed.
#[derive(Debug)]
pub(crate) struct Project {
    /// The folder of its Cargo.toml.
    pub(crate) root: PathBuf,
    /// The folder of Cargo.lock.
    pub(crate) workspace: PathBuf,
    /// Where cargo builds.
    pub(crate) target: PathBuf,
    /// The name of the package.
    pub(crate) package: String,
    /// Its version.
    pub(crate) version: String,
    /// Where it finds the SDK.
    pub(crate) sdk: Option<Dependency>,
    /// The oldest Rust that it wants.
    pub(crate) rust_version: Option<String>,
    /// What Cargo.toml says of it.
    pub(crate) about: About,
    /// `[package.metadata.kubewright.generate]`.
    pub(crate) settings: Settings,
    /// The name of the program.
    pub(crate) bin: String,
    release: bool,
}

/// A package that another depends on, as its Cargo.toml says.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Dependency {
    /// The versions that will do.
    pub(crate) req: String,
    /// The registry or repository that it comes from; nothing for a folder.
    pub(crate) source: Option<String>,
    /// The folder.
    pub(crate) path: Option<PathBuf>,
}

/// What is generated unless flags say otherwise: `[package.metadata.kubewright.generate]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Settings {
    pub(crate) format: Vec<String>,
    pub(crate) output: Option<PathBuf>,
    pub(crate) image: Option<String>,
    pub(crate) install_namespace: Option<String>,
    pub(crate) replicas: Option<u16>,
    pub(crate) namespaces: Vec<String>,
    /// Groups of other operators' kinds, which no check can know.
    pub(crate) external_groups: Vec<String>,
}

impl Project {
    /// Finds an operator's project, and the program in it.
    ///
    /// # Errors
    /// As [`Self::select`].
    pub(crate) fn find(args: &ProjectArgs) -> anyhow::Result<Self> {
        let project = Self::select(&args.selection, Needed::Operator)?;
        Ok(Self { release: args.release, ..project })
    }

    /// Finds a package, and the program in it.
    ///
    /// # Errors
    /// [`Usage`] when there is none, or it is not clear which; when cargo cannot be run.
    pub(crate) fn select(selection: &Selection, needed: Needed) -> anyhow::Result<Self> {
        let here = env::current_dir().context("this folder is gone")?;
        let output = metadata(selection.manifest_path.as_deref())
            .arg("--no-deps")
            .output()
            .map_err(|error| no_cargo(&error))?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            if stderr.contains("could not find `Cargo.toml`") {
                return Err(Usage(format!(
                    "there is no Cargo.toml in {} or above: go to the folder of an operator's project, make one with \
                     `kubewright init`, or name one with --manifest-path",
                    here.display()
                ))
                .into());
            }
            let reason = stderr.trim().trim_start_matches("error: ");
            return Err(Usage(format!("cargo cannot read the project: {reason}")).into());
        }
        let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
        let near = match &selection.manifest_path {
            Some(path) => here.join(path).parent().map_or(here, Path::to_owned),
            None => here,
        };
        let near = near.canonicalize().unwrap_or(near);
        let package = select::package(&metadata, selection.package.as_deref(), &near, needed)?;
        let bin = select::bin(package, selection.bin.as_deref())?;
        Self::of(&metadata, package, bin)
    }

    fn of(metadata: &Value, package: &Value, bin: String) -> anyhow::Result<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let root = PathBuf::from(text(&package["manifest_path"]));
        let root = root.parent().map(Path::to_owned).unwrap_or_default();
        let table = &package["metadata"]["kubewright"];
        let of_table = |key: &str| match &table[key] {
            Value::Null => Value::Object(serde_json::Map::new()),
            value => value.clone(),
        };
        let mut about: About = kubewright_objects::from_value(package).context("cargo metadata")?;
        about.olm = kubewright_objects::from_value(of_table("olm"))
            .map_err(|error| Usage(format!("[package.metadata.kubewright.olm] in Cargo.toml: {error}")))?;
        if let Some(icon) = &about.olm.icon {
            about.olm.icon_data = std::fs::read(root.join(icon))
                .with_context(|| format!("the icon {icon} (package.metadata.kubewright.olm.icon)"))?;
        }
        let settings = kubewright_objects::from_value(of_table("generate")).map_err(|error| {
            Usage(format!("[package.metadata.kubewright.generate] in Cargo.toml: {error}"))
        })?;
        Ok(Self {
            root,
            workspace: PathBuf::from(text(&metadata["workspace_root"])),
            target: PathBuf::from(text(&metadata["target_directory"])),
            package: text(&package["name"]),
            version: text(&package["version"]),
            sdk: dependency(package, "kubewright").or_else(|| dependency(package, "kubewright-runtime")),
            rust_version: package["rust_version"].as_str().map(str::to_owned),
            about,
            settings,
            bin,
            release: false,
        })
    }

    /// The folder of what is kept about the program.
    pub(crate) fn state(&self) -> PathBuf {
        self.target.join("kubewright").join(&self.bin)
    }

    /// The packages of this machine that it is built of, by name and folder.
    ///
    /// # Errors
    /// When cargo cannot tell.
    pub(crate) fn local_packages(&self) -> anyhow::Result<Vec<(String, PathBuf)>> {
        let output =
            metadata(Some(&self.root.join("Cargo.toml"))).output().map_err(|error| no_cargo(&error))?;
        if !output.status.success() {
            bail!("cargo cannot read the project: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let local = packages.filter(|package| package["source"].is_null());
        Ok(local
            .filter_map(|package| {
                let folder = Path::new(package["manifest_path"].as_str()?).parent()?;
                Some((package["name"].as_str()?.to_owned(), folder.to_owned()))
            })
            .collect())
    }

    /// Builds its program. What cargo says goes to standard error.
    ///
    /// # Errors
    /// When it does not compile.
    pub(crate) fn build(&self) -> anyhow::Result<Program> {
        let mut command = self.cargo("build");
        command.args(["--bin", &self.bin, "--message-format=json-render-diagnostics"]);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(|error| no_cargo(&error))?;
        let mut program = None;
        for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
            let message: Value = serde_json::from_str(&line?).unwrap_or_default();
            let is_ours = message["target"]["name"] == *self.bin
                && message["target"]["kind"]
                    .as_array()
                    .is_some_and(|kinds| kinds.iter().any(|kind| kind == "bin"));
            if let Some(path) = message["executable"].as_str().filter(|_| is_ours) {
                program = Some(PathBuf::from(path));
            }
        }
        match (child.wait()?.success(), program) {
            (true, Some(path)) => Ok(Program::new(path)),
            (true, None) => bail!("cargo has built {}, but does not say where it is", self.bin),
            (false, _) => bail!("{} does not compile: see what cargo says above", self.bin),
        }
    }

    /// A command of cargo for this package.
    pub(crate) fn cargo(&self, subcommand: &str) -> Command {
        let mut command = cargo();
        command.arg(subcommand).arg("--manifest-path").arg(self.root.join("Cargo.toml"));
        command.args(["--package", &self.package]);
        if self.release {
            command.arg("--release");
        }
        command
    }
}

/// `cargo metadata`, of this Cargo.toml or the nearest.
fn metadata(manifest_path: Option<&Path>) -> Command {
    let mut command = cargo();
    command.args(["metadata", "--format-version=1"]).stdin(Stdio::null());
    if let Some(path) = manifest_path {
        command.arg("--manifest-path").arg(path);
    }
    command
}

/// Cargo, as whoever called us has it.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // What a cargo tells the program that it runs is not for the one that is run here: scripts that build dependencies look at
    // it, and would build them anew.
    for (variable, _) in env::vars_os() {
        let name = variable.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(variable);
        }
    }
    command
}

/// What to say when cargo cannot be run.
pub(crate) fn no_cargo(error: &io::Error) -> anyhow::Error {
    anyhow::anyhow!("cargo cannot be run ({error}): install Rust, see https://rustup.rs")
}
/// The dependency of a package on another.
fn dependency(package: &Value, name: &str) -> Option<Dependency> {
    let of_it = package["dependencies"].as_array()?.iter().find(|other| other["name"] == name)?;
    Dependency::deserialize(of_it).ok()
}
