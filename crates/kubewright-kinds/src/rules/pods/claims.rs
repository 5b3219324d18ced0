//! The resource claims of a pod (`validatePodResourceClaims`).

use std::collections::BTreeSet;

use kubewright_meta::FieldError;
use serde_json::Value;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::text;

/// Checks `resourceClaims`.
pub(super) fn check(claims: &At<'_>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for claim in claims.items() {
        let name = claim.get("name");
        if errors.need(&name) {
            if names.insert(name.text()) {
                errors.text(&name, text::label);
            } else {
                errors.duplicate(&name);
            }
        }
        let (one, template) = (claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName"));
        match (one.is_set(), template.is_set()) {
            (true, true) => {
                let detail =
                    "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified";
                errors.push(invalid(&claim, detail));
            }
            (false, false) => {
                let detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
                errors.push(invalid(&claim, detail));
            }
            _ => {}
        }
        for source in [one, template].iter().filter(|source| source.is_set()) {
            errors.text(source, text::subdomain);
        }
    }
}

/// `Invalid value`, of a claim as Go prints it.
fn invalid(claim: &At<'_>, detail: &str) -> FieldError {
    let printed = format!(
        "{{\"Name\":{},\"ResourceClaimName\":{},\"ResourceClaimTemplateName\":{}}}",
        Value::from(claim.get("name").text()),
        claim.get("resourceClaimName").value,
        claim.get("resourceClaimTemplateName").value
    );
    FieldError::invalid(&claim.path, Value::Null, detail).printed(printed)
}
