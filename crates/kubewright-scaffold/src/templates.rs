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

/// Versions of files in the order in which rustfmt has modules: by their letters, and numbers as numbers.
pub(crate) fn module_order(names: &mut [String]) {
    names.sort_by_cached_key(|name| chunks(name));
}

/// A name taken apart where digits begin and end.
fn chunks(name: &str) -> Vec<(String, u64)> {
    let mut chunks = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(letters);
        let digits = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let (number, tail) = tail.split_at(digits);
        chunks.push((word.to_owned(), number.parse().unwrap_or(0)));
        rest = tail;
    }
    chunks
}

/// The module between two versions: `conversion_v1beta1_v1`.
pub(crate) fn conversion_module(one: &Version, other: &Version) -> String {
    format!("conversion_{one}_{other}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_ordered_as_rustfmt_has_them() {
        let mut names = ["v10", "validation", "v2", "v1beta1", "controller", "v1"].map(str::to_owned);
        module_order(&mut names);
        assert_eq!(names, ["controller", "v1", "v1beta1", "v2", "v10", "validation"]);
    }
}
