//! LimitRanger: what containers, pods and claims may ask for in a namespace, and what they get when they do not say
//! (`k8s.io/kubernetes/plugin/pkg/admission/limitranger`).

use kubewright_kinds::built_in::core::limit_range::LIMIT_RANGE;
use kubewright_kinds::rules::pods::merge;
use kubewright_meta::quantity::Quantity;
use kubewright_meta::{ApiError, object};
use kubewright_quota::{Resources, spec_limits, spec_requests};
use serde_json::{Map, Value, json};

use super::refusal::{forbidden, joined};
use super::{AdmissionPlugin, Operation, Plugin, Review};

/// Tells what was filled in.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Gives containers what the limit ranges of their namespace say, and compares pods and claims with them.
pub(super) struct LimitRanger;

impl AdmissionPlugin for LimitRanger {
    fn name(&self) -> Plugin {
        Plugin::LimitRanger
    }

    fn handles(&self, review: &Review<'_>) -> bool {
        is_limited(review)
    }

    fn mutate(&self, review: &Review<'_>, pod: &mut Value) -> Result<(), ApiError> {
        if review.is_of_pod() {
            mutate(review, pod);
        }
        Ok(())
    }

    fn validate(&self, review: &Review<'_>, object: &Value, _: &mut Vec<String>) -> Result<(), ApiError> {
        validate(review, object)
    }
}

/// Gives the containers of a new or resized pod what the limit ranges of its namespace say, where they do not say it
/// themselves.
fn mutate(review: &Review<'_>, pod: &mut Value) {
    for range in ranges(review) {
        set_defaults(&range, pod);
    }
}

/// Compares a new or resized pod, or a claim, with the limit ranges of its namespace.
///
/// # Errors
/// 403 with all that one limit range has against it.
fn validate(review: &Review<'_>, object: &Value) -> Result<(), ApiError> {
    for range in ranges(review) {
        let mut complaints = Vec::new();
        for limit in range["spec"]["limits"].as_array().into_iter().flatten() {
            check(limit, object, review.is_of_pod(), &mut complaints);
        }
        if let Some(why) = joined(&complaints) {
            return Err(forbidden(review, object, &why));
        }
    }
    Ok(())
}

/// Pods are looked at when they are created or resized, claims also when they change; what goes is left alone.
fn is_limited(review: &Review<'_>) -> bool {
    let is_pod = review.is_of_pod();
    let meant = match (review.subresource, review.operation) {
        ("", Operation::Create) => true,
        ("", Operation::Update) => !is_pod,
        ("resize", Operation::Update) => is_pod,
        _ => false,
    };
    meant && !review.old.is_some_and(object::is_deleting)
}

fn ranges(review: &Review<'_>) -> Vec<Value> {
    review.objects.in_namespace(&LIMIT_RANGE, review.call.namespace)
}

fn set_defaults(range: &Value, pod: &mut Value) {
    let mut wanted = [("requests", Map::new()), ("limits", Map::new())];
    for limit in range["spec"]["limits"].as_array().into_iter().flatten() {
        if limit["type"] == "Container" {
            for ((_, into), from) in wanted.iter_mut().zip(["defaultRequest", "default"]) {
                into.extend(limit[from].as_object().cloned().unwrap_or_default());
            }
        }
    }
    if wanted.iter().all(|(_, defaults)| defaults.is_empty()) {
        return;
    }
    let mut notes = Vec::new();
    for (list, what) in [("containers", "container"), ("initContainers", "init container")] {
        let Some(Value::Array(containers)) = pod["spec"].get_mut(list) else { continue };
        for container in containers {
            let name = container["name"].as_str().unwrap_or_default().to_owned();
            for (list, defaults) in &wanted {
                let missing = fill(container, list, defaults);
                if !missing.is_empty() {
                    let one = list.trim_end_matches('s');
                    notes.push(format!("{} {one} for {what} {name}", missing.join(", ")));
                }
            }
        }
    }
    if !notes.is_empty() {
        let annotations = object::meta_mut(pod).entry("annotations").or_insert_with(|| json!({}));
        let text = format!("LimitRanger plugin set: {}", notes.join("; "));
        object::as_map(annotations).insert(ANNOTATION.into(), text.into());
    }
}

/// Adds the amounts that a container leaves out; gives their names.
fn fill(container: &mut Value, list: &str, defaults: &Map<String, Value>) -> Vec<String> {
    let has = &container["resources"][list];
    let missing: Vec<String> =
        defaults.keys().filter(|name| has.get(name.as_str()).is_none()).cloned().collect();
    if !missing.is_empty() {
        let resources = object::member_mut(container, "resources");
        let amounts = resources.entry(list).or_insert_with(|| json!({}));
        merge(object::as_map(amounts), defaults.clone());
    }
    missing
}

fn check(limit: &Value, object: &Value, is_pod: bool, complaints: &mut Vec<String>) {
    let kind = limit["type"].as_str().unwrap_or_default();
    match kind {
        "Container" if is_pod => {
            for list in ["containers", "initContainers"] {
                for container in object["spec"][list].as_array().into_iter().flatten() {
                    let resources = &container["resources"];
                    let asked = Resources::of(&resources["requests"]);
                    check_all(limit, kind, &asked, &Resources::of(&resources["limits"]), complaints);
                }
            }
        }
        "Pod" if is_pod => check_all(limit, kind, &spec_requests(object), &spec_limits(object), complaints),
        "PersistentVolumeClaim" if !is_pod => {
            let asked = Resources::of(&object["spec"]["resources"]["requests"]);
            let none = Resources::default();
            for (name, least) in Resources::of(&limit["min"]).iter() {
                complaints.extend(below(kind, name, least, &asked, &none));
            }
            for (name, most) in Resources::of(&limit["max"]).iter() {
                complaints.extend(above_request(kind, name, most, &asked));
            }
        }
        _ => {}
    }
}

fn check_all(
    limit: &Value,
    kind: &str,
    asked: &Resources,
    limited: &Resources,
    complaints: &mut Vec<String>,
) {
    for (name, least) in Resources::of(&limit["min"]).iter() {
        complaints.extend(below(kind, name, least, asked, limited));
    }
    for (name, most) in Resources::of(&limit["max"]).iter() {
        complaints.extend(above(kind, name, most, asked, limited));
    }
    for (name, ratio) in Resources::of(&limit["maxLimitRequestRatio"]).iter() {
        complaints.extend(out_of_proportion(kind, name, ratio, asked, limited));
    }
}

fn below(kind: &str, name: &str, least: Quantity, asked: &Resources, limited: &Resources) -> Option<String> {
    let start = format!("minimum {name} usage per {kind} is {least}");
    let Some(request) = asked.get(name) else { return Some(format!("{start}.  No request is specified")) };
    if request < least {
        return Some(format!("{start}, but request is {request}"));
    }
    let limit = limited.get(name).filter(|limit| *limit < least)?;
    Some(format!("{start}, but limit is {limit}"))
}

fn above(kind: &str, name: &str, most: Quantity, asked: &Resources, limited: &Resources) -> Option<String> {
    let start = format!("maximum {name} usage per {kind} is {most}");
    let Some(limit) = limited.get(name) else { return Some(format!("{start}.  No limit is specified")) };
    if limit > most {
        return Some(format!("{start}, but limit is {limit}"));
    }
    let request = asked.get(name).filter(|request| *request > most)?;
    Some(format!("{start}, but request is {request}"))
}

/// As [`above`], for what has no limits of its own.
fn above_request(kind: &str, name: &str, most: Quantity, asked: &Resources) -> Option<String> {
    let start = format!("maximum {name} usage per {kind} is {most}");
    match asked.get(name) {
        None => Some(format!("{start}.  No request is specified")),
        Some(request) if request > most => Some(format!("{start}, but request is {request}")),
        Some(_) => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a ratio is a float in Kubernetes, too")]
fn out_of_proportion(
    kind: &str,
    name: &str,
    most: Quantity,
    asked: &Resources,
    limited: &Resources,
) -> Option<String> {
    let start = format!("{name} max limit to request ratio per {kind} is {most}, but");
    let something =
        |amounts: &Resources| amounts.get(name).map(Quantity::millis).filter(|millis| *millis != 0);
    let Some(request) = something(asked) else {
        return Some(format!("{start} no request is specified or request is 0"));
    };
    let Some(limit) = something(limited) else {
        return Some(format!("{start} no limit is specified or limit is 0"));
    };
    let ratio = limit as f64 / request as f64;
    (ratio * 1000.0 > most.millis() as f64).then(|| format!("{start} provided ratio is {ratio:.6}"))
}

#[cfg(test)]
mod tests {
    use kubewright_kinds::built_in::core::pod::POD;

    use super::*;
    use crate::admission::fake::Fake;

    fn pod(containers: &Value) -> Value {
        json!({"metadata": {"name": "p"}, "spec": {"containers": containers}})
    }

    fn complaints(limit: &Value, object: &Value, is_pod: bool) -> Vec<String> {
        let mut complaints = Vec::new();
        check(limit, object, is_pod, &mut complaints);
        complaints
    }

    #[test]
    fn what_containers_leave_out_is_filled_in_and_noted() {
        let range = json!({"spec": {"limits": [{"type": "Container", "default": {"cpu": "500m", "memory": "256Mi"},
            "defaultRequest": {"cpu": "100m"}}]}});
        let mut pod = pod(&json!([{"name": "a"}, {"name": "b", "resources": {"limits": {"cpu": "1"}}}]));
        pod["spec"]["initContainers"] = json!([{"name": "i", "resources": {"requests": {"cpu": "1"}}}]);
        set_defaults(&range, &mut pod);
        assert_eq!(
            pod["metadata"]["annotations"][ANNOTATION],
            "LimitRanger plugin set: cpu request for container a; cpu, memory limit for container a; \
             cpu request for container b; memory limit for container b; cpu, memory limit for init container i"
        );
        assert_eq!(
            pod["spec"]["containers"][1]["resources"]["limits"],
            json!({"cpu": "1", "memory": "256Mi"})
        );
        let once = pod.clone();
        set_defaults(&range, &mut pod);
        assert_eq!(pod, once);
    }

    #[test]
    fn each_bound_has_its_words() {
        let limit = json!({"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "2"},
            "maxLimitRequestRatio": {"cpu": "10"}});
        let of = |resources: Value| {
            complaints(&limit, &pod(&json!([{"name": "c", "resources": resources}])), true)
        };
        assert_eq!(
            of(json!({})),
            [
                "minimum cpu usage per Container is 100m.  No request is specified",
                "maximum cpu usage per Container is 2.  No limit is specified",
                "cpu max limit to request ratio per Container is 10, but no request is specified or request is 0",
            ]
        );
        assert_eq!(
            of(json!({"requests": {"cpu": "10m"}, "limits": {"cpu": "3"}})),
            [
                "minimum cpu usage per Container is 100m, but request is 10m",
                "maximum cpu usage per Container is 2, but limit is 3",
                "cpu max limit to request ratio per Container is 10, but provided ratio is 300.000000",
            ]
        );
        assert!(of(json!({"requests": {"cpu": "200m"}, "limits": {"cpu": "2"}})).is_empty());
    }

    #[test]
    fn sidecars_and_init_containers_count_for_the_pod() {
        let limit = json!({"type": "Pod", "max": {"memory": "1Gi"}});
        let memory = |amount: &str| json!({"limits": {"memory": amount}});
        let mut pod = pod(&json!([{"name": "c", "resources": memory("600Mi")}]));
        pod["spec"]["initContainers"] = json!([{"name": "i", "resources": memory("1Gi")}]);
        assert!(complaints(&limit, &pod, true).is_empty());
        pod["spec"]["initContainers"][0]["restartPolicy"] = "Always".into();
        assert_eq!(
            complaints(&limit, &pod, true),
            ["maximum memory usage per Pod is 1Gi, but limit is 1624Mi"]
        );
    }

    #[test]
    fn claims_are_measured_by_what_they_ask_for() {
        let limit =
            json!({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}});
        let claim = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
        assert_eq!(
            complaints(&limit, &claim("3Gi"), false),
            ["maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"]
        );
        assert_eq!(
            complaints(&limit, &claim("1Mi"), false),
            ["minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi"]
        );
        assert!(complaints(&limit, &claim("2Gi"), false).is_empty());
    }

    #[test]
    fn the_ranges_of_other_namespaces_limit_nothing() {
        let range = |namespace: &str, cpu: &str| {
            let limit = json!({"type": "Container", "default": {"cpu": cpu}});
            let meta = json!({"namespace": namespace, "name": "r"});
            (&LIMIT_RANGE, json!({"metadata": meta, "spec": {"limits": [limit]}}))
        };
        let fake = Fake::with(&[range("n", "1"), range("n2", "2")]);
        let mut pod = pod(&json!([{"name": "c"}]));
        LimitRanger.mutate(&fake.review(&POD, Operation::Create), &mut pod).expect("nothing is refused");
        assert_eq!(pod["spec"]["containers"][0]["resources"]["limits"], json!({"cpu": "1"}));
    }
}
