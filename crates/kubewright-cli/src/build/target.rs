//! Which target of Rust makes a static program for a platform.

use std::{
    fmt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    str::FromStr,
};

use anyhow::{Context, bail};

/// A platform in Go's words, and the targets for it: with musl, whose programs are static by themselves, and with glibc.
const TARGETS: [(&str, &str, &str); 7] = [
    ("386", "i686-unknown-linux-musl", "i686-unknown-linux-gnu"),
    ("amd64", "x86_64-unknown-linux-musl", "x86_64-unknown-linux-gnu"),
    ("arm", "armv7-unknown-linux-musleabihf", "armv7-unknown-linux-gnueabihf"),
    ("arm64", "aarch64-unknown-linux-musl", "aarch64-unknown-linux-gnu"),
    ("ppc64le", "powerpc64le-unknown-linux-musl", "powerpc64le-unknown-linux-gnu"),
    ("riscv64", "riscv64gc-unknown-linux-musl", "riscv64gc-unknown-linux-gnu"),
    ("s390x", "s390x-unknown-linux-musl", "s390x-unknown-linux-gnu"),
];

/// A platform that images can be built for: Linux on this architecture, in Go's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Platform(&'static str);

impl Platform {
    /// In Go's words, such as `amd64`.
    pub(crate) fn architecture(self) -> &'static str {
        self.0
    }
}

impl FromStr for Platform {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = TARGETS.iter().find(|(name, ..)| text.strip_prefix("linux/") == Some(name));
        known.map(|(name, ..)| Self(name)).ok_or_else(|| {
            let all: Vec<String> = TARGETS.iter().map(|(name, ..)| format!("linux/{name}")).collect();
            format!("it is one of {}", all.join(", "))
        })
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "linux/{}", self.0)
    }
}

/// The compiler that cargo uses.
pub(crate) struct Compiler {
    host: String,
    targets: PathBuf,
}

impl Compiler {
    /// Asks `rustc` in this folder, where a `rust-toolchain.toml` may choose it.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn here(folder: &Path) -> anyhow::Result<Self> {
        let ask = |arguments: &[&str]| {
            let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
            let output = rustc.args(arguments).current_dir(folder).stdin(Stdio::null()).output();
            let output = output.context("cannot start rustc; it comes with Rust: https://rustup.rs")?;
            if !output.status.success() {
                bail!(
                    "rustc {} failed: {}",
                    arguments.join(" "),
                    String::from_utf8_lossy(&output.stderr).trim()
                );
            }
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let version = ask(&["-vV"])?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        let targets = Path::new(ask(&["--print", "sysroot"])?.trim()).join("lib/rustlib");
        Ok(Self { host: host.context("rustc does not say which host it is for")?.to_owned(), targets })
    }

    /// The target that makes static programs for a platform, or for that of this machine.
    ///
    /// # Errors
    /// When none is installed.
    pub(crate) fn target(&self, platform: Option<Platform>) -> anyhow::Result<(&'static str, Platform)> {
        choose(platform, &self.host, |triple| self.targets.join(triple).join("lib").is_dir())
    }
}

fn choose(
    platform: Option<Platform>,
    host: &str,
    is_installed: impl Fn(&str) -> bool,
) -> anyhow::Result<(&'static str, Platform)> {
    let architecture = host.split('-').next().unwrap_or_default();
    let is_meant = |(name, musl, _): &&(&str, &str, &str)| match platform {
        Some(platform) => platform.0 == *name,
        // Macs say arm64 in places and aarch64 in others, never so in triples.
        None => musl.split('-').next() == Some(architecture),
    };
    let Some((name, musl, gnu)) = TARGETS.iter().find(is_meant) else {
        bail!("no images are built for machines such as {host}: name another with --platform linux/amd64");
    };
    let installed = [musl, gnu].into_iter().find(|triple| is_installed(triple));
    let Some(triple) = installed else {
        bail!(
            "no target of Rust for linux/{name} is installed: `rustup target add {musl}` installs one; \
             dependencies in C need a C compiler for it too"
        );
    };
    Ok((triple, Platform(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "x86_64-unknown-linux-gnu";

    fn chosen(platform: Option<&str>, host: &str, installed: &[&str]) -> Result<&'static str, String> {
        let platform = platform.map(|text| text.parse().expect("a platform"));
        let chosen = choose(platform, host, |triple| installed.contains(&triple));
        chosen.map(|(triple, _)| triple).map_err(|error| error.to_string())
    }

    #[test]
    fn musl_is_taken_where_it_is_installed_and_glibc_where_it_is_not() {
        assert_eq!(chosen(None, HOST, &[HOST]), Ok(HOST));
        let both = [HOST, "x86_64-unknown-linux-musl"];
        assert_eq!(chosen(None, HOST, &both), Ok("x86_64-unknown-linux-musl"));
        assert_eq!(chosen(Some("linux/amd64"), HOST, &[HOST]), Ok(HOST));
        let mac = chosen(None, "aarch64-apple-darwin", &["aarch64-unknown-linux-musl"]);
        assert_eq!(mac, Ok("aarch64-unknown-linux-musl"));
    }

    #[test]
    fn a_platform_without_a_target_is_refused_with_what_installs_one() {
        let refused = chosen(Some("linux/arm64"), HOST, &[HOST]).expect_err("not there");
        assert!(refused.contains("rustup target add aarch64-unknown-linux-musl"), "{refused}");
        assert!(chosen(None, "sparc64-unknown-linux-gnu", &[HOST]).is_err());
        let unknown = "windows/amd64".parse::<Platform>().expect_err("no Linux");
        assert!(unknown.contains("linux/amd64, linux/arm, linux/arm64"), "{unknown}");
    }
}
