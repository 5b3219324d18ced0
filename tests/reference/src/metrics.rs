//! Metrics in the text format of Prometheus, as a table.

use std::collections::BTreeMap;

use crate::{cell, code, table};

/// A family of metrics, as its text says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Family {
    /// Its name.
    pub name: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: String,
    /// What it counts.
    pub help: String,
    /// The labels of its series, in the order of the text; that of a histogram's buckets (`le`) is not among them.
    pub labels: Vec<String>,
}

/// The families of a text in the format of Prometheus, by name.
#[must_use]
pub fn families(text: &str) -> Vec<Family> {
    let mut found: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            let family = found.entry(name.to_owned()).or_default();
            (family.name, family.help) = (name.to_owned(), help.replace("\\\\", "\\"));
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            kind.clone_into(&mut found.entry(name.to_owned()).or_default().kind);
            name.clone_into(&mut current);
        } else if let Some(family) = found.get_mut(&current) {
            for label in labels(line) {
                if label != "le" && !family.labels.contains(&label) {
                    family.labels.push(label);
                }
            }
        }
    }
    found.into_values().collect()
}

/// The families as a table.
#[must_use]
pub fn metric_table(families: &[Family]) -> String {
    let row = |family: &Family| {
        let labels: Vec<String> = family.labels.iter().map(|label| code(label)).collect();
        vec![code(&family.name), family.kind.clone(), labels.join(", "), cell(&family.help)]
    };
    table(&["metric", "type", "labels", "help"], &families.iter().map(row).collect::<Vec<_>>())
}

/// The labels of a line such as `a{b="c"} 1`.
fn labels(line: &str) -> Vec<String> {
    let Some((_, rest)) = line.split_once('{') else { return Vec::new() };
    let Some((labels, _)) = rest.rsplit_once('}') else { return Vec::new() };
    labels.split("\",").filter_map(|label| Some(label.split_once('=')?.0.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_read_with_its_labels() {
        let text = "# HELP a_total It counts.\n# TYPE a_total counter\na_total{b=\"x\",c=\"y\"} 1\na_total{c=\"z\"} 2\n";
        let found = families(text);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].kind.as_str(), found[0].labels.join(" ")), ("counter", "b c".to_owned()));
        let shown = "| metric | type | labels | help |\n|---|---|---|---|\n| `a_total` | counter | `b`, `c` | It counts. |\n";
        assert_eq!(metric_table(&found), shown);
    }
}
