//! Eviction: a pod is deleted where its disruption budget allows it
//! (`k8s.io/kubernetes/pkg/registry/core/pod/storage/eviction.go`).

use http::StatusCode;
use jiff::Timestamp;
use kubewright_codec::request::Query;
use kubewright_kinds::built_in::policy::pod_disruption_budget::POD_DISRUPTION_BUDGET;
use kubewright_kinds::encode;
use kubewright_meta::selector::LabelSelector;
use kubewright_meta::{ApiError, FieldError, object};
use serde_json::{Value, json};

use super::{Part, bind, delete, edit};
use crate::admission::{self, Review};
use crate::engine::{Engine, SERVER};
use crate::request::{Call, DeleteOptions, Parsed, WriteOptions};

/// The most evictions that a budget may have unconfirmed by its controller.
const MOST_DISRUPTED: usize = 2000;
/// How often a write of others is given way to.
const ATTEMPTS: usize = 20;
const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// Evicts the pod that `call` names, as an `Eviction` says.
///
/// # Errors
/// 400 for an eviction of another pod; 404; 409 when a precondition does not hold; 429 when the pod's budget does
/// not allow it now; 500 (as in Kubernetes) for a pod with several budgets; and what admission has against it.
pub async fn evict(
    engine: &Engine,
    call: Call<'_>,
    mut eviction: Value,
    write: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    let review = Review::of_new(engine, call, "eviction", write);
    admission::mutate(&review, &mut eviction, warnings).await?;
    check(call, &eviction)?;
    check_dry_run(&eviction, write.dry_run)?;
    admission::validate(&review, &eviction, warnings).await?;
    // Options that are part of an object say a type that nobody reads.
    let mut given = eviction["deleteOptions"].clone();
    if let Some(given) = given.as_object_mut() {
        given.retain(|field, _| !["apiVersion", "kind"].contains(&field.as_str()));
    }
    let mut options = DeleteOptions::parse(call.kind.kubernetes(), &Query::default(), Some(&given))?;
    options.said.dry_run |= write.dry_run;
    Admitted { engine, call, options }.within_budget().await
}

/// An eviction that admission let through.
struct Admitted<'a> {
    engine: &'a Engine,
    /// The pod.
    call: Call<'a>,
    /// How the pod is deleted. What is wrong with them is found there, when the budget was asked and the pod is marked.
    options: Parsed,
}

impl Admitted<'_> {
    async fn within_budget(&self) -> Result<(), ApiError> {
        let options = &self.options.said;
        let Some(pod) = self.freely().await? else { return Ok(()) };
        let Some(budget) = budget_of(self.engine, &pod)? else { return self.mark_and_delete(options).await };
        let name = object::name(&budget);
        if !is_spare(&pod, &budget) {
            take_from(self.engine, self.call, name, options.dry_run).await?;
            return self.mark_and_delete(options).await;
        }
        // It must be the pod that was looked at: by now it might be ready, and count.
        match self.mark_and_delete(&at_version(options, &pod)).await {
            Err(error) if error.reason == "Conflict" && options.resource_version.is_none() => {
                Err(still_processed(name))
            }
            outcome => outcome,
        }
    }

    /// Deletes a pod that no budget guards: it has ended, or has not begun. Gives the pod where one may guard it.
    async fn freely(&self) -> Result<Option<Value>, ApiError> {
        let options = &self.options.said;
        let mut attempts = ATTEMPTS;
        loop {
            attempts -= 1;
            let pod = encode::value(self.call.kind, &*self.engine.entry(self.call)?);
            let phase = pod["status"]["phase"].as_str().unwrap_or_default();
            let has_ended = matches!(phase, "Succeeded" | "Failed") || object::is_deleting(&pod);
            if !has_ended && phase != "Pending" {
                return Ok(Some(pod));
            }
            // One that has not begun might be about to.
            let options = if has_ended || options.resource_version.is_some() {
                options.clone()
            } else {
                at_version(options, &pod)
            };
            match self.mark_and_delete(&options).await {
                Err(error) if error.reason == "Conflict" && attempts > 0 => {}
                outcome => return outcome.map(|()| None),
            }
        }
    }

    /// Tells the pod why it goes, and deletes it by these options (`addConditionAndDeletePod`).
    async fn mark_and_delete(&self, options: &DeleteOptions) -> Result<(), ApiError> {
        let mut options = options.clone();
        if !options.dry_run {
            let now = object::time(self.engine.world().clock.now());
            let edit = |pod: &mut Value| {
                check_preconditions(pod, &options)?;
                set_condition(pod, &now);
                Ok(())
            };
            let written = edit::edit(self.engine, self.call, Part::Trusted, false, &edit).await?;
            if options.resource_version.is_some() {
                let pod: Value = serde_json::from_slice(written.result.bytes()).unwrap_or_default();
                options.resource_version = Some(object::resource_version(&pod).to_owned());
            }
        }
        self.options.check()?;
        delete::delete_admitted(self.engine, self.call, &options).await
    }
}

/// The budget of a pod.
fn budget_of(engine: &Engine, pod: &Value) -> Result<Option<Value>, ApiError> {
    let snapshot = engine.snapshot();
    let prefix = format!("{}/", object::namespace(pod));
    let labels = object::labels(pod);
    let mut budgets = snapshot
        .range(POD_DISRUPTION_BUDGET.collection(), &prefix, None)
        .map(|entry| serde_json::from_slice::<Value>(&entry.bytes).unwrap_or_default())
        .filter(|budget| selects(budget, &labels));
    let first = budgets.next();
    if budgets.next().is_some() {
        return Err(ApiError::unexplained(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        ));
    }
    Ok(first)
}

/// Takes one disruption from a budget: a compare-and-swap of its status, so that no two evictions take the same.
async fn take_from(engine: &Engine, call: Call<'_>, name: &str, dry_run: bool) -> Result<(), ApiError> {
    let Some(kind) = engine.kinds().find(&POD_DISRUPTION_BUDGET).cloned() else {
        return Ok(());
    };
    let now = engine.world().clock.now();
    let edit = |budget: &mut Value| take(budget, call.name, now);
    let budget = Call { kind: &kind, namespace: call.namespace, name, user: &SERVER };
    Box::pin(edit::edit(engine, budget, Part::Status, dry_run, &edit)).await.map(drop)
}

fn check(call: Call<'_>, eviction: &Value) -> Result<(), ApiError> {
    if object::name(eviction) != call.name {
        return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
    }
    const RISKY: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";
    if eviction["deleteOptions"][RISKY] == true {
        let why = "can not be set for pod eviction, try after removing the option";
        let error = FieldError::invalid(format!("deleteOptions.{RISKY}"), true, why);
        return Err(ApiError::invalid_of("policy", "Eviction", call.name, &[error]));
    }
    Ok(())
}

/// A trial that both the request and the eviction ask for is asked for in the same words (`propagateDryRun`).
fn check_dry_run(eviction: &Value, asked: bool) -> Result<(), ApiError> {
    let given: Vec<&str> = eviction["deleteOptions"]["dryRun"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if !asked || given.is_empty() || given == ["All"] {
        return Ok(());
    }
    let given = given.join(" ");
    let why = format!("Non-matching dry-run options in request and content: [All] and [{given}]");
    Err(ApiError::unexplained(why))
}

/// Whether the pod is not ready, so that nobody misses it: its budget says so, or has enough without it.
fn is_spare(pod: &Value, budget: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let is_ready = conditions.into_iter().any(|one| one["type"] == "Ready" && one["status"] == "True");
    if is_ready {
        return false;
    }
    let count = |field: &str| budget["status"][field].as_i64().unwrap_or_default();
    budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
        || (count("currentHealthy") >= count("desiredHealthy") && count("desiredHealthy") > 0)
}

/// Whether a budget is about pods with these labels. One without a selector is about none.
fn selects(budget: &Value, labels: &std::collections::BTreeMap<String, String>) -> bool {
    let selector = &budget["spec"]["selector"];
    selector.is_object()
        && LabelSelector::from_object(selector).is_ok_and(|selector| selector.matches(labels))
}

/// Takes one disruption from a budget for this pod, and notes when.
fn take(budget: &mut Value, pod: &str, now: Timestamp) -> Result<(), ApiError> {
    let name = object::name(budget).to_owned();
    let status = &budget["status"];
    let count = |field: &str| status[field].as_i64().unwrap_or_default();
    if count("observedGeneration") < object::generation(budget) {
        return Err(still_processed(&name));
    }
    let forbidden = |why: &str| ApiError::forbidden("policy", "poddisruptionbudget", &name, why);
    let allowed = count("disruptionsAllowed");
    if allowed < 0 {
        return Err(forbidden("pdb disruptions allowed is negative"));
    }
    if status["disruptedPods"].as_object().is_some_and(|pods| pods.len() > MOST_DISRUPTED) {
        return Err(forbidden(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        ));
    }
    if allowed == 0 {
        return Err(too_many(&why_not(&name, status), None));
    }
    let observed = count("observedGeneration");
    let status = object::member_mut(budget, "status");
    status.insert("disruptionsAllowed".into(), (allowed - 1).into());
    if allowed == 1 {
        let conditions = status.entry("conditions").or_insert_with(|| json!([]));
        exhaust(conditions, observed, now);
    }
    let disrupted = status.entry("disruptedPods").or_insert_with(|| json!({}));
    object::as_map(disrupted).insert(pod.to_owned(), object::time(now));
    Ok(())
}

/// Why a budget allows no disruption.
fn why_not(name: &str, status: &Value) -> String {
    let count = |field: &str| status[field].as_i64().unwrap_or_default();
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let refusal = conditions
        .into_iter()
        .find(|one| one["type"] == "DisruptionAllowed")
        .filter(|one| one["status"] == "False" && !text(one, "message").is_empty());
    let (current, desired) = (count("currentHealthy"), count("desiredHealthy"));
    match refusal {
        Some(one) if one["reason"] == "SyncFailed" => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {}",
            text(one, "message")
        ),
        _ if current <= desired => {
            format!("The disruption budget {name} needs {desired} healthy pods and has {current} currently")
        }
        Some(one) => format!(
            "The disruption budget {name} does not allow evicting pods currently ({}): {}",
            text(one, "reason"),
            text(one, "message")
        ),
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}

/// The condition of a budget that has no disruption left.
fn exhaust(conditions: &mut Value, observed: i64, now: Timestamp) {
    let Value::Array(conditions) = conditions else { return };
    let mut exhausted = json!({
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": observed,
        "lastTransitionTime": object::time(now),
        "reason": "InsufficientPods",
        "message": ""
    });
    match conditions.iter_mut().find(|one| one["type"] == "DisruptionAllowed") {
        Some(one) => {
            if one["status"] == "False" {
                exhausted["lastTransitionTime"] = one["lastTransitionTime"].clone();
            }
            *one = exhausted;
        }
        None => conditions.push(exhausted),
    }
}

fn still_processed(name: &str) -> ApiError {
    too_many(&format!("The disruption budget {name} is still being processed by the server."), Some(10))
}

/// 429, and when to try again where that is known.
fn too_many(cause: &str, seconds: Option<u64>) -> ApiError {
    let mut details = json!({"causes": [{"reason": "DisruptionBudget", "message": cause}]});
    if let Some(seconds) = seconds {
        details["retryAfterSeconds"] = seconds.into();
    }
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", REFUSED).with_details(details)
}

/// The same options for the pod as it was looked at.
fn at_version(options: &DeleteOptions, pod: &Value) -> DeleteOptions {
    DeleteOptions { resource_version: Some(object::resource_version(pod).to_owned()), ..options.clone() }
}

fn check_preconditions(pod: &Value, options: &DeleteOptions) -> Result<(), ApiError> {
    let conflict = |why: String| {
        let name = object::name(pod);
        let message = format!("Operation cannot be fulfilled on Pod {name:?}: {why}");
        Err(ApiError::new(StatusCode::CONFLICT, "Conflict", message)
            .with_details(json!({"name": name, "kind": "Pod"})))
    };
    let (uid, version) = (object::uid(pod), object::resource_version(pod));
    if let Some(given) = options.uid.as_deref().filter(|given| !given.is_empty() && *given != uid) {
        return conflict(format!(
            "the UID in the precondition ({given}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
        ));
    }
    if let Some(given) =
        options.resource_version.as_deref().filter(|given| !given.is_empty() && *given != version)
    {
        return conflict(format!(
            "the ResourceVersion in the precondition ({given}) does not match the ResourceVersion in record ({version}). The object might have been modified"
        ));
    }
    Ok(())
}

/// Says that the pod is being evicted.
fn set_condition(pod: &mut Value, now: &Value) {
    let (reason, message) = ("EvictionByEvictionAPI", "Eviction API: evicting");
    bind::set_condition(
        pod,
        json!({"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}),
        now,
    );
}
