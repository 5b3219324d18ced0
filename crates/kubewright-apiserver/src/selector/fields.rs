//! Field selectors: the language of the query parameter (`k8s.io/apimachinery/pkg/fields/selector.go`), and the
//! fields that each kind lets itself be selected by (`pkg/apis/*/v1/conversion.go`, `pkg/registry/*/*/strategy.go`).

use kubewright_meta::jsonpath::Path;
use kubewright_meta::selector::{Term, split_term, split_terms, unescape};
use serde_json::Value;

use crate::kinds::{Kind, Scope};

/// Which fields an object must have. All terms must hold; without any, all objects are selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<Term>);

impl FieldSelector {
    /// Reads `a=b,c!=d` (`\` before a comma, an equals sign or a backslash takes it as it is) for a kind. Fields come
    /// out under the names of [`supported_fields`].
    ///
    /// # Errors
    /// What is wrong with the text, or the field that the kind does not support, in Kubernetes' words.
    pub fn parse(text: &str, kind: &Kind) -> Result<Self, String> {
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
        let supported = supported_fields(kind);
        let known = |(field, equal, value): (&str, bool, String)| {
            let name = canonical(kind, field);
            match supported.iter().any(|one| one == name) {
                true => Ok(Term { field: name.to_owned(), equal, value }),
                false => Err(unsupported(kind, field)),
            }
        };
        terms.into_iter().map(known).collect::<Result<_, _>>().map(Self)
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

/// The name of an object as a field.
pub const NAME: &str = "metadata.name";
/// The namespace of an object as a field.
pub const NAMESPACE: &str = "metadata.namespace";

/// The fields that a built-in kind supports beyond name and namespace.
fn built_in_fields(group: &str, kind: &str) -> Option<&'static [&'static str]> {
    Some(match (group, kind) {
        ("", "Pod") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        ("", "Node") => &["spec.unschedulable"],
        ("", "ReplicationController") => &["status.replicas"],
        ("", "Namespace") => &["status.phase"],
        ("", "Secret") => &["type"],
        ("", "Service") => &["spec.clusterIP", "spec.type"],
        ("", "Event") | ("events.k8s.io", "Event") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("batch", "Job") => &["status.successful"],
        ("certificates.k8s.io", "CertificateSigningRequest") => &["spec.signerName"],
        _ => return None,
    })
}

/// The fields that a kind's objects can be selected by.
#[must_use]
pub fn supported_fields(kind: &Kind) -> Vec<String> {
    let own = built_in_fields(&kind.group, &kind.kind);
    let generic = kind.custom.is_none() && own.is_none();
    let namespace = (kind.scope == Scope::Namespaced || generic).then_some(NAMESPACE);
    let mut fields: Vec<String> = std::iter::once(NAME)
        .chain(namespace)
        .chain(own.into_iter().flatten().copied())
        .map(Into::into)
        .collect();
    fields.extend(kind.custom.iter().flat_map(|custom| custom.selectable_fields.iter().cloned()));
    fields
}

/// The name in [`supported_fields`] of what a client calls a field; empty where the client may not call it so.
fn canonical<'a>(kind: &Kind, field: &'a str) -> &'a str {
    match (kind.group.as_str(), kind.kind.as_str(), field) {
        ("", "Pod", "spec.host") => "spec.nodeName",
        ("events.k8s.io", "Event", field) => match field {
            "regarding.kind" => "involvedObject.kind",
            "regarding.namespace" => "involvedObject.namespace",
            "regarding.name" => "involvedObject.name",
            "regarding.uid" => "involvedObject.uid",
            "regarding.apiVersion" => "involvedObject.apiVersion",
            "regarding.resourceVersion" => "involvedObject.resourceVersion",
            "regarding.fieldPath" => "involvedObject.fieldPath",
            "reportingController" => "reportingComponent",
            "reason" | "type" | NAME | NAMESPACE => field,
            _ => "",
        },
        _ => field,
    }
}

fn unsupported(kind: &Kind, field: &str) -> String {
    if kind.group == "batch" && kind.kind == "Job" {
        return format!("field label {field:?} not supported for Job");
    }
    if kind.custom.is_some() || built_in_fields(&kind.group, &kind.kind).is_some() {
        return format!("field label not supported: {field}");
    }
    format!("{field:?} is not a known field selector: only {NAME:?}, {NAMESPACE:?}")
}

/// The fields of a kind, beyond name and namespace, that its objects can be selected by; ready to be read.
#[derive(Debug, Default)]
pub struct Selectable {
    names: Box<[String]>,
    sources: Box<[Source]>,
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
    /// Those of a kind.
    #[must_use]
    pub fn of(kind: &Kind) -> Self {
        let names: Box<[String]> = supported_fields(kind)
            .into_iter()
            .filter(|field| !matches!(field.as_str(), NAME | NAMESPACE))
            .collect();
        Self { sources: names.iter().map(|field| Source::of(kind, field)).collect(), names }
    }

    /// Those of a version of a custom kind, by their JSON paths without the leading dot.
    #[must_use]
    pub fn custom(paths: impl IntoIterator<Item = String>) -> Self {
        let names: Box<[String]> = paths.into_iter().collect();
        Self { sources: names.iter().map(|path| Source::at(&[path], "")).collect(), names }
    }

    /// What they are called, as in [`supported_fields`].
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Their values in an object, in the order of the names; empty where the object does not have one.
    #[must_use]
    pub fn values(&self, object: &Value) -> Box<[Box<str>]> {
        self.sources.iter().map(|source| source.value(object).into()).collect()
    }
}

impl Source {
    fn of(kind: &Kind, field: &str) -> Self {
        let regarding = field.replacen("involvedObject", "regarding", 1);
        let (paths, default): (&[&str], _) = match (kind.kind.as_str(), field) {
            _ if kind.custom.is_some() => (&[field], ""),
            ("Pod", "spec.hostNetwork") | ("Node", "spec.unschedulable") => (&[field], "false"),
            ("Pod", "status.podIP") => (&["status.podIPs[0].ip"], ""),
            ("Pod", "status.podIPs") => (&[], ""),
            ("ReplicationController", "status.replicas") => (&[field], "0"),
            ("Job", "status.successful") => (&["status.succeeded"], "0"),
            ("Event", "reportingComponent") => (&REPORTING, ""),
            ("Event", "source") => {
                (&["source.component", "deprecatedSource.component", REPORTING[0], REPORTING[1]], "")
            }
            ("Event", _) => (&[field, &regarding], ""),
            _ => (&[field], ""),
        };
        Self::at(paths, default)
    }

    fn at(paths: &[&str], default: &'static str) -> Self {
        let paths = paths.iter().filter_map(|path| Path::parse(&format!(".{path}")).ok()).collect();
        Self { paths, default }
    }

    fn value(&self, object: &Value) -> String {
        let mut texts = self.paths.iter().filter_map(|path| path.find(object).first().map(|one| shown(one)));
        texts.find(|text| !text.is_empty()).unwrap_or_else(|| self.default.to_owned())
    }
}

/// Where an event says who reports it: in the core group, in `events.k8s.io`.
const REPORTING: [&str; 2] = ["reportingComponent", "reportingController"];

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
    use crate::kinds::Kinds;

    fn kind(group: &str, version: &str, plural: &str) -> std::sync::Arc<Kind> {
        std::sync::Arc::clone(Kinds::built_in().get(group, version, plural).expect("a kind"))
    }

    fn selects(kind: &Kind, selector: &str, object: &Value) -> bool {
        let selector = FieldSelector::parse(selector, kind).expect("a selector");
        let selectable = Selectable::of(kind);
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
            FieldSelector::parse(text, &pods).expect("a selector").exact("metadata.name").map(str::to_owned)
        };
        assert_eq!(exact("metadata.name=a,status.phase=x"), Some("a".to_owned()));
        assert_eq!(exact("metadata.name!=a"), None);
    }

    #[test]
    fn escapes_are_taken_as_they_are() {
        let secrets = kind("", "v1", "secrets");
        assert!(selects(&secrets, r"type=a\,b\=c\\", &json!({"type": r"a,b=c\"})));
        let refused = |text: &str| FieldSelector::parse(text, &secrets).expect_err("must be refused");
        assert_eq!(refused(r"type=a\x"), r"invalid field selector: invalid escape sequence: \x");
        assert_eq!(refused("type=a\\"), "invalid field selector: invalid escape sequence: \\");
        assert_eq!(refused("type=a=b"), "invalid field selector: unescaped character in value: 61");
    }

    #[test]
    fn mistakes_are_told_in_the_words_of_kubernetes() {
        let refused =
            |kind: &Kind, text: &str| FieldSelector::parse(text, kind).expect_err("must be refused");
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
        assert!(FieldSelector::parse("regarding.kind=Pod", &core).is_err());
        assert!(FieldSelector::parse("involvedObject.kind=Pod", &events).is_err());
        let same = json!({"regarding": {"kind": "Pod"}, "reportingController": "kubelet"});
        assert!(selects(&core, "involvedObject.kind=Pod,source=kubelet", &same));
    }
}
