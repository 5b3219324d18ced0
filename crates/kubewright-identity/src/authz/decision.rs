//! What an authorizer says.

/// What an authorizer says to a request (`k8s.io/apiserver/pkg/authorization/authorizer`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionKind {
    /// It is allowed, whatever others say.
    Allow,
    /// It is forbidden, whatever others say.
    Deny,
    /// Others may allow it.
    NoOpinion,
}

/// May they or not, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What was decided.
    pub verdict: DecisionKind,
    /// Such as `RBAC: allowed by ClusterRoleBinding "cluster-admin" of ClusterRole "cluster-admin" to Group "system:masters"`.
    pub reason: String,
    /// What went wrong on the way. A request that is not allowed for it was not decided about, but failed.
    pub error: Option<String>,
}

impl Decision {
    /// Whether it is allowed.
    #[must_use]
    pub fn allowed(&self) -> bool {
        self.verdict == DecisionKind::Allow
    }

    /// Allows it, with a reason for the audit.
    pub fn allow(reason: impl Into<String>) -> Self {
        Self { verdict: DecisionKind::Allow, reason: reason.into(), error: None }
    }

    pub(crate) fn no_opinion(reason: impl Into<String>) -> Self {
        Self { verdict: DecisionKind::NoOpinion, reason: reason.into(), error: None }
    }

    /// Has no opinion, because something went wrong.
    pub fn failed(error: impl Into<String>) -> Self {
        Self { verdict: DecisionKind::NoOpinion, reason: String::new(), error: Some(error.into()) }
    }
}
