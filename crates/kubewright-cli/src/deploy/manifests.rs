//! What the operator's own program says that it needs in a cluster.

use std::{ffi::OsString, path::Path};

use anyhow::Context;
use kube::api::DynamicObject;

use crate::project::{Program, Project};

/// Asks the program that is in the image if this machine can run it, else the one that cargo builds of the source.
///
/// # Errors
/// When it does not say, or what it says are no objects.
pub(super) fn of(
    project: &Project,
    program: Option<&Path>,
    image: Option<&str>,
    more: &[OsString],
) -> anyhow::Result<Vec<DynamicObject>> {
    let mut flags: Vec<OsString> =
        image.map(|image| OsString::from(format!("--image={image}"))).into_iter().collect();
    flags.extend(more.iter().cloned());
    let program = match program.map(|program| Program::new(program.to_owned())) {
        Some(program) if program.version().is_ok() => program,
        _ => project.build()?,
    };
    let objects = program.manifests(&flags)?;
    let objects = objects.into_iter().map(kubewright_objects::from_value).collect::<Result<_, _>>();
    objects.with_context(|| format!("what `{} manifests` prints are no objects", project.bin))
}
