//! What Kubernetes' OpenAPI documents say of types by extensions: how lists and maps merge, enumerations, defaults, and what a
//! type is served as. What the table says of a type is read when the type is first used.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use kubewright_spec::Version;
use serde_json::Value;

use super::node::{ListType, MapType, Merge};

const PREFIX: &str = "io.k8s.";

/// The lines of each type.
fn types(version: Version) -> &'static BTreeMap<&'static str, &'static str> {
    static ALL: [OnceLock<BTreeMap<&str, &str>>; Version::ALL.len()] =
        [const { OnceLock::new() }; Version::ALL.len()];
    ALL[version as usize].get_or_init(|| {
        let sections = version.tables().facts.split("\n[").skip(1);
        sections.filter_map(|part| part.split_once("]\n")).collect()
    })
}

/// What is known of one type.
#[derive(Default)]
pub(super) struct Facts {
    lines: &'static str,
}

/// What is known of one field.
#[derive(Default)]
pub(super) struct FieldFacts {
    pub merge: Option<Merge>,
    pub(super) enumeration: Box<[Value]>,
    pub default: Option<Value>,
}

impl Facts {
    /// What is known of the type of that name.
    pub(crate) fn of(version: Version, name: &str) -> Self {
        let lines = name.strip_prefix(PREFIX).and_then(|short| types(version).get(short));
        Self { lines: lines.copied().unwrap_or_default() }
    }

    /// Whether the type is merged as a whole.
    pub(crate) fn atomic(&self) -> bool {
        self.lines.lines().any(|line| line == "@atomic")
    }

    /// Group, version and kind that it is served as.
    pub(super) fn served_as(&self) -> Option<(&'static str, &'static str, &'static str)> {
        let kind = self.lines.lines().find_map(|line| line.strip_prefix("@kind "))?;
        let (group, rest) = kind.split_once('/')?;
        let (version, kind) = rest.split_once('/')?;
        Some((group, version, kind))
    }

    /// What is known of a field of the type.
    pub(crate) fn field(&self, name: &str) -> FieldFacts {
        let words = |line: &'static str| line.strip_prefix(name)?.strip_prefix(' ');
        let Some(words) = self.lines.lines().find_map(words) else { return FieldFacts::default() };
        let mut facts = FieldFacts::default();
        let mut merge = Merge::default();
        for (key, value) in words.split(' ').filter_map(|word| word.split_once('=')) {
            match key {
                "list" => merge.list = ListType::parse(value),
                "keys" => merge.keys = value.split(',').map(Into::into).collect(),
                "map" => merge.map = MapType::parse(value),
                "strategy" => merge.patch_strategy = Some(value.into()),
                "key" => merge.patch_key = Some(value.into()),
                "enum" => facts.enumeration = value.split('|').map(Value::from).collect(),
                "default" => facts.default = serde_json::from_str(value).ok(),
                _ => {}
            }
        }
        facts.merge = (merge != Merge::default()).then_some(merge);
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_knows_how_it_merges() {
        let ports = Facts::of(Version::DEFAULT, "io.k8s.api.core.v1.Container").field("ports").merge.unwrap();
        assert_eq!(ports.list, Some(ListType::Map));
        assert_eq!(&*ports.keys, ["containerPort".into(), "protocol".into()]);
        assert_eq!(ports.patch_key.as_deref(), Some("containerPort"));
        assert_eq!(ports.patch_strategy.as_deref(), Some("merge"));
    }

    #[test]
    fn a_field_knows_its_values_and_its_default() {
        let protocol = Facts::of(Version::DEFAULT, "io.k8s.api.core.v1.ContainerPort").field("protocol");
        assert_eq!(protocol.default, Some("TCP".into()));
        assert_eq!(&*protocol.enumeration, ["SCTP", "TCP", "UDP"].map(Value::from));
    }

    #[test]
    fn a_type_knows_what_it_is_served_as() {
        let deployment = Facts::of(Version::DEFAULT, "io.k8s.api.apps.v1.Deployment");
        assert_eq!(deployment.served_as(), Some(("apps", "v1", "Deployment")));
        assert!(Facts::of(Version::DEFAULT, "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector").atomic());
    }

    #[test]
    fn nothing_is_known_of_a_type_that_is_not_there() {
        let facts = Facts::of(Version::DEFAULT, "io.k8s.api.core.v1.Nothing");
        assert!(facts.served_as().is_none() && facts.field("x").merge.is_none());
    }

    #[test]
    fn every_line_of_the_table_is_understood() {
        let lines = Version::ALL.into_iter().flat_map(|version| version.tables().facts.lines());
        for line in lines.filter(|line| !line.starts_with('#')) {
            let words: Vec<_> = line.split(' ').collect();
            match words.as_slice() {
                [title] if title.starts_with("[a") && title.ends_with(']') => {}
                ["@atomic"] => {}
                ["@kind", kind] => assert_eq!(kind.matches('/').count(), 2, "{line}"),
                [_, facts @ ..] => assert!(
                    facts.iter().all(|fact| {
                        let (key, value) = fact.split_once('=').unwrap_or_default();
                        match key {
                            "list" => ListType::parse(value).is_some(),
                            "map" => MapType::parse(value).is_some(),
                            "default" => serde_json::from_str::<Value>(value).is_ok(),
                            "keys" | "strategy" | "key" | "enum" => !value.is_empty(),
                            _ => false,
                        }
                    }),
                    "{line}"
                ),
                [] => panic!("an empty line"),
            }
        }
    }
}
