//! Why objects cannot be created: what admission says, as controllers repeat it in events and conditions.

use crate::cause::Cause;
use crate::object::{Id, Object};
use crate::picture::Picture;
use crate::report::Finding;
use crate::text::{event_line, in_namespace, one_line};

/// What a refused create means, by the words of the refusal.
pub(super) fn refusal(namespace: &str, message: &str) -> (Cause, String) {
    let place = in_namespace(namespace);
    let has = |text: &str| message.contains(text);
    if has("exceeded quota") || has("failed quota") {
        return (Cause::Quota, format!("raise the quota, or use less: kubectl describe quota{place}"));
    }
    if has("violates PodSecurity") {
        let next = "change the securityContext as the message says, or the namespace's label pod-security.kubernetes.io/enforce";
        return (Cause::PodSecurity, next.to_owned());
    }
    if has("failed calling webhook") {
        let next = "see that the webhook's service has endpoints, and its failurePolicy: kubewright why on the configuration";
        return (Cause::WebhookUnreachable, next.to_owned());
    }
    if has("denied the request") && has("admission webhook") {
        return (
            Cause::WebhookDenied,
            "change the object as the webhook says, or the webhook's rules".to_owned(),
        );
    }
    if has("ValidatingAdmissionPolicy") {
        return (
            Cause::PolicyDenied,
            "change the object as the policy says: kubectl get validatingadmissionpolicies".to_owned(),
        );
    }
    if has("error looking up service account") || has("serviceaccount") && has("not found") {
        return (
            Cause::ServiceAccountMissing,
            format!("create the service account that the pod names{place}"),
        );
    }
    let limits = ["maximum cpu usage", "maximum memory usage", "minimum cpu usage", "minimum memory usage"];
    if limits.iter().any(|text| has(text)) || has(" usage per ") || has("limit to request ratio") {
        return (Cause::LimitRange, format!("stay within the limits: kubectl describe limitrange{place}"));
    }
    (Cause::CreateFailed, "change what the message names".to_owned())
}

/// Why the pods (or objects) of a workload cannot be created, by its latest event or a condition.
pub(super) fn create_failed(picture: &Picture, object: &Object) -> Option<Finding> {
    let condition = object.condition_is("ReplicaFailure", "True");
    let event = picture.event(object, &["FailedCreate"]);
    let message = match (condition, event) {
        (Some(condition), _) => condition.message,
        (None, Some(event)) => event.text("/message"),
        (None, None) => return None,
    };
    let (mut cause, mut next) = refusal(object.namespace(), message);
    let account = object.text("/spec/template/spec/serviceAccountName");
    let id = Id::new("", "ServiceAccount", object.namespace(), account);
    if cause == Cause::CreateFailed && !account.is_empty() && picture.is_absent(&id) {
        cause = Cause::ServiceAccountMissing;
        next = format!("kubectl create serviceaccount {account}{}", in_namespace(object.namespace()));
    }
    let finding = Finding::new(cause, format!("its pods cannot be created: {}", one_line(message)), next);
    Some(finding.all(condition.map(|one| one.line())).all(event.map(event_line)))
}
