//! All that this version of the scaffold writes for a project that is there already.

use crate::{
    Error, Project, begin,
    change::File,
    kind,
    names::Version,
    project::{Origin, Resource},
    record::Record,
};

/// The files of a project and of its kinds. What was made of files of the user's is none of them: copies of versions,
/// conversions, and types that were imported.
pub(crate) fn files(project: &Project, record: &Record) -> Result<Vec<File>, Error> {
    let mut files = begin::files(project)?;
    for resource in &project.resources {
        files.extend(of_kind(project, resource, record));
    }
    Ok(files)
}

fn of_kind(project: &Project, resource: &Resource, record: &Record) -> Vec<File> {
    let is_template = |version: &&Version| record.text(&kind::types_path(resource, version)).is_some();
    let first = resource.versions.iter().rev().find(is_template).or(resource.versions.first());
    let first = first.unwrap_or(&resource.hub);
    let mut files = kind::files(project, &Resource { hub: first.clone(), ..resource.clone() });
    let controller = format!("{}/controller.rs", resource.folder());
    files.retain(|file| resource.origin != Origin::Imported || file.path == controller);
    if resource.webhooks.defaulting {
        files.push(kind::defaulting(project, resource));
    }
    if resource.webhooks.validation {
        files.push(kind::validation(project, resource));
    }
    for version in resource.versions.iter().skip(1) {
        files.push(kind::version_test(project, resource, version));
    }
    for version in resource.versions.iter().filter(is_template).filter(|version| *version != first) {
        files.extend(
            kind::template(project, &Resource { hub: version.clone(), ..resource.clone() })
                .into_iter()
                .flatten(),
        );
    }
    files
}
