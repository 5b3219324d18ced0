//! The causes, a file for each family. Each looks at an object and what is around it, and is a pure function.

mod admission;
mod autoscaling;
mod certificates;
mod claims;
mod containers;
mod custom;
mod definitions;
mod deletion;
mod jobs;
mod namespaces;
mod nodes;
mod operators;
mod pods;
mod scheduling;
mod services;
mod webhooks;
mod workloads;

use crate::gather::is_custom;
use crate::object::Object;
use crate::picture::Picture;
use crate::report::Finding;

/// An object and what was read around it.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub(crate) picture: &'a Picture,
    pub(crate) object: &'a Object,
    /// Whether it is what was asked about: then it is told too what is as somebody wanted it, such as a pause.
    pub(crate) is_target: bool,
}

/// What is found at an object itself.
pub(crate) fn find(around: &Around<'_>) -> Vec<Finding> {
    let mut found = deletion::find(around);
    found.extend(match (around.object.group(), around.object.kind()) {
        ("", "Pod") => pods::find(around),
        ("", "Node") => nodes::find(around),
        ("", "Service") => services::service(around),
        ("networking.k8s.io", "Ingress") => services::ingress(around),
        ("", "PersistentVolumeClaim") => claims::find(around),
        ("", "Namespace") => namespaces::namespace(around),
        ("apps", "Deployment") => workloads::deployment(around),
        ("apps", "ReplicaSet") => workloads::replica_set(around),
        ("apps", "StatefulSet") => workloads::stateful_set(around),
        ("apps", "DaemonSet") => workloads::daemon_set(around),
        ("batch", "Job") => jobs::job(around),
        ("batch", "CronJob") => jobs::cron_job(around),
        ("policy", "PodDisruptionBudget") => autoscaling::budget(around),
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaling::autoscaler(around),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definitions::find(around),
        ("apiregistration.k8s.io", "APIService") => namespaces::api_service(around),
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        ) => webhooks::find(around),
        ("certificates.k8s.io", "CertificateSigningRequest") => certificates::find(around),
        (group, _) if is_custom(group) => custom::find(around),
        _ => Vec::new(),
    });
    found
}

/// What an object made, or needs.
pub(crate) fn children<'a>(around: &Around<'a>) -> Vec<&'a Object> {
    let Around { picture, object, .. } = *around;
    let mut found: Vec<&Object> = picture.owned_by(object).filter(|one| is_current(picture, one)).collect();
    found.extend(match (object.group(), object.kind()) {
        ("", "Pod") => claims::of_pod(picture, object),
        ("", "Service") => services::pods(picture, object),
        ("networking.k8s.io", "Ingress") => services::backends(picture, object),
        ("", "Namespace") => namespaces::left(picture, object),
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaling::target(picture, object),
        (group, _) if is_custom(group) => custom::needs(picture, object),
        _ => Vec::new(),
    });
    found
}

/// Whether what an object made still counts: not a ReplicaSet that is scaled to nothing, nor a pod or Job that has ended well.
fn is_current(picture: &Picture, object: &Object) -> bool {
    match (object.group(), object.kind()) {
        ("apps", "ReplicaSet") => {
            object.number("/spec/replicas") > 0 || picture.owned_by(object).next().is_some()
        }
        ("", "Pod") => object.text("/status/phase") != "Succeeded",
        ("batch", "Job") => object.condition_is("Complete", "True").is_none(),
        ("discovery.k8s.io", "EndpointSlice") | ("", "Event") => false,
        _ => true,
    }
}

/// How an object is, in a word or two.
pub(crate) fn state(around: &Around<'_>) -> String {
    let object = around.object;
    let of = |ready: &str, wanted: &str| format!("{}/{} ready", object.number(ready), object.number(wanted));
    if object.is_deleting() {
        return "terminating".to_owned();
    }
    match (object.group(), object.kind()) {
        ("", "Pod") => pods::state(object),
        ("", "PersistentVolumeClaim" | "Namespace") => object.text("/status/phase").to_lowercase(),
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet") => {
            of("/status/readyReplicas", "/spec/replicas")
        }
        ("apps", "DaemonSet") => of("/status/numberReady", "/status/desiredNumberScheduled"),
        ("batch", "Job") => jobs::state(object),
        _ => match object.condition("Ready").or_else(|| object.condition("Available")) {
            Some(condition) if condition.status == "True" => "ready".to_owned(),
            Some(_) => "not ready".to_owned(),
            None => String::new(),
        },
    }
}
