//! What a WhiteList's status says of its Deployment.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use kubewright::conditions::{self, NewCondition};

use crate::{WhiteList, WhiteListStatus, desired::deployment_name};

/// The status of `whitelist` whose Deployment was `found` so, and is somebody else's if `conflict`. A condition keeps
/// its time of transition for as long as its status stays.
pub(crate) fn observe(
    whitelist: &WhiteList,
    found: Option<&Deployment>,
    conflict: bool,
    now: Timestamp,
) -> WhiteListStatus {
    let mut conditions =
        whitelist.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
    for wanted in [available(found, conflict), conflicting(whitelist, conflict), paused(whitelist)] {
        conditions::set(&mut conditions, &wanted.of(whitelist), now);
    }
    let ready = conditions::is_true(&conditions, "Available");
    WhiteListStatus { ready, observed_generation: whitelist.metadata.generation, conditions }
}

fn available(found: Option<&Deployment>, conflict: bool) -> NewCondition {
    let finding = |holds: bool, reason: &str, message: &str| {
        NewCondition::new("Available", holds.into(), reason).message(message)
    };
    let Some(found) = found else {
        return finding(false, "DeploymentMissing", "the Deployment does not exist");
    };
    if conflict {
        return finding(false, "Conflict", "the Deployment belongs to somebody else");
    }
    let conditions = found.status.as_ref().and_then(|status| status.conditions.as_ref());
    match conditions.into_iter().flatten().find(|condition| condition.type_ == "Available") {
        Some(theirs) => finding(
            theirs.status == "True",
            theirs.reason.as_deref().filter(|reason| !reason.is_empty()).unwrap_or("DeploymentReports"),
            theirs.message.as_deref().unwrap_or_default(),
        ),
        None => finding(false, "DeploymentProgressing", "the Deployment has not reported yet"),
    }
}

fn conflicting(whitelist: &WhiteList, conflict: bool) -> NewCondition {
    let name = deployment_name(&whitelist.name_any());
    let (reason, message) = if conflict {
        (
            "DeploymentNotOwned",
            format!("Deployment {name} exists and is not controlled by this WhiteList: it is left alone"),
        )
    } else {
        ("NoConflict", String::new())
    };
    NewCondition::new("Conflict", conflict.into(), reason).message(message)
}

fn paused(whitelist: &WhiteList) -> NewCondition {
    let (reason, message) = match whitelist.spec.paused {
        true => ("PausedBySpec", "the Deployment is left alone"),
        false => ("NotPaused", ""),
    };
    NewCondition::new("Paused", whitelist.spec.paused.into(), reason).message(message)
}
