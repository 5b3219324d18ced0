//! What a pod as a whole asks for and is limited to (`k8s.io/component-helpers/resource`).

use serde_json::Value;

use kubewright_kinds::rules::pods::whole::{is_of_pods, is_sidecar, total};
use kubewright_meta::resources::Resources;

/// Which amounts of a container are added up.
#[derive(Clone, Copy)]
enum List {
    Requests,
    Limits,
}

impl List {
    fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Limits => "limits",
        }
    }
}

/// What the specification of a pod asks for, without overhead: what limit ranges look at
/// (`plugin/pkg/admission/limitranger`, `podRequests`).
pub fn spec_requests(pod: &Value) -> Resources {
    of_spec(pod, List::Requests)
}

/// What the specification of a pod is limited to, without overhead (`podLimits`).
pub fn spec_limits(pod: &Value) -> Resources {
    of_spec(pod, List::Limits)
}

fn of_spec(pod: &Value, list: List) -> Resources {
    let mut total = total(pod, |container| Resources::of(&container["resources"][list.name()]));
    let whole = Resources::of(&pod["spec"]["resources"][list.name()]);
    total.replace(whole.filter(|name, _| matches!(name, "cpu" | "memory")));
    total
}

/// What a pod asks for, overhead included, and what it still has while it is being resized (`PodRequests`).
pub fn requests(pod: &Value) -> Resources {
    let overhead = Resources::of(&pod["spec"]["overhead"]);
    with_status(pod, List::Requests).plus(&overhead)
}

/// What a pod is limited to; overhead is added to what is limited at all (`PodLimits`).
pub(super) fn limits(pod: &Value) -> Resources {
    let limits = with_status(pod, List::Limits);
    let overhead = Resources::of(&pod["spec"]["overhead"]);
    let limited = limits.without_zeros();
    let added = overhead.only(&limited);
    limits.plus(&added)
}

fn with_status(pod: &Value, list: List) -> Resources {
    let mut total = total(pod, |container| of_container(pod, container, list));
    let whole = Resources::of(&pod["spec"]["resources"][list.name()]);
    total.replace(whole.filter(|name, _| is_of_pods(name)));
    total
}

/// The amounts of one container: the greatest of what its specification and its status say. Of a resize that cannot
/// be done only the status counts.
fn of_container(pod: &Value, container: &Value, list: List) -> Resources {
    let wanted = Resources::of(&container["resources"][list.name()]);
    let Some(status) = status_of(pod, container) else { return wanted };
    let actual = Resources::of(&status["resources"][list.name()]);
    let mut has = vec![actual];
    if matches!(list, List::Requests) {
        has.push(Resources::of(&status["allocatedResources"]));
    }
    let start = if is_infeasible(pod) { Resources::default() } else { wanted };
    has.iter().fold(start, Resources::at_least)
}

/// The status of a container that tells its resources. That of an init container that ends does not count.
fn status_of<'a>(pod: &'a Value, container: &Value) -> Option<&'a Value> {
    let find = |list: &str| {
        let statuses = pod["status"][list].as_array()?;
        statuses.iter().find(|status| status["name"] == container["name"] && status["resources"].is_object())
    };
    let is_init = |other: &Value| other["name"] == container["name"];
    if pod["spec"]["initContainers"].as_array().is_some_and(|list| list.iter().any(is_init)) {
        return is_sidecar(container).then(|| find("initContainerStatuses")).flatten();
    }
    find("containerStatuses")
}

fn is_infeasible(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .into_iter()
        .find(|condition| condition["type"] == "PodResizePending")
        .is_some_and(|condition| condition["reason"] == "Infeasible")
}
