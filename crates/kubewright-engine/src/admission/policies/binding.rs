//! Bindings: where a policy counts, with which parameters, and what its findings do.

use kubewright_kinds::Kind;
use serde_json::Value;

use super::super::matching::{Attributes, Constraints};
use super::params::ParamRef;

/// A binding of a policy.
pub(super) struct Binding {
    pub(super) name: String,
    pub(super) policy: String,
    params: Option<ParamRef>,
    /// `validationActions` has `Deny`.
    pub(super) denies: bool,
    /// `validationActions` has `Warn`.
    pub(super) warns: bool,
    resources: Option<Constraints>,
}

impl Binding {
    pub(super) fn read(binding: &Value) -> Self {
        let spec = &binding["spec"];
        let actions = spec["validationActions"].as_array().map_or(&[][..], Vec::as_slice);
        let acts = |action: &str| actions.iter().any(|one| one == action);
        Self {
            name: binding["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            policy: spec["policyName"].as_str().unwrap_or_default().to_owned(),
            params: ParamRef::read(&spec["paramRef"]),
            denies: acts("Deny"),
            warns: acts("Warn"),
            resources: spec.get("matchResources").map(Constraints::of_resources),
        }
    }

    /// The parameters with which it asks its policy about a request: none where it is not about it, once nothing where the
    /// policy takes none.
    ///
    /// # Errors
    /// Why it cannot ask.
    pub(super) fn collect(
        &self,
        kind: Option<&Kind>,
        attributes: &Attributes<'_>,
    ) -> Result<Vec<Option<Value>>, String> {
        if let Some(resources) = &self.resources
            && resources.matches(attributes).map_err(|error| error.message)?.is_none()
        {
            return Ok(Vec::new());
        }
        match (kind, &self.params) {
            (Some(kind), Some(params)) => {
                Ok(params.collect(kind, attributes)?.into_iter().map(Some).collect())
            }
            _ => Ok(vec![None]),
        }
    }
}
