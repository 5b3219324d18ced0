//! What a stage does to an object.

use std::net::Ipv4Addr;
use std::sync::Arc;

use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Resource};
use kubewright_runtime::{Context, Error, EventType, Object};
use serde_json::{Value, json};

use super::render::{TemplateFuncs, render};
use super::stage::{self, Stage};

/// A stage, and the object whose turn it is.
#[derive(Debug)]
pub(crate) struct Play {
    stage: Arc<Stage>,
    object: Value,
}

/// The addresses that templates ask for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addresses {
    /// The node that the object is, or is on.
    pub(crate) node: Option<Ipv4Addr>,
    /// The pod's own.
    pub(crate) pod: Option<Ipv4Addr>,
}

impl Play {
    pub(super) fn new(stage: Arc<Stage>, object: Value) -> Self {
        Self { stage, object }
    }

    /// Plays the stage: event, finalizers, then either the end of the object or its patches (`doStageSteps`).
    ///
    /// # Errors
    /// What the server refuses. A template that fails is told in an event of the object.
    pub(crate) async fn perform<K>(
        &self,
        ctx: &Context,
        object: &K,
        api: &Api<K>,
        addresses: &Addresses,
    ) -> Result<(), Error>
    where
        K: Object + Resource<DynamicType = ()>,
    {
        let next = &self.stage.next;
        if let Some(event) = &next.event {
            let kind = if event.kind == "Warning" { EventType::Warning } else { EventType::Normal };
            ctx.event(object, kind, &event.reason, &event.message);
        }
        let name = object.meta().name.clone().unwrap_or_default();
        let before = object.meta().finalizers.clone().unwrap_or_default();
        if let Some(after) = next.finalizers.after(&before) {
            let patch = json!({"metadata": {"finalizers": after, "uid": object.meta().uid}});
            gone_is_fine(api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await)?;
        }
        if next.delete {
            let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
            gone_is_fine(api.delete(&name, &at_once).await)?;
            return Ok(());
        }
        let funcs = World { now: ctx.world().clock.now().to_string(), addresses };
        for patch in &next.patches {
            match self.patch(patch, &funcs) {
                Ok(body) => {
                    let (params, body) = (PatchParams::default(), Patch::Strategic(body));
                    let patched = match &patch.subresource {
                        Some(subresource) => api.patch_subresource(subresource, &name, &params, &body).await,
                        None => api.patch(&name, &params, &body).await,
                    };
                    gone_is_fine(patched)?;
                }
                Err(reason) => {
                    let note = format!("stage {}: {reason}", self.stage.name);
                    ctx.event(object, EventType::Warning, "StageFailed", &note);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn patch(&self, patch: &stage::Patch, funcs: &World<'_>) -> Result<Value, String> {
        let text = render(&patch.template, &self.object, funcs)?;
        let made: Value = serde_saphyr::from_str(&text).map_err(|error| error.to_string())?;
        let mut made = pruned(made);
        if !patch.root.is_empty() {
            made = json!({patch.root.clone(): made});
        }
        Ok(made)
    }
}

/// A list or map that a template leaves empty says nothing: `containerStatuses:` without any below it.
fn pruned(made: Value) -> Value {
    match made {
        Value::Object(all) => Value::Object(all.into_iter().filter(|(_, value)| !value.is_null()).collect()),
        other => other,
    }
}

fn gone_is_fine<T>(answer: kube::Result<T>) -> Result<(), Error> {
    match answer.map_err(Error::from) {
        Err(error) if error.is_not_found() => Ok(()),
        answer => answer.map(|_| ()),
    }
}

struct World<'a> {
    now: String,
    addresses: &'a Addresses,
}

impl TemplateFuncs for World<'_> {
    fn now(&self) -> String {
        self.now.clone()
    }

    fn start_time(&self) -> String {
        self.now.clone()
    }

    fn node_ip(&self) -> String {
        self.addresses.node.map(|address| address.to_string()).unwrap_or_default()
    }

    fn node_ip_with(&self, _: &str) -> String {
        self.node_ip()
    }

    fn pod_ip_with(&self, _: &str, host_network: bool) -> String {
        let address = if host_network { self.addresses.node } else { self.addresses.pod };
        address.map(|address| address.to_string()).unwrap_or_default()
    }
}
