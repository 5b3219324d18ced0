//! The types of Kubernetes as JSON schemas, with the words that they are told by: what its OpenAPI documents say.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use kubewright_spec::Version;
use serde_json::{Value, json};

/// The line of each type.
fn lines(version: Version) -> &'static BTreeMap<&'static str, &'static str> {
    static ALL: [OnceLock<BTreeMap<&str, &str>>; Version::ALL.len()] =
        [const { OnceLock::new() }; Version::ALL.len()];
    ALL[version as usize].get_or_init(|| {
        let lines = version.tables().definitions.lines().filter(|line| !line.starts_with('#'));
        lines.filter_map(|line| line.split_once(' ')).collect()
    })
}

/// The schema of the type of that name, as OpenAPI v3 has it.
pub(super) fn of(version: Version, name: &str) -> Option<Value> {
    let mut schema: Value = serde_json::from_str(lines(version).get(name)?).ok()?;
    // The table is of OpenAPI v2, which has one type for each value.
    let either = match name.rsplit('.').next() {
        Some("IntOrString") => json!([{"type": "integer"}, {"type": "string"}]),
        Some("Quantity") => json!([{"type": "string"}, {"type": "number"}]),
        _ => return Some(schema),
    };
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("type");
        schema.insert("oneOf".into(), either);
    }
    Some(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_referred_to_is_there() {
        for (version, (name, text)) in
            Version::ALL.into_iter().flat_map(|one| lines(one).iter().map(move |line| (one, line)))
        {
            for reference in text.split(r#""$ref":""#).skip(1) {
                let target =
                    reference.split('"').next().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
                assert!(lines(version).contains_key(target), "{version}: {name} refers to {target}");
            }
        }
    }

    #[test]
    fn a_value_of_two_types_says_both() {
        let quantity = of(Version::DEFAULT, "io.k8s.apimachinery.pkg.api.resource.Quantity").unwrap();
        assert_eq!(quantity["oneOf"], json!([{"type": "string"}, {"type": "number"}]));
        assert!(quantity["type"].is_null() && quantity["description"].is_string());
    }
}
