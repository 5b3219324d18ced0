//! The ways to authorize, and their order: `--authorization-mode`
//! (`k8s.io/kubernetes/pkg/kubeapiserver/options/authorization.go`).

use super::abac::Policies;
use super::webhook::Reviewer;

/// One way to authorize. The first that says yes or no decides; who is a member of `system:masters` is asked nothing.
#[derive(Debug)]
pub enum Mode {
    /// Everything is allowed.
    AlwaysAllow,
    /// Nothing is allowed that a mode after it does not allow.
    AlwaysDeny,
    /// Policies of a file.
    Abac(Policies),
    /// What kubelets need: their own objects, and what the pods on their node use.
    Node,
    /// Roles and bindings.
    Rbac,
    /// A server is asked.
    Webhook(Box<Reviewer>),
}

/// Why modes cannot be used together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModeError {
    /// None at all.
    #[error("at least one authorization-mode must be passed")]
    None,
    /// A name that none has.
    #[error("authorization-mode {0:?} is not a valid mode")]
    Unknown(String),
    /// One more than once.
    #[error("authorization-mode {} has mode specified more than once", quoted(.0))]
    Repeated(Vec<String>),
    /// ABAC without policies.
    #[error("authorization-mode ABAC's authorization policy file not passed")]
    NoPolicies,
    /// Policies without ABAC.
    #[error("cannot specify --authorization-policy-file without mode ABAC")]
    UnusedPolicies,
    /// Nobody to ask.
    #[error("authorization-mode Webhook's authorization config file not passed")]
    NoWebhook,
    /// Somebody who is not asked.
    #[error("cannot specify --authorization-webhook-config-file without mode Webhook")]
    UnusedWebhook,
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    format!("[{}]", names.join(" "))
}

impl Mode {
    /// The modes of these names (`AlwaysAllow`, `AlwaysDeny`, `ABAC`, `Webhook`, `RBAC`, `Node`), in their order.
    ///
    /// # Errors
    /// When there is none, one is unknown or there twice, or one lacks what it needs.
    pub fn of_names(
        names: &[String],
        mut policies: Option<Policies>,
        mut webhook: Option<Reviewer>,
    ) -> Result<Vec<Self>, ModeError> {
        if names.is_empty() {
            return Err(ModeError::None);
        }
        if names.iter().enumerate().any(|(index, name)| names[..index].contains(name)) {
            return Err(ModeError::Repeated(names.to_vec()));
        }
        let mode = |name: &String| {
            Ok(match name.as_str() {
                "AlwaysAllow" => Self::AlwaysAllow,
                "AlwaysDeny" => Self::AlwaysDeny,
                "ABAC" => Self::Abac(policies.take().ok_or(ModeError::NoPolicies)?),
                "Node" => Self::Node,
                "RBAC" => Self::Rbac,
                "Webhook" => Self::Webhook(Box::new(webhook.take().ok_or(ModeError::NoWebhook)?)),
                _ => return Err(ModeError::Unknown(name.clone())),
            })
        };
        let modes = names.iter().map(mode).collect::<Result<_, _>>()?;
        match (policies, webhook) {
            (Some(_), _) => Err(ModeError::UnusedPolicies),
            (_, Some(_)) => Err(ModeError::UnusedWebhook),
            (None, None) => Ok(modes),
        }
    }
}

#[cfg(test)]
mod tests;
