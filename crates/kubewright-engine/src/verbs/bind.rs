//! Binding: a pod gets its node (`k8s.io/kubernetes/pkg/registry/core/pod/storage`, `BindingREST`).

use http::StatusCode;
use kubewright_kinds::rules::pods;
use kubewright_meta::{ApiError, object};
use serde_json::{Value, json};

use super::Part;
use super::preconditions::precondition_failed;
use crate::admission::{self, Review};
use crate::engine::Engine;
use crate::request::Call;

/// Binds the pod that `call` names as a `Binding` says. `review` is the request as admission sees it.
///
/// # Errors
/// 400 for a binding of another pod; 404; 409 for a pod that is bound, being deleted or not ready for it, or when a
/// precondition does not hold; 500 (as in Kubernetes) for a target that is no node.
pub async fn bind(
    engine: &Engine,
    call: Call<'_>,
    review: &Review<'_>,
    mut binding: Value,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    admission::mutate(review, &mut binding, warnings).await?;
    if object::name(&binding) != call.name {
        return Err(ApiError::bad_request("name in URL does not match name in Binding object"));
    }
    call.kind.rules.within(|| refuse(&binding))?;
    admission::validate(review, &binding, warnings).await?;
    let now = object::time(engine.world().clock.now());
    let edit = |pod: &mut Value| {
        check_preconditions(call, review.dry_run, &binding, pod)?;
        set_node(pod, call.name, &binding, &now).map_err(|why| conflict(call.name, &why))
    };
    super::edit(engine, call, Part::Trusted, review.dry_run, &edit).await.map(drop)
}

/// A binding that is no good: its mistakes are told as they are, and not as an invalid object.
fn refuse(binding: &Value) -> Result<(), ApiError> {
    let errors: Vec<String> = pods::validate_binding(binding).iter().map(ToString::to_string).collect();
    match errors.as_slice() {
        [] => Ok(()),
        [one] => Err(ApiError::unexplained(one)),
        many => Err(ApiError::unexplained(format!("[{}]", many.join(", ")))),
    }
}

fn check_preconditions(call: Call<'_>, dry_run: bool, binding: &Value, pod: &Value) -> Result<(), ApiError> {
    let asked = [
        ("UID", object::uid(binding), object::uid(pod)),
        ("ResourceVersion", object::resource_version(binding), object::resource_version(pod)),
    ];
    for (what, given, current) in asked {
        if !given.is_empty() && given != current {
            return Err(precondition_failed(call, dry_run, what, given, current));
        }
    }
    Ok(())
}

/// Makes the pod one of the node, with the annotations of the binding.
fn set_node(pod: &mut Value, name: &str, binding: &Value, now: &Value) -> Result<(), String> {
    if object::is_deleting(pod) {
        return Err(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    if let Some(bound) = pod["spec"]["nodeName"].as_str().filter(|bound| !bound.is_empty()) {
        return Err(format!("pod {name} is already assigned to node {bound:?}"));
    }
    if pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        return Err(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    object::member_mut(pod, "spec").insert("nodeName".into(), binding["target"]["name"].clone());
    for field in ["annotations", "labels"] {
        if let Some(given) = binding["metadata"][field].as_object().filter(|all| !all.is_empty()) {
            let all = object::meta_mut(pod).entry(field).or_insert_with(|| json!({}));
            object::as_map(all).extend(given.clone());
        }
    }
    object::member_mut(pod, "status").remove("nominatedNodeName");
    set_condition(pod, json!({"type": "PodScheduled", "status": "True"}), now);
    Ok(())
}

fn conflict(name: &str, why: &str) -> ApiError {
    const RESOURCE: &str = "pods/binding";
    ApiError::new(
        StatusCode::CONFLICT,
        "Conflict",
        format!("Operation cannot be fulfilled on {RESOURCE} {name:?}: {why}"),
    )
    .with_details(json!({"name": name, "kind": RESOURCE}))
}

/// Sets a condition of a pod, in its place; its time is now, unless it had that status before (`UpdatePodCondition` in
/// `k8s.io/kubernetes/pkg/api/pod`).
pub(super) fn set_condition(pod: &mut Value, mut condition: Value, now: &Value) {
    let conditions = object::member_mut(pod, "status").entry("conditions").or_insert_with(|| json!([]));
    let Value::Array(conditions) = conditions else { return };
    condition["lastProbeTime"] = Value::Null;
    condition["lastTransitionTime"] = now.clone();
    match conditions.iter_mut().find(|one| one["type"] == condition["type"]) {
        Some(one) => {
            if one["status"] == condition["status"] {
                condition["lastTransitionTime"] = one["lastTransitionTime"].clone();
            }
            *one = condition;
        }
        None => conditions.push(condition),
    }
}
