//! The horizontal pod autoscaler (`pkg/controller/podautoscaler`): every 15 seconds it looks at what the pods of a target
//! use, and writes how many there should be into the target's scale.
//!
//! Observe: the target's `scale` ([`target`]), its pods, and what was measured ([`readings`]: metrics APIs, or annotations
//! that people set, [`settable`]). Plan: what each metric proposes ([`proposal`] on [`calculator`]), what is made of that
//! ([`plan`] on [`limits`] and [`history`]). Act: the scale, the events, the status.

mod calculator;
mod history;
mod limits;
mod plan;
mod proposal;
mod quantity;
mod readings;
mod requests;
mod samples;
mod selectors;
mod served;
mod settable;
mod status;
mod target;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::autoscaling::v2::{
    HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec, HorizontalPodAutoscalerStatus, MetricStatus,
};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kubewright_meta::selector::LabelSelector;
use kubewright_objects::optional;
use kubewright_runtime::{Context, Controller, Error, EventType, Key, Outcome, Reconciler};
use kubewright_spec::{Version, has_feature};
use parking_lot::Mutex;
use tokio::time::Instant;

use self::history::History;
use self::limits::Bounds;
use self::plan::{Observed, Rescale, ScaleDecision};
use self::readings::MetricsReader;
use self::selectors::Selectors;
use self::target::{Kinds, Target};

/// The source of its events.
const NAME: &str = "horizontal-pod-autoscaler";
/// How often each autoscaler is looked at, whatever happens.
const PERIOD: Duration = Duration::from_secs(15);

/// The controller of autoscalers.
#[must_use]
pub(crate) fn controller(kubernetes: Version) -> Controller {
    Controller::new(NAME, Autoscalers::of(kubernetes))
        .for_kind::<HorizontalPodAutoscaler>()
        .reads::<Pod>()
        .reads::<Namespace>()
        .concurrency(5)
}

struct Autoscalers {
    kubernetes: Version,
    memories: Mutex<BTreeMap<Key, Memory>>,
    selectors: Selectors,
    kinds: Kinds,
}

/// What is remembered of one autoscaler.
struct Memory {
    /// When it is looked at next.
    due: Instant,
    /// The generation that was looked at last.
    generation: Option<i64>,
    history: History,
}

impl Reconciler for Autoscalers {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(autoscaler) = ctx.get::<HorizontalPodAutoscaler>(key) else {
            self.memories.lock().remove(key);
            self.selectors.forget(key);
            return Ok(Outcome::Done);
        };
        let Some(mut history) = self.begin(key, autoscaler.metadata.generation) else {
            return Ok(Outcome::RequeueAfter(self.left(key)));
        };
        let before = autoscaler.status.clone().unwrap_or_default();
        let mut review = Sync {
            kubernetes: self.kubernetes,
            ctx,
            key,
            autoscaler: &autoscaler,
            spec: optional::<HorizontalPodAutoscalerSpec>(&autoscaler.spec).cloned().unwrap_or_default(),
            status: before.clone(),
            now: ctx.world().clock.now(),
        };
        let failed = review.run(self, &mut history).await;
        if let Some(memory) = self.memories.lock().get_mut(key) {
            memory.history = history;
        }
        review.write_status(&before).await;
        if let Err(error) = failed {
            review.record_failure(error);
        }
        Ok(Outcome::RequeueAfter(PERIOD))
    }
}

impl Autoscalers {
    fn of(kubernetes: Version) -> Self {
        let (memories, selectors, kinds) = Default::default();
        Self { kubernetes, memories, selectors, kinds }
    }

    /// What is remembered of an autoscaler whose time has come. Up to v1.36 one that is new waits for a period first, as all keys do
    /// in the queue of kube-controller-manager; from v1.37 on that one and one of which something else is wanted are looked at at once.
    fn begin(&self, key: &Key, generation: Option<i64>) -> Option<History> {
        let now = Instant::now();
        let waits = self.kubernetes < Version::V1_37;
        let mut memories = self.memories.lock();
        let memory = memories.entry(key.clone()).or_insert_with(|| Memory {
            due: if waits { now + PERIOD } else { now },
            generation,
            history: History::default(),
        });
        let is_changed = std::mem::replace(&mut memory.generation, generation) != generation;
        if now < memory.due && (waits || !is_changed) {
            return None;
        }
        memory.due = now + PERIOD;
        Some(memory.history.clone())
    }

    fn left(&self, key: &Key) -> Duration {
        let due = self.memories.lock().get(key).map(|memory| memory.due);
        due.map_or(PERIOD, |due| due.saturating_duration_since(Instant::now()))
    }
}

/// Reconciliation of one autoscaler.
struct Sync<'a> {
    kubernetes: Version,
    ctx: &'a Context,
    key: &'a Key,
    autoscaler: &'a HorizontalPodAutoscaler,
    spec: HorizontalPodAutoscalerSpec,
    status: HorizontalPodAutoscalerStatus,
    now: Timestamp,
}

/// Why an autoscaler could not do its work.
enum Failed {
    /// It was recorded already.
    Recorded(String),
    /// What its metrics say is not known: to be recorded when the status is written.
    Metrics(String),
}

impl Sync<'_> {
    async fn run(&mut self, all: &Autoscalers, history: &mut History) -> Result<(), Failed> {
        let namespace = self.key.namespace.clone().unwrap_or_default();
        let found =
            Target::find(&all.kinds, self.ctx.client(), &namespace, &self.spec.scale_target_ref).await;
        let mut target = match found {
            Ok(target) => target,
            Err(error) => {
                self.warn("FailedGetScale", &error);
                let message =
                    format!("the HPA controller was unable to get the target's current scale: {error}");
                self.set("AbleToScale", false, ("FailedGetScale", &message));
                return Err(Failed::Recorded(error));
            }
        };
        let able = "the HPA controller was able to get the target's current scale";
        self.set("AbleToScale", true, ("SucceededGetScale", able));
        let (current, _) = target.replicas();
        history.begin(current, self.now);

        let may_leave_zero = self.scales_to_zero() && plan::may_leave_zero(&self.spec, &self.status);
        let (rescale, metrics) = match plan::decide_scale(Bounds::of(&self.spec, current), may_leave_zero) {
            ScaleDecision::Disabled => {
                let why = "scaling is disabled since the replica count of the target is zero";
                self.set("ScalingActive", false, ("ScalingDisabled", why));
                (None, Vec::new())
            }
            ScaleDecision::Rescale(rescale) => (Some(rescale), Vec::new()),
            ScaleDecision::Measure => self.measure(all, &target, history).await?,
        };
        match rescale {
            None => {
                self.record((current, current), metrics, None);
                Ok(())
            }
            Some(rescale) => self.rescale(&mut target, &rescale, metrics, history).await,
        }
    }

    /// Asks for what was measured, and decides by it.
    async fn measure(
        &mut self,
        all: &Autoscalers,
        target: &Target,
        history: &mut History,
    ) -> Result<(Option<Rescale>, Vec<MetricStatus>), Failed> {
        let (current, desired) = (target.replicas().0, self.status.desired_replicas);
        let (selector, pods) = match self.selected(all, target.selector()) {
            Ok(selected) => selected,
            Err(error) => {
                self.record((current, desired), Vec::new(), None);
                return Err(Failed::Metrics(error));
            }
        };
        let namespace = self.key.namespace.as_deref().unwrap_or_default();
        let place =
            MetricsReader { ctx: self.ctx, kinds: &all.kinds, namespace, selector: &selector, pods: &pods };
        let mut measured = Vec::new();
        for spec in self.spec.metrics.iter().flatten() {
            measured.push(place.read(spec).await);
        }
        let observed = Observed {
            kubernetes: self.kubernetes,
            namespace,
            spec: &self.spec,
            pods: &pods,
            replicas: target.replicas(),
            measured: &measured,
            now: self.now,
        };
        let decision = plan::decide(&observed, &mut self.status, history);
        for (reason, why) in &decision.warnings {
            self.warn(reason, why);
        }
        decision.result.map(|rescale| (rescale, decision.metrics.clone())).map_err(|error| {
            self.record((current, desired), decision.metrics, None);
            Failed::Metrics(error)
        })
    }

    /// The pods of the target, if no other autoscaler scales one of them (`validateAndParseSelector`).
    fn selected(&mut self, all: &Autoscalers, text: &str) -> Result<(LabelSelector, Vec<Arc<Pod>>), String> {
        if text.is_empty() {
            let error = "selector is required";
            self.warn("SelectorRequired", error);
            let message = "the HPA target's scale is missing a selector";
            self.set("ScalingActive", false, ("InvalidSelector", message));
            return Err(error.into());
        }
        let selector = match LabelSelector::parse(text) {
            Ok(selector) => selector,
            Err(why) => {
                let error =
                    format!("couldn't convert selector into a corresponding internal selector object: {why}");
                self.warn("InvalidSelector", &error);
                self.set("ScalingActive", false, ("InvalidSelector", &error));
                return Err(error);
            }
        };
        all.selectors.set(self.key, &selector);
        let mut pods = self.ctx.list::<Pod>(self.key.namespace.as_deref());
        pods.retain(|pod| selectors::matches(&selector, &pod.metadata));
        let controlling = all.selectors.controlling(&pods);
        if controlling.len() > 1 {
            let names: Vec<String> = controlling.iter().map(ToString::to_string).collect();
            let error = if has_feature(self.kubernetes, "HPAOptimizedSelectorStore") {
                let names = names.get(..2).unwrap_or_default().join(" ");
                format!("pods by selector {text} are controlled by more than one HPA (e.g. [{names}])")
            } else {
                format!("pods by selector {text} are controlled by multiple HPAs: [{}]", names.join(" "))
            };
            self.warn("AmbiguousSelector", &error);
            self.set("ScalingActive", false, ("AmbiguousSelector", &error));
            return Err(error);
        }
        Ok((selector, pods))
    }

    async fn rescale(
        &mut self,
        target: &mut Target,
        rescale: &Rescale,
        metrics: Vec<MetricStatus>,
        history: &mut History,
    ) -> Result<(), Failed> {
        let (current, desired) = (target.replicas().0, self.status.desired_replicas);
        let Rescale { to, reason } = rescale;
        if let Err(error) = target.rescale(self.ctx.client(), *to).await {
            let note = format!("New size: {to}; reason: {reason}; error: {error}");
            self.warn("FailedRescale", &note);
            let message = format!("the HPA controller was unable to update the target scale: {error}");
            self.set("AbleToScale", false, ("FailedUpdateScale", &message));
            self.record((current, desired), metrics, None);
            return Err(Failed::Recorded(error));
        }
        let message = format!("the HPA controller was able to update the target scale to {to}");
        self.set("AbleToScale", true, ("SucceededRescale", &message));
        let note = format!("New size: {to}; reason: {reason}");
        self.ctx.event(self.autoscaler, EventType::Normal, "SuccessfulRescale", &note);
        if self.scales_to_zero() {
            let is_it = current > 0
                && *to == 0
                && self.spec.min_replicas == Some(0)
                && plan::measures_from_outside(&self.spec);
            let why = if is_it {
                ("ScaledToZero", "the HPA controller scaled the workload to zero")
            } else {
                ("NotScaledToZero", "the HPA controller did not scale the workload to zero")
            };
            self.set(plan::SCALED_TO_ZERO, is_it, why);
        }
        limits::remember(self.spec.behavior.as_ref(), (current, *to), history, self.now);
        self.record((current, *to), metrics, Some(self.now));
        Ok(())
    }

    /// Writes the status, if it is another one than before.
    async fn write_status(&self, before: &HorizontalPodAutoscalerStatus) {
        if status::is_same(before, &self.status) {
            return;
        }
        let mut changed = self.autoscaler.clone();
        changed.status = Some(self.status.clone());
        if let Err(error) = self.ctx.update_status(&changed).await {
            self.warn("FailedUpdateStatus", &error.to_string());
            tracing::debug!(autoscaler = %self.key, %error, "failed to update the status");
        }
    }

    fn record_failure(&self, failed: Failed) {
        let error = match failed {
            Failed::Recorded(error) => error,
            Failed::Metrics(error) => {
                self.warn("FailedComputeMetricsReplicas", &error);
                error
            }
        };
        tracing::debug!(autoscaler = %self.key, error, "the autoscaler could not do its work");
    }

    fn scales_to_zero(&self) -> bool {
        has_feature(self.kubernetes, "HPAScaleToZero")
    }

    /// Makes the status anew. See [`status::set_status`].
    fn record(&mut self, replicas: (i32, i32), metrics: Vec<MetricStatus>, scaled: Option<Timestamp>) {
        let generation = self.autoscaler.metadata.generation.unwrap_or_default();
        let observed = has_feature(self.kubernetes, "HPAGeneration").then_some(generation);
        status::set_status(&mut self.status, replicas, metrics, scaled, observed);
    }

    fn set(&mut self, kind: &str, holds: bool, why: (&str, &str)) {
        status::set(&mut self.status, kind, holds, why, self.now);
    }

    fn warn(&self, reason: &str, note: &str) {
        self.ctx.event(self.autoscaler, EventType::Warning, reason, note);
    }
}
