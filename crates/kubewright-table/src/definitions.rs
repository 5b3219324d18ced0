//! CustomResourceDefinitions, from Kubernetes v1.37 on
//! (`k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/tableconvertor`).

use jiff::Timestamp;
use serde_json::Value;

use super::column::{NAME, boolean, date, text as column};
use super::printer::Printer;
use super::value::{cells, condition, flag, items, joined, text};

/// Prints definitions.
pub const DEFINITIONS: Printer = Printer::new(
    &[
        NAME,
        column("Scope"),
        column("Versions"),
        date("Created At"),
        column("Group").wide(),
        column("Kind").wide(),
        column("ShortNames").wide(),
        boolean("Established").wide(),
    ],
    |definition, _| {
        cells![
            text(definition, "/metadata/name"),
            text(definition, "/spec/scope"),
            versions(definition),
            created(definition),
            text(definition, "/spec/group"),
            text(definition, "/spec/names/kind"),
            joined(definition, "/spec/names/shortNames", ","),
            condition(definition, "Established"),
        ]
    },
);

/// The versions that are served, sorted as texts; the stored one says so.
fn versions(definition: &Value) -> String {
    let served = items(definition, "/spec/versions").iter().filter(|version| flag(version, "/served"));
    let label = |version: &Value| {
        let stored = if flag(version, "/storage") { "(storage)" } else { "" };
        format!("{}{stored}", text(version, "/name"))
    };
    let mut labels: Vec<String> = served.map(label).collect();
    labels.sort();
    labels.join(",")
}

/// A time that is not there is that of Go's zero.
fn created(definition: &Value) -> String {
    let time = text(definition, "/metadata/creationTimestamp");
    let read: Option<Timestamp> = time.parse().ok();
    read.map_or_else(
        || "0001-01-01T00:00:00Z".to_owned(),
        |time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_definition_tells_the_versions_that_it_serves_and_which_is_stored() {
        let version = |name: &str, served: bool, storage: bool| json!({"name": name, "served": served, "storage": storage});
        let definition = json!({
            "metadata": {"name": "gauges.example.com", "creationTimestamp": "2026-01-02T03:04:05Z"},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": {"kind": "Gauge", "shortNames": ["g", "gg"]},
                "versions": [version("v2", true, true), version("v1", true, false), version("v0", false, false)],
            },
            "status": {"conditions": [{"type": "Established", "status": "True"}]},
        });
        let cells = (DEFINITIONS.cells)(&definition, Timestamp::UNIX_EPOCH);
        let created = "2026-01-02T03:04:05Z";
        let expected = json!([
            "gauges.example.com",
            "Namespaced",
            "v1,v2(storage)",
            created,
            "example.com",
            "Gauge",
            "g,gg",
            true,
        ]);
        assert_eq!(Value::from(cells), expected);
    }
}
