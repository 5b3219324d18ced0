//! What whoever installs an operator says about its admission webhooks.

use clap::Args;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;

use super::selector;
use crate::{
    Error,
    webhook::{FailurePolicy, Webhooks},
};

/// What an operator's admission webhooks are asked about, besides what the operator says of each: flags of `manifests`, and of
/// `run` where that writes the configurations.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct AdmissionFlags {
    /// What becomes of requests while admission webhooks cannot be asked; what the operator says of each if not told. With Fail
    /// they are not asked about the operator's own namespace, so that its pods can be replaced
    #[arg(long, value_name = "POLICY", value_enum, ignore_case = true, env = "WEBHOOK_FAILURE_POLICY")]
    pub webhook_failure_policy: Option<FailurePolicy>,
    /// Ask admission webhooks only about namespaces with such labels (`team=a,stage in (test,prod)`), of those that the operator
    /// asks about
    #[arg(long, value_name = "SELECTOR", env = "WEBHOOK_NAMESPACE_SELECTOR")]
    pub webhook_namespace_selector: Option<String>,
}

impl AdmissionFlags {
    /// The webhooks, as they say.
    ///
    /// # Errors
    /// [`Error::Misconfigured`] when the selector is none.
    pub(super) fn apply(&self, mut webhooks: Webhooks) -> Result<Webhooks, Error> {
        let namespaces = self.namespaces()?;
        for webhook in &mut webhooks.admission {
            if let Some(policy) = self.webhook_failure_policy {
                webhook.failure_policy = policy;
                webhook.spares_home |= policy == FailurePolicy::Fail;
            }
            if !namespaces.is_empty() {
                let selector = webhook.namespaces.get_or_insert_default();
                selector.match_expressions.get_or_insert_default().extend(namespaces.iter().cloned());
            }
        }
        Ok(webhooks)
    }

    fn namespaces(&self) -> Result<Vec<LabelSelectorRequirement>, Error> {
        let text = self.webhook_namespace_selector.as_deref().unwrap_or_default();
        selector::parse(text)
            .map_err(|why| Error::Misconfigured(format!("--webhook-namespace-selector={text:?}: {why}")))
    }
}
