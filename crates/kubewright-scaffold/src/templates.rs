//! Texts with places to fill in: what is `@so@` in `templates/`.

use crate::{Project, names::Version};

/// A text with its places filled in.
pub(crate) fn fill(template: &str, places: &[(&str, &str)]) -> String {
    let mut text = template.to_owned();
    for (name, value) in places {
        text = text.replace(&format!("@{name}@"), value);
    }
    text
}

/// A file of Rust with the head that the project's licence and owner ask for.
pub(crate) fn rust(project: &Project, text: &str) -> String {
    let mut head = String::new();
    if let Some(owner) = &project.owner {
        head += &format!("// Copyright {} {owner}.\n", project.year);
    }
    if let Some(licence) = project.license.spdx() {
        head += &format!("// SPDX-License-Identifier: {licence}\n");
    }
    if head.is_empty() { text.to_owned() } else { format!("{head}\n{text}") }
}

/// The module between two versions: `conversion_v1beta1_v1`.
pub(crate) fn conversion_module(one: &Version, other: &Version) -> String {
    format!("conversion_{one}_{other}")
}
