//! `kubewright init`, `create`, `import` and `upgrade`.

mod terminal;

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use jiff::{Timestamp, tz::TimeZone};
use kubewright_scaffold::{Command, Environment, Folder, Source};
use kubewright_world::World;

use crate::complain;

/// Whether this program is one that was released, so that cargo finds the SDK of its version on crates.io: it was compiled from its
/// package, whose folder ends in the version, or as what builds releases compiles it.
pub(crate) const RELEASED: bool =
    ends_with(env!("CARGO_MANIFEST_DIR"), concat!("-", env!("CARGO_PKG_VERSION")))
        || option_env!("KUBEWRIGHT_COMMIT").is_some();

const fn ends_with(text: &str, end: &str) -> bool {
    match text.as_bytes().split_at_checked(text.len().wrapping_sub(end.len())) {
        Some((_, last)) => is_same(last, end.as_bytes()),
        None => false,
    }
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    match (one, other) {
        ([], []) => true,
        ([a, one @ ..], [b, other @ ..]) => *a == *b && is_same(one, other),
        _ => false,
    }
}

/// Does it in the folder of the process; 2 when the command line has to say something else, 1 when it cannot be done.
pub(crate) fn run(command: &Command) -> ExitCode {
    let around = Environment {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        year: year(),
        sdk: where_the_sdk_is(),
        // As cargo finds it.
        rustfmt: Some(env::var_os("RUSTFMT").map_or_else(|| "rustfmt".into(), PathBuf::from)),
    };
    match command.run(&Folder::new("."), &around, &mut terminal::Terminal, &mut io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error.to_string());
            ExitCode::from(error.exit_code())
        }
    }
}

/// The year, or that of `SOURCE_DATE_EPOCH` (<https://reproducible-builds.org/specs/source-date-epoch/>).
fn year() -> i16 {
    let said = env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse().ok());
    let then = said.and_then(|seconds| Timestamp::from_second(seconds).ok());
    then.unwrap_or_else(|| World::real().clock.now()).to_zoned(TimeZone::UTC).year()
}

/// Where a new project finds the SDK. The checkout is looked for above this program, where it is run: what was the folder of
/// its build says nothing about this machine.
fn where_the_sdk_is() -> Source {
    if RELEASED {
        return Source::Registry;
    }
    let program = env::current_exe().and_then(|path| path.canonicalize());
    let checkout =
        program.ok().and_then(|path| path.ancestors().find(|folder| is_checkout(folder)).map(PathBuf::from));
    checkout.map_or(Source::Unknown, Source::Checkout)
}

fn is_checkout(folder: &Path) -> bool {
    let manifest = fs::read_to_string(folder.join("crates/kubewright/Cargo.toml"));
    manifest.is_ok_and(|text| text.lines().any(|line| line == "name = \"kubewright\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_of_a_package_is_released_and_one_of_a_checkout_is_not() {
        assert!(ends_with("registry/src/index/kubewright-cli-0.1.0", "-0.1.0"));
        for folder in ["kubewright/crates/kubewright-cli", "", "0.1.0", "kubewright-cli-0.1.01"] {
            assert!(!ends_with(folder, "-0.1.0"), "{folder}");
        }
        let is_here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kubewright").is_dir();
        assert_eq!(RELEASED, !is_here || option_env!("KUBEWRIGHT_COMMIT").is_some());
    }
}
