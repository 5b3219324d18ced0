//! Whether a program can be all that is in an image.

use std::path::Path;

use anyhow::bail;
use kubewright_image::{Linkage, Program};

use super::target::Platform;

/// Checks that the program is for the platform and that an image with nothing else in it can run it.
///
/// # Errors
/// When it is for another, or needs libraries.
pub(super) fn is_static(path: &Path, triple: &str, platform: Platform) -> anyhow::Result<()> {
    let program = Program::read(path)?;
    if program.architecture != platform.architecture() {
        bail!("{} is built for {}, not for {platform}", path.display(), program.architecture);
    }
    match program.linkage {
        Linkage::Static => Ok(()),
        Linkage::Dynamic { interpreter, libraries } => {
            let needed: Vec<String> = interpreter.into_iter().chain(libraries).collect();
            bail!(
                "the program is not static: it needs {}, and its image would have nothing but the program. A dependency \
                 links what is not there as a static library for {triple}; choose one in Rust, or build that library \
                 statically",
                needed.join(", ")
            )
        }
    }
}
