//! Rules: operations, groups, versions, resources, scope and names.

use kubewright_kinds::Kind;
use serde_json::Value;

use super::attributes::Attributes;

/// Which requests, by what they do and to which resource.
#[derive(Debug)]
pub(super) struct Rule {
    operations: Words,
    groups: Words,
    versions: Words,
    /// Resource and subresource; a subresource that is not named is the object itself.
    resources: Vec<(Word, Word)>,
    scope: Scope,
    /// All names where it is empty.
    names: Vec<String>,
}

#[derive(Debug)]
enum Word {
    Any,
    One(String),
}

#[derive(Debug)]
struct Words(Vec<Word>);

#[derive(Debug, Clone, Copy)]
enum Scope {
    Any,
    Namespaced,
    Cluster,
    /// A word that is no scope.
    Neither,
}

impl Rule {
    /// All rules of a list.
    pub(super) fn list(rules: &Value) -> Vec<Self> {
        rules.as_array().into_iter().flatten().map(Self::read).collect()
    }

    fn read(rule: &Value) -> Self {
        let resources = texts(&rule["resources"]).map(|text| {
            let (resource, sub) = text.split_once('/').unwrap_or((text, ""));
            (Word::read(resource), Word::read(sub))
        });
        Self {
            operations: Words::read(&rule["operations"]),
            groups: Words::read(&rule["apiGroups"]),
            versions: Words::read(&rule["apiVersions"]),
            resources: resources.collect(),
            scope: match rule["scope"].as_str() {
                None | Some("*") => Scope::Any,
                Some("Namespaced") => Scope::Namespaced,
                Some("Cluster") => Scope::Cluster,
                Some(_) => Scope::Neither,
            },
            names: texts(&rule["resourceNames"]).map(str::to_owned).collect(),
        }
    }

    /// Whether it is about a request, taken as one of `kind` (a version of the request's resource).
    pub(super) fn matches(&self, attributes: &Attributes<'_>, kind: &Kind) -> bool {
        let subresource = attributes.review.subresource;
        self.in_scope(attributes)
            && self.operations.holds(attributes.operation())
            && self.groups.holds(&kind.group)
            && self.versions.holds(&kind.version)
            && self.resources.iter().any(|(resource, sub)| resource.is(&kind.plural) && sub.is(subresource))
            && (self.names.is_empty() || self.names.iter().any(|name| name == attributes.name))
    }

    fn in_scope(&self, attributes: &Attributes<'_>) -> bool {
        let of_cluster = attributes.is_namespace() || attributes.namespace.is_empty();
        match self.scope {
            Scope::Any => true,
            Scope::Namespaced => !of_cluster,
            Scope::Cluster => of_cluster,
            Scope::Neither => false,
        }
    }
}

impl Word {
    fn read(text: &str) -> Self {
        if text == "*" { Self::Any } else { Self::One(text.to_owned()) }
    }

    fn is(&self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::One(word) => word == text,
        }
    }
}

impl Words {
    fn read(list: &Value) -> Self {
        Self(texts(list).map(Word::read).collect())
    }

    fn holds(&self, text: &str) -> bool {
        self.0.iter().any(|word| word.is(text))
    }
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}
