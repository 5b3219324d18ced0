//! Priority: the name of a priority class becomes a number (`k8s.io/kubernetes/plugin/pkg/admission/priority`).

use kubewright_meta::{ApiError, object};
use serde_json::Value;

use super::refusal::forbidden;
use super::{Operation, Review, stored};

const COLLECTION: &str = "scheduling.k8s.io/priorityclasses";

/// What a class means for a pod.
struct Class {
    name: String,
    value: i64,
    preemption: Option<String>,
}

impl Class {
    fn of(class: &Value) -> Self {
        Self {
            name: object::name(class).to_owned(),
            value: class["value"].as_i64().unwrap_or_default(),
            preemption: class["preemptionPolicy"].as_str().map(str::to_owned),
        }
    }
}

/// Sets the priority of a new pod, and keeps that of a changed one that leaves it out.
///
/// # Errors
/// 403 for a class that is not there, and for a priority that is not that of the class.
pub(super) fn mutate(review: &Review<'_>, pod: &mut Value) -> Result<(), ApiError> {
    match (review.operation, review.old) {
        (Operation::Create, _) => resolve(review, pod),
        (_, Some(old)) => {
            for field in ["priority", "preemptionPolicy"] {
                if let Some(kept) = old["spec"].get(field)
                    && pod["spec"].get(field).is_none_or(Value::is_null)
                {
                    object::member_mut(pod, "spec").insert(field.into(), kept.clone());
                }
            }
            Ok(())
        }
        (_, None) => Ok(()),
    }
}

fn resolve(review: &Review<'_>, pod: &mut Value) -> Result<(), ApiError> {
    let class = class_of(review, pod)?;
    let spec = &pod["spec"];
    if let Some(given) = spec["priority"].as_i64().filter(|given| *given != class.value) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {} from the given PriorityClass name",
            class.value
        );
        return Err(forbidden(review, pod, &why));
    }
    if let (Some(given), Some(policy)) = (spec["preemptionPolicy"].as_str(), &class.preemption)
        && given != policy
    {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
        );
        return Err(forbidden(review, pod, &why));
    }
    let spec = object::member_mut(pod, "spec");
    spec.insert("priority".into(), class.value.into());
    if !class.name.is_empty() {
        spec.insert("priorityClassName".into(), class.name.into());
    }
    if let Some(policy) = class.preemption {
        spec.insert("preemptionPolicy".into(), policy.into());
    }
    Ok(())
}

/// The class that a pod names, else the default of the cluster, else none: priority 0.
fn class_of(review: &Review<'_>, pod: &Value) -> Result<Class, ApiError> {
    let snapshot = review.registry.snapshot();
    match pod["spec"]["priorityClassName"].as_str().filter(|name| !name.is_empty()) {
        Some(name) => match stored::object(&snapshot, COLLECTION, name) {
            Some(class) => Ok(Class::of(&class)),
            None => Err(forbidden(review, pod, &format!("no PriorityClass with name {name} was found"))),
        },
        None => Ok(default_class(review).unwrap_or_else(|| Class {
            name: String::new(),
            value: 0,
            preemption: Some("PreemptLowerPriority".to_owned()),
        })),
    }
}

/// The default class. Should there be several, the one of the lowest value.
fn default_class(review: &Review<'_>) -> Option<Class> {
    let classes = stored::mentioning(&review.registry.snapshot(), COLLECTION, "globalDefault\":true");
    let defaults = classes.iter().filter(|class| class["globalDefault"] == true).map(Class::of);
    defaults.min_by_key(|class| class.value)
}

/// Allows one default class.
///
/// # Errors
/// 403 for a second one.
pub(super) fn validate_class(review: &Review<'_>, class: &Value) -> Result<(), ApiError> {
    if class["globalDefault"] != true {
        return Ok(());
    }
    match default_class(review) {
        Some(other) if review.operation == Operation::Create || other.name != object::name(class) => {
            let why = format!(
                "PriorityClass {} is already marked as default. Only one default can exist",
                other.name
            );
            Err(forbidden(review, class, &why))
        }
        _ => Ok(()),
    }
}
