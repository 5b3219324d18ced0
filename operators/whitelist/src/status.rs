//! What a WhiteList's status says of its Deployment.

use jiff::Timestamp;
use k8s_openapi::{
    api::apps::v1::Deployment,
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};
use kube::ResourceExt;

use crate::{WhiteList, WhiteListStatus, desired::deployment_name};

/// One condition before it is dated.
struct Finding {
    type_: &'static str,
    holds: bool,
    reason: String,
    message: String,
}

/// The status of `whitelist` whose Deployment was `found` so, and is somebody else's if `conflict`. A condition keeps
/// its time of transition for as long as its status stays.
pub(crate) fn observe(
    whitelist: &WhiteList,
    found: Option<&Deployment>,
    conflict: bool,
    now: Timestamp,
) -> WhiteListStatus {
    let available = available(found, conflict);
    let ready = available.holds;
    let generation = whitelist.metadata.generation;
    let old = whitelist.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let conditions = [available, conflicting(whitelist, conflict), paused(whitelist)]
        .into_iter()
        .map(|finding| date(finding, old, generation, now))
        .collect();
    WhiteListStatus { ready, observed_generation: generation, conditions }
}

fn available(found: Option<&Deployment>, conflict: bool) -> Finding {
    let finding = |holds, reason: &str, message: &str| Finding {
        type_: "Available",
        holds,
        reason: reason.to_owned(),
        message: message.to_owned(),
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

fn conflicting(whitelist: &WhiteList, conflict: bool) -> Finding {
    let name = deployment_name(&whitelist.name_any());
    let (reason, message) = if conflict {
        (
            "DeploymentNotOwned",
            format!("Deployment {name} exists and is not controlled by this WhiteList: it is left alone"),
        )
    } else {
        ("NoConflict", String::new())
    };
    Finding { type_: "Conflict", holds: conflict, reason: reason.to_owned(), message }
}

fn paused(whitelist: &WhiteList) -> Finding {
    let (reason, message) = match whitelist.spec.paused {
        true => ("PausedBySpec", "the Deployment is left alone"),
        false => ("NotPaused", ""),
    };
    Finding {
        type_: "Paused",
        holds: whitelist.spec.paused,
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}

fn date(finding: Finding, old: &[Condition], generation: Option<i64>, now: Timestamp) -> Condition {
    let status = if finding.holds { "True" } else { "False" };
    let same = old.iter().find(|condition| condition.type_ == finding.type_ && condition.status == status);
    Condition {
        type_: finding.type_.to_owned(),
        status: status.to_owned(),
        reason: finding.reason,
        message: finding.message,
        observed_generation: generation,
        last_transition_time: same.map_or(Time(now), |condition| condition.last_transition_time.clone()),
    }
}
