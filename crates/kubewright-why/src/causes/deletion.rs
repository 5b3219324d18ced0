//! Objects that are deleted and still there, and objects that will go with their owner.

use crate::cause::Cause;
use crate::causes::Around;
use crate::object::{Id, Object};
use crate::picture::Picture;
use crate::report::Finding;
use crate::text::{ago, few, in_namespace};

/// The garbage collector's own finalizers.
const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

pub(super) fn find(around: &Around<'_>) -> Vec<Finding> {
    let Around { picture, object, .. } = *around;
    if !object.is_deleting() {
        return owner_missing(picture, object).into_iter().collect();
    }
    let mut found = Vec::new();
    for finalizer in object.finalizers() {
        found.push(match finalizer {
            FOREGROUND => foreground(picture, object),
            other => held(picture, object, other),
        });
    }
    if found.is_empty() && object.kind() == "Pod" && object.group().is_empty() {
        found.push(stopping(picture, object));
    }
    found
}

fn held(picture: &Picture, object: &Object, finalizer: &str) -> Finding {
    let since =
        object.time("/metadata/deletionTimestamp").map(|time| ago(time, picture.now)).unwrap_or_default();
    let (who, next) = taker(picture, object, finalizer);
    Finding::new(
        Cause::Finalizer,
        format!("deleted {since} ago and held by finalizer {finalizer}: {who} has to take it"),
        next,
    )
    .all(manager_of_finalizers(object).map(|manager| format!("finalizers were last written by {manager}")))
}

/// Who takes a finalizer, and what to do.
fn taker(picture: &Picture, object: &Object, finalizer: &str) -> (String, String) {
    let pods_that_use = || users_of_claim(picture, object);
    let built_in = |who: &str, next: String| (who.to_owned(), next);
    match finalizer {
        ORPHAN => built_in("the garbage collector", "is kube-controller-manager running?".to_owned()),
        "kubernetes.io/pvc-protection" => {
            let users = pods_that_use();
            let next = if users.is_empty() {
                "no pod of the namespace uses it: is kube-controller-manager running?".to_owned()
            } else {
                format!("delete the pods that use it: {}", few(&users))
            };
            built_in("the controller of claims, once no pod uses it,", next)
        }
        "kubernetes.io/pv-protection" => built_in(
            "the controller of volumes, once no claim has it,",
            format!(
                "delete the claim {}/{}",
                object.text("/spec/claimRef/namespace"),
                object.text("/spec/claimRef/name")
            ),
        ),
        "batch.kubernetes.io/job-tracking" => {
            built_in("the controller of Jobs", "is kube-controller-manager running?".to_owned())
        }
        "service.kubernetes.io/load-balancer-cleanup" => built_in(
            "the cloud's controller of load balancers",
            "look at the log of cloud-controller-manager".to_owned(),
        ),
        "customresourcecleanup.apiextensions.k8s.io" => built_in(
            "the API server, once no objects of the kind are left,",
            format!("kubectl get {} -A: each may have finalizers of its own", object.name()),
        ),
        _ => operator_of_finalizer(picture, object, finalizer),
    }
}

fn operator_of_finalizer(picture: &Picture, object: &Object, finalizer: &str) -> (String, String) {
    let programs = super::operators::programs_of(picture, object);
    let who = match (programs.first(), manager_of_finalizers(object)) {
        (Some(program), _) => format!("{}{}", program.id(), in_namespace(program.namespace())),
        (None, Some(manager)) => format!("{manager}, who wrote it,"),
        (None, None) => {
            let domain = finalizer.split('/').next().unwrap_or_default();
            format!("the operator of {domain}")
        }
    };
    let next = format!(
        "see that it runs and look at its log; only if it is gone for good: kubectl patch {}{} --type=merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'",
        object.id(),
        in_namespace(object.namespace()),
    );
    (who, next)
}

/// The field manager that owns `metadata.finalizers`.
fn manager_of_finalizers(object: &Object) -> Option<String> {
    let owner =
        object.managers().find(|entry| entry["fieldsV1"]["f:metadata"]["f:finalizers"].is_object())?;
    owner["manager"].as_str().map(str::to_owned)
}

fn users_of_claim(picture: &Picture, claim: &Object) -> Vec<String> {
    let pods = picture.within("", "Pod", claim.namespace());
    let uses = pods.filter(|pod| super::scheduling::claim_names(pod).iter().any(|name| name == claim.name()));
    uses.map(|pod| pod.name().to_owned()).collect()
}

fn foreground(picture: &Picture, object: &Object) -> Finding {
    let dependents: Vec<&Object> = picture
        .owned_by(object)
        .filter(|one| one.owners().any(|owner| owner.uid == object.uid() && owner.blocks))
        .collect();
    let names: Vec<String> = dependents.iter().map(|one| one.id().to_string()).collect();
    let (message, next) = if names.is_empty() {
        let text = "deleted in the foreground: none of its dependents that were read blocks it";
        (text.to_owned(), "the garbage collector takes the finalizer: is it running?".to_owned())
    } else {
        (
            format!("deleted in the foreground: it waits for {} dependents: {}", names.len(), few(&names)),
            format!(
                "see why the first is still there: kubewright why {}{}",
                names[0],
                in_namespace(object.namespace())
            ),
        )
    };
    Finding::new(Cause::ForegroundDeletion, message, next)
}

fn stopping(picture: &Picture, pod: &Object) -> Finding {
    let node = pod.text("/spec/nodeName");
    let gone = picture.is_absent(&Id::new("", "Node", "", node));
    let not_ready = picture
        .get("", "Node", "", node)
        .and_then(|node| node.condition("Ready"))
        .filter(|condition| condition.status != "True");
    let by_force = format!(
        "kubectl delete pod {}{} --force --grace-period=0",
        pod.name(),
        in_namespace(pod.namespace())
    );
    if !node.is_empty() && (gone || not_ready.is_some()) {
        let how = if gone { "is gone" } else { "does not answer" };
        return Finding::new(
            Cause::NodeGone,
            format!("deleted, and node {node} {how}: nobody confirms that its containers have stopped"),
            format!("if the machine is off: {by_force}"),
        )
        .all(not_ready.map(|one| one.line()));
    }
    let ends = pod.time("/metadata/deletionTimestamp");
    let left = ends.map_or(0, |ends| ends.as_second() - picture.now.as_second());
    let grace = pod.number("/metadata/deletionGracePeriodSeconds");
    let message = if left > 0 {
        format!("it is being stopped: {left}s of its grace period of {grace}s are left")
    } else {
        format!(
            "its grace period of {grace}s is over since {}s: its kubelet has not said that it is gone",
            -left
        )
    };
    let next =
        if left > 0 { "wait; a program that handles SIGTERM ends sooner".to_owned() } else { by_force };
    Finding::new(Cause::GracePeriod, message, next)
}

fn owner_missing(picture: &Picture, object: &Object) -> Option<Finding> {
    let (mut present, mut missing) = (0, Vec::new());
    for owner in object.owners() {
        let here = picture.objects.iter().find(|one| {
            (one.kind(), one.name(), one.group()) == (owner.kind, owner.name, owner.group())
                && (one.namespace() == object.namespace() || one.namespace().is_empty())
        });
        match here {
            Some(one) if one.uid() == owner.uid => present += 1,
            Some(_) => missing.push(format!("{}/{} (another one has its name now)", owner.kind, owner.name)),
            None => {
                let places = [object.namespace(), ""];
                let ids = places.map(|place| Id::new(owner.group(), owner.kind, place, owner.name));
                if ids.iter().any(|id| picture.is_absent(id)) {
                    missing.push(format!("{}/{}", owner.kind, owner.name));
                }
            }
        }
    }
    if missing.is_empty() || present > 0 {
        return None;
    }
    let message =
        format!("owner {} does not exist: the garbage collector deletes this object", few(&missing));
    Some(Finding::new(
        Cause::OwnerMissing,
        message,
        "an owner has to be in the same namespace, or of the cluster; remove the reference to keep the object",
    ))
}
