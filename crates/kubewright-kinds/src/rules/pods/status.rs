//! The status of a pod (`ValidatePodStatusUpdate`).

use std::collections::BTreeSet;

use kubewright_meta::FieldError;
use serde_json::Value;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::{ip, structs, text, version};
use super::container_statuses;

const NOT_NEGATIVE: &str = "must be a non-negative integer";

/// What is wrong with a pod's new status.
pub(super) fn validate(new: &Value, old: &Value) -> Vec<FieldError> {
    Errors::of(|errors| {
        let (pod, old) = (At::root(new), At::root(old));
        let (status, before) = (pod.get("status"), old.get("status"));
        for condition in status.get("conditions").items() {
            check_observed(&condition, errors);
            if !matches!(condition.get("type").text(), "PodScheduled" | "Ready" | "Initialized") {
                errors.text(
                    &At { path: format!("{}.Type", condition.path), ..condition.get("type") },
                    text::label_key,
                );
            }
        }
        check_nominated(&status.get("nominatedNodeName"), &old, errors);
        check_observed(&status, errors);
        let class = status.get("qosClass");
        if !class.is_empty() && class.text() != before.get("qosClass").text() {
            errors.invalid_text(&status.get("qosClass"), "field is immutable");
        }
        for (list, of) in [
            ("containerStatuses", "containers"),
            ("initContainerStatuses", "initContainers"),
            ("ephemeralContainerStatuses", ""),
        ] {
            check_transitions(&status.get(list), &before.get(list), &old.get("spec"), of, errors);
        }
        check_claims(&status.get("resourceClaimStatuses"), &pod.dig(&["spec", "resourceClaims"]), errors);
        check_extended(&status.get("extendedResourceClaimStatus"), &pod.get("spec"), errors);
        check_ips(&status.get("podIPs"), &before.get("podIPs"), "core.PodIP", errors);
        let hosts = status.get("hostIPs");
        if let Some(first) = hosts.items().next().map(|first| first.get("ip"))
            && first.text() != status.get("hostIP").text()
        {
            errors.invalid_text(&first, "must be equal to `hostIP`");
        }
        check_ips(&hosts, &before.get("hostIPs"), "core.HostIP", errors);
        container_statuses::check(&pod, errors);
    })
}

fn check_observed(of: &At<'_>, errors: &mut Errors) {
    let observed = of.get("observedGeneration");
    if observed.number().is_some_and(|number| number < 0) {
        errors.invalid(&observed, NOT_NEGATIVE);
    }
}

/// Where a pod may go that has no place yet.
fn check_nominated(nominated: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    if nominated.text() == old.dig(&["status", "nominatedNodeName"]).text() {
        return;
    }
    errors.maybe_text(nominated, text::subdomain);
    let is_bound = !old.dig(&["spec", "nodeName"]).is_empty();
    if version::has_feature("ClearingNominatedNodeNameAfterBinding") && is_bound && !nominated.is_empty() {
        errors.forbidden(nominated, "may not be set on pods that are already bound to a node");
    }
}

/// What has ended goes on only where it is started again. `of` is the list of the containers, empty for those that never are.
fn check_transitions(now: &At<'_>, before: &At<'_>, spec: &At<'_>, of: &str, errors: &mut Errors) {
    let rules = version::has_feature("ContainerRestartRules");
    if !of.is_empty() {
        let all = version::has_feature("RestartAllContainersOnContainerExits") && rules;
        let always = !rules && spec.get("restartPolicy").text() == "Always";
        if always || all && restarts_all(spec) {
            return;
        }
    }
    for ended in before.items() {
        let name = ended.get("name");
        let end = ended.dig(&["state", "terminated"]);
        if !end.is_set() {
            continue;
        }
        let Some(new) = now.items().find(|new| new.get("name").text() == name.text()) else { continue };
        if new.dig(&["state", "terminated"]).is_set() {
            continue;
        }
        let container = spec.get(of).items().find(|container| container.get("name").text() == name.text());
        let code = end.get("exitCode").number().unwrap_or_default();
        if !container.is_some_and(|container| restarts(&container, spec, code)) {
            let at = At { path: format!("{}.state", ended.path), ..ended.get("state") };
            errors.forbidden(&at, "may not be transitioned to non-terminated state");
        }
    }
}

/// Whether a rule of some container starts all of them again (`AllContainersCouldRestart`).
fn restarts_all(spec: &At<'_>) -> bool {
    let mut rules = ["initContainers", "containers"]
        .into_iter()
        .flat_map(|list| spec.get(list).items())
        .flat_map(|container| container.get("restartPolicyRules").items());
    rules.any(|rule| rule.get("action").text() == "RestartAllContainers")
}

/// Whether a container that has ended with this code is started again (`ContainerShouldRestart`).
fn restarts(container: &At<'_>, spec: &At<'_>, code: i64) -> bool {
    let own = container.get("restartPolicy");
    if own.is_set() {
        let by_rule = container.get("restartPolicyRules").items().find(|rule| {
            let codes = rule.get("exitCodes");
            let listed = codes.get("values").items().any(|value| value.number() == Some(code));
            match codes.get("operator").text() {
                "In" => listed,
                "NotIn" => !listed,
                _ => false,
            }
        });
        if by_rule.is_some_and(|rule| rule.get("action").text().starts_with("Restart")) {
            return true;
        }
    }
    let policies = [own, spec.get("restartPolicy")];
    match policies.iter().map(At::text).find(|policy| !policy.is_empty()) {
        Some("OnFailure") => code != 0,
        Some("Never") => false,
        _ => true,
    }
}

/// The objects that were made for a pod's claims (`validatePodResourceClaimStatuses`).
fn check_claims(statuses: &At<'_>, claims: &At<'_>, errors: &mut Errors) {
    let known: BTreeSet<&str> = claims.items().map(|claim| claim.get("name").text()).collect();
    let mut seen = BTreeSet::new();
    for status in statuses.items() {
        let name = status.get("name");
        if !known.contains(name.text()) {
            errors.invalid_text(&name, "must match the name of an entry in `spec.resourceClaims`");
        }
        if !seen.insert(name.text()) {
            errors.duplicate(&name);
        }
        let object = status.get("resourceClaimName");
        if object.is_set() {
            errors.text(&object, text::subdomain);
        }
    }
}

/// The claim that was made for a pod's extended resources (`validatePodExtendedResourceClaimStatus`).
fn check_extended(status: &At<'_>, spec: &At<'_>, errors: &mut Errors) {
    if !status.is_set() {
        return;
    }
    let mappings = status.get("requestMappings");
    if mappings.is_empty() {
        errors.required(&mappings, "at least one request mapping is required");
    }
    let containers: Vec<At<'_>> =
        ["initContainers", "containers"].iter().flat_map(|list| spec.get(list).items()).collect();
    let mut seen = BTreeSet::new();
    for mapping in mappings.items() {
        let [container, resource, request] =
            ["containerName", "resourceName", "requestName"].map(|field| mapping.get(field));
        match containers.iter().rev().find(|one| one.get("name").text() == container.text()) {
            Some(one) if one.dig(&["resources", "requests"]).entry(resource.text()).is_set() => {}
            Some(_) => errors.invalid_text(&resource, "must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests"),
            None => errors.invalid_text(&container, "must match the name of an entry in spec.initContainers.name or spec.containers.name"),
        }
        errors.text(&At { path: format!("{}.requestName", status.path), ..request.clone() }, text::label);
        if !seen.insert([&container, &resource, &request].map(|field| field.text().to_owned())) {
            for field in [&container, &resource, &request] {
                errors.duplicate(field);
            }
        }
    }
    errors.need_text(&status.get("resourceClaimName"), text::subdomain);
}

/// Addresses of a pod or its node: one of each family at most. Those that were there before may stay as they are.
fn check_ips(list: &At<'_>, before: &At<'_>, of: &str, errors: &mut Errors) {
    for item in list.items() {
        let place = At { path: item.path.clone(), ..item.get("ip") };
        if !before.items().any(|known| known.get("ip").text() == place.text()) {
            errors.text(&place, ip::address);
        }
    }
    let ips: Vec<&str> = list.items().map(|item| item.value["ip"].as_str().unwrap_or_default()).collect();
    let families = ip::families_of_addresses(&ips);
    if let Err(why) = &families {
        errors.internal(list, format!("failed to check for dual stack with error:{why}"));
    }
    if families != Ok(true) {
        let error = FieldError::invalid(
            &list.path,
            Value::Null,
            "may specify no more than one IP for each IP family",
        );
        errors.push(error.printed(structs::of_type(&format!("[]{of}"), list.value)));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(spec: &Value, new: &Value, old: &Value) -> Vec<String> {
        let of = |status: &Value| json!({"spec": spec, "status": status});
        validate(&of(new), &of(old))
            .iter()
            .map(|error| format!("{}: {}", error.field, error.body()))
            .collect()
    }

    #[test]
    fn what_has_ended_goes_on_only_where_it_is_started_again() {
        let status = |state: &Value| json!({"containerStatuses": [{"name": "c", "state": state}]});
        let ended = status(&json!({"terminated": {"exitCode": 1}}));
        let runs = status(&json!({"running": {}}));
        let spec = |policy: &str| json!({"restartPolicy": policy, "containers": [{"name": "c"}]});
        let refused =
            "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state";
        assert_eq!(said(&spec("Never"), &runs, &ended), [refused]);
        assert_eq!(said(&spec("OnFailure"), &runs, &ended), [""; 0]);
        let done = status(&json!({"terminated": {"exitCode": 0}}));
        assert_eq!(said(&spec("OnFailure"), &runs, &done), [refused]);
        assert_eq!(said(&spec("Always"), &runs, &done), [""; 0]);
        let mut own = spec("Never");
        own["containers"][0]["restartPolicy"] = "Always".into();
        assert_eq!(said(&own, &runs, &done), [""; 0]);
    }

    #[test]
    fn generations_and_claims_of_a_status_are_checked() {
        let status =
            json!({"observedGeneration": -1, "resourceClaimStatuses": [{"name": "a"}, {"name": "b"}]});
        let spec = json!({"resourceClaims": [{"name": "a"}]});
        assert_eq!(
            said(&spec, &status, &json!({})),
            [
                "status.observedGeneration: Invalid value: -1: must be a non-negative integer",
                r#"status.resourceClaimStatuses[1].name: Invalid value: "b": must match the name of an entry in `spec.resourceClaims`"#,
            ]
        );
    }
}
