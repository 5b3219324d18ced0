//! What may change in a pod (`ValidatePodUpdate` and the subresources of a pod).

use std::collections::{BTreeMap, BTreeSet};

use kubewright_meta::FieldError;
use kubewright_spec::Version;
use serde_json::Value;

use super::super::at::{At, canonical, same};
use super::super::errors::Errors;
use super::super::{fill, structs, text, version};
use super::{annotations, check_pod, containers, scheduling};

const CHANGEABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// What is wrong with a changed pod.
pub(super) fn validate(new: &Value, old: &Value) -> Vec<FieldError> {
    Errors::of(|errors| {
        let (new, old) = (At::root(new), At::root(old));
        check_pod(&new, errors);
        let annotations = ["metadata", "annotations"];
        annotations::check_update(&new.dig(&annotations), &old.dig(&annotations), errors);
        // Once more, as in Kubernetes.
        annotations::check(&new.dig(&annotations), &new.get("spec"), errors);
        let (spec, before) = (new.get("spec"), old.get("spec"));
        for list in ["containers", "initContainers"] {
            if spec.get(list).len() != before.get(list).len() {
                errors.forbidden(&spec.get(list), "pod updates may not add or remove containers");
                return;
            }
            // Once more, as in Kubernetes.
            for container in spec.get(list).items() {
                errors.need(&container.get("image"));
                containers::check_image_spaces(&container, errors);
            }
        }
        check_spec(&spec, &before, errors);
    })
}

fn check_spec(spec: &At<'_>, before: &At<'_>, errors: &mut Errors) {
    let (deadline, old_deadline) = (spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"));
    match (deadline.number(), old_deadline.number()) {
        (Some(new), _) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            errors.within(&deadline, 0, i32::MAX.into());
            return;
        }
        (Some(new), Some(old)) if new > old => {
            errors.invalid(&deadline, "must be less than or equal to previous value");
            return;
        }
        (None, Some(_)) => errors.invalid(&deadline, "must not update from a positive integer to nil value"),
        _ => {}
    }
    check_tolerations(&spec.get("tolerations"), &before.get("tolerations"), errors);
    check_gates(&spec.get("schedulingGates"), &before.get("schedulingGates"), errors);
    let mut rest = spec.value.clone();
    for key in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        fill::keep(&mut rest, before.value, key);
    }
    for key in ["containers", "initContainers"] {
        let old = before.get(key);
        let mut images = old.items().map(|container| container.get("image").value.clone());
        fill::each(&mut rest, key, |container| {
            if let Some(image) = images.next() {
                fill::set(container, "image", image);
            }
        });
    }
    if !before.get("schedulingGates").is_empty() {
        check_placement(spec, before, &mut rest, errors);
    }
    if !same(&rest, before.value) {
        let [old, new] = [before.value, &rest].map(internal);
        errors.forbidden(spec, format!("{CHANGEABLE}\n{}", structs::difference("core.PodSpec", &old, &new)));
    }
}

/// A pod's spec as `structs.txt` has it: what it shares with its host is in its security context.
pub(in crate::rules) fn internal(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let shared = ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"];
    let shared: Vec<_> = shared.iter().filter_map(|key| Some((*key, spec.get(key)?.clone()))).collect();
    if let Some(context) = fill::object(&mut spec, "securityContext") {
        for (key, value) in shared {
            fill::set(context, key, value);
        }
    }
    spec
}

/// A pod that waits at a gate may be given less room: nodes it may run on may be taken away (`ValidatePodUpdate`).
/// What was looked at here is reset in `rest`.
fn check_placement(spec: &At<'_>, before: &At<'_>, rest: &mut Value, errors: &mut Errors) {
    let (now, then) = (spec.get("nodeSelector"), before.get("nodeSelector"));
    if !now.same_or_empty(&then) {
        let kept = then.entries().all(|(key, old)| now.value.get(key) == Some(old.value));
        if !kept {
            errors
                .invalid(&now, "only additions to spec.nodeSelector are allowed (no mutations or deletions)");
        }
        fill::keep(rest, before.value, "nodeSelector");
    }
    let node = ["affinity", "nodeAffinity"];
    let (now, then) = (spec.dig(&node), before.dig(&node));
    if now.same(&then) {
        return;
    }
    check_node_affinity(&now, &then, errors);
    // The rest of the affinity stays.
    let Some(affinity) = fill::object(rest, "affinity") else { return };
    if then.is_set() {
        fill::set(affinity, "nodeAffinity", then.value.clone());
    } else {
        fill::remove(affinity, "nodeAffinity");
    }
    if affinity.as_object().is_some_and(serde_json::Map::is_empty) && !before.get("affinity").is_set() {
        fill::remove(rest, "affinity");
    }
}

/// Terms of an affinity may be added where there were none, and narrowed (`validateNodeAffinityMutation`).
fn check_node_affinity(now: &At<'_>, then: &At<'_>, errors: &mut Errors) {
    let terms = ["requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"];
    let (new, old) = (now.dig(&terms), then.dig(&terms));
    if old.is_empty() {
        return;
    }
    if new.len() != old.len() {
        errors.invalid(&new, "no additions/deletions to non-empty NodeSelectorTerms list are allowed");
        return;
    }
    for (new, old) in new.items().zip(old.items()) {
        let grown = ["matchExpressions", "matchFields"].iter().all(|list| {
            let (mut now, then) = (new.get(list).items(), old.get(list));
            then.items().all(|old| now.next().is_some_and(|new| new.same(&old)))
        });
        if !grown {
            errors.push(
                FieldError::invalid(
                    &new.path,
                    Value::Null,
                    "only additions are allowed (no mutations or deletions)",
                )
                .printed(printed_term(&new)),
            );
        }
    }
}

/// A term as Go prints it.
fn printed_term(term: &At<'_>) -> String {
    let list = |name: &str| {
        let requirements: Vec<String> = term
            .get(name)
            .items()
            .map(|one| {
                format!(
                    "{{\"Key\":{},\"Operator\":{},\"Values\":{}}}",
                    Value::from(one.get("key").text()),
                    Value::from(one.get("operator").text()),
                    one.get("values").value
                )
            })
            .collect();
        if term.get(name).is_set() { format!("[{}]", requirements.join(",")) } else { "null".to_owned() }
    };
    format!("{{\"MatchExpressions\":{},\"MatchFields\":{}}}", list("matchExpressions"), list("matchFields"))
}

/// Tolerations may be added; of an old one only the seconds may change.
fn check_tolerations(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let lasting = |toleration: At<'_>| {
        let mut toleration = toleration.value.clone();
        fill::remove(&mut toleration, "tolerationSeconds");
        canonical(&toleration).to_string()
    };
    let there: BTreeSet<String> = new.items().map(lasting).collect();
    let kept = old.items().all(|old| there.contains(&lasting(old)));
    if kept {
        scheduling::check_tolerations(new, errors);
    } else {
        errors.forbidden(new, "existing toleration can not be modified except its tolerationSeconds");
    }
}

fn check_gates(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let known: BTreeSet<&str> = old.items().map(|gate| gate.get("name").text()).collect();
    for gate in new.items() {
        let name = gate.get("name");
        if !known.contains(name.text()) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{}'", name.text());
            errors.forbidden(&name, detail);
        }
    }
}

/// What is wrong with a write to `pods/ephemeralcontainers`: old ones stay as they are
/// (`ValidatePodEphemeralContainersUpdate`).
#[must_use]
pub fn validate_ephemeral_containers(new: &Value, old: &Value) -> Vec<FieldError> {
    Errors::of(|errors| {
        let (new, old) = (At::root(new), At::root(old));
        check_pod(&new, errors);
        let list = new.dig(&["spec", "ephemeralContainers"]);
        let mut now: BTreeMap<&str, At<'_>> = BTreeMap::new();
        for container in list.items() {
            now.entry(container.get("name").text()).or_insert(container);
        }
        for before in old.dig(&["spec", "ephemeralContainers"]).items() {
            let name = before.get("name").text();
            match now.get(name) {
                None => {
                    errors.forbidden(
                        &list,
                        format!("existing ephemeral containers {name:?} may not be removed\n"),
                    );
                }
                Some(now) if !now.same(&before) => {
                    errors.forbidden(
                        &list,
                        format!(
                            "existing ephemeral containers {name:?} may not be changed\n{}",
                            structs::difference("core.EphemeralContainer", before.value, now.value)
                        ),
                    );
                }
                Some(_) => {}
            }
        }
    })
}

/// What is wrong with a `Binding` (`ValidatePodBinding`).
#[must_use]
pub fn validate_binding(binding: &Value) -> Vec<FieldError> {
    Errors::of(|errors| {
        let target = At::root(binding).get("target");
        if !matches!(target.get("kind").text(), "" | "Node") {
            errors.not_supported(&target.get("kind"), &["Node", "<empty>"]);
        }
        let is_named = errors.need(&target.get("name"));
        if is_named && matches!(target.get("kind").text(), "" | "Node") && version::since(Version::V1_37) {
            errors.text(&target.get("name"), text::subdomain);
        }
    })
}
