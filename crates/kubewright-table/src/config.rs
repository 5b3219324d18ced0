//! Config maps, secrets, service accounts, quotas.

use serde_json::Value;

use super::age::age;
use super::column::{NAME, text as column};
use super::printer::Printer;
use super::value::{cells, count, quantity, text};

/// Prints config maps.
pub const CONFIG_MAPS: Printer = Printer::new(&[NAME, column("Data"), column("Age")], |map, now| {
    cells![text(map, "/metadata/name"), count(map, "/data") + count(map, "/binaryData"), age(map, now)]
});

/// Prints secrets.
pub const SECRETS: Printer =
    Printer::new(&[NAME, column("Type"), column("Data"), column("Age")], |secret, now| {
        cells![
            text(secret, "/metadata/name"),
            text(secret, "/type"),
            count(secret, "/data"),
            age(secret, now)
        ]
    });

/// Prints service accounts.
pub const SERVICE_ACCOUNTS: Printer = Printer::new(&[NAME, column("Age")], |account, now| {
    cells![text(account, "/metadata/name"), age(account, now)]
});

/// Prints resource quotas.
pub const RESOURCE_QUOTAS: Printer =
    Printer::new(&[NAME, column("Request"), column("Limit"), column("Age")], |quota, now| {
        let (limits, requests): (Vec<String>, Vec<String>) =
            hard(quota).partition(|resource| resource.starts_with("limits."));
        let shown = |resources: Vec<String>| {
            let parts: Vec<String> = resources.iter().map(|resource| used(quota, resource)).collect();
            parts.join(", ")
        };
        cells![text(quota, "/metadata/name"), shown(requests), shown(limits), age(quota, now)]
    });

/// The resources that a quota limits, by name.
fn hard(quota: &Value) -> impl Iterator<Item = String> {
    quota.pointer("/status/hard").and_then(Value::as_object).into_iter().flat_map(|hard| hard.keys().cloned())
}

/// How much of a resource is used, and how much may be.
fn used(quota: &Value, resource: &str) -> String {
    let key = resource.replace('~', "~0").replace('/', "~1");
    let of = |which: &str| quantity(quota, &format!("/status/{which}/{key}"));
    format!("{resource}: {}/{}", of("used"), of("hard"))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    #[test]
    fn all_data_of_a_config_map_counts() {
        let map = json!({"metadata": {"name": "a"}, "data": {"x": "1"}, "binaryData": {"y": "", "z": ""}});
        assert_eq!((CONFIG_MAPS.cells)(&map, Timestamp::UNIX_EPOCH), cells!["a", 3, "<unknown>"]);
    }

    #[test]
    fn limits_of_a_quota_stand_apart() {
        let quota = json!({
            "metadata": {"name": "a"},
            "status": {
                "hard": {"limits.cpu": "2", "pods": "4", "requests.cpu": "1", "count/jobs.batch": "9"},
                "used": {"limits.cpu": "500m", "pods": "1"},
            },
        });
        assert_eq!(
            (RESOURCE_QUOTAS.cells)(&quota, Timestamp::UNIX_EPOCH)[1..3],
            cells!["count/jobs.batch: 0/9, pods: 1/4, requests.cpu: 0/1", "limits.cpu: 500m/2"]
        );
    }
}
