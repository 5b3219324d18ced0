//! Jobs.

use kubewright_meta::FieldError;
use serde_json::{Value, json};

use super::super::at::{At, same};
use super::super::errors::{Errors, IMMUTABLE};
use super::super::pods::{default_template, internal, template};
use super::super::{Again, Generation, Rules, fill, printed, selector, structs, text, version};
use super::{failure, job_status};

/// The labels that tie pods to their job: the present ones and those without a domain, from older versions.
const UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];
const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];
const FIXED: [&str; 5] =
    ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"];
/// What of these is printed as a struct.
const FIXED_STRUCTS: [(&str, &str); 2] =
    [("podFailurePolicy", "*batch.PodFailurePolicy"), ("successPolicy", "*batch.SuccessPolicy")];

pub(crate) const fn rules() -> Rules {
    Rules {
        pod_spec: &["spec", "template", "spec"],
        default: |object| {
            fill::object(object, "status");
            default_spec(object);
            // Those of a new job's template are not complete yet.
            let spec = At::root(object).get("spec");
            let labelled = spec.dig(&["template", "metadata", "labels"]).get(UID_LABELS[1]).is_set();
            if labelled || spec.get("manualSelector").is_true() {
                labels_from_template(object);
            }
        },
        prepare_create: |object| {
            fill::set(object, "status", json!({}));
            let has_labels =
                At::root(object).dig(&["spec", "template", "metadata", "labels"]).value.is_object();
            generate_selector(object);
            // They are one map in Go, which the selector has added to; where the template had none, they come when the job is read.
            if has_labels {
                labels_from_template(object);
            }
        },
        complete: Some(labels_from_template),
        // Its labels are those of a template that has some only once the job is prepared.
        lacks_defaults: |object| {
            let of_template = At::root(object).dig(&["spec", "template", "metadata", "labels"]);
            At::root(object).dig(&["metadata", "labels"]).is_empty() && !of_template.is_set()
        },
        generation: Generation::Content,
        again: Again::Object,
        validate: |object| Errors::of(|errors| check(&At::root(object), errors)),
        validate_update,
        validate_status: job_status::validate,
        ..Rules::none()
    }
}

/// The defaults of the job spec of an object: a job, or the template of a cron job.
pub(super) fn default_spec(object: &mut Value) {
    let Some(spec) = fill::object(object, "spec") else { return };
    default_template(spec, "template");
    let set = |spec: &Value, key: &str| spec.get(key).is_some_and(|value| !value.is_null());
    if !set(spec, "completions") && !set(spec, "parallelism") {
        fill::set(spec, "completions", 1);
    }
    fill::absent(spec, "parallelism", 1);
    let limit = if set(spec, "backoffLimitPerIndex") { i32::MAX } else { 6 };
    fill::absent(spec, "backoffLimit", limit);
    fill::absent(spec, "completionMode", "NonIndexed");
    fill::absent(spec, "suspend", false);
    let replacement = if set(spec, "podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    fill::absent(spec, "podReplacementPolicy", replacement);
    fill::absent(spec, "manualSelector", false);
    failure::default(spec);
}

fn labels_from_template(object: &mut Value) {
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    let own = At::root(object).dig(&["metadata", "labels"]).is_empty();
    if own
        && labels.is_object()
        && let Some(metadata) = fill::object(object, "metadata")
    {
        fill::set(metadata, "labels", labels);
    }
}

/// Makes the pods of the job its own, unless its author manages the selector (`generateSelectorIfNeeded`).
fn generate_selector(object: &mut Value) {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let (name, uid) = (text("name"), text("uid"));
    let Some(spec) = fill::present(object, "spec") else { return };
    if spec.get("manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let labels = fill::object(spec, "template")
        .and_then(|template| fill::object(template, "metadata"))
        .and_then(|metadata| fill::map(metadata, "labels"));
    if let Some(labels) = labels {
        for (keys, value) in [(NAME_LABELS, &name), (UID_LABELS, &uid)] {
            for key in keys {
                labels.entry(key).or_insert_with(|| value.as_str().into());
            }
        }
    }
    if let Some(wanted) =
        fill::object(spec, "selector").and_then(|selector| fill::map(selector, "matchLabels"))
    {
        wanted.entry(UID_LABELS[1]).or_insert_with(|| uid.into());
    }
}

fn check(job: &At<'_>, errors: &mut Errors) {
    let spec = job.get("spec");
    check_generated_selector(job, &spec, errors);
    check_own_spec(&spec, errors);
    let completions = spec.get("completions").number().unwrap_or_default();
    if spec.get("completionMode").text() == "Indexed" && completions > 0 {
        let name = job.dig(&["metadata", "name"]);
        let last = format!("{}-{}", name.text(), completions - 1);
        if !text::label(&last).is_empty() {
            errors.invalid_text(&name, format!("will not able to create pod with invalid DNS label: {last}"));
        }
    }
}

fn check_generated_selector(job: &At<'_>, spec: &At<'_>, errors: &mut Errors) {
    let wanted = spec.get("selector");
    if spec.get("manualSelector").is_true() || !wanted.is_set() {
        return;
    }
    let (uid, name) = (job.dig(&["metadata", "uid"]), job.dig(&["metadata", "name"]));
    errors.need(&uid);
    let labels = spec.dig(&["template", "metadata", "labels"]);
    let mut expected = json!({});
    for index in 0..2 {
        for (key, value) in [(UID_LABELS[index], uid.text()), (NAME_LABELS[index], name.text())] {
            check_has_label(&labels, key, value, errors);
            fill::set(&mut expected, key, value);
        }
    }
    if selector::selects(&wanted, &expected) == Some(false) {
        let error = FieldError::invalid(&wanted.path, Value::Null, "`selector` not auto-generated");
        errors.push(error.printed(printed::selector(wanted.value)));
    }
}

fn check_has_label(labels: &At<'_>, key: &str, value: &str, errors: &mut Errors) {
    let label = labels.entry(key);
    if !label.is_set() {
        errors.required(&label, &format!("must be '{value}'"));
    } else if label.text() != value {
        errors.invalid_as(&label, labels.value.clone(), format!("must be '{value}'"));
    }
}

fn check_own_spec(spec: &At<'_>, errors: &mut Errors) {
    check_spec(spec, errors);
    let wanted = spec.get("selector");
    if !wanted.is_set() {
        errors.required(&wanted, "");
    }
    selector::check(&wanted, errors);
    template::check_selected(&spec.get("template"), &wanted, errors);
}

/// What holds for the spec of a job and for the one in a cron job (`validateJobSpec`).
pub(super) fn check_spec(spec: &At<'_>, errors: &mut Errors) {
    let numbers = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    for field in numbers {
        errors.non_negative(&spec.get(field));
    }
    if spec.get("maxFailedIndexes").is_set() && !spec.get("backoffLimitPerIndex").is_set() {
        errors.required(&spec.get("backoffLimitPerIndex"), "when maxFailedIndexes is specified");
    }
    check_managed_by(&spec.get("managedBy"), errors);
    check_completion_mode(spec, errors);
    failure::check(spec, errors);
    let replacement = spec.get("podReplacementPolicy");
    let allowed: &[&str] =
        if spec.get("podFailurePolicy").is_set() { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
    errors.maybe_one_of(&replacement, allowed);
    template::check(&spec.get("template"), errors);
    check_restart_policy(spec, errors);
}

fn check_managed_by(manager: &At<'_>, errors: &mut Errors) {
    if !manager.is_set() || !errors.need(manager) {
        return;
    }
    match manager.text().split_once('/') {
        Some((domain, path)) if !domain.is_empty() && !path.is_empty() => {
            for message in text::subdomain(domain) {
                errors.invalid_as(manager, domain, message);
            }
        }
        _ => errors.invalid(manager, "must be a domain-prefixed path (such as \"acme.io/foo\")"),
    }
    if manager.text().len() > 63 {
        errors.push(FieldError::too_long(&manager.path, 63));
    }
}

fn check_completion_mode(spec: &At<'_>, errors: &mut Errors) {
    let mode = spec.get("completionMode");
    errors.maybe_one_of(&mode, &["NonIndexed", "Indexed"]);
    if !mode.is_set() || mode.text() == "NonIndexed" {
        for at in ["backoffLimitPerIndex", "maxFailedIndexes"].map(|field| spec.get(field)) {
            if at.is_set() {
                errors.invalid(&at, "requires indexed completion mode");
            }
        }
    }
    if mode.text() != "Indexed" {
        return;
    }
    let (completions, parallelism, failed) =
        (spec.get("completions"), spec.get("parallelism"), spec.get("maxFailedIndexes"));
    if !completions.is_set() {
        errors.required(&completions, "when completion mode is Indexed");
    }
    let over = |at: &At<'_>, limit: i64| at.number().is_some_and(|number| number > limit);
    if over(&parallelism, 100_000) {
        errors.invalid(&parallelism, "must be less than or equal to 100000 when completion mode is Indexed");
    }
    if let Some(completions) = completions.number()
        && over(&failed, completions)
    {
        errors.invalid(&failed, "must be less than or equal to completions");
    }
    if over(&failed, 100_000) {
        errors.invalid(&failed, "must be less than or equal to 100000");
    }
    if over(&completions, 100_000) && spec.get("backoffLimitPerIndex").is_set() {
        if !failed.is_set() {
            errors.required(&failed, "must be specified when completions is above 100000");
        }
        for at in [&parallelism, &failed] {
            if over(at, 10_000) {
                errors.invalid(at, "must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index");
            }
        }
    }
}

fn check_restart_policy(spec: &At<'_>, errors: &mut Errors) {
    let policy = spec.dig(&["template", "spec", "restartPolicy"]);
    match policy.text() {
        "" | "Always" => errors.required(&policy, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if spec.get("podFailurePolicy").is_set() => {
            errors.invalid(&policy, "only \"Never\" is supported when podFailurePolicy is specified");
        }
        _ => errors.one_of(&policy, &["OnFailure", "Never"]),
    }
}

fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    Errors::of(|errors| {
        let (new, old) = (At::root(new), At::root(old));
        let (spec, before) = (new.get("spec"), old.get("spec"));
        check_own_spec(&spec, errors);
        check_completions(&spec, &before, errors);
        selector::immutable(&spec.get("selector"), &before.get("selector"), errors);
        check_template_update(&spec, &old, errors);
        for field in FIXED {
            let (now, then) = (spec.get(field), before.get(field));
            match FIXED_STRUCTS.iter().find(|(name, _)| *name == field) {
                Some((_, of)) if !now.same(&then) => immutable(&now, of, now.value, errors),
                _ => errors.immutable(&now, &then),
            }
        }
    })
}

/// Only an indexed job may change its completions, and only together with its parallelism.
fn check_completions(spec: &At<'_>, before: &At<'_>, errors: &mut Errors) {
    let completions = spec.get("completions");
    if spec.get("completionMode").text() != "Indexed" {
        errors.immutable(&completions, &before.get("completions"));
    } else if !completions.same(&before.get("completions"))
        && completions.is_set()
        && completions.number() != spec.get("parallelism").number()
    {
        errors.invalid(&completions, "can only be modified in tandem with spec.parallelism");
    }
}

/// A job that waits (suspended, and never started or back at rest) may be sent elsewhere or given other resources. (Up to v1.35 one
/// that never started may be sent elsewhere, and none is given other resources.)
fn check_template_update(spec: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let (before, status) = (old.get("spec"), old.get("status"));
    let (pods, mut kept) = (spec.get("template"), before.get("template").value.clone());
    let is_suspended = before.get("suspend").is_true();
    let never_started = !status.get("startTime").is_set();
    let at_rest = status.get("conditions").items().any(|condition| {
        condition.get("type").text() == "Suspended" && condition.get("status").text() == "True"
    });
    let waits =
        is_suspended && (never_started || at_rest) && status.get("active").number().unwrap_or_default() == 0;
    let may_move = if version::has_feature("MutableSchedulingDirectivesForSuspendedJobs") {
        waits
    } else {
        is_suspended && never_started
    };
    if may_move {
        if let Some(metadata) = fill::object(&mut kept, "metadata") {
            for key in ["labels", "annotations"] {
                fill::keep(metadata, pods.get("metadata").value, key);
            }
        }
        if let Some(inner) = fill::present(&mut kept, "spec") {
            for key in ["nodeSelector", "tolerations", "schedulingGates"] {
                fill::keep(inner, pods.get("spec").value, key);
            }
            keep_node_affinity(inner, &pods);
        }
    }
    if !waits || !version::has_feature("MutablePodResourcesForSuspendedJobs") {
        if !same(pods.value, &kept) {
            let mut value = pods.value.clone();
            fill::set(&mut value, "spec", internal(pods.get("spec").value));
            immutable(&pods, "core.PodTemplateSpec", &value, errors);
        }
        return;
    }
    let mut inner = kept["spec"].clone();
    for list in ["containers", "initContainers"] {
        let now = pods.dig(&["spec", list]);
        let mut resources = now.items().map(|container| container.get("resources").value.clone());
        fill::each(&mut inner, list, |container| {
            if let Some(resources) = resources.next() {
                fill::set(container, "resources", resources);
            }
        });
    }
    let now = pods.get("spec");
    if !same(now.value, &inner) {
        immutable(&now, "core.PodSpec", &internal(now.value), errors);
    }
}

fn immutable(at: &At<'_>, of: &str, value: &Value, errors: &mut Errors) {
    let error = FieldError::invalid(&at.path, Value::Null, IMMUTABLE);
    errors.push(error.printed(structs::of_type(of, value)));
}

fn keep_node_affinity(inner: &mut Value, pods: &At<'_>) {
    let now = pods.dig(&["spec", "affinity", "nodeAffinity"]);
    if let Some(affinity) = fill::object(inner, "affinity") {
        if now.is_set() {
            fill::set(affinity, "nodeAffinity", now.value.clone());
        } else {
            fill::remove(affinity, "nodeAffinity");
        }
        let nothing = At::root(affinity).is_empty();
        if nothing && !pods.dig(&["spec", "affinity"]).is_set() {
            fill::remove(inner, "affinity");
        }
    }
}
