//! The validation of a definition against what it was.

use kubewright_meta::FieldError;
use serde_json::Value;

use super::{flag, list, text, texts, versions};

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
    // A name counts once: a second version of that name is not among those that are stored.
    let mut left: Vec<&String> = stored.iter().collect();
    for version in versions(definition) {
        let name = text(version, "name");
        if let Some(at) = left.iter().position(|stored| *stored == name) {
            left.swap_remove(at);
        } else if flag(version, "storage") {
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
