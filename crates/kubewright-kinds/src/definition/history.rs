//! The validation of a definition against what it was, and who approved of it.

use kubewright_meta::FieldError;
use kubewright_meta::field::Problem;
use serde_json::Value;

use super::{fields, flag, list, text, texts, versions};

/// Once a definition is established, its kind and scope stay; group and plural stay always.
pub(super) fn unchanged(spec: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let was = &old["spec"];
    let established = list(&old["status"], "conditions")
        .any(|condition| text(condition, "type") == "Established" && text(condition, "status") == "True");
    let mut same = |pointer: &str, field: &str| {
        let (new, old) = (spec.pointer(pointer), was.pointer(pointer));
        if new != old {
            errors.push(FieldError::invalid(
                field,
                new.cloned().unwrap_or_else(|| "".into()),
                "field is immutable",
            ));
        }
    };
    if established {
        same("/scope", "spec.scope");
        same("/names/kind", "spec.names.kind");
    }
    same("/group", "spec.group");
    same("/names/plural", "spec.names.plural");
}

/// Versions that objects may still be stored in must stay, and the storage version is one of them.
pub(super) fn stored_versions(definition: &Value, errors: &mut Vec<FieldError>) {
    let stored = texts(&definition["status"], "storedVersions");
    if stored.is_empty() {
        let detail = "must have at least one stored version";
        errors.push(FieldError::invalid("status.storedVersions", Value::Null, detail));
        return;
    }
    for version in versions(definition).filter(|version| flag(version, "storage")) {
        let name = text(version, "name");
        if !stored.iter().any(|stored| stored == name) {
            let detail = format!("must have the storage version {name}");
            errors.push(FieldError::invalid("status.storedVersions", stored.clone(), detail));
        }
    }
    for (index, version) in stored.iter().enumerate() {
        if !versions(definition).any(|one| text(one, "name") == version) {
            let detail = format!(
                "missing from spec.versions; {version} was previously a storage version, and must remain in spec.versions \
                 until a storage migration ensures no data remains persisted in {version} and removes {version} from \
                 status.storedVersions"
            );
            errors.push(FieldError::invalid(
                format!("status.storedVersions[{index}]"),
                version.as_str(),
                detail,
            ));
        }
    }
}

/// Groups of the Kubernetes community need their approval.
pub(super) fn approval(definition: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    const ANNOTATION: &str = "api-approved.kubernetes.io";
    const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
    let group = text(&definition["spec"], "group");
    let protected =
        |domain: &str| group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if !protected("k8s.io") && !protected("kubernetes.io") {
        return;
    }
    let state = |definition: &Value| {
        let annotation = fields(&definition["metadata"], "annotations")
            .find(|(name, _)| *name == ANNOTATION)
            .and_then(|(_, value)| value.as_str())
            .unwrap_or_default()
            .to_owned();
        let url = annotation.split_once("://").is_some_and(|(scheme, rest)| {
            scheme.bytes().all(|one| one.is_ascii_alphanumeric())
                && !scheme.is_empty()
                && !rest.trim_start_matches('/').is_empty()
        });
        if annotation.is_empty() {
            let detail = format!("protected groups must have approval annotation {ANNOTATION:?}, {SEE}");
            Some((Problem::Required, detail))
        } else if annotation.starts_with("unapproved") || url {
            None
        } else {
            let detail = format!(
                "protected groups must have approval annotation {ANNOTATION:?} with either a URL or a reason starting with \
                 \"unapproved\", {SEE}"
            );
            Some((Problem::Invalid(annotation.into()), detail))
        }
    };
    let kind = |problem: &Option<(Problem, String)>| {
        problem.as_ref().map(|(problem, _)| std::mem::discriminant(problem))
    };
    let now = state(definition);
    if old.is_some_and(|old| kind(&state(old)) == kind(&now)) {
        return;
    }
    if let Some((problem, detail)) = now {
        errors.push(FieldError { field: format!("metadata.annotations[{ANNOTATION}]"), problem, detail });
    }
}
