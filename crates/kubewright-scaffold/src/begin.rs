//! What a project begins with.

use crate::{
    Error, Project,
    change::{File, Whose},
    manifest::{MANIFEST, dependency, said},
    project::PROJECT,
    registry,
    templates::{fill, rust},
};

/// All files of a project that has no kinds yet.
pub(crate) fn files(project: &Project) -> Result<Vec<File>, Error> {
    let name = project.project_name.as_str();
    let crate_name = project.project_name.crate_name();
    let license = project.license.spdx().map(|id| said("license", id) + "\n").unwrap_or_default();
    let sdk = dependency(&project.sdk);
    let places = [("name", name), ("crate", &crate_name), ("license", &license), ("sdk", &sdk)];
    let text = |template| fill(template, &places);
    let own = |path, template| File { whose: Whose::UsersOwn, ..File::new(path, text(template)) };
    Ok(vec![
        File::kept(PROJECT, project.text()?),
        File::new(MANIFEST, text(include_str!("../templates/project/manifest.toml"))),
        File::new("src/main.rs", rust(project, &text(include_str!("../templates/project/main.rs")))),
        File::new("src/lib.rs", rust(project, &text(include_str!("../templates/project/lib.rs")))),
        File::kept(registry::KINDS, registry::kinds(project)),
        File::kept(registry::TESTS, registry::tests(project)),
        own("README.md", include_str!("../templates/project/README.md")),
        own(".gitignore", include_str!("../templates/project/gitignore")),
        own("rustfmt.toml", include_str!("../templates/project/rustfmt.toml")),
        File { executable: true, ..own(".ci/run", include_str!("../templates/project/ci-run")) },
    ])
}
