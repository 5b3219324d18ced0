//! `docs/real-kubernetes.md`: a section of each task that was run beside a real Kubernetes.

use std::fs;

use anyhow::{Context, Result};

use crate::run::workspace;

const PAGE: &str = "docs/real-kubernetes.md";

/// Writes a section anew, and leaves the others as they are.
///
/// # Errors
/// When the page cannot be read or written.
pub(crate) fn write(title: &str, body: &str) -> Result<()> {
    let path = workspace().join(PAGE);
    let page = fs::read_to_string(&path).with_context(|| format!("cannot read {PAGE}"))?;
    fs::write(&path, replaced(&page, title, body)).with_context(|| format!("cannot write {PAGE}"))
}

/// A page whose section of this title has this body; it is the last where there was none.
fn replaced(page: &str, title: &str, body: &str) -> String {
    let heading = format!("## {title}\n");
    let (before, after) = match page.split_once(&heading) {
        None => (page, ""),
        Some((before, rest)) => (before, rest.find("\n## ").map_or("", |end| &rest[end + 1..])),
    };
    let parts = [before.trim_end(), &format!("{heading}\n{}", body.trim()), after.trim_end()];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_written_anew_and_the_others_are_left() {
        let page = replaced("# Page\n\nWords.\n", "A", "one\n");
        assert_eq!(page, "# Page\n\nWords.\n\n## A\n\none\n");
        let page = replaced(&page, "B", "two");
        assert_eq!(page, "# Page\n\nWords.\n\n## A\n\none\n\n## B\n\ntwo\n");
        let page = replaced(&page, "A", "three");
        assert_eq!(page, "# Page\n\nWords.\n\n## A\n\nthree\n\n## B\n\ntwo\n");
        assert_eq!(replaced(&page, "B", "two"), page);
    }
}
