//! A table of facts as text: lines, some of them in sections.

use std::collections::BTreeMap;

/// The lines of a table, each by what it is about: the section and the first word, or for lines in none the first word or two.
pub(super) fn facts(text: &str) -> BTreeMap<String, &str> {
    let mut section = "";
    let mut all = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(title) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = title;
            all.insert(format!("[{title}]"), "");
            continue;
        }
        let (key, rest) = key(section, line);
        // Several tags of one field.
        let mut name = key.clone();
        let mut count = 1;
        while all.contains_key(&name) {
            count += 1;
            name = format!("{key} #{count}");
        }
        all.insert(name, rest);
    }
    all
}

fn key<'a>(section: &str, line: &'a str) -> (String, &'a str) {
    let (first, rest) = line.split_once([' ', '|']).unwrap_or((line, ""));
    if first.parse::<u32>().is_ok()
        || matches!(first, "clusterroles" | "clusterrolebindings" | "roles" | "rolebindings")
    {
        // A field by its name, a role by its kind and name.
        let (second, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let place =
            if section.is_empty() { format!("{first} {second}") } else { format!("[{section}] {second}") };
        return (place, if section.is_empty() { rest } else { line });
    }
    if section.is_empty() { (first.to_owned(), rest) } else { (format!("[{section}] {first}"), rest) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_known_by_its_section_and_name() {
        let all = facts("# head\n[a/v1.T]\n1 name string!\n2 . U\n[b]\nx +k8s:one\nx +k8s:two\n");
        assert_eq!(
            all,
            [
                ("[a/v1.T]", ""),
                ("[a/v1.T] .", "2 . U"),
                ("[a/v1.T] name", "1 name string!"),
                ("[b]", ""),
                ("[b] x", "+k8s:one"),
                ("[b] x #2", "+k8s:two"),
            ]
            .map(|(key, value)| (key.to_owned(), value))
            .into()
        );
        assert_eq!(facts("roles default/view {}\nGate BETA on\n").len(), 2);
    }
}
