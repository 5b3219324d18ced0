//! Questions about decisions: the reviews of `authorization.k8s.io`
//! (`k8s.io/kubernetes/pkg/registry/authorization` and `pkg/apis/authorization/validation`).

use std::collections::BTreeMap;

use kubewright_meta::selector::{LabelSelector, field_terms};
use kubewright_meta::{ApiError, FieldError, text};
use kubewright_spec::Version;
use serde::Deserialize;
use serde_json::{Value, json};

use super::rbac::aggregate_in_order;
use super::{Attributes, Decision, DecisionKind, Rights, null_is_default};
use crate::authn::{User, decode};

const GROUP: &str = "authorization.k8s.io";

#[derive(Deserialize)]
struct Review {
    #[serde(default, deserialize_with = "null_is_default")]
    metadata: serde_json::Map<String, Value>,
    #[serde(default, deserialize_with = "null_is_default")]
    spec: Spec,
}

/// The specs of all access reviews: one about oneself has no subject.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    resource_attributes: Option<ResourceAttributes>,
    non_resource_attributes: Option<PathAttributes>,
    #[serde(deserialize_with = "null_is_default")]
    user: String,
    #[serde(deserialize_with = "null_is_default")]
    uid: String,
    #[serde(deserialize_with = "null_is_default")]
    groups: Vec<String>,
    #[serde(deserialize_with = "null_is_default")]
    extra: BTreeMap<String, Vec<String>>,
    #[serde(deserialize_with = "null_is_default")]
    namespace: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ResourceAttributes {
    #[serde(deserialize_with = "null_is_default")]
    namespace: String,
    #[serde(deserialize_with = "null_is_default")]
    verb: String,
    #[serde(deserialize_with = "null_is_default")]
    group: String,
    #[serde(deserialize_with = "null_is_default")]
    version: String,
    #[serde(deserialize_with = "null_is_default")]
    resource: String,
    #[serde(deserialize_with = "null_is_default")]
    subresource: String,
    #[serde(deserialize_with = "null_is_default")]
    name: String,
    field_selector: Option<SelectorAttributes>,
    label_selector: Option<SelectorAttributes>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PathAttributes {
    #[serde(deserialize_with = "null_is_default")]
    path: String,
    #[serde(deserialize_with = "null_is_default")]
    verb: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SelectorAttributes {
    #[serde(deserialize_with = "null_is_default")]
    raw_selector: String,
    #[serde(deserialize_with = "null_is_default")]
    requirements: Vec<Value>,
}

/// What a review of `authorization.k8s.io/v1` asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// What anyone may do (SubjectAccessReview).
    Anyone,
    /// What anyone may do in one namespace (LocalSubjectAccessReview).
    InNamespace,
    /// What one may do oneself (SelfSubjectAccessReview).
    Oneself,
    /// All that one may do oneself (SelfSubjectRulesReview).
    OwnRules,
}

/// Answers a review of `authorization.k8s.io/v1`; `namespace` is that of the URL (empty outside of
/// one), `user` asks, `version` is that of the server. The answer is the body with a status; a review of one's own rules is answered with the rules alone.
///
/// # Errors
/// 400 when the body is of another shape, 422 when it breaks the rules.
pub fn handle(
    rights: &Rights,
    version: Version,
    user: &User,
    asks: Asks,
    namespace: &str,
    body: &Value,
) -> Result<Value, ApiError> {
    match asks {
        Asks::Anyone => {
            let review: Review = decode("SubjectAccessReview", body)?;
            let mut errors = spec_errors(version, &review.spec);
            errors.extend(subject_errors(&review.spec));
            errors.extend(metadata_errors(&review.metadata, ""));
            access(rights, &review.spec.subject(), &review.spec, &errors, body)
        }
        Asks::Oneself => {
            let review: Review = decode("SelfSubjectAccessReview", body)?;
            let mut errors = spec_errors(version, &review.spec);
            errors.extend(metadata_errors(&review.metadata, ""));
            access(rights, user, &review.spec, &errors, body)
        }
        Asks::InNamespace => local(rights, version, namespace, body),
        Asks::OwnRules => rules(rights, user, body),
    }
}

fn local(rights: &Rights, version: Version, namespace: &str, body: &Value) -> Result<Value, ApiError> {
    let review: Review = decode("LocalSubjectAccessReview", body)?;
    let named = review.metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
    if !named.is_empty() && named != namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let mut errors = spec_errors(version, &review.spec);
    errors.extend(subject_errors(&review.spec));
    errors.extend(metadata_errors(&review.metadata, "namespace"));
    if let Some(asked) = review.spec.resource_attributes.as_ref().filter(|asked| asked.namespace != namespace)
    {
        let field = "spec.resourceAttributes.namespace";
        errors.push(FieldError::invalid(field, asked.namespace.clone(), "must match metadata.namespace"));
    }
    if let Some(path) = &review.spec.non_resource_attributes {
        let why = "disallowed on this kind of request";
        errors.push(FieldError::invalid("spec.nonResourceAttributes", path.shown(), why));
    }
    let mut body = body.clone();
    if let Some(metadata) =
        body.as_object_mut().map(|body| body.entry("metadata").or_insert_with(|| json!({})))
    {
        metadata["namespace"] = namespace.into();
    }
    access(rights, &review.spec.subject(), &review.spec, &errors, &body)
}

/// Decides and puts the decision into the body's status.
fn access(
    rights: &Rights,
    user: &User,
    spec: &Spec,
    errors: &[FieldError],
    body: &Value,
) -> Result<Value, ApiError> {
    if !errors.is_empty() {
        return Err(ApiError::invalid_of(GROUP, "", "", errors));
    }
    let decision = match (&spec.resource_attributes, &spec.non_resource_attributes) {
        (Some(what), _) => rights.authorize(user, &what.attributes()),
        (None, Some(what)) => rights.authorize(user, &what.attributes()),
        (None, None) => Decision::no_opinion(""),
    };
    let mut status = json!({"allowed": decision.allowed()});
    if decision.verdict == DecisionKind::Deny {
        status["denied"] = true.into();
    }
    if !decision.reason.is_empty() {
        status["reason"] = decision.reason.into();
    }
    let ignored = spec.resource_attributes.iter().flat_map(ResourceAttributes::ignored);
    let wrong: Vec<String> = decision.error.into_iter().chain(ignored).collect();
    if !wrong.is_empty() {
        status["evaluationError"] = wrong.join("; ").into();
    }
    let mut answer = body.clone();
    if let Some(answer) = answer.as_object_mut() {
        answer.insert("status".to_owned(), status);
    }
    Ok(answer)
}

/// All rules that the asker holds in a namespace.
fn rules(rights: &Rights, user: &User, body: &Value) -> Result<Value, ApiError> {
    let review: Review = decode("SelfSubjectRulesReview", body)?;
    if review.spec.namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    let held = rights.rules_for(user, &review.spec.namespace);
    let of_resources = held.rules.iter().filter(|rule| !rule.resources.is_empty()).map(|rule| {
        let mut rule = rule.clone().into_owned();
        rule.non_resource_urls.clear();
        json!(rule)
    });
    let of_paths = held
        .rules
        .iter()
        .filter(|rule| !rule.non_resource_urls.is_empty())
        .map(|rule| json!({"verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls}));
    let mut status = json!({
        "resourceRules": of_resources.collect::<Vec<_>>(),
        "nonResourceRules": of_paths.collect::<Vec<_>>(),
        "incomplete": held.incomplete,
    });
    if !held.errors.is_empty() {
        status["evaluationError"] = aggregate_in_order(&held.errors).into();
    }
    Ok(json!({
        "kind": "SelfSubjectRulesReview",
        "apiVersion": format!("{GROUP}/v1"),
        "metadata": {},
        "spec": {},
        "status": status,
    }))
}

fn spec_errors(version: Version, spec: &Spec) -> Vec<FieldError> {
    const ONE: &str = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
    // From v1.37 on the spec as a whole is wrong.
    let is_of_spec = version >= Version::V1_37;
    let mut errors = Vec::new();
    match (&spec.resource_attributes, &spec.non_resource_attributes) {
        (Some(_), Some(path)) => errors.push(if is_of_spec {
            FieldError::invalid("spec", path.shown(), ONE)
        } else {
            let why = "cannot be specified in combination with resourceAttributes";
            FieldError::invalid("spec.nonResourceAttributes", path.shown(), why)
        }),
        (None, None) => {
            let at = if is_of_spec { "spec" } else { "spec.resourceAttributes" };
            errors.push(FieldError::invalid(at, Value::Null, ONE));
        }
        _ => {}
    }
    if let Some(what) = &spec.resource_attributes {
        for (field, selector) in
            [("fieldSelector", &what.field_selector), ("labelSelector", &what.label_selector)]
        {
            errors.extend(selector.iter().flat_map(|selector| selector.errors(field)));
        }
    }
    errors
}

fn subject_errors(spec: &Spec) -> Option<FieldError> {
    (spec.user.is_empty() && spec.groups.is_empty())
        .then(|| FieldError::invalid("spec.user", "", "at least one of user or group must be specified"))
}

/// A review is not stored, so it has no metadata but, for a local one, its namespace.
fn metadata_errors(metadata: &serde_json::Map<String, Value>, but: &str) -> Option<FieldError> {
    let nothing = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    let empty = metadata.iter().all(|(key, value)| key == "managedFields" || key == but || nothing(value));
    let why =
        if but.is_empty() { "must be empty".to_owned() } else { format!("must be empty except for {but}") };
    (!empty).then(|| FieldError::invalid("metadata", Value::Null, why).printed(shown(metadata, &METADATA)))
}

/// The members of metadata in the order in which Go writes them.
const METADATA: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];
/// Those of an entry of `managedFields`.
const ENTRY: [&str; 7] =
    ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"];

fn shown(members: &serde_json::Map<String, Value>, order: &[&str]) -> String {
    let members = order.iter().filter_map(|key| Some((*key, members.get(*key)?)));
    let members = members.map(|(key, value)| match value.as_array().filter(|_| key == "managedFields") {
        Some(entries) => {
            let entries = entries.iter().filter_map(Value::as_object).map(|entry| shown(entry, &ENTRY));
            format!("{key:?}:[{}]", entries.collect::<Vec<_>>().join(","))
        }
        None => format!("{key:?}:{value}"),
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

impl Spec {
    fn subject(&self) -> User {
        User {
            name: self.user.clone(),
            uid: self.uid.clone(),
            groups: self.groups.clone(),
            extra: self.extra.iter().map(|(key, values)| (key.to_lowercase(), values.clone())).collect(),
        }
    }
}

impl ResourceAttributes {
    fn attributes(&self) -> Attributes<'_> {
        Attributes {
            verb: &self.verb,
            group: &self.group,
            version: if self.version.is_empty() { "*" } else { &self.version },
            resource: &self.resource,
            subresource: &self.subresource,
            namespace: &self.namespace,
            name: &self.name,
            path: None,
            field_selector: raw(self.field_selector.as_ref()),
            label_selector: raw(self.label_selector.as_ref()),
        }
    }
}

impl ResourceAttributes {
    /// What is told of selectors that cannot be read: the question is asked without what is wrong in them
    /// (`k8s.io/kubernetes/pkg/registry/authorization/util`, `BuildEvaluationError`).
    fn ignored(&self) -> Vec<String> {
        let selectors = [("fieldSelector", &self.field_selector), ("labelSelector", &self.label_selector)];
        let told = |(field, selector): (&str, &Option<SelectorAttributes>)| {
            let how = selector.as_ref()?.ignored(field == "labelSelector")?;
            Some(format!("spec.resourceAttributes.{field} {how} due to parse error"))
        };
        selectors.into_iter().filter_map(told).collect()
    }
}

/// The text of a selector that is given as one. (Requirements narrow a question down; without them it is asked of all.)
fn raw(selector: Option<&SelectorAttributes>) -> &str {
    selector.map_or("", |selector| &selector.raw_selector)
}

impl PathAttributes {
    fn attributes(&self) -> Attributes<'_> {
        Attributes { verb: &self.verb, path: Some(&self.path), ..Attributes::default() }
    }

    /// As messages show it: the internal type has no names for JSON.
    fn shown(&self) -> Value {
        json!({"Path": self.path, "Verb": self.verb})
    }
}

impl SelectorAttributes {
    /// How much of it is left out because it cannot be read, if anything is.
    fn ignored(&self, of_labels: bool) -> Option<&'static str> {
        if self.requirements.is_empty() {
            let is_read = match of_labels {
                true => LabelSelector::parse(&self.raw_selector).is_ok(),
                false => field_terms(&self.raw_selector).is_some(),
            };
            return (!is_read).then_some("ignored");
        }
        let read = self.requirements.iter().filter(|one| is_read(one, of_labels)).count();
        match read {
            0 => Some("ignored"),
            some if some < self.requirements.len() => Some("partially ignored"),
            _ => None,
        }
    }

    fn errors(&self, field: &str) -> Vec<FieldError> {
        let path = format!("spec.resourceAttributes.{field}");
        let own = match (self.raw_selector.is_empty(), self.requirements.is_empty()) {
            (false, false) => Some(FieldError::invalid(
                format!("{path}.rawSelector"),
                self.raw_selector.clone(),
                "may not specified at the same time as requirements",
            )),
            (true, true) => Some(FieldError::required(
                format!("{path}.requirements"),
                format!("when {path} is specified, requirements or rawSelector is required"),
            )),
            _ => None,
        };
        let requirements = self.requirements.iter().enumerate();
        let inside = requirements.flat_map(|(index, requirement)| {
            requirement_errors(
                &format!("{path}.requirements[{index}]"),
                field == "labelSelector",
                requirement,
            )
        });
        own.into_iter().chain(inside).collect()
    }
}

/// Whether a requirement can be asked; that its key, its values and their number are right is known
/// (`labelSelectorAsSelector`, `fieldSelectorAsSelector`).
fn is_read(requirement: &Value, of_labels: bool) -> bool {
    let values = requirement["values"].as_array().map_or(0, Vec::len);
    match requirement["operator"].as_str().unwrap_or_default() {
        "In" | "NotIn" => of_labels || values == 1,
        "Exists" | "DoesNotExist" => of_labels,
        _ => false,
    }
}

/// What is wrong with a requirement of a label or a field selector; an unknown operator is not
/// (`k8s.io/apimachinery/pkg/apis/meta/v1/validation`, with `AllowUnknownOperatorInRequirement`).
fn requirement_errors(path: &str, of_labels: bool, requirement: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let values = requirement["values"].as_array().map_or(&[][..], Vec::as_slice);
    let key = requirement["key"].as_str().unwrap_or_default();
    if !of_labels && key.is_empty() {
        errors.push(FieldError::required(format!("{path}.key"), "must be specified"));
    }
    match requirement["operator"].as_str().unwrap_or_default() {
        "In" | "NotIn" if values.is_empty() => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(format!("{path}.values"), why));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(format!("{path}.values"), why));
        }
        _ => {}
    }
    if of_labels {
        for problem in text::label_key(key) {
            errors.push(FieldError::invalid(format!("{path}.key"), key, problem));
        }
        for (index, value) in values.iter().filter_map(Value::as_str).enumerate() {
            for problem in text::label_value(value) {
                errors.push(FieldError::invalid(format!("{path}.values[{index}]"), value, problem));
            }
        }
    }
    errors
}

#[cfg(test)]
mod tests;
