//! Stateful sets.

use std::collections::BTreeSet;

use kubewright_meta::FieldError;
use serde_json::{Value, json};

use super::super::at::{At, same};
use super::super::errors::Errors;
use super::super::pods::{default_template, template};
use super::super::storage::claims;
use super::super::{Generation, NameRule, Rules, fill, percent, selector, structs, text, version};
use super::{check_collisions, check_counts, check_selector};

/// The gate of `maxUnavailable`, on from v1.37.
const MAX_UNAVAILABLE: &str = "MaxUnavailableStatefulSet";

/// What may change.
const MUTABLE: [&str; 7] = [
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
];

pub(crate) const fn rules() -> Rules {
    Rules {
        default,
        pod_spec: &["spec", "template", "spec"],
        prepare_create: |object| {
            fill::set(object, "status", json!({"replicas": 0, "availableReplicas": 0}));
            drop_disabled(object);
        },
        prepare_update: |new, _| drop_disabled(new),
        unwritten: super::unwritten_replicas,
        generation: Generation::Content,
        name: NameRule::Label,
        validate: |object| {
            Errors::of(|errors| {
                let spec = At::root(object).get("spec");
                check(&spec, true, errors);
            })
        },
        validate_update,
        validate_status,
        ..Rules::none()
    }
}

fn default(object: &mut Value) {
    if let Some(status) = fill::object(object, "status") {
        fill::absent(status, "replicas", 0);
        fill::absent(status, "availableReplicas", 0);
    }
    let Some(spec) = fill::object(object, "spec") else { return };
    default_template(spec, "template");
    fill::each(spec, "volumeClaimTemplates", |claim| {
        fill::set(claim, "apiVersion", "v1");
        fill::set(claim, "kind", "PersistentVolumeClaim");
        fill::object(claim, "metadata");
        claims::default(claim);
    });
    fill::blank(spec, "podManagementPolicy", "OrderedReady");
    if let Some(strategy) = fill::object(spec, "updateStrategy") {
        default_strategy(strategy);
    }
    if let Some(policy) = fill::object(spec, "persistentVolumeClaimRetentionPolicy") {
        fill::blank(policy, "whenDeleted", "Retain");
        fill::blank(policy, "whenScaled", "Retain");
    }
    fill::absent(spec, "replicas", 1);
    fill::absent(spec, "revisionHistoryLimit", 10);
}

fn default_strategy(strategy: &mut Value) {
    if At::root(strategy).get("type").is_empty() {
        fill::set(strategy, "type", "RollingUpdate");
        fill::object(strategy, "rollingUpdate");
    }
    if strategy["type"] == "RollingUpdate"
        && let Some(rolling) = fill::present(strategy, "rollingUpdate")
    {
        fill::absent(rolling, "partition", 0);
        if version::has_feature(MAX_UNAVAILABLE) {
            fill::absent(rolling, "maxUnavailable", 1);
        }
    }
}

/// Drops what the version has no feature for (`dropStatefulSetDisabledFields`). Who wrote it owns it nevertheless.
fn drop_disabled(object: &mut Value) {
    if !version::has_feature(MAX_UNAVAILABLE)
        && let Some(rolling) = fill::reach(object, &["spec", "updateStrategy", "rollingUpdate"])
    {
        fill::remove(rolling, "maxUnavailable");
    }
}

/// Checks the spec; what can never change is only checked when it is `new`.
fn check(spec: &At<'_>, new: bool, errors: &mut Errors) {
    let policy = spec.get("podManagementPolicy");
    if errors.need(&policy) && !matches!(policy.text(), "OrderedReady" | "Parallel") {
        errors.invalid(&policy, "must be 'OrderedReady' or 'Parallel'");
    }
    check_strategy(&spec.get("updateStrategy"), errors);
    for when in ["whenDeleted", "whenScaled"] {
        let policy = spec.dig(&["persistentVolumeClaimRetentionPolicy", when]);
        errors.one_of(&policy, &["Retain", "Delete"]);
    }
    if new {
        for claim in spec.get("volumeClaimTemplates").items() {
            claims::check_spec(&claim.get("spec"), errors);
        }
    }
    errors.non_negative(&spec.get("replicas"));
    errors.non_negative(&spec.get("minReadySeconds"));
    errors.non_negative(&spec.dig(&["ordinals", "start"]));
    if new {
        errors.maybe_text(&spec.get("serviceName"), text::label);
    }
    let wanted = spec.get("selector");
    if check_selector(&wanted, "statefulset", errors) {
        check_template(spec, &wanted, errors);
    } else {
        selector::invalid(&wanted, "", errors);
    }
    template::check_lasting(&spec.get("template"), "StatefulSet", errors);
}

fn check_strategy(strategy: &At<'_>, errors: &mut Errors) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "" => errors.required(strategy, ""),
        "OnDelete" if rolling.is_set() => {
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            let error = FieldError::invalid(&rolling.path, Value::Null, detail);
            errors.push(
                error.printed(structs::of_type("apps.RollingUpdateStatefulSetStrategy", rolling.value)),
            );
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            errors.non_negative(&rolling.get("partition"));
            let unavailable = rolling.get("maxUnavailable");
            if unavailable.is_set() {
                percent::check(&unavailable, errors);
                if percent::amount(&unavailable) == 0 {
                    errors.invalid(&unavailable, "cannot be 0");
                }
                percent::check_at_most_all(&unavailable, errors);
            }
        }
        _ => {
            let error =
                FieldError::invalid(&strategy.path, Value::Null, "must be 'RollingUpdate' or 'OnDelete'");
            errors.push(error.printed(structs::of_type("apps.StatefulSetUpdateStrategy", strategy.value)));
        }
    }
}

/// The template with the volumes that the claims will make.
fn check_template(spec: &At<'_>, wanted: &At<'_>, errors: &mut Errors) {
    let pods = spec.get("template");
    if !wanted.is_set() || !selector::is_everything(wanted) {
        template::check_selected(&pods, wanted, errors);
    }
    let made: Vec<&str> = spec
        .get("volumeClaimTemplates")
        .items()
        .map(|claim| claim.value["metadata"]["name"].as_str().unwrap_or_default())
        .collect();
    let mut whole = pods.value.clone();
    if let Some(inner) = fill::present(&mut whole, "spec") {
        fill::remove(inner, "hostname");
        fill::remove(inner, "subdomain");
        let own = inner.get("volumes").and_then(Value::as_array).cloned().unwrap_or_default();
        let named: BTreeSet<&str> = made.iter().copied().collect();
        // Claims of one name make one volume.
        let mut volumes: Vec<Value> = named
            .iter()
            .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}))
            .collect();
        volumes.extend(
            own.into_iter()
                .filter(|volume| !volume["name"].as_str().is_some_and(|name| named.contains(name))),
        );
        if !volumes.is_empty() {
            fill::set(inner, "volumes", volumes);
        }
    }
    let whole = At::named(&pods.path, &whole);
    template::check(&whole, errors);
    // Once more, as in Kubernetes.
    template::check_metadata(&whole, errors);
}

fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    Errors::of(|errors| {
        let (new, old) = (At::root(new).get("spec"), At::root(old).get("spec"));
        check(&new, false, errors);
        let fixed = |spec: &At<'_>| {
            let mut spec = spec.value.clone();
            for field in MUTABLE {
                fill::remove(&mut spec, field);
            }
            spec
        };
        if !same(&fixed(&new), &fixed(&old)) {
            errors.forbidden(&new, "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden");
        }
    })
}

fn validate_status(new: &Value, old: &Value) -> Vec<FieldError> {
    Errors::of(|errors| {
        let parts = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
        let fields = [
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ];
        check_counts(&At::root(new).get("status"), &fields, &parts, "status.readyReplicas", errors);
        check_collisions(new, old, errors);
    })
}
