//! The differences of what two operators made, object by object.

use std::collections::BTreeMap;

use super::stable::{Rendered, text};
use crate::printer::{BOLD, GREEN, RED, painted};

/// A unified diff of each object that differs; nothing where none does.
pub(super) fn compare(old: &[Rendered], new: &[Rendered], colours: bool) -> anyhow::Result<String> {
    let mut names: BTreeMap<&str, (String, String)> = BTreeMap::new();
    for one in old {
        names.entry(&one.title).or_default().0 = text(one)?;
    }
    for one in new {
        names.entry(&one.title).or_default().1 = text(one)?;
    }
    let mut all = String::new();
    for (title, (old, new)) in names.iter().filter(|(_, (old, new))| old != new) {
        let how = match (old.is_empty(), new.is_empty()) {
            (true, _) => "only the new one makes it",
            (_, true) => "only the old one makes it",
            _ => "differs",
        };
        all += &painted(&format!("{title}: {how}\n"), BOLD, colours);
        all += &patch(old, new, colours);
    }
    Ok(all)
}

/// The lines of a unified diff.
pub(crate) fn patch(old: &str, new: &str, colours: bool) -> String {
    let mut all = String::new();
    let patch = diffy::create_patch(old, new).to_string();
    // The first two lines name files, and there are none.
    for line in patch.lines().skip(2) {
        all += &match line.as_bytes().first() {
            Some(b'+') => painted(line, GREEN, colours),
            Some(b'-') => painted(line, RED, colours),
            _ => line.to_owned(),
        };
        all.push('\n');
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn one(title: &str, size: u64) -> Rendered {
        Rendered { title: title.to_owned(), object: json!({"kind": "Page", "size": size}) }
    }

    #[test]
    fn what_differs_is_told_object_by_object() {
        let (old, new) = ([one("a", 1), one("b", 1)], [one("a", 1), one("b", 2), one("c", 3)]);
        let text = compare(&old, &new, false).expect("a diff");
        let wanted =
            "b: differs\n@@ -1,2 +1,2 @@\n kind: Page\n-size: 1\n+size: 2\nc: only the new one makes it\n";
        assert!(text.starts_with(wanted), "{text}");
        assert_eq!(compare(&old, &old, false).expect("a diff"), "");
    }
}
