//! Priority: the name of a priority class becomes a number (`k8s.io/kubernetes/plugin/pkg/admission/priority`).

use kubewright_kinds::built_in::scheduling::priority_class::PRIORITY_CLASS;
use kubewright_meta::{ApiError, object};
use serde_json::Value;

use super::refusal::forbidden;
use super::{AdmissionPlugin, Operation, Plugin, Review};

/// Gives a pod the priority of its class, and allows one default class.
pub(super) struct Priority;

impl AdmissionPlugin for Priority {
    fn name(&self) -> Plugin {
        Plugin::Priority
    }

    fn handles(&self, review: &Review<'_>) -> bool {
        review.is_of_whole()
    }

    fn mutate(&self, review: &Review<'_>, pod: &mut Value) -> Result<(), ApiError> {
        if review.is_of_pod() { mutate(review, pod) } else { Ok(()) }
    }

    fn validate(&self, review: &Review<'_>, class: &Value, _: &mut Vec<String>) -> Result<(), ApiError> {
        if review.is_of_pod() { Ok(()) } else { validate_class(review, class) }
    }
}

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
fn mutate(review: &Review<'_>, pod: &mut Value) -> Result<(), ApiError> {
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
    match pod["spec"]["priorityClassName"].as_str().filter(|name| !name.is_empty()) {
        Some(name) => match review.objects.object(&PRIORITY_CLASS, name) {
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
    let classes = review.objects.mentioning(&PRIORITY_CLASS, "globalDefault\":true");
    let defaults = classes.iter().filter(|class| class["globalDefault"] == true).map(Class::of);
    defaults.min_by_key(|class| class.value)
}

/// Allows one default class.
///
/// # Errors
/// 403 for a second one.
fn validate_class(review: &Review<'_>, class: &Value) -> Result<(), ApiError> {
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

#[cfg(test)]
mod tests {
    use kubewright_kinds::built_in::core::pod::POD;
    use serde_json::json;

    use super::*;
    use crate::admission::fake::Fake;

    fn classes() -> Fake {
        let class = |name: &str, value: i64, default: bool| {
            let class = json!({"metadata": {"name": name}, "value": value, "globalDefault": default});
            (&PRIORITY_CLASS, class)
        };
        Fake::with(&[class("high", 9, false), class("usual", 5, true)])
    }

    fn admitted(spec: &Value) -> Result<Value, String> {
        let (fake, mut pod) = (classes(), json!({"metadata": {"name": "p"}, "spec": spec}));
        let outcome = Priority.mutate(&fake.review(&POD, Operation::Create), &mut pod);
        outcome.map(|()| pod["spec"].take()).map_err(|error| error.message)
    }

    #[test]
    fn a_pod_gets_the_priority_of_its_class_or_of_the_default_one() {
        let of = |spec| admitted(&spec).map(|spec| spec["priority"].clone());
        assert_eq!(of(json!({"priorityClassName": "high"})), Ok(json!(9)));
        assert_eq!(of(json!({})), Ok(json!(5)));
        let missing = of(json!({"priorityClassName": "none"})).expect_err("there is none");
        assert!(missing.ends_with("no PriorityClass with name none was found"), "{missing}");
        assert!(of(json!({"priorityClassName": "high", "priority": 1})).is_err());
    }

    #[test]
    fn one_class_is_the_default() {
        let fake = classes();
        let review = fake.review(&PRIORITY_CLASS, Operation::Create);
        let of = |class: Value| Priority.validate(&review, &class, &mut Vec::new());
        assert!(of(json!({"metadata": {"name": "x"}, "value": 1})).is_ok());
        assert!(of(json!({"metadata": {"name": "x"}, "value": 1, "globalDefault": true})).is_err());
    }
}
