//! Deletes requests some time after they were decided, or when nobody decides (`cleaner/cleaner.go`). Where
//! kube-controller-manager looks once an hour, this one looks when it is time.

use jiff::{SignedDuration, Timestamp};
use kubewright_runtime::{Context, Controller, Error, Key, Outcome, Reconciler};
use kubewright_serve::authority::expiry_of;

use super::{APPROVED, Csr, DENIED, FAILED, conditions, has, issued};

const DECIDED: SignedDuration = SignedDuration::from_hours(1);
const PENDING: SignedDuration = SignedDuration::from_hours(24);
/// An age is more than its limit a moment later.
const MOMENT: SignedDuration = SignedDuration::from_nanos(1);

/// The controller.
pub(crate) fn controller() -> Controller {
    Controller::new("certificatesigningrequest-cleaner-controller", Cleaner).for_kind::<Csr>()
}

struct Cleaner;

impl Reconciler for Cleaner {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(csr) = ctx.get::<Csr>(key) else { return Ok(Outcome::Done) };
        let clock = &ctx.world().clock;
        // Certificates are made by the clock outside.
        let expires = expiry_of(issued(&csr)).filter(|_| has(&csr, APPROVED));
        let expires = expires.map(|end| end.duration_since(clock.outside().now()));
        let left = left(&csr, clock.now()).into_iter().chain(expires).min();
        let Some(left) = left else { return Ok(Outcome::Done) };
        match std::time::Duration::try_from(left + MOMENT) {
            Ok(left) if !left.is_zero() => Ok(Outcome::RequeueAfter(left)),
            _ => match ctx.delete::<Csr>(key, Default::default()).await {
                Err(error) if error.is_not_found() => Ok(Outcome::Done),
                deleted => deleted.map(|_| Outcome::Done),
            },
        }
    }
}

/// How long until its age is at a limit; `None` while there is none.
fn left(csr: &Csr, now: Timestamp) -> Option<SignedDuration> {
    let until = |since: Timestamp, limit: SignedDuration| limit - now.duration_since(since);
    if conditions(csr).is_empty() {
        return csr.metadata.creation_timestamp.as_ref().map(|time| until(time.0, PENDING));
    }
    let limits = conditions(csr).iter().filter_map(|condition| {
        let limit = match condition.type_.as_str() {
            APPROVED if issued(csr).is_empty() => PENDING,
            APPROVED | DENIED | FAILED => DECIDED,
            _ => return None,
        };
        Some(until(condition.last_update_time.as_ref()?.0, limit))
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START as NOW;
    use serde_json::{Value, json};

    use super::super::tests::csr;
    use super::*;

    fn hours_left(conditions: &[&str], certificate: &str) -> Option<i64> {
        let condition =
            |kind: &&str| json!({"type": kind, "status": "True", "lastUpdateTime": NOW.to_string()});
        let conditions: Vec<Value> = conditions.iter().map(condition).collect();
        let mut csr = csr("a.b/c", "", &[], &json!({"conditions": conditions, "certificate": certificate}));
        csr.metadata.creation_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(NOW));
        left(&csr, NOW).map(|left| left.as_hours())
    }

    #[test]
    fn what_is_decided_stays_an_hour_and_all_else_a_day() {
        assert_eq!(hours_left(&[], ""), Some(24));
        assert_eq!(hours_left(&["Approved"], ""), Some(24));
        assert_eq!(hours_left(&["Approved"], "eA=="), Some(1));
        assert_eq!(hours_left(&["Approved", "Failed"], ""), Some(1));
        assert_eq!(hours_left(&["Denied"], ""), Some(1));
        assert_eq!(hours_left(&["Mine"], ""), None);
    }
}
