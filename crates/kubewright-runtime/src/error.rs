//! What can go wrong in a reconcile or a manager.

use kube::core::Status;

use crate::{
    leader::Fenced,
    rbac::{self, Missing},
};

/// Any error that can cross a thread.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Error of a reconcile, a write or a manager.
///
/// A reconcile that returns any variant but [`Error::Terminal`] is tried again with exponential back-off.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused a request, or it could not be reached.
    #[error("{}", describe(.0))]
    Api(#[source] Box<kube::Error>),
    /// Something else failed; worth another try.
    #[error("{0}")]
    Failed(#[source] BoxError),
    /// Trying again changes nothing until somebody edits the object: it is counted and logged, not retried.
    #[error("{0}")]
    Terminal(#[source] BoxError),
    /// A child was not made: its owner, which has lost one lately, is gone, although the cache has it still. It is tried
    /// again, until the cache knows.
    #[error("{0} is gone, although the cache has it still: nothing is made for it")]
    OwnerGone(String),
    /// A manager or controller was put together wrongly; the text says how.
    #[error("{0}")]
    Misconfigured(String),
    /// A task of the manager panicked outside of a reconcile.
    #[error("{task} panicked: {message}")]
    Panicked {
        /// Which task.
        task: String,
        /// What the panic said.
        message: String,
    },
    /// Work was still going on when the time for a graceful shutdown was over; it was dropped.
    #[error("work was still going on {0:?} after the shutdown began")]
    ShutdownTimedOut(std::time::Duration),
}

/// kube writes a status twice; the server's own message says it once. A refusal says what to add.
pub(crate) fn describe(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => match rbac::missing_in(status) {
            Some(missing) => format!("{}; {missing}", status.message),
            None => status.message.clone(),
        },
        other => other.to_string(),
    }
}

impl Error {
    /// An error that is worth another try, from a text or any error.
    pub fn new(cause: impl Into<BoxError>) -> Self {
        Self::Failed(cause.into())
    }

    /// An error that no retry can cure, from a text or any error (a [`kube::Error`], another [`Error`] too).
    pub fn terminal(cause: impl Into<BoxError>) -> Self {
        Self::Terminal(cause.into())
    }

    /// Whether the reconcile is not to be tried again.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal(_))
    }

    /// The `metav1.Status` that the API server answered with, when it answered.
    #[must_use]
    pub fn status(&self) -> Option<&Status> {
        match self.kube()? {
            kube::Error::Api(status) => Some(status),
            _ => None,
        }
    }

    /// Whether the API server refused to create something because its namespace is being deleted (the cause
    /// `NamespaceTerminating`, `k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle`): it goes with the namespace, and
    /// nobody needs to be told.
    #[must_use]
    pub fn is_namespace_ending(&self) -> bool {
        let details =
            self.status().filter(|status| status.code == 403).and_then(|status| status.details.as_ref());
        details
            .is_some_and(|details| details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating"))
    }

    /// The right for want of which the API server refused a request, if that is what went wrong.
    #[must_use]
    pub fn missing_right(&self) -> Option<Missing> {
        self.status().and_then(rbac::missing_in)
    }

    /// What kept a write from leaving, or broke it off, when this replica had lost the lease that it works by.
    #[must_use]
    pub fn fenced(&self) -> Option<Fenced> {
        match self.kube()? {
            kube::Error::Service(cause) => cause.downcast_ref::<Fenced>().copied(),
            _ => None,
        }
    }

    /// The error of kube's client that is behind it, however it is wrapped.
    fn kube(&self) -> Option<&kube::Error> {
        match self {
            Self::Api(error) => Some(error),
            Self::Failed(cause) | Self::Terminal(cause) => match cause.downcast_ref::<Self>() {
                Some(inner) => inner.kube(),
                None => cause.downcast_ref::<kube::Error>(),
            },
            Self::OwnerGone(_)
            | Self::Misconfigured(_)
            | Self::Panicked { .. }
            | Self::ShutdownTimedOut(_) => None,
        }
    }

    /// Whether the API server said that the object (or its kind) does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.status().is_some_and(Status::is_not_found)
    }

    /// Whether an object of that name exists already.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.status().is_some_and(Status::is_already_exists)
    }

    /// Whether somebody else's write came first.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.status().is_some_and(Status::is_conflict)
    }
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        Self::Api(Box::new(error))
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Failed(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(reason: &str, code: u16) -> kube::Error {
        kube::Error::Api(Status::failure("no", reason).with_code(code).boxed())
    }

    #[test]
    fn the_servers_answer_is_seen_through_every_wrapping() {
        assert!(Error::from(refused("NotFound", 404)).is_not_found());
        assert!(Error::terminal(refused("NotFound", 404)).is_not_found());
        assert!(Error::terminal(Error::from(refused("Conflict", 409))).is_conflict());
        assert!(!Error::new("NotFound").is_not_found());
    }

    #[test]
    fn that_a_namespace_ends_is_told_by_the_cause() {
        let ending = |cause: &str| {
            let status = serde_json::json!({"code": 403, "reason": "Forbidden", "details": {"causes": [{"reason": cause}]}});
            let status = kubewright_objects::from_value::<Status>(status).expect("a Status").boxed();
            Error::terminal(kube::Error::Api(status)).is_namespace_ending()
        };
        assert!(ending("NamespaceTerminating") && !ending("FieldValueInvalid"));
    }

    #[test]
    fn a_missing_right_reads_as_what_to_add() {
        let message = r#"pods is forbidden: User "u" cannot create resource "pods" in API group "" in the namespace "a""#;
        let status = Status::failure(message, "Forbidden").with_code(403).boxed();
        let error = Error::terminal(kube::Error::Api(status));
        assert_eq!(error.missing_right().map(|missing| missing.right.resource), Some("pods".to_owned()));
        let error = Error::terminal(Error::Api(Box::new(kube::Error::Api(
            Status::failure(message, "Forbidden").with_code(403).boxed(),
        ))));
        assert_eq!(error.to_string(), format!("{message}; add: pods create (in the namespace a)"));
    }

    #[test]
    fn a_refusal_reads_as_the_server_said_it() {
        assert_eq!(Error::from(refused("Conflict", 409)).to_string(), "no");
    }
}
