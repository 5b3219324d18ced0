//! Replica sets, and the older replication controllers.

use kubewright_meta::FieldError;
use serde_json::Value;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::pods::{default_template, template};
use super::super::{Generation, NameRule, Rules, fill, selector};
use super::{check_counts, check_selector};

const COUNTS: [&str; 6] = [
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "observedGeneration",
    "terminatingReplicas",
];
const PARTS: [&str; 3] = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];

pub(crate) const fn rules() -> Rules {
    Rules {
        default,
        pod_spec: &["spec", "template", "spec"],
        prepare_create: zero_status,
        unwritten: super::unwritten_replicas,
        generation: Generation::Content,
        validate: |object| Errors::of(|errors| check(&At::root(object).get("spec"), errors)),
        validate_update: |new, old| {
            Errors::of(|errors| {
                let (new, old) = (At::root(new).get("spec"), At::root(old).get("spec"));
                check(&new, errors);
                selector::immutable(&new.get("selector"), &old.get("selector"), errors);
            })
        },
        validate_status,
        ..Rules::none()
    }
}

fn zero_status(object: &mut Value) {
    fill::set(object, "status", serde_json::json!({"replicas": 0}));
}

fn default(object: &mut Value) {
    default_status(object);
    let Some(spec) = fill::object(object, "spec") else { return };
    default_template(spec, "template");
    fill::absent(spec, "replicas", 1);
}

fn default_status(object: &mut Value) {
    if let Some(status) = fill::object(object, "status") {
        fill::absent(status, "replicas", 0);
    }
}

fn check(spec: &At<'_>, errors: &mut Errors) {
    errors.non_negative(&spec.get("replicas"));
    errors.non_negative(&spec.get("minReadySeconds"));
    let wanted = spec.get("selector");
    let pods = spec.get("template");
    // Kubernetes says "deployment" here too.
    if check_selector(&wanted, "deployment", errors) {
        if !wanted.is_set() || !selector::is_everything(&wanted) {
            template::check_selected(&pods, &wanted, errors);
        }
        template::check(&pods, errors);
        template::check_lasting(&pods, "ReplicaSet", errors);
    } else {
        selector::invalid(&wanted, "invalid label selector", errors);
    }
}

fn validate_status(new: &Value, _old: &Value) -> Vec<FieldError> {
    Errors::of(|errors| check_counts(&At::root(new).get("status"), &COUNTS, &PARTS, "readyReplicas", errors))
}

/// The rules of replication controllers: the selector is a plain map, and takes the template's labels by default.
pub(crate) const fn controllers() -> Rules {
    Rules {
        default: default_controller,
        pod_spec: &["spec", "template", "spec"],
        prepare_create: zero_status,
        generation: Generation::Content,
        name: NameRule::LongName,
        validate: |object| Errors::of(|errors| check_controller(&At::root(object).get("spec"), errors)),
        validate_update: |new, _| Errors::of(|errors| check_controller(&At::root(new).get("spec"), errors)),
        validate_status,
        ..Rules::none()
    }
}

fn default_controller(object: &mut Value) {
    default_status(object);
    let Some(spec) = fill::object(object, "spec") else { return };
    if spec.get("template").is_some_and(Value::is_object) {
        default_template(spec, "template");
    }
    fill::absent(spec, "replicas", 1);
    let labels = spec["template"]["metadata"]["labels"].clone();
    if !labels.is_object() {
        return;
    }
    if At::root(spec).get("selector").is_empty() {
        fill::set(spec, "selector", labels.clone());
    }
    if At::root(object).dig(&["metadata", "labels"]).is_empty()
        && let Some(metadata) = fill::object(object, "metadata")
    {
        fill::set(metadata, "labels", labels);
    }
}

fn check_controller(spec: &At<'_>, errors: &mut Errors) {
    errors.non_negative(&spec.get("minReadySeconds"));
    let wanted = spec.get("selector");
    errors.need(&wanted);
    errors.non_negative(&spec.get("replicas"));
    let pods = spec.get("template");
    if !pods.is_set() {
        errors.required(&pods, "");
        return;
    }
    let labels = pods.dig(&["metadata", "labels"]);
    let selected = wanted
        .value
        .as_object()
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.value.get(key) == Some(value));
    if !selected {
        errors.invalid(&labels, "`selector` does not match template `labels`");
    }
    template::check(&pods, errors);
    template::check_lasting(&pods, "ReplicationController", errors);
}
