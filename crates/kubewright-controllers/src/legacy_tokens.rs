//! Tokens in Secrets that were made for an account by themselves, and that nobody has used for a year: they are marked,
//! and go another year later (`pkg/controller/serviceaccount/legacy_serviceaccount_token_cleaner.go`).
//!
//! Where kube-controller-manager looks once a day, this controller looks when it is time.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, ServiceAccount};
use kube::Api;
use kube::api::{DeleteParams, Preconditions};
use kubewright_runtime::{Context, Controller, Error, Key, Outcome, Reconciler};
use serde_json::json;

use crate::secrets::{TYPED, is_account_token};

const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
/// Where it stands since when uses are noted.
const TRACKING: (&str, &str) = ("kube-system", "kube-apiserver-legacy-service-account-token-tracking");
/// How long a token may be unused (`CleanUpPeriod`).
const PERIOD: SignedDuration = SignedDuration::from_hours(365 * 24);
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// The controller.
pub(crate) fn controller() -> Controller {
    Controller::new("legacy-serviceaccount-token-cleaner-controller", Cleaner)
        .for_kind::<Secret>()
        .selecting(TYPED)
        .reads::<ServiceAccount>()
        .reads::<Pod>()
}

struct Cleaner;

/// What is to be done about a Secret.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    LookAgain(SignedDuration),
    /// It is not good any more since that day.
    Mark(Date),
    Delete,
}

impl Reconciler for Cleaner {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(secret) = ctx.get::<Secret>(key) else { return Ok(Outcome::Done) };
        if !is_account_token(&secret) || secret.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::Done);
        }
        let now = ctx.world().clock.now();
        let mut step = unused(&secret, now);
        if matches!(step, Step::Mark(_) | Step::Delete) {
            step = match tracked_until_now(ctx, now).await? {
                Some(wait) => Step::LookAgain(wait),
                None if !is_made_by_itself(ctx, &secret) => Step::Nothing,
                None if is_mounted(ctx, &secret) => Step::LookAgain(DAY),
                None => step,
            };
        }
        match step {
            Step::Nothing => Ok(Outcome::Done),
            Step::LookAgain(wait) => Ok(Outcome::RequeueAfter(Duration::try_from(wait).unwrap_or_default())),
            Step::Mark(day) => {
                let uid = secret.metadata.uid.as_deref();
                let patch = json!({"metadata": {"uid": uid, "labels": {INVALID_SINCE: day.to_string()}}});
                gone_is_fine(ctx.patch::<Secret>(key, patch).await)
            }
            Step::Delete => {
                let resource_version = secret.metadata.resource_version.clone();
                let preconditions = Some(Preconditions { uid: None, resource_version });
                let params = DeleteParams { preconditions, ..DeleteParams::default() };
                gone_is_fine(ctx.delete::<Secret>(key, params).await)
            }
        }
    }
}

fn gone_is_fine<T>(written: Result<T, Error>) -> Result<Outcome, Error> {
    match written {
        Err(error) if !error.is_not_found() && !error.is_conflict() => Err(error),
        _ => Ok(Outcome::Done),
    }
}

/// What its own dates say about a Secret.
fn unused(secret: &Secret, now: Timestamp) -> Step {
    let created = secret.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
    let age = now.duration_since(created);
    if age <= PERIOD {
        return Step::LookAgain(PERIOD - age + SignedDuration::from_secs(1));
    }
    let label = |name: &str| secret.metadata.labels.as_ref().and_then(|labels| labels.get(name));
    match label(LAST_USED).map(|day| day.parse::<Date>()) {
        Some(Err(_)) => return Step::Nothing,
        Some(Ok(day)) if left(day, now) > SignedDuration::ZERO => return Step::LookAgain(left(day, now)),
        _ => {}
    }
    match label(INVALID_SINCE).and_then(|day| day.parse::<Date>().ok()) {
        None => Step::Mark(now.to_zoned(TimeZone::UTC).date()),
        Some(day) if left(day, now) > SignedDuration::ZERO => Step::LookAgain(left(day, now)),
        Some(_) => Step::Delete,
    }
}

/// How long until the day was so long ago that it does not count.
fn left(day: Date, now: Timestamp) -> SignedDuration {
    after(day).map_or(SignedDuration::ZERO, |next| PERIOD - now.duration_since(next))
}

/// The beginning of the day after.
fn after(day: Date) -> Option<Timestamp> {
    Some(day.checked_add(1.day()).ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// How long until uses have been noted for long enough; none when they have.
async fn tracked_until_now(ctx: &Context, now: Timestamp) -> Result<Option<SignedDuration>, Error> {
    let (namespace, name) = TRACKING;
    let tracking = Api::<ConfigMap>::namespaced(ctx.client().clone(), namespace).get_opt(name).await?;
    let since = tracking.and_then(|map| map.data?.remove("since")).and_then(|day| day.parse::<Date>().ok());
    let Some(since) = since.and_then(after) else { return Ok(Some(DAY)) };
    let left = PERIOD - now.duration_since(since);
    Ok((left > SignedDuration::ZERO).then_some(left))
}

/// Whether its account names the Secret: then nobody asked for it.
fn is_made_by_itself(ctx: &Context, secret: &Secret) -> bool {
    let annotation = |name: &str| {
        let annotations = secret.metadata.annotations.as_ref();
        annotations.and_then(|all| all.get(name)).filter(|value| !value.is_empty())
    };
    let namespace = secret.metadata.namespace.as_deref().unwrap_or_default();
    let account = annotation("kubernetes.io/service-account.name")
        .and_then(|name| ctx.get::<ServiceAccount>(&Key::namespaced(namespace, name)));
    account.is_some_and(|account| {
        let uid = annotation("kubernetes.io/service-account.uid");
        let is_it = uid.is_none_or(|uid| account.metadata.uid.as_ref() == Some(uid));
        is_it && account.secrets.iter().flatten().any(|named| named.name == secret.metadata.name)
    })
}

fn is_mounted(ctx: &Context, secret: &Secret) -> bool {
    let Some(name) = secret.metadata.name.as_deref() else { return false };
    ctx.list::<Pod>(secret.metadata.namespace.as_deref()).iter().any(|pod| secrets_of(pod).contains(name))
}

/// The Secrets that a pod names anywhere (`VisitPodSecretNames`).
fn secrets_of(pod: &Pod) -> BTreeSet<String> {
    fn collect(value: &serde_json::Value, names: &mut BTreeSet<String>) {
        match value {
            serde_json::Value::Object(fields) => {
                for (field, value) in fields {
                    let named = match field.as_str() {
                        "secretName" => value.as_str(),
                        "secretRef" | "secretKeyRef" | "secret" | "nodePublishSecretRef" => {
                            value["name"].as_str()
                        }
                        _ => None,
                    };
                    names.extend(named.map(str::to_owned));
                    collect(value, names);
                }
            }
            serde_json::Value::Array(values) => values.iter().for_each(|value| collect(value, names)),
            _ => {}
        }
    }
    let mut names = BTreeSet::new();
    let Some(spec) = &pod.spec else { return names };
    names.extend(spec.image_pull_secrets.iter().flatten().map(|secret| secret.name.clone()));
    for part in [json!(spec.volumes), json!(spec.containers), json!(spec.init_containers)] {
        collect(&part, &mut names);
    }
    names
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START as NOW;
    use serde_json::Value;

    use super::*;

    fn secret(labels: &Value) -> Secret {
        kubewright_objects::from_value(json!({"metadata": {"name": "t", "creationTimestamp": NOW.to_string(),
            "labels": labels}}))
        .expect("a secret")
    }

    fn days(count: i64) -> Timestamp {
        NOW + SignedDuration::from_hours(24 * count)
    }

    fn day(count: i64) -> String {
        days(count).to_zoned(TimeZone::UTC).date().to_string()
    }

    #[test]
    fn a_token_is_marked_a_year_after_its_last_use_and_goes_another_year_later() {
        let fresh = secret(&json!({}));
        assert!(matches!(unused(&fresh, days(300)), Step::LookAgain(_)));
        assert!(matches!(unused(&fresh, days(366)), Step::Mark(_)));
        let used = secret(&json!({LAST_USED: day(100)}));
        assert!(matches!(unused(&used, days(400)), Step::LookAgain(_)));
        assert!(matches!(unused(&used, days(467)), Step::Mark(_)));
        let marked = secret(&json!({INVALID_SINCE: day(366)}));
        assert!(matches!(unused(&marked, days(400)), Step::LookAgain(_)));
        assert_eq!(unused(&marked, days(366 + 367)), Step::Delete);
    }

    #[test]
    fn a_label_that_is_no_day_keeps_it() {
        assert_eq!(unused(&secret(&json!({LAST_USED: "never"})), days(800)), Step::Nothing);
        assert!(matches!(unused(&secret(&json!({INVALID_SINCE: "x"})), days(800)), Step::Mark(_)));
    }

    #[test]
    fn secrets_are_found_wherever_a_pod_names_them() {
        let pod: Pod = kubewright_objects::from_value(json!({"spec": {
            "imagePullSecrets": [{"name": "pull"}],
            "containers": [{"name": "c", "envFrom": [{"secretRef": {"name": "env"}}],
                "env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "key", "key": "k"}}}]}],
            "volumes": [{"name": "v", "secret": {"secretName": "volume"}},
                {"name": "p", "projected": {"sources": [{"secret": {"name": "projected"}}]}},
                {"name": "m", "configMap": {"name": "map"}}]}}))
        .expect("a pod");
        let found: Vec<String> = secrets_of(&pod).into_iter().collect();
        assert_eq!(found, ["env", "key", "projected", "pull", "volume"]);
    }
}
