//! Telling the cluster of the webhooks, and keeping it so.

use std::{pin::pin, sync::Arc, time::Duration};

use futures::{StreamExt, future::join_all};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, Resource,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    runtime::watcher,
};
use kubewright_meta::desired;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::{sync::watch, time::Instant};

use super::{Manifests, Reach, Trust, Webhooks, certificates::Shown, conversion};
use crate::Error;

/// What a server writes into the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Registration {
    /// The configurations of its webhooks, and the conversion of definitions that are there: by server-side apply, and
    /// again whenever somebody has changed them. Which rights that takes is told by [`Server::rights`](super::Server::rights).
    #[default]
    Apply,
    /// The `caBundle` alone, in configurations and definitions that somebody else installs (by
    /// [`Webhooks::manifests`]). Takes no right to `create`.
    CaBundle,
    /// Nothing: somebody else takes care of all.
    Nothing,
}

/// One object of the cluster that leads to webhooks.
struct Target {
    kind: ApiResource,
    name: String,
    shape: Shape,
}

/// What is written into an object.
enum Shape {
    /// All of a configuration.
    Configuration(Value),
    /// The `caBundle` of the entries of a configuration that lead here.
    Bundles { names: Vec<String>, paths: Vec<String> },
    /// The conversion of a definition.
    Conversion(Value),
    /// The `caBundle` of that.
    ConversionBundle,
}

/// A change that is due.
#[derive(Debug, PartialEq)]
enum Change {
    Apply(Value),
    Merge(Value),
}

impl Webhooks {
    /// Writes the configurations once, where they differ. What a [`Server`](super::Server) does all the time; for an
    /// installer.
    ///
    /// # Errors
    /// [`Error::Misconfigured`], or what the API server says. A definition that is not there is not an error.
    pub async fn register(&self, client: &Client, reach: &Reach, trust: Trust) -> Result<(), Error> {
        self.check()?;
        let manifests = self.manifests(reach, trust);
        for target in targets(self, &manifests, Registration::Apply)? {
            let api = target.api(client);
            let current = api.get_opt(&target.name).await?;
            let current = current.as_ref().map(kubewright_objects::to_value).transpose()?;
            if let Some(change) = target.change(current.as_ref(), None) {
                target.send(&api, &change, &self.operator).await?;
            }
        }
        Ok(())
    }
}

/// Writes what `registration` says, now and whenever the bundle or the object is another one, for ever.
pub(crate) async fn keep(
    webhooks: &Webhooks,
    client: &Client,
    registration: Registration,
    reach: &Reach,
    trust: &Trust,
    shown: &watch::Receiver<Option<Shown>>,
) -> Result<(), Error> {
    let manifests = webhooks.manifests(reach, trust.clone());
    let targets = targets(webhooks, &manifests, registration)?;
    let kept = targets.into_iter().map(|target| async move {
        let keeper = Registrar { api: target.api(client), target, operator: &webhooks.operator, trust };
        keeper.run(shown.clone()).await;
    });
    join_all(kept).await;
    std::future::pending().await
}

fn targets(
    webhooks: &Webhooks,
    manifests: &Manifests,
    registration: Registration,
) -> Result<Vec<Target>, Error> {
    let mut targets = Vec::new();
    let mutating = manifests.mutating.as_ref().map(configuration).transpose()?;
    let validating = manifests.validating.as_ref().map(configuration).transpose()?;
    for (kind, name, whole) in mutating.into_iter().chain(validating) {
        let shape = match registration {
            Registration::Apply => Shape::Configuration(whole),
            Registration::CaBundle => Shape::Bundles {
                names: webhooks.admission.iter().map(|webhook| webhook.name.clone()).collect(),
                paths: webhooks.admission.iter().map(|webhook| webhook.path.clone()).collect(),
            },
            Registration::Nothing => continue,
        };
        targets.push(Target { kind, name, shape });
    }
    for (name, conversion) in &manifests.conversions {
        let shape = match registration {
            Registration::Apply => Shape::Conversion(definition(manifests, conversion)?),
            Registration::CaBundle => Shape::ConversionBundle,
            Registration::Nothing => continue,
        };
        let kind = ApiResource::erase::<CustomResourceDefinition>(&());
        targets.push(Target { kind, name: name.clone(), shape });
    }
    Ok(targets)
}

fn configuration<K>(object: &K) -> Result<(ApiResource, String, Value), Error>
where
    K: Resource<DynamicType = ()> + Serialize,
{
    let name = object.meta().name.clone().unwrap_or_default();
    Ok((ApiResource::erase::<K>(&()), name, kubewright_objects::to_value(object)?))
}

/// The part of a definition that says how it is converted.
fn definition(manifests: &Manifests, conversion: &impl Serialize) -> Result<Value, Error> {
    let mut conversion = kubewright_objects::to_value(conversion)?;
    // What was there before leads elsewhere.
    let client = &mut conversion["webhook"]["clientConfig"];
    for way in ["url", "service"] {
        if client[way].is_null() {
            client[way] = Value::Null;
        }
    }
    let mut whole = json!({"spec": {"conversion": conversion}});
    if let Some(annotations) = manifests.trust().annotations() {
        whole["metadata"] = json!({"annotations": annotations});
    }
    Ok(whole)
}

impl Target {
    fn api(&self, client: &Client) -> Api<DynamicObject> {
        Api::all_with(client.clone(), &self.kind)
    }

    /// What the object lacks, with `bundle` (base64) trusted where there is one; `None` when it lacks nothing, or is not
    /// there to be changed.
    fn change(&self, current: Option<&Value>, bundle: Option<&str>) -> Option<Change> {
        match &self.shape {
            Shape::Configuration(wanted) => {
                let mut wanted = wanted.clone();
                for webhook in wanted["webhooks"].as_array_mut().into_iter().flatten() {
                    trust(&mut webhook["clientConfig"], bundle);
                }
                let good = current.is_some_and(|current| is_configured(&wanted, current));
                (!good).then_some(Change::Apply(wanted))
            }
            Shape::Bundles { names, paths } => self.bundles(current?, bundle?, names, paths),
            Shape::Conversion(wanted) => {
                let mut wanted = wanted.clone();
                trust(&mut wanted["spec"]["conversion"]["webhook"]["clientConfig"], bundle);
                lacks(&wanted, current?).map(Change::Merge)
            }
            Shape::ConversionBundle => {
                let (current, bundle) = (current?, bundle?);
                let found = &current["spec"]["conversion"];
                let path = found["webhook"]["clientConfig"].as_object().and_then(path_of);
                if found["strategy"] != "Webhook" || path.as_deref() != Some(conversion::PATH) {
                    return None;
                }
                let wanted =
                    json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}}});
                lacks(&wanted, current).map(Change::Merge)
            }
        }
    }

    /// The bundle for the entries of a configuration that lead here.
    fn bundles(&self, current: &Value, bundle: &str, names: &[String], paths: &[String]) -> Option<Change> {
        let entries = current["webhooks"].as_array()?.iter().filter(|entry| {
            let path = entry["clientConfig"].as_object().and_then(path_of);
            names.iter().any(|name| entry["name"] == **name) || path.is_some_and(|path| paths.contains(&path))
        });
        let entries: Vec<&Value> = entries.collect();
        if entries.iter().all(|entry| entry["clientConfig"]["caBundle"] == bundle) {
            return None;
        }
        let entries =
            entries.iter().map(|entry| json!({"name": entry["name"], "clientConfig": {"caBundle": bundle}}));
        Some(Change::Apply(json!({
            "apiVersion": self.kind.api_version, "kind": self.kind.kind,
            "metadata": {"name": self.name}, "webhooks": entries.collect::<Vec<_>>(),
        })))
    }

    async fn send(&self, api: &Api<DynamicObject>, change: &Change, operator: &str) -> Result<(), Error> {
        tracing::info!(kind = self.kind.kind, name = self.name, "telling the cluster of the webhooks");
        let sent = match change {
            // Whoever has changed it is not asked: without the right bundle the webhooks cannot be called.
            Change::Apply(object) => {
                let params = PatchParams::apply(operator).force();
                api.patch(&self.name, &params, &Patch::Apply(object)).await
            }
            Change::Merge(patch) => {
                let params = PatchParams { field_manager: Some(operator.to_owned()), ..Default::default() };
                api.patch(&self.name, &params, &Patch::Merge(patch)).await
            }
        };
        sent?;
        Ok(())
    }
}

/// The path under which an entry is called.
fn path_of(client: &serde_json::Map<String, Value>) -> Option<String> {
    if let Some(path) = client.get("service").and_then(|service| service["path"].as_str()) {
        return Some(path.to_owned());
    }
    let url: http::Uri = client.get("url")?.as_str()?.parse().ok()?;
    Some(url.path().to_owned())
}

fn trust(client: &mut Value, bundle: Option<&str>) {
    if let Some(bundle) = bundle {
        client["caBundle"] = bundle.into();
    }
}

/// Whether a configuration has these webhooks, as they are wanted, and no others.
fn is_configured(wanted: &Value, current: &Value) -> bool {
    let list = |object: &Value| object["webhooks"].as_array().cloned().unwrap_or_default();
    let (wanted_hooks, hooks) = (list(wanted), list(current));
    lacks(&json!({"metadata": wanted["metadata"]}), current).is_none()
        && wanted_hooks.len() == hooks.len()
        && wanted_hooks.iter().all(|wanted| {
            let found = hooks.iter().find(|hook| hook["name"] == wanted["name"]);
            found.is_some_and(|found| lacks(wanted, found).is_none())
        })
}

/// Keeps one object as it should be.
struct Registrar<'a> {
    target: Target,
    api: Api<DynamicObject>,
    operator: &'a str,
    trust: &'a Trust,
}

impl Registrar<'_> {
    async fn run(self, mut shown: watch::Receiver<Option<Shown>>) {
        let mut changes = pin!(watcher::watch_object(self.api.clone(), &self.target.name).fuse());
        let (mut current, mut pace) = (None, Pace::default());
        let mut retry = None;
        loop {
            tokio::select! {
                biased;
                Ok(()) = shown.changed() => {}
                () = until(retry) => {}
                Some(event) = changes.next() => match event {
                    Ok(object) => current = Some(object.and_then(|object| kubewright_objects::to_value(&object).ok())),
                    Err(error) => {
                        let (kind, name) = (&self.target.kind.kind, &self.target.name);
                        tracing::debug!(%kind, name, %error, "the watch failed");
                        tokio::time::sleep(pace.next()).await;
                        continue;
                    }
                },
            }
            retry = None;
            // What is there is not known before the watch has told it.
            let Some(current) = &current else { continue };
            let bundle = self.bundle(&shown.borrow_and_update());
            if let Some(change) = self.target.change(current.as_ref(), bundle.as_deref()) {
                tokio::time::sleep(pace.next()).await;
                if let Err(error) = self.target.send(&self.api, &change, self.operator).await {
                    let (kind, name) = (&self.target.kind.kind, &self.target.name);
                    tracing::warn!(%kind, name, %error, "the cluster cannot be told of the webhooks; trying again");
                    retry = Some(Instant::now() + pace.next());
                }
            }
        }
    }

    /// In base64.
    fn bundle(&self, shown: &Option<Shown>) -> Option<String> {
        use base64::{Engine, engine::general_purpose::STANDARD};
        match self.trust {
            Trust::CertManager(_) => None,
            Trust::Bundle(pem) => Some(STANDARD.encode(pem)),
            Trust::Later => {
                let bundle: Option<&Arc<str>> = shown.as_ref().and_then(|shown| shown.bundle.as_ref());
                bundle.map(|pem| STANDARD.encode(pem.as_bytes()))
            }
        }
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// How long to wait before the next write: not at all, and then longer each time while somebody else writes against it.
#[derive(Default)]
struct Pace {
    writes: u32,
    last: Option<Instant>,
}

impl Pace {
    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(30);
    const RESET: Duration = Duration::from_secs(120);

    fn next(&mut self) -> Duration {
        let now = Instant::now();
        if self.last.is_none_or(|last| now.duration_since(last) > Self::RESET) {
            self.writes = 0;
        }
        self.last = Some(now);
        self.writes = self.writes.saturating_add(1);
        match self.writes {
            1 => Duration::ZERO,
            more => Self::FIRST.saturating_mul(2_u32.saturating_pow(more - 2)).min(Self::LONGEST),
        }
    }
}
/// The merge patch that gives `current` what it lacks of `wanted`; `None` if it has everything.
fn lacks(wanted: &Value, current: &Value) -> Option<Value> {
    desired::between(wanted, current).map(|difference| difference.patch)
}
