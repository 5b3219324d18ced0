//! Status manager of one pod: writes its status, and removes what is left of it in the end (`pkg/kubelet/status`).

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::{Value, json};

use super::super::report::{differs, status};
use super::super::state::PodWorkerState;
use super::carry_out::later;
use super::{PodWorker, STATUS_RETRY, version};
use crate::files;
use crate::images::blocking;
use crate::inputs::volumes;

impl PodWorker {
    fn api(&self) -> Api<Pod> {
        let namespace = self.pod.metadata.namespace.as_deref().unwrap_or_default();
        Api::namespaced(self.node.client.clone(), namespace)
    }

    fn name(&self) -> &str {
        self.pod.metadata.name.as_deref().unwrap_or_default()
    }

    /// Writes the status of the pod where it says something new.
    pub(super) async fn sync_status(&mut self) {
        let now = self.now();
        let new = status(&self.pod, &self.pod_containers, &self.state, self.node.host, now);
        let over = self.state.worker_state == PodWorkerState::Terminated && !self.state.is_busy();
        self.view.publish(Arc::clone(&self.pod), new.clone(), self.state.address, over);
        if self.gone || !differs(&self.pod, &new) || self.written.as_ref() == Some(&new) {
            self.sync_status_at = None;
            return;
        }
        if self.sync_status_at.is_some_and(|at| at > now) {
            return;
        }
        let body = json!({"metadata": {"uid": self.pod.metadata.uid}, "status": body(&new)});
        let params = PatchParams::default();
        match self.api().patch_status(self.name(), &params, &Patch::Strategic(&body)).await {
            Ok(pod) => {
                self.written = Some(new);
                self.sync_status_at = None;
                if version(&pod) > version(&self.pod) && pod.metadata.uid == self.pod.metadata.uid {
                    self.pod = Arc::new(pod);
                    self.pod_containers = super::PodContainers::of(&self.pod);
                }
            }
            Err(kube::Error::Api(refusal)) if refusal.is_not_found() => self.gone = true,
            Err(error) => {
                tracing::warn!(pod = %self.pod_name(), %error, "the status of a pod was not taken");
                self.sync_status_at = Some(later(now, STATUS_RETRY));
            }
        }
    }

    /// A pod whose containers have ended stays until somebody deletes it; then all that is left of it goes.
    pub(super) async fn is_finished(&mut self) -> bool {
        if !self.is_deleted() {
            return false;
        }
        if !self.gone {
            if self.sync_status_at.is_some() {
                return false;
            }
            let preconditions = Preconditions { uid: self.pod.metadata.uid.clone(), resource_version: None };
            let params = DeleteParams {
                grace_period_seconds: Some(0),
                preconditions: Some(preconditions),
                ..DeleteParams::default()
            };
            match self.api().delete(self.name(), &params).await {
                Ok(_) => {}
                Err(kube::Error::Api(refusal)) if refusal.is_not_found() || refusal.is_conflict() => {}
                Err(error) => {
                    tracing::warn!(pod = %self.pod_name(), %error, "a pod that has ended was not removed");
                    self.sync_status_at = Some(later(self.now(), STATUS_RETRY));
                    return false;
                }
            }
            if self.pod.metadata.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty()) {
                // Others hold it; nothing is left to do here.
                self.view.publish(Arc::clone(&self.pod), PodStatus::default(), None, true);
            }
        }
        self.clean_up().await;
        true
    }

    async fn clean_up(&self) {
        let (node, pod) = (Arc::clone(&self.node.preparer.node), Arc::clone(&self.pod));
        let removed = blocking(move || {
            let logs = files::remove(&node.log_folder(&pod));
            volumes::remove(&node, &pod).and(logs).map_err(|error| error.to_string())
        });
        if let Err(error) = removed.await {
            tracing::warn!(pod = %self.pod_name(), %error, "what a pod left behind was not removed");
        }
    }
}

/// A status as a strategic merge patch: conditions are merged by their type, so what they no longer say is taken out by
/// name.
fn body(status: &PodStatus) -> Value {
    let mut body = kubewright_objects::to_value(status).unwrap_or_default();
    let blank = |object: &mut Value, fields: &[&str]| {
        for field in fields {
            if object.get(field).is_none() {
                object[field] = Value::Null;
            }
        }
    };
    for condition in body["conditions"].as_array_mut().into_iter().flatten() {
        blank(condition, &["reason", "message", "lastProbeTime"]);
    }
    blank(&mut body, &["reason", "message"]);
    if body["conditions"].is_null()
        && let Some(fields) = body.as_object_mut()
    {
        fields.remove("conditions");
    }
    body
}
