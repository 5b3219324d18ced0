//! Resources that are asked for, limited and counted: their names and amounts
//! (`pkg/apis/core/helper`, `validateResourceRequirements`).

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::at::At;
use super::errors::{Errors, NOT_NEGATIVE};
use super::quantity::Quantity;
use super::text;

const CONTAINER: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
const SUMMED: [&str; 10] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];

/// A rule for the name of a resource; the place is the entry, as errors show it.
pub(crate) type NameRule = fn(&str, &At<'_>, &mut Errors);

/// The name of any resource (`validateResourceName`).
pub fn name(name: &str, at: &At<'_>, errors: &mut Errors) {
    let wrong = text::label_key(name);
    if wrong.is_empty() && !name.contains('/') && !is_standard(name) {
        errors.invalid_as(at, name, "must be a standard resource type or fully qualified");
    }
    for message in wrong {
        errors.invalid_as(at, name, message);
    }
}

/// The name of a resource that containers use (`validateContainerResourceName`).
pub fn container_name(resource: &str, at: &At<'_>, errors: &mut Errors) {
    name(resource, at, errors);
    if !resource.contains('/') {
        if !CONTAINER.contains(&resource) && !is_huge_pages(resource) {
            errors.invalid_as(at, resource, "must be a standard resource for containers");
        }
    } else if !is_native(resource) && !is_extended(resource) {
        errors.invalid_as(at, resource, "doesn't follow extended resource name standard");
    }
}

/// The name of a resource that a pod as a whole uses (`validatePodResourceName`).
fn pod_name(resource: &str, at: &At<'_>, errors: &mut Errors) {
    let before = errors.count();
    name(resource, at, errors);
    if errors.count() == before && !matches!(resource, "cpu" | "memory") && !is_huge_pages(resource) {
        let error =
            kubewright_meta::FieldError::not_supported(&at.path, resource, ["cpu", "hugepages-", "memory"]);
        errors.push(error);
    }
}

/// The name of a resource that a quota limits (`ValidateResourceQuotaResourceName`).
pub(crate) fn quota_name(resource: &str, at: &At<'_>, errors: &mut Errors) {
    name(resource, at, errors);
    if !resource.contains('/') && !is_quota_standard(resource) {
        errors.invalid_as(at, resource, "must be a standard resource for quota");
    }
}

pub(crate) fn is_quota_standard(name: &str) -> bool {
    let huge = name.starts_with("hugepages-") || name.starts_with("requests.hugepages-");
    SUMMED.contains(&name) || COUNTED.contains(&name) || huge
}

fn is_standard(name: &str) -> bool {
    is_quota_standard(name) || name == "storage"
}

/// Whether it is memory in pages of one size.
pub fn is_huge_pages(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// Whether Kubernetes itself gives a meaning to it.
pub fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether a device plugin or somebody else offers it (`IsExtendedResourceName`).
pub fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && text::label_key(&format!("requests.{name}")).is_empty()
}

/// Whether more of it may be used than was asked for.
pub(crate) fn may_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_pages(name)
}

/// The amount of a resource: not negative, and whole where parts make no sense (`ValidateResourceQuantityValue`).
pub fn amount(resource: &str, at: &At<'_>, errors: &mut Errors) {
    let Some(quantity) = Quantity::of(at.value) else { return };
    if quantity.sign() == Ordering::Less {
        errors.invalid_as(at, quantity.to_string(), NOT_NEGATIVE);
    }
    if (COUNTED.contains(&resource) || is_extended(resource)) && !quantity.is_whole() {
        errors.invalid_as(at, quantity.to_string(), "must be an integer");
    }
}

/// A quantity that is not negative.
pub(crate) fn non_negative(at: &At<'_>, errors: &mut Errors) {
    if let Some(quantity) = Quantity::of(at.value)
        && quantity.sign() == Ordering::Less
    {
        errors.invalid_as(at, quantity.to_string(), NOT_NEGATIVE);
    }
}

/// A quantity that is more than nothing (`ValidatePositiveQuantityValue`).
pub fn positive(at: &At<'_>, errors: &mut Errors) {
    let quantity = Quantity::of(at.value).unwrap_or(Quantity::ZERO);
    if quantity.sign() != Ordering::Greater {
        errors.invalid_as(at, quantity.to_string(), "must be greater than zero");
    }
}

/// What a container asks for and is limited to. `claims` are the names of the pod's resource claims.
pub(crate) fn check_container(at: &At<'_>, claims: &[&str], errors: &mut Errors) {
    check_requirements(at, container_name, claims, errors);
}

/// What a pod as a whole asks for and is limited to.
pub(crate) fn check_pod(at: &At<'_>, claims: &[&str], errors: &mut Errors) {
    check_requirements(at, pod_name, claims, errors);
}

fn check_requirements(at: &At<'_>, names: NameRule, claims: &[&str], errors: &mut Errors) {
    let (limits, requests) = (at.get("limits"), at.get("requests"));
    for list in [&limits, &requests] {
        for (resource, entry) in list.entries() {
            names(resource, &entry, errors);
            amount(resource, &entry, errors);
            check_huge_pages(resource, &entry, errors);
            if list.path == requests.path {
                check_against_limit(resource, &entry, &requests, &limits, errors);
            }
        }
    }
    let uses =
        |rule: fn(&str) -> bool| limits.entries().chain(requests.entries()).any(|(name, _)| rule(name));
    if uses(is_huge_pages) && !uses(|name| matches!(name, "cpu" | "memory")) {
        errors.forbidden(at, "HugePages require cpu or memory");
    }
    check_claims(&at.get("claims"), claims, errors);
}

fn check_against_limit(
    resource: &str,
    request: &At<'_>,
    requests: &At<'_>,
    limits: &At<'_>,
    errors: &mut Errors,
) {
    let Some(asked) = Quantity::of(request.value) else { return };
    let Some(limit) = Quantity::of(limits.entry(resource).value) else {
        if !may_overcommit(resource) {
            errors.required(limits, "Limit must be set for non overcommitable resources");
        }
        return;
    };
    let relation = if !may_overcommit(resource) && asked != limit {
        "equal to"
    } else if asked > limit {
        "less than or equal to"
    } else {
        return;
    };
    errors.invalid_as(requests, asked.to_string(), format!("must be {relation} {resource} limit of {limit}"));
}

fn check_huge_pages(resource: &str, at: &At<'_>, errors: &mut Errors) {
    let Some(size) = resource.strip_prefix("hugepages-").and_then(Quantity::parse) else { return };
    let Some(quantity) = Quantity::of(at.value) else { return };
    let whole = size.sign() == Ordering::Greater
        && quantity.sign() != Ordering::Less
        && quantity.is_multiple_of(size);
    if !whole {
        let detail = format!("{quantity} is not positive integer multiple of {resource}");
        errors.invalid_as(at, quantity.to_string(), detail);
    }
}

fn check_claims(list: &At<'_>, known: &[&str], errors: &mut Errors) {
    /// So many errors name all claims that there are: each of them may be long, and there may be many.
    const NAMED: usize = 10;
    let mut unknown = 0;
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let known_names: BTreeSet<&str> = known.iter().copied().collect();
    for claim in list.items() {
        let name = claim.get("name").text();
        if name.is_empty() {
            errors.required(&claim, "");
            continue;
        }
        let request = claim.get("request");
        errors.maybe_text(&request, text::label);
        let key = if request.is_empty() { name.to_owned() } else { format!("{name}/{}", request.text()) };
        // A claim as a whole has all its requests.
        let requests = format!("{name}/");
        let first = seen.range(requests.clone()..).next();
        let has_request = request.is_empty() && first.is_some_and(|first| first.starts_with(&requests));
        if seen.contains(name) || seen.contains(&key) || has_request {
            errors.push(kubewright_meta::FieldError::duplicate(&claim.path, key.as_str()));
        }
        seen.insert(key);
        if !known_names.contains(name) {
            let which = if known.is_empty() {
                " which is empty".to_owned()
            } else if unknown < NAMED {
                format!(": {}", known.join(", "))
            } else {
                String::new()
            };
            unknown += 1;
            errors.push(kubewright_meta::FieldError {
                field: claim.path.clone(),
                problem: kubewright_meta::field::Problem::NotFound(name.into()),
                detail: format!("must be one of the names in pod.spec.resourceClaims{which}"),
            });
        }
    }
}
