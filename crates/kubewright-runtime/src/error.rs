//! What can go wrong in a reconcile or a manager.

use std::{fmt, time::Duration};

use kube::core::Status;

use crate::{
    leader::Fenced,
    rbac::{self, Missing},
    unreachable::unreachable,
};

/// Any error that can cross a thread.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Error of a reconcile, a write or a manager.
///
/// A reconcile that returns any variant but [`Error::Terminal`] is tried again with exponential back-off.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
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
    /// The caches of a controller were not filled in time
    /// ([`Controller::cache_sync_timeout`](crate::Controller::cache_sync_timeout)).
    #[error("the caches of the controller {controller} were not filled within {limit:?}: {}", kinds.join("; "))]
    CacheSync {
        /// Its name.
        controller: String,
        /// How long they were waited for.
        limit: std::time::Duration,
        /// The kinds that are missing, each with the reason if it is known.
        kinds: Vec<String>,
    },
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

/// An error about which more is known; told as the error itself.
#[derive(Debug)]
struct Annotated {
    /// For which reason it is shown.
    reason: Option<String>,
    /// When it is tried again.
    retry_after: Option<Duration>,
    cause: Error,
}

impl fmt::Display for Annotated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl std::error::Error for Annotated {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.source()
    }
}

/// kube writes a status twice; the server's own message says it once. A refusal says what to add.
pub(crate) fn describe(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => match rbac::missing_in(status) {
            Some(missing) => format!("{}; {missing}", status.message),
            None => status.message.clone(),
        },
        other => unreachable(other).unwrap_or_else(|| other.to_string()),
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

    /// The same, for this reason: a CamelCase word for programs, which the condition and the Event have by which it
    /// [is shown](crate::ErrorPolicy). All else that is asked of the error stays as it is. What the SDK itself failed with keeps its own.
    ///
    /// ```
    /// use kubewright_runtime::Error;
    ///
    /// let error = Error::new("the cloud does not answer").reason("BucketUnavailable");
    /// assert_eq!(error.condition_reason(), "BucketUnavailable");
    /// assert_eq!(error.to_string(), "the cloud does not answer");
    /// ```
    #[must_use]
    pub fn reason(self, reason: impl Into<String>) -> Self {
        self.annotated(Some(reason.into()), None)
    }

    /// The same, which is tried again after this time instead of the key's back-off, or sooner if an event comes first: for who knows when it is
    /// worth it. It is counted, logged and shown as a failure all the same. A terminal error, and what the SDK itself failed with, stay as they are.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kubewright_runtime::Error;
    ///
    /// let error = Error::new("the quota is used up").retry_after(Duration::from_secs(3600)).reason("QuotaExceeded");
    /// assert_eq!(error.retry_delay(), Some(Duration::from_secs(3600)));
    /// ```
    #[must_use]
    pub fn retry_after(self, delay: Duration) -> Self {
        if self.is_terminal() { self } else { self.annotated(None, Some(delay)) }
    }

    /// After which time it is tried again, if [`Error::retry_after`] said so.
    #[must_use]
    pub fn retry_delay(&self) -> Option<Duration> {
        self.annotation(|annotated| annotated.retry_after)
    }

    fn annotated(self, reason: Option<String>, retry_after: Option<Duration>) -> Self {
        match self {
            Self::Terminal(_) => Self::Terminal(Box::new(Annotated { reason, retry_after, cause: self })),
            Self::Api(_) | Self::Failed(_) => {
                Self::Failed(Box::new(Annotated { reason, retry_after, cause: self }))
            }
            Self::OwnerGone(_)
            | Self::Misconfigured(_)
            | Self::CacheSync { .. }
            | Self::Panicked { .. }
            | Self::ShutdownTimedOut(_) => self,
        }
    }

    /// Why, in one word, where it is shown: what [`Error::reason`] said; or what the API server said (`Forbidden`, `Invalid`), that
    /// it did not answer (`Unreachable`), or that is all that is known (`ReconcileFailed`). A word that the API does not take as the
    /// reason of a condition and of an Event counts as none.
    #[must_use]
    pub fn condition_reason(&self) -> &str {
        const FAILED: &str = "ReconcileFailed";
        if let Some(reason) = self.annotation(|annotated| annotated.reason.as_deref()) {
            return if is_reason(reason) { reason } else { FAILED };
        }
        match (self, self.kube()) {
            (_, Some(kube::Error::Api(status))) if is_reason(&status.reason) => &status.reason,
            (_, Some(kube::Error::Service(_) | kube::Error::HyperError(_))) => "Unreachable",
            (Self::OwnerGone(_), _) => "OwnerGone",
            (Self::Misconfigured(_), _) => "Misconfigured",
            (Self::Panicked { .. }, _) => "Panicked",
            _ => FAILED,
        }
    }

    /// What is known about it, however it is wrapped: what was said last.
    fn annotation<'a, T>(&'a self, part: impl Fn(&'a Annotated) -> Option<T>) -> Option<T> {
        let mut error = self;
        loop {
            let (Self::Failed(cause) | Self::Terminal(cause)) = error else { return None };
            error = match cause.downcast_ref::<Annotated>() {
                Some(annotated) => match part(annotated) {
                    Some(found) => return Some(found),
                    None => &annotated.cause,
                },
                None => cause.downcast_ref::<Self>()?,
            };
        }
    }

    /// Whether another try, soon, may well cure it, and nobody needs to do anything: somebody else's write came first, the API server is
    /// overloaded, failed or did not answer, or an owner is gone.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self.kube() {
            Some(kube::Error::Api(status)) => {
                status.is_conflict() || status.code == 429 || status.code >= 500
            }
            Some(error) => !matches!(error, kube::Error::SerdeError(_)),
            None => matches!(self, Self::OwnerGone(_)),
        }
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
            Self::Failed(cause) | Self::Terminal(cause) => {
                let annotated = cause.downcast_ref::<Annotated>().map(|annotated| &annotated.cause);
                match annotated.or_else(|| cause.downcast_ref::<Self>()) {
                    Some(inner) => inner.kube(),
                    None => cause.downcast_ref::<kube::Error>(),
                }
            }
            Self::OwnerGone(_)
            | Self::Misconfigured(_)
            | Self::CacheSync { .. }
            | Self::Panicked { .. }
            | Self::ShutdownTimedOut(_) => None,
        }
    }

    /// Whether the API server said that the object (or its kind) does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        // Of a kind that is not served the answer is no Status: kube keeps its text, with a reason of its own.
        self.status().is_some_and(|status| status.is_not_found() || status.code == 404)
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

/// Whether a condition (`Condition` in `k8s.io/apimachinery/pkg/apis/meta/v1/types.go`) and an Event (`ReasonLengthLimit` in
/// `k8s.io/kubernetes/pkg/apis/core/validation/events.go`) may have this reason.
fn is_reason(text: &str) -> bool {
    let is_in = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= 128
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().last().is_some_and(is_in)
        && text.bytes().all(|byte| is_in(byte) || byte == b',' || byte == b':')
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
        // What a proxy, or a server that does not serve the kind, says is no Status.
        let unserved = Status::failure("404 page not found", "Failed to parse error data").with_code(404);
        assert!(Error::from(kube::Error::Api(unserved.boxed())).is_not_found());
        assert!(!Error::from(refused("Gone", 410)).is_not_found());
    }

    #[test]
    fn an_error_with_a_reason_is_what_it_was() {
        let conflict = Error::from(refused("Conflict", 409)).reason("BucketTaken");
        assert!(conflict.is_conflict() && conflict.is_transient() && !conflict.is_terminal());
        assert_eq!((conflict.to_string().as_str(), conflict.condition_reason()), ("no", "BucketTaken"));
        let terminal = Error::terminal("bad name").reason("BadName");
        assert!(terminal.is_terminal() && !terminal.is_transient());
        let wrapped = Error::terminal(Error::new("away").reason("Away"));
        assert_eq!((wrapped.is_terminal(), wrapped.condition_reason()), (true, "Away"));
    }

    #[test]
    fn an_error_that_says_when_is_all_else_that_it_was() {
        let minute = Duration::from_secs(60);
        let conflict = Error::from(refused("Conflict", 409)).reason("BucketTaken").retry_after(minute);
        assert!(conflict.is_conflict());
        assert_eq!((conflict.condition_reason(), conflict.retry_delay()), ("BucketTaken", Some(minute)));
        let later = conflict.retry_after(2 * minute).reason("Busy");
        assert_eq!((later.condition_reason(), later.retry_delay()), ("Busy", Some(2 * minute)));
        assert_eq!(Error::terminal("never").retry_after(minute).retry_delay(), None);
        assert_eq!(Error::new("no").retry_delay(), None);
    }

    #[test]
    fn a_reason_that_the_api_would_refuse_is_none() {
        for wrong in ["", "two words", "9lives", "Ends:", "ä", &"a".repeat(129)] {
            assert_eq!(Error::new("no").reason(wrong).condition_reason(), "ReconcileFailed", "{wrong}");
        }
        assert_eq!(Error::new("no").condition_reason(), "ReconcileFailed");
        assert_eq!(Error::from(refused("Forbidden", 403)).condition_reason(), "Forbidden");
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
