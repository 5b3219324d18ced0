//! Field selectors: the language of the query parameter (`k8s.io/apimachinery/pkg/fields/selector.go`), and the
//! fields that each kind lets itself be selected by (`pkg/apis/*/v1/conversion.go`, `pkg/registry/*/*/strategy.go`).

use kubewright_meta::jsonpath::Path;
use kubewright_meta::selector::{Term, split_term, split_terms, unescape};
use kubewright_spec::Version;
use serde_json::Value;

/// Which fields an object must have. All terms must hold; without any, all objects are selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<Term>);

impl FieldSelector {
    /// Reads `a=b,c!=d` (`\` before a comma, an equals sign or a backslash takes it as it is) for a kind with these fields.
    /// They come out under the names of [`Selectable::names`].
    ///
    /// # Errors
    /// What is wrong with the text, or the field that the kind does not support, in Kubernetes' words.
    pub fn parse(text: &str, selectable: &Selectable) -> Result<Self, String> {
        let terms = terms(text)?;
        let known = |(field, equal, value): (&str, bool, String)| match selectable.meant(field) {
            Some(name) => Ok(Term { field: name.to_owned(), equal, value }),
            None => Err(selectable.refusal.of(field)),
        };
        terms.into_iter().map(known).collect::<Result<_, _>>().map(Self)
    }

    /// Looks at the grammar of a selector alone, whatever the fields.
    ///
    /// # Errors
    /// What is wrong with the text, in Kubernetes' words.
    pub fn check(text: &str) -> Result<(), String> {
        terms(text).map(drop)
    }

    /// Whether all objects are selected, whatever their fields.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an object's name and namespace are all that counts.
    #[must_use]
    pub fn is_of_names(&self) -> bool {
        self.0.iter().all(|term| matches!(term.field.as_str(), NAME | NAMESPACE))
    }

    /// Whether an object of that name and namespace may be selected, whatever its other fields.
    #[must_use]
    pub fn may_match(&self, namespace: &str, name: &str) -> bool {
        self.0.iter().all(|term| match term.field.as_str() {
            NAME => (name == term.value) == term.equal,
            NAMESPACE => (namespace == term.value) == term.equal,
            _ => true,
        })
    }

    /// Whether an object whose fields `field` tells is selected; a field that it does not have is empty.
    pub fn matches<'a>(&self, field: impl Fn(&str) -> &'a str) -> bool {
        self.0.iter().all(|term| (field(&term.field) == term.value) == term.equal)
    }

    /// The one value that a field must have, when the selector asks for one.
    #[must_use]
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.0.iter().find(|term| term.equal && term.field == field).map(|term| term.value.as_str())
    }
}

/// Field, whether it is to be equal, and value of each term.
fn terms(text: &str) -> Result<Vec<(&str, bool, String)>, String> {
    let mut terms = Vec::new();
    let mut parts = split_terms(text);
    parts.sort_unstable();
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        let (field, equal, value) = split_term(part)
            .ok_or_else(|| format!("invalid selector: '{text}'; can't understand '{part}'"))?;
        // A term of nothing asks for nothing.
        if !(field.is_empty() && value.is_empty()) {
            terms.push((field, equal, unescape(value)?));
        }
    }
    Ok(terms)
}

/// The name of an object as a field.
pub const NAME: &str = "metadata.name";
/// The namespace of an object as a field.
pub const NAMESPACE: &str = "metadata.namespace";

/// The fields that a kind lets its objects be selected by.
#[derive(Clone, Copy, Debug)]
pub struct Fields {
    /// Those beyond name and namespace.
    pub own: &'static [Field],
    /// How others are refused.
    pub refusal: Refusal,
}

/// A field that a built-in kind lets its objects be selected by.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What clients call it.
    pub called: Called,
    /// Where it stands in an object: the first path where there is some text counts. Mostly at its name.
    pub paths: Option<&'static [&'static str]>,
    /// The value where there is none.
    pub default: &'static str,
    /// From which version of Kubernetes on it can be asked for.
    pub since: Version,
}

/// What clients call a field.
#[derive(Clone, Copy, Debug)]
pub enum Called {
    /// By its name.
    Name,
    /// By its name or this one.
    Also(&'static str),
    /// By this name only.
    Only(&'static str),
    /// They cannot ask for it.
    Nothing,
}

/// How a field is refused that a kind does not let its objects be selected by.
#[derive(Clone, Copy, Debug, Default)]
pub enum Refusal {
    /// As that of a kind which has no fields of its own: it can always be asked for a namespace.
    #[default]
    OnlyNames,
    /// As that of a kind which has.
    Unsupported,
    /// As that of a kind which says its name.
    UnsupportedFor(&'static str),
    /// As that of a kind which says its group, version and kind.
    UnsupportedForType(&'static str),
}

impl Fields {
    /// Name and namespace alone.
    pub const NONE: Self = Self { own: &[], refusal: Refusal::OnlyNames };

    /// Name, namespace where there is one, and these.
    #[must_use]
    pub const fn of(own: &'static [Field]) -> Self {
        Self { own, refusal: Refusal::Unsupported }
    }
}

impl Field {
    /// A field that stands where its name says, and is called so.
    #[must_use]
    pub const fn of(name: &'static str) -> Self {
        Self { name, called: Called::Name, paths: None, default: "", since: Version::ALL[0] }
    }

    fn is_called(&self, name: &str) -> bool {
        match self.called {
            Called::Name => name == self.name,
            Called::Also(other) => name == self.name || name == other,
            Called::Only(other) => name == other,
            Called::Nothing => false,
        }
    }

    fn source(&self) -> Source {
        match self.paths {
            Some(paths) => Source::at(paths, self.default),
            None => Source::at(&[self.name], self.default),
        }
    }
}

impl Refusal {
    fn of(self, field: &str) -> String {
        match self {
            Self::OnlyNames => {
                format!("{field:?} is not a known field selector: only {NAME:?}, {NAMESPACE:?}")
            }
            Self::Unsupported => format!("field label not supported: {field}"),
            Self::UnsupportedFor(kind) => format!("field label {field:?} not supported for {kind}"),
            Self::UnsupportedForType(kind) => format!("field label not supported for {kind}: {field}"),
        }
    }
}

/// The fields of a kind, beyond name and namespace, that its objects can be selected by; ready to be read.
#[derive(Debug, Default)]
pub struct Selectable {
    names: Box<[String]>,
    sources: Box<[Source]>,
    /// Of a built-in kind: what they are called.
    fields: Box<[Field]>,
    has_namespace: bool,
    refusal: Refusal,
}

/// Where the value of a field comes from.
#[derive(Debug)]
struct Source {
    /// The first that holds some text counts.
    paths: Box<[Path]>,
    /// The value where none does.
    default: &'static str,
}

impl Selectable {
    /// Those of a built-in kind in a version of Kubernetes.
    #[must_use]
    pub fn built_in(fields: Fields, namespaced: bool, version: Version) -> Self {
        let known: Box<[Field]> = fields.own.iter().filter(|field| version >= field.since).copied().collect();
        Self {
            names: known.iter().map(|field| field.name.to_owned()).collect(),
            sources: known.iter().map(Field::source).collect(),
            fields: known,
            has_namespace: namespaced || matches!(fields.refusal, Refusal::OnlyNames),
            refusal: fields.refusal,
        }
    }

    /// Those of a version of a custom kind, by their JSON paths without the leading dot.
    #[must_use]
    pub fn custom(paths: impl IntoIterator<Item = String>, namespaced: bool) -> Self {
        let names: Box<[String]> = paths.into_iter().collect();
        Self {
            sources: names.iter().map(|path| Source::at(&[path], "")).collect(),
            names,
            fields: Box::default(),
            has_namespace: namespaced,
            refusal: Refusal::Unsupported,
        }
    }

    /// What they are called, as messages name them.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Their values in an object, in the order of the names; empty where the object does not have one.
    #[must_use]
    pub fn values(&self, object: &Value) -> Box<[Box<str>]> {
        self.sources.iter().map(|source| source.value(object).into()).collect()
    }

    /// The name of what a client calls a field; `None` of what it cannot ask for.
    fn meant<'a>(&self, field: &'a str) -> Option<&'a str> {
        if field == NAME || field == NAMESPACE && self.has_namespace {
            return Some(field);
        }
        let built_in = self.fields.iter().find(|one| one.is_called(field)).map(|one| one.name);
        built_in.or_else(|| {
            (self.fields.is_empty() && self.names.iter().any(|one| one == field)).then_some(field)
        })
    }
}

impl Source {
    fn at(paths: &[&str], default: &'static str) -> Self {
        let paths = paths.iter().filter_map(|path| Path::parse(&format!(".{path}")).ok()).collect();
        Self { paths, default }
    }

    fn value(&self, object: &Value) -> String {
        let mut texts = self.paths.iter().filter_map(|path| path.find(object).first().map(|one| shown(one)));
        texts.find(|text| !text.is_empty()).unwrap_or_else(|| self.default.to_owned())
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Kind, Kinds};

    fn kind(group: &str, version: &str, plural: &str) -> std::sync::Arc<Kind> {
        std::sync::Arc::clone(Kinds::built_in().get(group, version, plural).expect("a kind"))
    }

    fn selects(kind: &Kind, selector: &str, object: &Value) -> bool {
        let selector = FieldSelector::parse(selector, kind.selectable()).expect("a selector");
        let selectable = kind.selectable();
        let values = selectable.values(object);
        selector.matches(|field| match field {
            NAME => object["metadata"]["name"].as_str().unwrap_or_default(),
            NAMESPACE => object["metadata"]["namespace"].as_str().unwrap_or_default(),
            field => {
                let at = selectable.names().iter().position(|name| name == field).expect("a field");
                &values[at]
            }
        })
    }

    #[test]
    fn terms_compare_fields_of_the_object() {
        let pods = kind("", "v1", "pods");
        let pod =
            json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}});
        for (selector, expected) in [
            ("", true),
            ("metadata.name=a", true),
            ("metadata.name==a,status.phase!=Pending", true),
            ("spec.nodeName=", false),
            ("spec.host=n1", true),
            ("spec.hostNetwork=false", true),
            ("status.podIP=", true),
            (",metadata.name=a,", true),
        ] {
            assert_eq!(selects(&pods, selector, &pod), expected, "{selector}");
        }
    }

    #[test]
    fn the_exact_name_is_known() {
        let pods = kind("", "v1", "pods");
        let exact = |text: &str| {
            FieldSelector::parse(text, pods.selectable())
                .expect("a selector")
                .exact("metadata.name")
                .map(str::to_owned)
        };
        assert_eq!(exact("metadata.name=a,status.phase=x"), Some("a".to_owned()));
        assert_eq!(exact("metadata.name!=a"), None);
    }

    #[test]
    fn escapes_are_taken_as_they_are() {
        let secrets = kind("", "v1", "secrets");
        assert!(selects(&secrets, r"type=a\,b\=c\\", &json!({"type": r"a,b=c\"})));
        let refused =
            |text: &str| FieldSelector::parse(text, secrets.selectable()).expect_err("must be refused");
        assert_eq!(refused(r"type=a\x"), r"invalid field selector: invalid escape sequence: \x");
        assert_eq!(refused("type=a\\"), "invalid field selector: invalid escape sequence: \\");
        assert_eq!(refused("type=a=b"), "invalid field selector: unescaped character in value: 61");
    }

    #[test]
    fn mistakes_are_told_in_the_words_of_kubernetes() {
        let refused = |kind: &Kind, text: &str| {
            FieldSelector::parse(text, kind.selectable()).expect_err("must be refused")
        };
        let secrets = kind("", "v1", "secrets");
        assert_eq!(refused(&secrets, "data.x=y"), "field label not supported: data.x");
        assert_eq!(
            refused(&secrets, "metadata.name in (a,b)"),
            "invalid selector: 'metadata.name in (a,b)'; can't understand 'b)'"
        );
        assert_eq!(
            refused(&secrets, "metadata.name"),
            "invalid selector: 'metadata.name'; can't understand 'metadata.name'"
        );
        assert_eq!(
            refused(&kind("apps", "v1", "deployments"), "spec.replicas=1"),
            "\"spec.replicas\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        );
        assert_eq!(
            refused(&kind("batch", "v1", "jobs"), "spec.x=1"),
            "field label \"spec.x\" not supported for Job"
        );
        assert_eq!(
            refused(&kind("", "v1", "nodes"), "metadata.namespace=a"),
            "field label not supported: metadata.namespace"
        );
    }

    #[test]
    fn events_of_both_groups_are_selected_by_the_same_fields() {
        let (core, events) = (kind("", "v1", "events"), kind("events.k8s.io", "v1", "events"));
        let event = json!({"involvedObject": {"kind": "Pod"}, "reportingComponent": "kubelet"});
        assert!(selects(&core, "involvedObject.kind=Pod,source=kubelet", &event));
        assert!(selects(&events, "regarding.kind=Pod,reportingController=kubelet", &event));
        assert!(FieldSelector::parse("regarding.kind=Pod", core.selectable()).is_err());
        assert!(FieldSelector::parse("involvedObject.kind=Pod", events.selectable()).is_err());
        let same = json!({"regarding": {"kind": "Pod"}, "reportingController": "kubelet"});
        assert!(selects(&core, "involvedObject.kind=Pod,source=kubelet", &same));
    }
}
