//! kwok's `Stage` objects: where their CRD (`stages.kwok.x-k8s.io`) and any of them are, they say what happens to pods or
//! nodes instead of what happens by default (kwok's `--enable-crds=Stage`).
//!
//! What is not supported is refused by name, in an event of the stage: kinds other than Pod and Node, `steps`, CEL, jq
//! beyond paths and `select`, template functions beyond those of kwok's own stages.

mod jq;
mod play;
mod render;
mod stage;
mod template;
mod tokens;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Resource;
use kube::api::{ApiResource, DynamicObject, ObjectMeta};
use kubewright_runtime::{
    Cache, Context, Controller, Error, Event, EventType, Informer, Key, Outcome, Predicate, Reconciler,
};
use kubewright_world::World;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

pub(crate) use self::play::{Addresses, Play};
use self::stage::Stage;

const DEFINITION: &str = "stages.kwok.x-k8s.io";

/// The stages that are in force, and what waits for its stage.
#[derive(Clone, Default)]
pub(crate) struct Stages(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    stages: Vec<Arc<Stage>>,
    pending: BTreeMap<(String, Key), Pending>,
}

/// An object on its way to a stage.
#[derive(Clone, Debug)]
struct Pending {
    uid: String,
    stage: String,
    due: Timestamp,
    /// The version of the object that the stage was played on; until another is seen there is nothing to do.
    played: Option<String>,
}

/// What is to be done about an object.
#[derive(Debug)]
pub(crate) enum Cue {
    /// There are no stages for its kind: what happens by default happens.
    Default,
    /// Nothing, before this time.
    Wait(Option<Timestamp>),
    /// This, now.
    Play(Play),
}

impl Stages {
    /// What is to be done about `object`, a `kind` named `key`, at this time.
    pub(crate) fn cue(&self, kind: &str, key: &Key, object: &impl Serialize, world: &World) -> Cue {
        let mut inner = self.0.lock();
        if !inner.stages.iter().any(|stage| stage.kind == kind) {
            return Cue::Default;
        }
        let object = kubewright_objects::to_value(object).unwrap_or_default();
        let now = world.clock.now();
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        let matching: Vec<Arc<Stage>> = inner
            .stages
            .iter()
            .filter(|stage| stage.kind == kind && stage.matches(&object))
            .cloned()
            .collect();
        let id = (kind.to_owned(), key.clone());
        let before = inner.pending.get(&id).filter(|pending| pending.uid == uid).cloned();
        if before.as_ref().is_some_and(|before| before.played.as_deref() == Some(&version)) {
            return Cue::Wait(None);
        }
        let waits = before.and_then(|before| {
            let stage = matching.iter().find(|stage| stage.name == before.stage)?;
            before.played.is_none().then(|| (Arc::clone(stage), before.due))
        });
        let next = waits.or_else(|| {
            let stage = pick(&matching, &object, world)?;
            let delay = stage.delay(&object, now, world.dice.fraction());
            Some((stage, now.checked_add(delay).unwrap_or(Timestamp::MAX)))
        });
        let Some((stage, due)) = next else {
            inner.pending.remove(&id);
            return Cue::Wait(None);
        };
        let played = (due <= now).then_some(version);
        let is_due = played.is_some();
        inner.pending.insert(id, Pending { uid, stage: stage.name.clone(), due, played });
        if is_due { Cue::Play(Play::new(stage, object)) } else { Cue::Wait(Some(due)) }
    }

    /// Whether any stage is for this kind.
    pub(crate) fn has_for(&self, kind: &str) -> bool {
        self.0.lock().stages.iter().any(|stage| stage.kind == kind)
    }

    /// The object is gone, or its stage could not be played: nothing is known of it any more.
    pub(crate) fn forget(&self, kind: &str, key: &Key) {
        self.0.lock().pending.remove(&(kind.to_owned(), key.clone()));
    }

    /// Other stages are in force from now on; false when they are the same.
    fn set(&self, stages: Vec<Arc<Stage>>) -> bool {
        let mut inner = self.0.lock();
        let is_new = inner.stages != stages;
        if is_new {
            *inner = Inner { stages, pending: BTreeMap::new() };
        }
        is_new
    }
}

/// One of those that match, by their weights (`Lifecycle.Match`).
fn pick(matching: &[Arc<Stage>], object: &Value, world: &World) -> Option<Arc<Stage>> {
    if matching.len() < 2 {
        return matching.first().cloned();
    }
    let weights: Vec<u64> = matching.iter().map(|stage| stage.weight(object)).collect();
    let total = weights.iter().sum::<u64>();
    if total == 0 {
        return matching.get(world.dice.below(matching.len())).cloned();
    }
    let mut left =
        u64::try_from(world.dice.below(usize::try_from(total).unwrap_or(usize::MAX))).unwrap_or_default();
    for (stage, weight) in matching.iter().zip(weights) {
        if left < weight {
            return Some(Arc::clone(stage));
        }
        left -= weight;
    }
    None
}

/// Where the keys of objects that have to be looked at again come from.
pub(crate) struct Woken {
    pub(crate) pods: UnboundedReceiver<Key>,
    pub(crate) nodes: UnboundedReceiver<Key>,
}

/// The controller that reads the stages, and what it wakes when they change.
pub(crate) fn controller(stages: Stages) -> (Controller, Woken) {
    let (pods, woken_pods) = unbounded_channel();
    let (nodes, woken_nodes) = unbounded_channel();
    let (changes, changed) = unbounded_channel();
    let reader =
        Reader { stages, pods, nodes, changes, informer: Mutex::default(), recorded: Mutex::default() };
    let changed = futures::stream::unfold(changed, |mut changed| async move {
        changed.recv().await.map(|key| (key, changed))
    });
    let controller = Controller::new("simulated-stages", reader)
        .watches(|_: &CustomResourceDefinition| vec![Key::cluster_scoped(DEFINITION)])
        .predicate(Predicate::of(|event: &Event<'_, CustomResourceDefinition>| {
            event.object().metadata.name.as_deref() == Some(DEFINITION)
        }))
        .source(changed)
        .reads::<Pod>()
        .reads::<Node>();
    (controller, Woken { pods: woken_pods, nodes: woken_nodes })
}

struct Reader {
    stages: Stages,
    pods: UnboundedSender<Key>,
    nodes: UnboundedSender<Key>,
    changes: UnboundedSender<Key>,
    informer: Mutex<Option<Informer<DynamicObject>>>,
    /// What was refused of which stage, and said.
    recorded: Mutex<BTreeMap<String, String>>,
}

impl Reconciler for Reader {
    async fn reconcile(&self, ctx: &Context, _: &Key) -> Result<Outcome, Error> {
        let definition = ctx.get::<CustomResourceDefinition>(&Key::cluster_scoped(DEFINITION));
        let is_served = definition.is_some_and(|definition| is_established(&definition));
        if !is_served {
            self.informer.lock().take();
            self.renew(ctx, Vec::new());
            return Ok(Outcome::Done);
        }
        let informer = self.informer(ctx.cache());
        informer.synced().await;
        let mut stages = Vec::new();
        for object in informer.list(None) {
            let name = object.metadata.name.clone().unwrap_or_default();
            match Stage::read(&name, &object.data["spec"]) {
                Ok(stage) => {
                    self.recorded.lock().remove(&name);
                    stages.push(Arc::new(stage));
                }
                Err(reason) => self.record(ctx, &object, &name, &reason),
            }
        }
        self.renew(ctx, stages);
        Ok(Outcome::Done)
    }
}

impl Reader {
    fn informer(&self, cache: &Cache) -> Informer<DynamicObject> {
        let mut informer = self.informer.lock();
        if let Some(informer) = &*informer {
            return informer.clone();
        }
        let came = cache.watch::<DynamicObject>(&ApiResource::erase::<StageObject>(&()));
        let changes = self.changes.clone();
        came.subscribe(move |_| {
            // Nobody receives any more when the manager stops.
            let _ = changes.send(Key::cluster_scoped(DEFINITION));
        });
        *informer = Some(came.clone());
        came
    }

    /// Puts other stages in force; everything they are for is looked at again.
    fn renew(&self, ctx: &Context, stages: Vec<Arc<Stage>>) {
        if !self.stages.set(stages) {
            return;
        }
        for pod in ctx.list::<Pod>(None) {
            let _ = self.pods.send(Key::of(&*pod));
        }
        for node in ctx.list::<Node>(None) {
            let _ = self.nodes.send(Key::of(&*node));
        }
    }

    /// Says once why a stage is not in force.
    fn record(&self, ctx: &Context, object: &DynamicObject, name: &str, reason: &str) {
        let before = self.recorded.lock().insert(name.to_owned(), reason.to_owned());
        if before.as_deref() != Some(reason) {
            let stage = StageObject { metadata: object.metadata.clone() };
            ctx.event(&stage, EventType::Warning, "NotSupported", reason);
        }
    }
}

fn is_established(definition: &CustomResourceDefinition) -> bool {
    let conditions = definition.status.as_ref().and_then(|status| status.conditions.as_deref());
    let versions = &definition.spec.versions;
    conditions.unwrap_or_default().iter().any(|has| has.type_ == "Established" && has.status == "True")
        && versions.iter().any(|version| version.name == "v1alpha1" && version.served)
}

/// A stage as an object that events are about.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct StageObject {
    metadata: ObjectMeta,
}

impl Resource for StageObject {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Stage".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "kwok.x-k8s.io".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1alpha1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "stages".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
