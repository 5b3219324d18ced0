//! Groups of the Kubernetes community need its approval, which an annotation tells of
//! (`k8s.io/apiextensions-apiserver/pkg/apihelpers`, `pkg/controller/apiapproval`).

use kubewright_meta::FieldError;
use kubewright_meta::field::Problem;
use serde_json::Value;

use super::status::Condition;
use super::{fields, text};

const ANNOTATION: &str = "api-approved.kubernetes.io";
const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

/// What the annotation of a definition says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Approval {
    Missing,
    /// It is neither an address nor a reason.
    Invalid(String),
    /// Where it was approved.
    Approved(String),
    /// Why it is not.
    Bypassed(String),
}

impl Approval {
    /// The approval of a definition; none where its group needs none.
    fn of(definition: &Value) -> Option<Self> {
        let group = text(&definition["spec"], "group");
        let protected = |domain: &str| {
            group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        (protected("k8s.io") || protected("kubernetes.io")).then(|| Self::said(definition))
    }

    /// What the annotation of a definition says, whatever its group.
    fn said(definition: &Value) -> Self {
        let annotation = fields(&definition["metadata"], "annotations")
            .find(|(name, _)| *name == ANNOTATION)
            .and_then(|(_, value)| value.as_str())
            .unwrap_or_default()
            .to_owned();
        let is_url = annotation.split_once("://").is_some_and(|(scheme, rest)| {
            scheme.bytes().all(|one| one.is_ascii_alphanumeric())
                && !scheme.is_empty()
                && !rest.trim_start_matches('/').is_empty()
        });
        match () {
            () if annotation.is_empty() => Self::Missing,
            () if annotation.starts_with("unapproved") => Self::Bypassed(annotation),
            () if is_url => Self::Approved(annotation),
            () => Self::Invalid(annotation),
        }
    }

    /// It in words.
    fn message(&self) -> String {
        match self {
            Self::Missing => format!("protected groups must have approval annotation {ANNOTATION:?}, {SEE}"),
            Self::Invalid(_) => format!(
                "protected groups must have approval annotation {ANNOTATION:?} with either a URL or a reason starting with \
                 \"unapproved\", {SEE}"
            ),
            Self::Approved(place) => format!("approved in {place}"),
            Self::Bypassed(reason) => format!("not approved: {reason:?}"),
        }
    }
}

/// What is wrong with the approval of a definition, unless that is as it was.
pub(super) fn validate(definition: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let Some(approval) = Approval::of(definition) else { return };
    let state = std::mem::discriminant(&approval);
    if old.is_some_and(|old| std::mem::discriminant(&Approval::said(old)) == state) {
        return;
    }
    let detail = approval.message();
    let problem = match approval {
        Approval::Missing => Problem::Required,
        Approval::Invalid(annotation) => Problem::Invalid(annotation.into()),
        Approval::Approved(_) | Approval::Bypassed(_) => return,
    };
    errors.push(FieldError { field: format!("metadata.annotations[{ANNOTATION}]"), problem, detail });
}

/// The condition that tells of the approval; none where a definition needs none.
pub(super) fn condition(definition: &Value) -> Option<Condition> {
    let approval = Approval::of(definition)?;
    let (status, reason) = match approval {
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Invalid(_) => ("False", "InvalidAnnotation"),
        Approval::Approved(_) => ("True", "ApprovedAnnotation"),
        Approval::Bypassed(_) => ("False", "UnapprovedAnnotation"),
    };
    Some(Condition {
        kind: "KubernetesAPIApprovalPolicyConformant",
        status,
        reason,
        message: approval.message(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_group_of_the_community_tells_of_its_approval_and_others_do_not() {
        let told = |group: &str, annotation: Option<&str>| {
            let definition =
                json!({"metadata": {"annotations": {ANNOTATION: annotation}}, "spec": {"group": group}});
            condition(&definition).map(|told| (told.status, told.reason, told.message))
        };
        assert_eq!(told("example.com", None), None);
        let (status, reason, message) =
            told("a.k8s.io", Some("https://example.com/1")).expect("it is protected");
        assert_eq!(
            (status, reason, &*message),
            ("True", "ApprovedAnnotation", "approved in https://example.com/1")
        );
        let (status, reason, message) =
            told("a.k8s.io", Some("unapproved, a test")).expect("it is protected");
        assert_eq!(
            (status, reason, &*message),
            ("False", "UnapprovedAnnotation", "not approved: \"unapproved, a test\"")
        );
        assert_eq!(told("k8s.io", Some("yes")).map(|(_, reason, _)| reason), Some("InvalidAnnotation"));
        assert_eq!(told("kubernetes.io", None).map(|(_, reason, _)| reason), Some("MissingAnnotation"));
    }

    #[test]
    fn an_approval_that_is_as_it_was_is_not_asked_for_again() {
        let definition = |group: &str, annotation: Option<&str>| json!({"metadata": {"annotations": {ANNOTATION: annotation}}, "spec": {"group": group}});
        let count = |definition: &Value, old: Option<&Value>| {
            let mut errors = Vec::new();
            validate(definition, old, &mut errors);
            errors.len()
        };
        let (none, elsewhere) = (definition("a.k8s.io", None), definition("example.com", None));
        assert_eq!(count(&none, None), 1);
        assert_eq!(count(&none, Some(&elsewhere)), 0, "whatever its group was");
        assert_eq!(count(&none, Some(&definition("a.k8s.io", Some("https://example.com/1")))), 1);
    }
}
