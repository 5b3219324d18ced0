//! What each volume is to be.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{HostPathVolumeSource, Pod, PodSpec, Volume};

use kubewright_meta::quantity::Quantity;

use super::{Content, Payload, Plan, Planned, VolumeError, claim, nested};
use crate::inputs::fetched::Fetched;
use crate::inputs::needs::{self, used_volumes};
use crate::inputs::place::PodPlace;

/// What the volumes of a pod are to be that some container of it uses, from what was fetched for it. Pure.
#[must_use]
pub fn plan(pod: &Pod, fetched: &Fetched, place: PodPlace<'_>) -> Plan {
    let mut plan = Plan::default();
    let Some(spec) = &pod.spec else { return plan };
    for volume in used_volumes(spec) {
        match of_volume(volume, pod, spec, fetched, place) {
            Ok(planned) => {
                plan.volumes.insert(volume.name.clone(), planned);
            }
            Err(error) => plan.failed.push(error),
        }
    }
    plan
}

fn of_volume(
    volume: &Volume,
    pod: &Pod,
    spec: &PodSpec,
    fetched: &Fetched,
    place: PodPlace<'_>,
) -> Result<Planned, VolumeError> {
    let name = volume.name.as_str();
    let set_up = |message: String| VolumeError::set_up(name, message);
    let folder = |plugin: &str| folder(pod, place, plugin, name);
    let files = |plugin: &str, payload: Result<Payload, String>| {
        let payload = payload.map_err(set_up)?;
        let mount_points = nested::mount_points(spec, name).map_err(set_up)?;
        let content = Content::Files { folder: folder(plugin), payload, mount_points };
        Ok(Planned { content, read_only: true })
    };
    if let Some(source) = &volume.config_map {
        files("configmap", Payload::of_config_map(source, fetched))
    } else if let Some(source) = &volume.secret {
        files("secret", Payload::of_secret(source, fetched))
    } else if let Some(source) = &volume.downward_api {
        files("downward-api", Payload::of_downward_api(source, pod, place))
    } else if let Some(source) = &volume.projected {
        files("projected", Payload::of_projected(source, pod, fetched, place))
    } else if let Some(source) = &volume.empty_dir {
        let folder = folder("empty-dir");
        let content = match source.medium.as_deref() {
            Some("Memory") => {
                let limit = source.size_limit.as_ref().and_then(|limit| Quantity::parse(&limit.0));
                let most = limit.and_then(|limit| u64::try_from(limit.whole()).ok()).filter(|most| *most > 0);
                Content::Memory { folder, most }
            }
            _ => Content::Scratch { folder },
        };
        Ok(Planned { content, read_only: false })
    } else if let Some(source) = &volume.host_path {
        host(source, place).map_err(set_up)
    } else if let Some(source) = &volume.image {
        image(source.reference.as_deref().unwrap_or_default(), fetched).map_err(set_up)
    } else if let Some(claim) = needs::claim(pod, volume) {
        claim::plan(&claim, volume, pod, fetched, place)
    } else {
        Err(set_up(format!("{} volumes are not supported by this node", kind(volume))))
    }
}

/// Where a volume of the pod is (`GetPodVolumeDir`).
fn folder(pod: &Pod, place: PodPlace<'_>, plugin: &str, volume: &str) -> PathBuf {
    place.node.pod_folder(pod).join("volumes").join(format!("kubernetes.io~{plugin}")).join(volume)
}

fn host(source: &HostPathVolumeSource, place: PodPlace<'_>) -> Result<Planned, String> {
    at_host(&source.path, source.type_.as_deref().unwrap_or_default(), place)
        .ok_or_else(|| "hostPath volumes are not allowed on this node".to_owned())
}

/// Files of this machine, where the node's user allows that.
pub(super) fn at_host(path: &str, kind: &str, place: PodPlace<'_>) -> Option<Planned> {
    let content = Content::Host { path: Path::new("/").join(path), kind: kind.to_owned() };
    place.node.host_access.then_some(Planned { content, read_only: false })
}

fn image(reference: &str, fetched: &Fetched) -> Result<Planned, String> {
    match fetched.images.get(reference) {
        Some(Ok(root)) => Ok(Planned { content: Content::Image { root: root.clone() }, read_only: true }),
        Some(Err(message)) => Err(message.clone()),
        None => Err(format!("image {reference:?} is not present")),
    }
}

/// The kind of a volume: the only one of its fields that is not its name.
fn kind(volume: &Volume) -> String {
    let fields = kubewright_objects::to_value(volume).ok();
    let fields = fields.as_ref().and_then(serde_json::Value::as_object).into_iter().flatten();
    let mut kinds = fields.map(|(name, _)| name.as_str()).filter(|name| *name != "name");
    kinds.next().unwrap_or("nameless").to_owned()
}
