//! Claims of devices: made for pods from templates, no longer reserved for pods that are done, and then free for others
//! (`pkg/controller/resourceclaim/controller.go`). Not looked at: claims of pod groups.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, PodResourceClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Api;
use kube::api::DeleteParams;
use kubewright_objects::devices::{ResourceClaim, ResourceClaimTemplate};
use kubewright_runtime::{
    Context, Controller, Error, Event, EventType, Key, Outcome, Predicate, Reconciler, owner,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Which claim of its pod a claim was made for.
const OF_POD: &str = "resource.kubernetes.io/pod-claim-name";
/// What holds a claim as long as it is allocated.
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";
/// How many users a claim may have.
const USERS: usize = 256;
/// What a key begins with that stands for the pods of a template; no pod is called so.
const OF_TEMPLATE: &str = "template/";
/// The longest start of a generated name: a name has 63 characters, five of which are random.
const LONGEST_BASE: usize = 57;
/// How long a claim that was made is taken to be there.
const REMEMBERED: SignedDuration = SignedDuration::from_secs(60);

/// Two controllers: of pods that need claims, and of claims that are no longer needed.
pub(crate) fn controllers() -> Vec<Controller> {
    let for_pods = Controller::new("resource-claim-controller", OfPods::default())
        .event_source("resource_claim")
        .for_kind::<Pod>()
        .predicate(Predicate::of(|event: &Event<'_, Pod>| match event {
            Event::Create(pod) => has_claims(pod),
            Event::Update { old, new } => has_claims(new) && (named_node(old) != named_node(new)),
            _ => false,
        }))
        // A claim that somebody deletes is made again, unless it was made a moment ago.
        .watches(|claim: &ResourceClaim| pod_of(claim).map(|(key, _)| key).into_iter().collect())
        .predicate(Predicate::of(|event: &Event<'_, ResourceClaim>| matches!(event, Event::Delete(_))))
        .watches(|template: &ResourceClaimTemplate| {
            let (meta, namespace) =
                (&template.metadata, template.metadata.namespace.clone().unwrap_or_default());
            vec![Key::namespaced(
                namespace,
                format!("{OF_TEMPLATE}{}", meta.name.as_deref().unwrap_or_default()),
            )]
        })
        .predicate(Predicate::of(|event: &Event<'_, ResourceClaimTemplate>| {
            matches!(event, Event::Create(_))
        }));
    let of_claims = Controller::new("resource-claim-cleanup", OfClaims)
        .event_source("resource_claim")
        .for_kind::<ResourceClaim>()
        .watches(claims_of)
        .predicate(Predicate::of(|event: &Event<'_, Pod>| match event {
            Event::Update { old, new } => is_done(old) != is_done(new),
            event => matches!(event, Event::Delete(_)),
        }));
    vec![for_pods, of_claims]
}

fn pod_claims(pod: &Pod) -> &[PodResourceClaim] {
    pod.spec.as_ref().and_then(|spec| spec.resource_claims.as_deref()).unwrap_or_default()
}

fn has_claims(pod: &Pod) -> bool {
    !pod_claims(pod).is_empty()
}

fn named_node(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

/// The names of claims that the status of a pod tells, by the pod's names for them; `None` for one that is not needed.
fn recorded_claims(pod: &Pod) -> BTreeMap<&str, Option<&str>> {
    let status = pod.status.as_ref().and_then(|status| status.resource_claim_statuses.as_deref());
    let told = status.unwrap_or_default().iter();
    told.map(|one| (one.name.as_str(), one.resource_claim_name.as_deref())).collect()
}

/// The claims that a pod uses or used: those that it names, and those that were made for it.
fn claims_of(pod: &Pod) -> Vec<Key> {
    let named = pod_claims(pod).iter().filter_map(|claim| claim.resource_claim_name.as_deref());
    let made = recorded_claims(pod).into_values().flatten();
    let namespace = pod.metadata.namespace.clone().unwrap_or_default();
    named.chain(made).map(|name| Key::namespaced(namespace.clone(), name)).collect()
}

/// The pod that a claim was made for, and its uid.
fn pod_of(claim: &ResourceClaim) -> Option<(Key, &str)> {
    let owners = claim.metadata.owner_references.iter().flatten();
    let mut pods = owners
        .filter(|owner| owner.kind == "Pod" && owner.api_version == "v1" && owner.controller == Some(true));
    let namespace = claim.metadata.namespace.clone().unwrap_or_default();
    pods.next().map(|owner| (Key::namespaced(namespace, owner.name.clone()), owner.uid.as_str()))
}

/// The pods that name a template.
fn pods_of_template(ctx: &Context, namespace: Option<&str>, template: &str) -> Vec<Arc<Pod>> {
    let uses = |pod: &Arc<Pod>| {
        let mut names =
            pod_claims(pod).iter().filter_map(|claim| claim.resource_claim_template_name.as_deref());
        names.any(|name| name == template)
    };
    ctx.list::<Pod>(namespace).into_iter().filter(uses).collect()
}

/// Whether a pod does not run, and never will.
fn is_done(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default();
    matches!(phase, "Succeeded" | "Failed")
        || (pod.metadata.deletion_timestamp.is_some() && named_node(pod).is_empty())
}

#[derive(Default)]
struct OfPods {
    made: Made,
}

/// The claims that were made a moment ago. Upstream these are there, whatever became of them (`claimCache`): one that somebody
/// deletes then is not made again before something else leads to its pod.
#[derive(Default)]
struct Made(Mutex<BTreeMap<Key, Timestamp>>);

impl Made {
    fn remember(&self, claim: Key, now: Timestamp) {
        let mut made = self.0.lock();
        made.retain(|_, at| is_recent(*at, now));
        made.insert(claim, now);
    }

    fn knows(&self, claim: &Key, now: Timestamp) -> bool {
        self.0.lock().get(claim).is_some_and(|at| is_recent(*at, now))
    }
}

fn is_recent(at: Timestamp, now: Timestamp) -> bool {
    now.duration_since(at) < REMEMBERED
}

impl Reconciler for OfPods {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let made = &self.made;
        let Some(template) = key.name.strip_prefix(OF_TEMPLATE) else { return sync(ctx, key, made).await };
        for pod in pods_of_template(ctx, key.namespace.as_deref(), template) {
            sync(ctx, &Key::of(&*pod), made).await?;
        }
        Ok(Outcome::Done)
    }
}

async fn sync(ctx: &Context, key: &Key, made: &Made) -> Result<Outcome, Error> {
    let pod = ctx.get::<Pod>(key).filter(|pod| pod.metadata.deletion_timestamp.is_none() && !is_done(pod));
    let Some(pod) = pod.filter(|pod| has_claims(pod)) else { return Ok(Outcome::Done) };
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for wanted in pod_claims(&pod) {
        match provide(ctx, &pod, wanted, made).await {
            Ok(new) => names.extend(new.map(|name| (wanted.name.clone(), name))),
            Err(why) => {
                let note = format!("PodResourceClaim {}: {why}", wanted.name);
                ctx.event(&*pod, EventType::Warning, "FailedResourceClaimCreation", &note);
                return Err(Error::new(format!("pod {key}, {note}")));
            }
        }
    }
    if !names.is_empty() {
        let patch = json!({"metadata": {"uid": pod.metadata.uid}, "status": {"resourceClaimStatuses": statuses(&pod, &names)}});
        match ctx.patch_status::<Pod>(key, patch).await {
            Err(error) if error.is_not_found() => return Ok(Outcome::Done),
            written => written?,
        };
    }
    // Else the scheduler says for whom claims are.
    if !named_node(&pod).is_empty() {
        reserve(ctx, &pod, &names).await?;
    }
    Ok(Outcome::Done)
}

/// The names of the pod's claims with those that were just made.
fn statuses(pod: &Pod, made: &BTreeMap<String, String>) -> Vec<Value> {
    let told = recorded_claims(pod);
    let known = |claim: &PodResourceClaim| {
        let name =
            made.get(&claim.name).map(String::as_str).map(Some).or_else(|| told.get(&*claim.name).copied());
        name.map(|name| json!({"name": claim.name, "resourceClaimName": name}))
    };
    pod_claims(pod).iter().filter_map(known).collect()
}

/// Sees to it that there is a claim; gives its name where the pod does not tell it yet.
async fn provide(
    ctx: &Context,
    pod: &Pod,
    wanted: &PodResourceClaim,
    made: &Made,
) -> Result<Option<String>, String> {
    let now = ctx.world().clock.now();
    let Some(template_name) = &wanted.resource_claim_template_name else { return Ok(None) };
    let namespace = pod.metadata.namespace.clone().unwrap_or_default();
    match recorded_claims(pod).get(wanted.name.as_str()) {
        Some(None) => return Ok(None),
        Some(Some(name)) => {
            let key = Key::namespaced(namespace.clone(), *name);
            let there = match ctx.get::<ResourceClaim>(&key) {
                Some(claim) => owner::is_controlled_by(&*claim, pod),
                None => made.knows(&key, now),
            };
            if there {
                return Ok(None);
            }
        }
        None => {}
    }
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let is_it = |claim: &ResourceClaim| {
        let annotations = claim.metadata.annotations.as_ref();
        annotations.and_then(|all| all.get(OF_POD)) == Some(&wanted.name)
            && claim.metadata.deletion_timestamp.is_none()
            && owner::is_controlled_by(claim, pod)
    };
    // One that was made before the pod's status could tell it.
    let mut owned = ctx.owned_by::<ResourceClaim>(uid).into_iter().filter(|claim| is_it(claim));
    if let Some(claim) = owned.next() {
        return Ok(claim.metadata.name.clone());
    }
    let key = Key::namespaced(namespace, template_name);
    let Some(template) = ctx.get::<ResourceClaimTemplate>(&key) else {
        return Err(format!(
            "resource claim template {template_name:?}: resourceclaimtemplate.resource.k8s.io {template_name:?} not found"
        ));
    };
    match ctx.create(&claim(pod, wanted, &template)).await {
        Ok(claim) => {
            made.remember(Key::of(&claim), now);
            Ok(claim.metadata.name)
        }
        Err(error) => {
            let message = error.status().map_or_else(|| error.to_string(), |status| status.message.clone());
            Err(format!("create ResourceClaim : {message}"))
        }
    }
}

/// The claim that a template describes, for a pod.
fn claim(pod: &Pod, wanted: &PodResourceClaim, template: &ResourceClaimTemplate) -> ResourceClaim {
    let map = |field: &str| -> BTreeMap<String, String> {
        let of_json = template.spec["metadata"][field].as_object();
        let pairs = of_json.into_iter().flatten();
        pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
    };
    let mut annotations = map("annotations");
    annotations.insert(OF_POD.to_owned(), wanted.name.clone());
    let labels = map("labels");
    ResourceClaim {
        metadata: ObjectMeta {
            generate_name: Some(base(pod.metadata.name.as_deref().unwrap_or_default(), &wanted.name)),
            namespace: pod.metadata.namespace.clone(),
            annotations: Some(annotations),
            labels: (!labels.is_empty()).then_some(labels),
            owner_references: Some(vec![OwnerReference {
                api_version: "v1".into(),
                kind: "Pod".into(),
                name: pod.metadata.name.clone().unwrap_or_default(),
                uid: pod.metadata.uid.clone().unwrap_or_default(),
                controller: Some(true),
                block_owner_deletion: None,
            }]),
            ..ObjectMeta::default()
        },
        spec: template.spec["spec"].clone(),
        status: Value::Null,
    }
}

/// What the generated name starts with: both names, shortened alike where they are too long together.
fn base(pod: &str, claim: &str) -> String {
    let whole = format!("{pod}-{claim}-");
    if whole.len() <= LONGEST_BASE {
        return whole;
    }
    let pod = &pod[..pod.len() * LONGEST_BASE / whole.len()];
    let claim = &claim[..claim.len() * LONGEST_BASE / whole.len()];
    format!("{pod}-{claim}")
}

/// Reserves claims that are allocated for a pod which somebody else than the scheduler gave its node.
async fn reserve(ctx: &Context, pod: &Pod, made: &BTreeMap<String, String>) -> Result<(), Error> {
    let told = recorded_claims(pod);
    let namespace = pod.metadata.namespace.clone().unwrap_or_default();
    for wanted in pod_claims(pod) {
        let name = wanted
            .resource_claim_name
            .as_deref()
            .or_else(|| made.get(&wanted.name).map(String::as_str))
            .or_else(|| told.get(&*wanted.name).copied().flatten());
        let Some(key) = name.map(|name| Key::namespaced(namespace.clone(), name)) else { continue };
        let Some(claim) = ctx.get::<ResourceClaim>(&key) else { return Ok(()) };
        let mut users = users(&claim).to_vec();
        let is_user = |user: &Value| user["uid"].as_str() == pod.metadata.uid.as_deref();
        if claim.status["allocation"].is_null() || users.len() >= USERS || users.iter().any(is_user) {
            continue;
        }
        users.push(json!({"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}));
        write_users(ctx, &key, &claim, &users, false).await?;
    }
    Ok(())
}

fn users(claim: &ResourceClaim) -> &[Value] {
    claim.status["reservedFor"].as_array().map_or(&[], Vec::as_slice)
}

async fn write_users(
    ctx: &Context,
    key: &Key,
    claim: &ResourceClaim,
    users: &[Value],
    frees: bool,
) -> Result<ResourceClaim, Error> {
    let mut status = json!({"reservedFor": if users.is_empty() { Value::Null } else { users.into() }});
    if frees {
        status["allocation"] = Value::Null;
    }
    let patch = json!({"metadata": {"resourceVersion": claim.metadata.resource_version}, "status": status});
    ctx.patch_status::<ResourceClaim>(key, patch).await
}

struct OfClaims;

impl Reconciler for OfClaims {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(claim) = ctx.get::<ResourceClaim>(key) else { return Ok(Outcome::Done) };
        let mut remaining = Vec::new();
        for user in users(&claim) {
            if still_uses(ctx, key, user).await? {
                remaining.push(user.clone());
            }
        }
        let is_held = claim.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER);
        let mut written = None;
        if remaining.len() < users(&claim).len() {
            let frees = remaining.is_empty() && is_held;
            written = Some(write_users(ctx, key, &claim, &remaining, frees).await?);
        } else if is_held && claim.metadata.deletion_timestamp.is_some() && remaining.is_empty() {
            written = Some(write_users(ctx, key, &claim, &[], true).await?);
        }
        if let Some(claim) = written.filter(|claim| is_held && claim.status["allocation"].is_null()) {
            ctx.remove_finalizer(&claim, FINALIZER).await?;
        }
        if remaining.is_empty() && is_left_over(ctx, &claim) {
            ctx.delete::<ResourceClaim>(key, DeleteParams::default()).await?;
        }
        Ok(Outcome::Done)
    }
}

/// Whether who a claim is reserved for still needs it. Of users that are no pods nothing is known.
async fn still_uses(ctx: &Context, claim: &Key, user: &Value) -> Result<bool, Error> {
    if user["resource"] != "pods" || !user["apiGroup"].as_str().unwrap_or_default().is_empty() {
        return Ok(true);
    }
    let is_it = |pod: &Pod| pod.metadata.uid.as_deref() == user["uid"].as_str();
    let (namespace, name) =
        (claim.namespace.clone().unwrap_or_default(), user["name"].as_str().unwrap_or_default());
    if let Some(pod) = ctx.get::<Pod>(&Key::namespaced(namespace.clone(), name)) {
        return Ok(is_it(&pod) && !is_done(&pod));
    }
    // It may be too new for the cache.
    let api = Api::<Pod>::namespaced(ctx.client().clone(), &namespace);
    let pod = api.get_opt(name).await.map_err(Error::from)?;
    Ok(pod.is_some_and(|pod| is_it(&pod)))
}

/// Whether a claim was made for a pod that will not use it. Where the pod is gone, the garbage collector sees to it.
fn is_left_over(ctx: &Context, claim: &ResourceClaim) -> bool {
    let Some((key, uid)) = pod_of(claim) else { return false };
    let pod = ctx.get::<Pod>(&key);
    pod.is_some_and(|pod| pod.metadata.uid.as_deref() != Some(uid) || is_done(&pod))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Pod {
        kubewright_objects::from_value(json!({
            "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
            "spec": {"containers": [], "resourceClaims": [
                {"name": "gpu", "resourceClaimTemplateName": "one-gpu"},
                {"name": "nic", "resourceClaimName": "shared"},
            ]},
            "status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu-x"}]},
        }))
        .expect("a pod")
    }

    #[test]
    fn a_claim_has_what_its_template_says_and_the_pod_owns_it() {
        let template: ResourceClaimTemplate = kubewright_objects::from_value(json!({
            "metadata": {"name": "one-gpu"},
            "spec": {"metadata": {"labels": {"a": "b"}}, "spec": {"devices": {"requests": [{"name": "r"}]}}},
        }))
        .expect("a template");
        let pod = pod();
        let made = claim(&pod, &pod_claims(&pod)[0], &template);
        assert_eq!(made.metadata.generate_name.as_deref(), Some("p-gpu-"));
        assert_eq!(
            made.metadata.annotations.as_ref().and_then(|all| all.get(OF_POD)).map(String::as_str),
            Some("gpu")
        );
        assert_eq!(made.metadata.labels.as_ref().and_then(|all| all.get("a")).map(String::as_str), Some("b"));
        assert_eq!(made.spec["devices"]["requests"][0]["name"], "r");
        assert_eq!(pod_of(&made), Some((Key::namespaced("ns", "p"), "u")));
    }

    #[test]
    fn long_names_are_shortened_alike() {
        let base = base(&"p".repeat(63), &"c".repeat(30));
        assert!(base.len() <= LONGEST_BASE, "{base}");
        assert!(base.starts_with("ppp") && base.ends_with("ccc"), "{base}");
    }

    #[test]
    fn a_pod_uses_the_claims_that_it_names_and_those_that_were_made_for_it() {
        assert_eq!(claims_of(&pod()), [Key::namespaced("ns", "shared"), Key::namespaced("ns", "p-gpu-x")]);
    }

    #[test]
    fn a_pod_is_done_when_it_ended_or_goes_before_it_had_a_node() {
        let mut ended = pod();
        ended.status.as_mut().expect("a status").phase = Some("Succeeded".into());
        assert!(is_done(&ended));
        assert!(!is_done(&pod()));
    }
}
