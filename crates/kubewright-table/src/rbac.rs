//! Bindings of roles.

use serde_json::Value;

use super::age::age;
use super::column::{NAME, text as column};
use super::printer::Printer;
use super::value::{cells, items, text};

/// Prints role bindings and cluster role bindings.
pub const BINDINGS: Printer = Printer::new(
    &[
        NAME,
        column("Role"),
        column("Age"),
        column("Users").wide(),
        column("Groups").wide(),
        column("ServiceAccounts").wide(),
    ],
    |binding, now| {
        cells![
            text(binding, "/metadata/name"),
            format!("{}/{}", text(binding, "/roleRef/kind"), text(binding, "/roleRef/name")),
            age(binding, now),
            subjects(binding, "User"),
            subjects(binding, "Group"),
            subjects(binding, "ServiceAccount"),
        ]
    },
);

fn subjects(binding: &Value, kind: &str) -> String {
    let of_kind = items(binding, "/subjects").iter().filter(|subject| text(subject, "/kind") == kind);
    let names: Vec<String> = of_kind
        .map(|subject| match (kind, text(subject, "/name")) {
            ("ServiceAccount", name) => format!("{}/{name}", text(subject, "/namespace")),
            (_, name) => name.to_owned(),
        })
        .collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    #[test]
    fn subjects_are_told_by_their_kind() {
        let binding = json!({
            "metadata": {"name": "b"},
            "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [
                {"kind": "User", "name": "u"},
                {"kind": "User", "name": "v"},
                {"kind": "Group", "name": "g"},
                {"kind": "ServiceAccount", "namespace": "n", "name": "s"},
            ],
        });
        assert_eq!(
            (BINDINGS.cells)(&binding, Timestamp::UNIX_EPOCH),
            cells!["b", "Role/r", "<unknown>", "u, v", "g", "n/s"]
        );
    }
}
