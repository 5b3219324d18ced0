//! `cargo xtask dist`: what a release offers for download: static programs in archives, images, a Debian package, a wheel, npm packages, a
//! bill of materials, where they come from, and their checksums. The same commit gives the same bytes.

mod bill;
mod debian;
mod packages;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::{Value, json};

use crate::run::{cargo, run, target, workspace};

/// The package and the program of each, which have the same name but for the command's.
const PROGRAMS: [(&str, &str); 2] =
    [("kubewright-cli", "kubewright"), ("kubewright-envtest", "kubewright-envtest")];

/// What `cargo xtask dist` is told.
#[derive(Args)]
pub(crate) struct Options {
    /// Which targets of Rust, each installed by rustup; one with musl, or a Linux one with glibc where that one is not installed
    #[arg(
        value_name = "TARGET",
        default_values = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"]
    )]
    targets: Vec<String>,
    /// Where everything is put [default: target/dist]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// What is being released.
struct Release {
    version: String,
    commit: String,
    /// The time of the commit, in seconds since 1970: that of every file.
    time: String,
    /// Where everything is put.
    output: PathBuf,
}

/// Makes all of it.
///
/// # Errors
/// When a target is not installed, or a step fails.
pub(crate) fn dist(options: &Options) -> Result<()> {
    let output = options.output.clone().unwrap_or_else(|| target().join("dist"));
    if output.exists() {
        fs::remove_dir_all(&output)?;
    }
    fs::create_dir_all(&output)?;
    let changed = says("git", &["status", "--porcelain"])?;
    ensure!(changed.is_empty(), "there is uncommitted work, which no commit tells of:\n{changed}");
    let release = Release {
        version: version()?,
        commit: says("git", &["rev-parse", "HEAD"])?,
        time: says("git", &["log", "-1", "--format=%ct"])?,
        output,
    };
    for triple in &options.targets {
        ensure!(
            is_installed(triple)?,
            "there is no {triple} here: `rustup target add {triple}` installs it; dependencies in C need a C compiler for it, too"
        );
    }
    packages::expect_tools()?;
    // What makes programs static and the same everywhere is the command's own `build`.
    run(&mut cargo(["build", "--package", "kubewright-cli"]))?;
    for triple in &options.targets {
        release.make(triple)?;
    }
    packages::of_all(&release)?;
    release.checksums()
}

impl Release {
    fn make(&self, triple: &str) -> Result<()> {
        let platform = platform(triple)?;
        for (package, program) in PROGRAMS {
            self.build(package, program, platform)?;
        }
        let name = format!("kubewright-{}-{triple}", self.version);
        let folder = self.output.join(&name);
        fs::create_dir_all(&folder)?;
        for (_, program) in PROGRAMS {
            let built = target().join(triple).join("release").join(program);
            fs::copy(&built, folder.join(program)).with_context(|| format!("{}", built.display()))?;
        }
        for file in ["LICENSE", "README.md", "CHANGELOG.md"] {
            fs::copy(workspace().join(file), folder.join(file))?;
        }
        self.texts(&folder)?;
        bill::write(
            triple,
            &PROGRAMS.map(|(package, _)| package),
            &self.output.join(format!("{name}.cdx.json")),
        )?;
        debian::write(self, &folder, platform)?;
        packages::of_platform(self, &folder.join("kubewright"))?;
        let archive = self.output.join(format!("{name}.tar.gz"));
        self.pack(&folder, &name, &archive)?;
        fs::remove_dir_all(&folder)?;
        self.provenance(triple, &name)
    }

    /// Builds a program and its image, for a platform in Go's words.
    fn build(&self, package: &str, program: &str, platform: &str) -> Result<()> {
        let tag = format!("{program}:{}", self.version);
        let image =
            self.output.join(format!("{program}-{}-{}-image.tar", self.version, platform.replace('/', "-")));
        let mut build = Command::new(target().join("debug/kubewright"));
        build.args(["build", "--skip-tests", "--package", package, "--bin", program, "--platform", platform]);
        build.args(["--tag", &tag, "--output"]).arg(image).args(["--", "--locked"]);
        run(self.reproducible(&mut build))
    }

    /// What a build has to know so that it gives the same bytes each time.
    fn reproducible<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.current_dir(workspace()).env("SOURCE_DATE_EPOCH", &self.time).env("CARGO_INCREMENTAL", "0");
        command.env("KUBEWRIGHT_COMMIT", &self.commit)
    }

    /// Completions and manual pages, as the command writes them.
    fn texts(&self, folder: &Path) -> Result<()> {
        let kubewright = target().join("debug/kubewright");
        let completions = folder.join("completions");
        fs::create_dir_all(&completions)?;
        for (shell, file) in
            [("bash", "kubewright.bash"), ("zsh", "_kubewright"), ("fish", "kubewright.fish")]
        {
            let said = Command::new(&kubewright).args(["completion", shell]).output()?;
            ensure!(said.status.success(), "kubewright completion {shell} failed");
            fs::write(completions.join(file), said.stdout)?;
        }
        run(Command::new(&kubewright).arg("man").arg(folder.join("man")))
    }

    /// An archive of a folder in which nothing tells when, where and by whom it was made.
    fn pack(&self, folder: &Path, name: &str, archive: &Path) -> Result<()> {
        let plain = archive.with_extension("");
        let mut tar = Command::new("tar");
        tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=u+rw,go+r,go-w"]);
        tar.arg(format!("--mtime=@{}", self.time)).arg("-cf").arg(&plain);
        run(tar.arg("-C").arg(folder.parent().context("a folder")?).arg(name))?;
        run(Command::new("gzip").args(["--best", "--no-name", "--force"]).arg(&plain))
    }

    /// Says of which commit and by which command the files of a target were made (in-toto, SLSA's provenance).
    fn provenance(&self, triple: &str, name: &str) -> Result<()> {
        let archive = format!("{name}.tar.gz");
        let statement = json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": archive, "digest": {"sha256": self.sha256(&archive)?}}],
            "predicateType": "https://slsa.dev/provenance/v1",
            "predicate": {
                "buildDefinition": {
                    "buildType": "https://github.com/kubewright/kubewright/blob/main/xtask/src/dist/mod.rs",
                    "externalParameters": {"command": format!("cargo xtask dist {triple}")},
                    "internalParameters": {
                        "rustc": says("rustc", &["--version"])?,
                        "SOURCE_DATE_EPOCH": self.time,
                    },
                    "resolvedDependencies": [{
                        "uri": "git+https://github.com/kubewright/kubewright",
                        "digest": {"gitCommit": self.commit},
                    }],
                },
                "runDetails": {"builder": {"id": "https://github.com/kubewright/kubewright"}},
            },
        });
        let text = serde_json::to_string_pretty(&statement)? + "\n";
        Ok(fs::write(self.output.join(format!("{name}.provenance.json")), text)?)
    }

    fn sha256(&self, file: &str) -> Result<String> {
        let said =
            Command::new("sha256sum").arg(file).current_dir(&self.output).output().context("sha256sum")?;
        ensure!(said.status.success(), "sha256sum {file} failed");
        let said = String::from_utf8(said.stdout)?;
        Ok(said.split_whitespace().next().context("sha256sum says nothing")?.to_owned())
    }

    fn checksums(&self) -> Result<()> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.output)? {
            names.push(
                entry?
                    .file_name()
                    .into_string()
                    .map_err(|name| anyhow::anyhow!("{} is no text", name.display()))?,
            );
        }
        names.sort();
        let mut lines = String::new();
        for name in &names {
            lines += &format!("{}  {name}\n", self.sha256(name)?);
            let size = fs::metadata(self.output.join(name))?.len();
            eprintln!("{:>9.1} MB  {name}", size as f64 / 1e6);
        }
        Ok(fs::write(self.output.join("SHA256SUMS"), lines)?)
    }
}

/// The platform of a target, in Go's words.
fn platform(triple: &str) -> Result<&'static str> {
    match triple.split_once('-') {
        Some(("x86_64", rest)) if rest.starts_with("unknown-linux-") => Ok("linux/amd64"),
        Some(("aarch64", rest)) if rest.starts_with("unknown-linux-") => Ok("linux/arm64"),
        _ => bail!("{triple}: programs are made for Linux on x86_64 and aarch64"),
    }
}

fn is_installed(triple: &str) -> Result<bool> {
    let sysroot = says("rustc", &["--print", "sysroot"])?;
    Ok(Path::new(&sysroot).join("lib/rustlib").join(triple).join("lib").is_dir())
}

/// The version of all crates.
fn version() -> Result<String> {
    let metadata = cargo(["metadata", "--no-deps", "--offline", "--format-version", "1"]).output()?;
    let metadata: Value = serde_json::from_slice(&metadata.stdout)?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let ours =
        packages.iter().find(|package| package["name"] == "kubewright-cli").context("no kubewright-cli")?;
    Ok(ours["version"].as_str().context("no version")?.to_owned())
}

/// What a program prints, run in the workspace.
fn says(program: &str, arguments: &[&str]) -> Result<String> {
    let said = Command::new(program).args(arguments).current_dir(workspace()).output();
    let said = said.with_context(|| format!("cannot run {program}"))?;
    ensure!(
        said.status.success(),
        "{program} {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&said.stderr)
    );
    Ok(String::from_utf8(said.stdout)?.trim().to_owned())
}
