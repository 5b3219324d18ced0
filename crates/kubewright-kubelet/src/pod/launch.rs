//! How a container is started: its image, what it is given, and the runtime (`startContainer` in
//! `pkg/kubelet/kuberuntime/kuberuntime_container.go`).

use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use super::pod_containers::PodContainer;
use super::prepare::{Prepared, Preparer};
use super::state::Instance;
use crate::container::{Container, Runtime, StartError};
use crate::events::{EventRecorder, EventType};
use crate::images::{ContainerImage, Missing, blocking};
use crate::inputs::{PodInputs, PodPlace};

/// A container that is to be started.
pub(crate) struct Launch {
    pub(crate) pod: Arc<Pod>,
    pub(crate) member: PodContainer,
    /// How often it ran before.
    pub(crate) run: u32,
    pub(crate) address: IpAddr,
    pub(crate) prepared: Arc<Prepared>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) preparer: Preparer,
    pub(crate) events: EventRecorder,
}

/// A container that was started.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) container: Arc<dyn Container>,
    pub(crate) instance: Instance,
    /// The signal that asks it to end, by its image.
    pub(crate) stop_signal: Option<String>,
}

/// Why a container was not started.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Refused {
    /// There is no image.
    Image(Missing),
    /// It cannot be created: the reason and the message of its waiting state.
    Create { reason: &'static str, message: String },
    /// It was created, and its program could not be started.
    Run { instance: Instance, message: String },
}

impl Launch {
    pub(crate) async fn start(self) -> Result<Launched, Refused> {
        let container = &self.member.container;
        let name = container.image.clone().unwrap_or_default();
        let images = &self.preparer.images;
        let found = match images.find(&name, container.image_pull_policy.as_deref()).await {
            Ok(found) => found,
            Err(missing) => return Err(Refused::Image(missing)),
        };
        let told = if found.is_host() {
            format!("Container image \"{name}\" is not in the image store: it runs commands of this machine")
        } else {
            format!("Container image \"{name}\" already present on machine and can be accessed by the pod")
        };
        self.event(EventType::Normal, "Pulled", told);
        let spec = self.spec(&found).await.map_err(|(reason, message)| {
            self.event(EventType::Warning, "Failed", format!("Error: {message}"));
            Refused::Create { reason, message }
        })?;
        let now = self.preparer.world.clock.now();
        let mut instance = Instance {
            id: spec.id.clone(),
            image: name,
            image_id: found.id.clone(),
            started_at: now,
            identity: spec.identity.clone(),
        };
        match self.runtime.start(spec).await {
            Ok(container) => {
                instance.started_at = Timestamp::try_from(container.started_at()).unwrap_or(now);
                self.event(EventType::Normal, "Created", "Container created".to_owned());
                self.event(EventType::Normal, "Started", "Container started".to_owned());
                Ok(Launched { container, instance, stop_signal: found.image.config.stop_signal })
            }
            Err(StartError::Create(message)) => {
                self.event(EventType::Warning, "Failed", format!("Error: {message}"));
                Err(Refused::Create { reason: "CreateContainerError", message })
            }
            Err(StartError::Run(message)) => {
                self.event(EventType::Normal, "Created", "Container created".to_owned());
                self.event(EventType::Warning, "Failed", format!("Error: {message}"));
                Err(Refused::Run { instance, message })
            }
        }
    }

    async fn spec(&self, found: &ContainerImage) -> Result<crate::container::Spec, (&'static str, String)> {
        let (pod, node) = (Arc::clone(&self.pod), Arc::clone(&self.preparer.node));
        let (prepared, image) = (Arc::clone(&self.prepared), found.image.clone());
        let (member, address, run) = (self.member.clone(), self.address, self.run);
        let made = blocking(move || {
            let inputs = PodInputs {
                pod: &pod,
                place: PodPlace { node: &node, pod_ips: &[address] },
                fetched: &prepared.fetched,
                volumes: &prepared.volumes,
            };
            Ok(inputs.container_spec(&member.container, run, &image))
        });
        match made.await {
            Ok(Ok(spec)) => Ok(spec),
            Ok(Err(error)) => Err((error.reason(), error.to_string())),
            Err(problem) => Err(("CreateContainerConfigError", problem)),
        }
    }

    fn event(&self, event_type: EventType, reason: &str, message: String) {
        self.events.container(&self.pod, &self.member, event_type, reason, message);
    }
}
