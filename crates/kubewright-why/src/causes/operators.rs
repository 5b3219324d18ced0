//! The operator of a custom kind: whether it runs, leads, may do what it wants, and what it says of its reconciles.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::cause::Cause;
use crate::gather::{accounts, is_custom, programs};
use crate::object::Object;
use crate::picture::Picture;
use crate::report::Finding;
use crate::text::{ago, few, in_namespace, one_line};

/// How long ago a status was written at most by an operator that is there.
const LATELY: SignedDuration = SignedDuration::from_mins(10);

/// The definition of an object's kind.
pub(super) fn definition<'a>(picture: &'a Picture, object: &Object) -> Option<&'a Object> {
    picture.all("apiextensions.k8s.io", "CustomResourceDefinition").find(|one| {
        one.text("/spec/group") == object.group() && one.text("/spec/names/kind") == object.kind()
    })
}

fn accounts_of(picture: &Picture, object: &Object) -> Vec<(String, String)> {
    let plural = definition(picture, object).map(|one| one.text("/spec/names/plural"));
    plural.map(|plural| accounts(picture, object.group(), plural)).unwrap_or_default()
}

/// The programs that may reconcile an object.
pub(super) fn programs_of<'a>(picture: &'a Picture, object: &Object) -> Vec<&'a Object> {
    if is_custom(object.group()) { programs(picture, &accounts_of(picture, object)) } else { Vec::new() }
}

/// Why an object's operator does nothing.
pub(super) fn find(picture: &Picture, object: &Object) -> Vec<Finding> {
    if definition(picture, object).is_none()
        || !picture.is_whole("rbac.authorization.k8s.io", "ClusterRoleBinding", "")
    {
        return Vec::new();
    }
    let accounts = accounts_of(picture, object);
    let programs = programs(picture, &accounts);
    let mut found: Vec<Finding> = rights(picture, &accounts).into_iter().collect();
    if programs.is_empty() {
        if !is_looked_after(picture, object) {
            found.push(missing(object, &accounts));
        }
        return found;
    }
    for program in &programs {
        found.extend(not_ready(program));
    }
    let places = programs.iter().map(|program| program.namespace());
    for place in places.collect::<std::collections::BTreeSet<_>>() {
        found.extend(lease(picture, place));
    }
    found
}

/// Whether somebody has written the object's status lately: its operator runs, on somebody's machine or within the program of the cluster.
fn is_looked_after(picture: &Picture, object: &Object) -> bool {
    let statuses = object.list("/metadata/managedFields").filter(|entry| entry["subresource"] == "status");
    let times = statuses.filter_map(|entry| entry["time"].as_str()?.parse::<Timestamp>().ok());
    times.into_iter().any(|time| picture.now.duration_since(time) < LATELY)
}

fn missing(object: &Object, accounts: &[(String, String)]) -> Finding {
    let names: Vec<String> = accounts.iter().map(|(namespace, name)| format!("{namespace}/{name}")).collect();
    let message = if names.is_empty() {
        format!("no service account has a role to write the status of {}s.{}", object.kind(), object.group())
    } else {
        format!(
            "service accounts that may reconcile it: {}; no Deployment or StatefulSet runs as one",
            few(&names)
        )
    };
    let next = "install the operator: `kubewright deploy`, or its chart; one that runs on your machine (`kubewright run`) is not seen here";
    Finding::new(Cause::OperatorMissing, message, next)
}

fn not_ready(program: &Object) -> Option<Finding> {
    let (ready, wanted) =
        (program.number("/status/readyReplicas"), program.at("/spec/replicas").as_i64().unwrap_or(1));
    if ready > 0 {
        return None;
    }
    let place = in_namespace(program.namespace());
    let message = format!("its operator {}{place} has {ready} of {wanted} pods ready", program.id());
    let next = if wanted == 0 {
        format!("kubectl scale {}{place} --replicas=1", program.id())
    } else {
        format!("kubewright why {}{place}", program.id())
    };
    let conditions = program.conditions().filter(|one| one.status == "False");
    Some(Finding::new(Cause::OperatorNotReady, message, next).all(conditions.map(|one| one.line())))
}

/// A lease of the operator's namespace that has ended.
fn lease(picture: &Picture, namespace: &str) -> Option<Finding> {
    let over = |lease: &&Object| {
        let renewed = lease.time("/spec/renewTime")?;
        let left = renewed.as_second() + lease.number("/spec/leaseDurationSeconds") - picture.now.as_second();
        (left < 0).then_some((renewed, left))
    };
    let mut leases =
        picture.within("coordination.k8s.io", "Lease", namespace).filter(|one| one.has("/spec/renewTime"));
    let lease = leases.find(|lease| over(lease).is_some())?;
    let (renewed, _) = over(&lease)?;
    let holder = lease.text("/spec/holderIdentity");
    let message = format!(
        "lease {}{} was renewed {} ago by {holder:?}: no replica leads, so none reconciles",
        lease.name(),
        in_namespace(namespace),
        ago(renewed, picture.now)
    );
    let next = "see that a replica runs and may update leases; a new one takes over by itself when it starts";
    Some(Finding::new(Cause::LeaseExpired, message, next))
}

/// As which users these service accounts ask.
fn users(accounts: &[(String, String)]) -> Vec<String> {
    accounts.iter().map(|(namespace, name)| format!("system:serviceaccount:{namespace}:{name}")).collect()
}

/// Requests of the operator that were refused, by the server's own log.
fn rights(picture: &Picture, accounts: &[(String, String)]) -> Option<Finding> {
    let users = users(accounts);
    let of_operator =
        |request: &&Value| request["user"].as_str().is_some_and(|user| users.iter().any(|one| one == user));
    let mut lines: Vec<String> = picture.refused.iter().filter(of_operator).map(request_line).collect();
    lines.sort();
    lines.dedup();
    let first = lines.first()?;
    let message = format!("its operator was refused for want of rights: {first}");
    let next = "add the verb and the resource to the operator's role (in a Rust project the rights follow from the code: `kubewright generate`)";
    Some(Finding::new(Cause::RightsMissing, message, next).all(lines.iter().take(5).cloned()))
}

/// `system:serviceaccount:a:b may not patch deployments.apps in shop`.
fn request_line(request: &Value) -> String {
    let text = |key: &str| request[key].as_str().unwrap_or_default();
    let group = if text("group").is_empty() { String::new() } else { format!(".{}", text("group")) };
    let sub =
        if text("subresource").is_empty() { String::new() } else { format!("/{}", text("subresource")) };
    let place =
        if text("namespace").is_empty() { String::new() } else { format!(" in {}", text("namespace")) };
    format!("{} may not {} {}{group}{sub}{place}", text("user"), text("verb"), text("resource"))
}

/// What the operator says of this object: its failures, and whether it waits.
pub(super) fn reconciles(picture: &Picture, object: &Object) -> Vec<Finding> {
    let controllers = picture.reconciles.as_ref().and_then(|said| said["controllers"].as_array());
    let users = users(&accounts_of(picture, object));
    // What the server was told is of all operators; what an operator was asked for is its own, and names no user.
    let is_of_operator = |controller: &&Value| {
        controller["user"].as_str().is_none_or(|user| users.iter().any(|one| one == user))
    };
    let mut found = Vec::new();
    for controller in controllers.into_iter().flatten().filter(is_of_operator) {
        let name = controller["controller"].as_str().unwrap_or_default();
        let key = key(object);
        let of_object = |one: &&Value| one["key"] == key.as_str();
        let list = |name: &str| controller[name].as_array().into_iter().flatten();
        let latest: Vec<String> = list("reconciles").filter(of_object).take(3).map(reconcile_line).collect();
        let waiting = controller["waiting"].as_u64().unwrap_or_default();
        if let Some(failing) = list("failing").find(of_object) {
            let error = one_line(failing["error"].as_str().unwrap_or_default());
            let message = format!("controller {name} fails to reconcile it: {error}");
            let next = next_try(failing);
            found.push(Finding::new(Cause::ReconcileFailing, message, next).all(latest));
        } else if latest.is_empty() && waiting > 0 {
            let message =
                format!("controller {name} has not reconciled it lately; {waiting} keys wait in its queue");
            let next = "wait, or give the controller more workers (concurrency)";
            found.push(Finding::new(Cause::ReconcileWaiting, message, next));
        }
    }
    found
}

fn key(object: &Object) -> String {
    if object.namespace().is_empty() {
        object.name().to_owned()
    } else {
        format!("{}/{}", object.namespace(), object.name())
    }
}

fn next_try(failing: &Value) -> String {
    match failing["retryInSeconds"].as_f64() {
        Some(seconds) => format!("mend what the error names: the next try is in {seconds:.0}s"),
        None => "mend what the error names: the next change of the object is the next try".to_owned(),
    }
}

fn reconcile_line(one: &Value) -> String {
    format!(
        "reconciled at {} because of {}: {}",
        plain(&one["began"]),
        plain(&one["reasons"]),
        plain(&one["outcome"])
    )
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), one_line)
}
