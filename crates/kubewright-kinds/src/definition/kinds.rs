//! The kinds that a definition makes.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::Value;

use super::versions::selectable_path;
use super::{Versions, flag, list, part, text, texts, versions};
use crate::{Custom, CustomParts, Kind, ScalePaths, Scope, Subresource};
use kubewright_table::Columns;

/// The kinds that a valid definition makes: one for each served version, the most stable and newest first. None, when its
/// names are taken by others (the condition Established is False).
///
/// Names are the accepted ones where the status has them, else those that were asked for.
#[must_use]
pub fn kinds(definition: &Value, all: &Arc<Versions>) -> Vec<Kind> {
    let refused = list(&definition["status"], "conditions")
        .any(|condition| text(condition, "type") == "Established" && text(condition, "status") == "False");
    if refused {
        return Vec::new();
    }
    let (mut served, unserved): (Vec<&Value>, Vec<&Value>) =
        versions(definition).partition(|version| flag(version, "served"));
    served.sort_by(|a, b| stability(text(b, "name"), text(a, "name")));
    let none = Arc::default();
    let unserved = unserved.into_iter().filter_map(|version| kind(definition, version, all, &none)).collect();
    served.into_iter().filter_map(|version| kind(definition, version, all, &unserved)).collect()
}

fn kind(definition: &Value, version: &Value, all: &Arc<Versions>, unserved: &Arc<[Kind]>) -> Option<Kind> {
    let spec = &definition["spec"];
    let accepted = &definition["status"]["acceptedNames"];
    let names = if text(accepted, "plural").is_empty() { &spec["names"] } else { accepted };
    let columns: Vec<Value> = list(version, "additionalPrinterColumns").cloned().collect();
    Some(Kind::custom(CustomParts {
        group: text(spec, "group").to_owned(),
        version: text(version, "name").to_owned(),
        kind: text(names, "kind").to_owned(),
        list_kind: text(names, "listKind").to_owned(),
        plural: text(names, "plural").to_owned(),
        singular: text(names, "singular").to_owned(),
        short_names: texts(names, "shortNames"),
        categories: texts(names, "categories"),
        scope: if text(spec, "scope") == "Cluster" { Scope::Cluster } else { Scope::Namespaced },
        subresources: subresources(version),
        columns: Columns::custom(&columns),
        schema: all.schema(text(version, "name"))?.clone(),
        custom: Custom {
            definition: text(&definition["metadata"], "name").to_owned(),
            versions: Arc::clone(all),
            unserved: Arc::clone(unserved),
            deprecation: deprecation(definition, version),
            terminating: list(&definition["status"], "conditions")
                .any(|one| text(one, "type") == "Terminating" && text(one, "status") == "True"),
            selectable_fields: list(version, "selectableFields").map(selectable_path).collect(),
            ..Custom::default()
        },
    }))
}

fn subresources(version: &Value) -> Vec<Subresource> {
    let declared = &version["subresources"];
    let scale = part(declared, "scale").map(|scale| {
        Subresource::CustomScale(ScalePaths {
            spec_replicas: text(scale, "specReplicasPath").to_owned(),
            status_replicas: text(scale, "statusReplicasPath").to_owned(),
            label_selector: Some(text(scale, "labelSelectorPath").to_owned()).filter(|path| !path.is_empty()),
        })
    });
    let status = part(declared, "status").map(|_| Subresource::Status);
    scale.into_iter().chain(status).collect()
}

/// The warning of a deprecated version: its author's, or one that names the best version to use instead.
fn deprecation(definition: &Value, version: &Value) -> Option<String> {
    if !flag(version, "deprecated") {
        return None;
    }
    if let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) {
        return Some(warning.to_owned());
    }
    let spec = &definition["spec"];
    let (group, kind, own) = (text(spec, "group"), text(&spec["names"], "kind"), text(version, "name"));
    let better = versions(definition)
        .filter(|other| flag(other, "served") && !flag(other, "deprecated"))
        .map(|other| text(other, "name"))
        .filter(|other| stability(own, other).is_lt())
        .max_by(|a, b| stability(a, b));
    let instead = better.map(|better| format!("; use {group}/{better} {kind}")).unwrap_or_default();
    Some(format!("{group}/{own} {kind} is deprecated{instead}"))
}

/// Orders versions as Kubernetes does: v2 over v1, over v1beta2, over v1alpha1, over what is no such name
/// (`k8s.io/apimachinery/pkg/version`).
fn stability(a: &str, b: &str) -> Ordering {
    match (parsed(a), parsed(b)) {
        (None, None) => b.cmp(a),
        (a, b) => a.cmp(&b),
    }
}

/// Stability (2: general, 1: beta, 0: alpha), major and minor number.
fn parsed(version: &str) -> Option<(u8, u64, u64)> {
    let number = |text: &str| {
        let plain = text.bytes().all(|one| one.is_ascii_digit()) && !text.starts_with('0');
        text.parse::<u64>().ok().filter(|_| plain)
    };
    let rest = version.strip_prefix('v')?;
    for (word, rank) in [("alpha", 0), ("beta", 1)] {
        if let Some((major, minor)) = rest.split_once(word) {
            return Some((rank, number(major)?, number(minor)?));
        }
    }
    Some((2, number(rest)?, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_stability_and_then_by_age() {
        let mut versions = ["foo10", "v1alpha1", "v10", "v1beta2", "foo1", "v2", "v1beta10", "v1"];
        versions.sort_by(|a, b| stability(b, a));
        assert_eq!(versions, ["v10", "v2", "v1", "v1beta10", "v1beta2", "v1alpha1", "foo1", "foo10"]);
    }
}
