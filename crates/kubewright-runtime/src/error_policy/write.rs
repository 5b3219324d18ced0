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
            let (controller, key) = (context.controller(), failure.key);
            if error.is_conflict() {
                // Who wrote it wakes the key.
                tracing::debug!(controller, %key, %error, "cannot show a failure");
            } else {
                let remedy = context.remedy(&error);
                tracing::warn!(controller, %key, %error, remedy, "cannot show a failure in the status");
            }
        }
    }

    /// Takes back what was shown, after a success.
    pub(crate) async fn clear(&self, context: &Context, key: &Key) -> Result<(), Error> {
        in_time((self.clear)(context, &self.policy, key)).await
    }
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
