//! Shows failures on objects, and takes back what was shown.

use std::time::Duration;

use futures::{FutureExt, future::BoxFuture};

use super::{ErrorPolicy, Failure};
use crate::{
    Context, Error, Key, Object,
    conditions::{NewCondition, Status},
    object::fields_of,
};

/// How long that may take: the reconcile is over, and its worker waits.
const LONGEST_WRITE: Duration = Duration::from_secs(10);
/// The reason of a condition that is taken back.
const SUCCEEDED: &str = "ReconcileSucceeded";

type Show = for<'a> fn(&'a Context, &'a ErrorPolicy, Failure<'a>) -> BoxFuture<'a, Result<(), Error>>;
type Clear = for<'a> fn(&'a Context, &'a ErrorPolicy, &'a Key) -> BoxFuture<'a, Result<(), Error>>;

/// Shows the failures of a controller on the objects of its own kind, whose type is forgotten.
#[derive(Clone)]
pub(crate) struct ShowFailures {
    policy: ErrorPolicy,
    show: Show,
    clear: Clear,
}

/// How objects of a kind are shown failures on.
#[derive(Clone, Copy)]
pub(crate) struct OnKind {
    show: Show,
    clear: Clear,
}

impl OnKind {
    pub(crate) fn of<K: Object>() -> Self {
        Self {
            show: |context, policy, failure| show::<K>(context, policy, failure).boxed(),
            clear: |context, policy, key| clear::<K>(context, policy, key).boxed(),
        }
    }

    pub(crate) fn by(self, policy: ErrorPolicy) -> ShowFailures {
        ShowFailures { policy, show: self.show, clear: self.clear }
    }
}

impl ShowFailures {
    /// Shows a failure, if the policy says so. That it cannot be shown is logged, and hides nothing: the error is the reconcile's result.
    pub(crate) async fn show(&self, context: &Context, failure: Failure<'_>) {
        if let Err(error) = in_time((self.show)(context, &self.policy, failure)).await {
            if says_more(&error, &failure) {
                let remedy = context.remedy(&error);
                tracing::warn!(%error, remedy, "cannot show a failure in the status");
            } else {
                tracing::debug!(%error, "cannot show a failure in the status");
            }
        }
    }

    /// Takes back what was shown, after a success.
    pub(crate) async fn clear(&self, context: &Context, key: &Key) -> Result<(), Error> {
        in_time((self.clear)(context, &self.policy, key)).await
    }
}

/// Whether somebody who reads of a failure learns more from why it cannot be shown. A conflict wakes the key. What has the same cause is
/// logged with the failure itself: a server that is away at each try, rights that are missing at the first of a row.
fn says_more(error: &Error, failure: &Failure<'_>) -> bool {
    let is_same = error.to_string() == failure.error.to_string();
    let is_alike = error.condition_reason() == failure.error.condition_reason();
    let is_known = is_same || (is_alike && failure.attempts > 1);
    !error.is_conflict() && !is_known
}

async fn in_time(write: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    let late = |_| Err(Error::new(format!("the status was not written within {LONGEST_WRITE:?}")));
    tokio::time::timeout(LONGEST_WRITE, write).await.unwrap_or_else(late)
}

async fn show<K: Object>(context: &Context, policy: &ErrorPolicy, failure: Failure<'_>) -> Result<(), Error> {
    let shown = policy.shown(&failure);
    let Some(object) = context.cache().get::<K>(failure.key) else { return Ok(()) };
    if let Some(event) = shown.event {
        context.record(&*object, event);
    }
    if let (Some(shape), Some((reason, message))) = (&policy.condition, shown.condition) {
        let condition = NewCondition::new(&shape.type_, shape.failed, reason).message(message);
        write(context, &*object, condition).await?;
    }
    Ok(())
}

async fn clear<K: Object>(context: &Context, policy: &ErrorPolicy, key: &Key) -> Result<(), Error> {
    let Some(shape) = policy.condition.as_ref().filter(|shape| shape.failed == Status::True) else {
        return Ok(());
    };
    let Some(object) = context.cache().get::<K>(key) else { return Ok(()) };
    let status = fields_of(&*object, |field| field == "status")?;
    let mut conditions = status["status"]["conditions"].as_array().into_iter().flatten();
    let is_shown = |condition: &serde_json::Value| {
        condition["type"] == shape.type_.as_str() && condition["status"] == shape.failed.as_str()
    };
    if !conditions.any(is_shown) {
        return Ok(());
    }
    let condition = NewCondition::new(&shape.type_, Status::False, SUCCEEDED);
    match write(context, &*object, condition).await {
        Err(error) if error.is_not_found() => Ok(()),
        written => written,
    }
}

/// Writes a condition, and says of that alone which generation it is about: a reconcile that failed has not observed it all.
async fn write<K: Object>(context: &Context, object: &K, condition: NewCondition) -> Result<(), Error> {
    context.expect_whole::<K>(&(), "a condition")?;
    context.status(object).condition(condition.of(object)).silent().await.map(drop)
}

#[cfg(test)]
mod tests {
    use kube::core::Status as Answer;

    use super::*;

    fn refused(message: &str, reason: &str, code: u16) -> Error {
        kube::Error::Api(Answer::failure(message, reason).with_code(code).boxed()).into()
    }

    #[test]
    fn why_a_failure_cannot_be_shown_is_logged_once_and_not_for_the_same_cause() {
        let key = Key::namespaced("default", "x");
        let children = refused("may not create deployments", "Forbidden", 403);
        let status = refused("may not patch pages/status", "Forbidden", 403);
        let says_more = |error: &Error, cause: &Error, attempts| {
            says_more(error, &Failure { error: cause, attempts, key: &key })
        };
        assert!(says_more(&status, &children, 1), "another right is missing, too");
        assert!(!says_more(&status, &children, 2), "that was logged at the first try");
        assert!(!says_more(&status, &status, 1), "the failure says it");
        let failed = Error::new("the cloud does not answer");
        assert!(says_more(&status, &failed, 5), "it has another cause");
        assert!(!says_more(&refused("modified", "Conflict", 409), &failed, 1), "who wrote it wakes the key");
    }
}
