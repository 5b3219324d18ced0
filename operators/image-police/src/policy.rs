//! The ValidatingAdmissionPolicy that refuses in a namespace, by the API server alone: what lists allow, in its expression
//! language (CEL).

use std::fmt::Write;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kubewright_image::Reference;
use serde_json::{Value, json};

use crate::{
    AllowedImage, DenyBy, Matching, glob,
    image::DEFAULT_TAG,
    plan::Observed,
    regime::Regime,
    workload::{EXEMPT, EXEMPT_UNTIL},
};

/// By which the police knows its own policies; the value is the namespace.
pub const LABEL: &str = "police.foo.bar/namespace";

/// Whose requests are not looked at: the controllers' own, whose templates were.
pub(crate) const NOT_BY_CONTROLLERS: &str =
    "!request.userInfo.username.startsWith('system:serviceaccount:kube-system:')";

/// A policy and what puts it into force.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// What is refused.
    pub policy: ValidatingAdmissionPolicy,
    /// That it is.
    pub binding: ValidatingAdmissionPolicyBinding,
}

/// The name of the policy of a namespace, and of its binding.
#[must_use]
pub fn name(namespace: &str) -> String {
    format!("image-police-{namespace}")
}

/// The policy for the observed namespace, if its lists want to be enforced by one. There is none where the police lives: it must not
/// keep itself from being replaced.
pub(crate) fn policy(observed: &Observed, regime: &Regime) -> Option<Policy> {
    let wanted = regime.denies() && regime.deny_by == DenyBy::Policy && regime.fits_a_policy();
    if !wanted || observed.namespace == observed.police.namespace {
        return None;
    }
    let name = name(&observed.namespace);
    let metadata = json!({"name": name, "labels": {LABEL: observed.namespace}});
    let policy = json!({"metadata": metadata, "spec": spec(&observed.namespace, regime)});
    let binding = json!({"metadata": metadata, "spec": {"policyName": name, "validationActions": ["Deny"]}});
    // What is written here has these types.
    let policy = kubewright::object::from_value(policy).ok()?;
    let binding = kubewright::object::from_value(binding).ok()?;
    Some(Policy { policy, binding })
}

fn spec(namespace: &str, regime: &Regime) -> Value {
    let mut conditions = vec![json!({"name": "not-by-controllers", "expression": NOT_BY_CONTROLLERS})];
    if regime.may_exempt {
        conditions.push(json!({"name": "not-exempt", "expression": not_exempt()}));
    }
    let variable = |name: &str, expression: String| json!({"name": name, "expression": expression});
    let illegal = format!(
        "variables.meant.filter(i, !(i.written in variables.before) && !({}))\
         .map(i, 'container \"' + i.container + '\": image ' + i.meant)",
        allowed(regime)
    );
    let verb = "(variables.illegal.size() == 1 ? ' is' : ' are')";
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "resourceRules": rules(),
        },
        "matchConditions": conditions,
        "variables": [
            variable("pod", pod("object")),
            variable("oldPod", format!("oldObject == null ? {{}} : {}", pod("oldObject"))),
            variable("used", uses("variables.pod")),
            variable("before", format!("({}).map(i, i.written)", uses("variables.oldPod"))),
            variable("named", with_registry()),
            variable("meant", with_tag()),
            variable("illegal", illegal),
        ],
        "validations": [{
            "expression": "variables.illegal.size() == 0",
            "messageExpression": format!(
                "variables.illegal.join(', ') + {verb} + {}",
                quoted(&format!(" not allowed by {}", regime.judges()))
            ),
            "reason": "Forbidden",
        }],
    })
}

/// What is asked about: the kinds that are judged, created or changed, and containers put into pods that run.
pub(crate) fn rules() -> Value {
    let rule = |group: &str, resources: &[&str]| {
        json!({
            "apiGroups": [group],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": resources,
            "scope": "Namespaced",
        })
    };
    json!([
        rule("", &["pods", "pods/ephemeralcontainers", "replicationcontrollers"]),
        rule("apps", &["deployments", "statefulsets", "daemonsets", "replicasets"]),
        rule("batch", &["jobs", "cronjobs"]),
    ])
}

/// A policy knows no time: whether an exemption has ended is seen by the police, not here.
fn not_exempt() -> String {
    let has = |name: &str| format!("'{name}' in object.metadata.annotations");
    format!("!has(object.metadata.annotations) || !({} && {})", has(EXEMPT), has(EXEMPT_UNTIL))
}

/// The pod of an object, or the template of its pods.
fn pod(object: &str) -> String {
    format!(
        "{object}.kind == 'Pod' ? {object}.spec : \
         {object}.kind == 'CronJob' ? {object}.spec.jobTemplate.spec.template.spec : \
         has({object}.spec.template) ? {object}.spec.template.spec : {{}}"
    )
}

/// The images of a pod as they are written, with the containers and volumes that use them.
fn uses(pod: &str) -> String {
    let containers = |field: &str| {
        format!(
            "(has({pod}.{field}) ? {pod}.{field}.filter(c, has(c.image))\
             .map(c, {{'container': c.name, 'written': c.image}}) : [])"
        )
    };
    format!(
        "{} + {} + {} + (has({pod}.volumes) ? {pod}.volumes.filter(v, has(v.image) && has(v.image.reference))\
         .map(v, {{'container': dyn('volume ' + v.name), 'written': v.image.reference}}) : [])",
        containers("initContainers"),
        containers("containers"),
        containers("ephemeralContainers"),
    )
}

/// Each image with the registry that it means.
fn with_registry() -> String {
    let first = "i.written.split('/')[0]";
    let has_registry = format!(
        "i.written.contains('/') && ({first} == 'localhost' || {first}.contains('.') || {first}.contains(':') || \
         {first}.lowerAscii() != {first})"
    );
    let rest = format!("i.written.substring({first}.size() + 1)");
    let at_docker = format!("{rest}.contains('/') ? 'docker.io/' + {rest} : 'docker.io/library/' + {rest}");
    let without = "i.written.contains('/') ? 'docker.io/' + i.written : 'docker.io/library/' + i.written";
    format!(
        "variables.used.map(i, {{'container': i.container, 'written': i.written, 'meant': ({has_registry}) ? \
         ({first} in ['docker.io', 'index.docker.io'] ? ({at_docker}) : i.written) : ({without})}})"
    )
}

/// Each image with the tag that it means.
fn with_tag() -> String {
    format!(
        "variables.named.map(i, {{'container': i.container, 'written': i.written, 'meant': i.meant.contains('@') || i.meant.matches(':[^/]*$') ? \
         i.meant : i.meant + ':{DEFAULT_TAG}'}})"
    )
}

/// Whether the image `i` is allowed by a list.
fn allowed(regime: &Regime) -> String {
    let (mut written, mut meant, mut patterns) = (Vec::new(), Vec::new(), Vec::new());
    for allowed in regime.specs.iter().flat_map(|spec| &spec.images) {
        match allowed.matching {
            Matching::Exact => {
                written.extend(allowed.tags.iter().map(|tag| format!("{}:{tag}", allowed.name)));
                if allowed.tags.iter().any(|tag| tag == DEFAULT_TAG) {
                    written.push(allowed.name.clone());
                }
                patterns.extend(digests("written", &regex::escape(&allowed.name), allowed));
            }
            Matching::Normalized => {
                let Ok(name) = Reference::parse(&allowed.name).map(|reference| reference.name()) else {
                    continue;
                };
                meant.extend(allowed.tags.iter().map(|tag| format!("{name}:{tag}")));
                patterns.extend(digests("meant", &regex::escape(&name), allowed));
            }
            Matching::Glob => {
                let name = glob::expression(&allowed.name);
                let tags: Vec<String> = allowed.tags.iter().map(|tag| glob::expression(tag)).collect();
                if !tags.is_empty() {
                    let tagged = matches("meant", &format!("{name}:(?:{})", tags.join("|")));
                    // A pattern of a name would take the beginning of a digest for a part of the name.
                    patterns.push(format!("!i.meant.contains('@') && {tagged}"));
                }
                patterns.extend(digests("meant", &name, allowed));
            }
        }
    }
    let list = |all: &[String]| all.iter().map(|one| quoted(one)).collect::<Vec<_>>().join(", ");
    let mut text = format!("i.written in [{}] || i.meant in [{}]", list(&written), list(&meant));
    for pattern in patterns {
        // Writing to a String does not fail.
        let _ = write!(text, " || ({pattern})");
    }
    text
}

/// Whether an image has one of the digests of a name, with any tag or none before it.
fn digests(field: &str, name: &str, allowed: &AllowedImage) -> Vec<String> {
    let digests = allowed.digests.iter();
    digests.map(|digest| matches(field, &format!("{name}(?::[^/@]*)?@{}", regex::escape(digest)))).collect()
}

/// Whether a field of the image `i` matches a pattern as a whole.
fn matches(field: &str, pattern: &str) -> String {
    format!("i.{field}.matches({})", quoted(&format!("^(?:{pattern})$")))
}

/// A text as the expression language writes it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("'");
    for letter in text.chars() {
        if matches!(letter, '\\' | '\'') {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted + "'"
}
