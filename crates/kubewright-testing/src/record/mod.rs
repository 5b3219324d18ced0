//! Where the recording of a run that failed is kept.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use kubewright_cluster::admin::Admin;
use kubewright_cluster::recording::Recording;
use kubewright_recording::Header;

/// The folder of recordings, beside what cargo builds.
const FOLDER: &str = "kubewright-recordings";

/// Writes a recording down under the name of its test and its seed, with what happened besides writes; gives where.
///
/// # Errors
/// When the file system refuses.
pub(crate) fn keep(
    test: &str,
    seed: u64,
    notes: Vec<String>,
    recording: &Recording,
    admin: Option<&Admin>,
) -> io::Result<PathBuf> {
    let folder = folder(std::env::current_exe().ok().as_deref());
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{}-{seed}.kwrec", test.replace("::", ".")));
    let header = Header {
        program: concat!("kubewright-testing ", env!("CARGO_PKG_VERSION")).to_owned(),
        started: recording.writes().first().map(|write| write.time),
        seed: Some(seed),
        notes,
        ..Header::default()
    };
    let besides = admin.map(Admin::records).unwrap_or_default();
    recording.write_blocks(&header, besides, &mut File::create(&path)?)?;
    Ok(path)
}

/// Cargo's `target`, if the test is a program that cargo has put there; the folder of temporary files otherwise.
fn folder(program: Option<&Path>) -> PathBuf {
    let profile = program.into_iter().flat_map(Path::ancestors).find(|path| path.ends_with("deps"));
    let target = profile.and_then(|deps| deps.parent()?.parent()).map(Path::to_owned);
    target.unwrap_or_else(std::env::temp_dir).join(FOLDER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_beside_what_cargo_builds() {
        let program = Path::new("/home/me/shop/target/debug/deps/it-0a1b");
        assert_eq!(folder(Some(program)), Path::new("/home/me/shop/target/kubewright-recordings"));
        assert!(folder(Some(Path::new("/usr/bin/test"))).starts_with(std::env::temp_dir()));
    }
}
