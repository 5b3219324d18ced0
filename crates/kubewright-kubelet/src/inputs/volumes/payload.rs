//! What the files of a volume say (`pkg/volume/{configmap,secret,downwardapi,projected}`).

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{
    ConfigMap, ConfigMapVolumeSource, DownwardAPIVolumeFile, DownwardAPIVolumeSource, KeyToPath, Pod,
    ProjectedVolumeSource, Secret, SecretVolumeSource, ServiceAccountTokenProjection, VolumeProjection,
};

use crate::inputs::fetched::{Fetched, find_or_refuse};
use crate::inputs::needs::{containers, sources};
use crate::inputs::place::PodPlace;
use crate::inputs::token::TokenNeed;
use crate::inputs::{fields, resources};
use crate::newer;

/// The mode of files where the API server's defaults did not say.
const MODE: i32 = 0o644;

/// The files of a volume, by their paths in it. Equal payloads are equal volumes: whether what was written is out of date is
/// a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload(pub BTreeMap<String, File>);

/// A file of a [`Payload`]. What it says, `Debug` does not tell: it may be secret.
#[derive(Clone, PartialEq, Eq)]
pub struct File {
    /// What it says.
    pub data: Vec<u8>,
    /// Who may read it.
    pub mode: u32,
    /// Whose it is, where that may be given away.
    pub owner: Option<u32>,
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { data, mode, owner } = self;
        write!(f, "File({} bytes, {mode:o}, {owner:?})", data.len())
    }
}

impl File {
    fn new(data: impl Into<Vec<u8>>, mode: i32) -> Self {
        Self { data: data.into(), mode: u32::try_from(mode).unwrap_or_default() & 0o777, owner: None }
    }
}

impl Payload {
    pub(super) fn of_config_map(source: &ConfigMapVolumeSource, fetched: &Fetched) -> Result<Self, String> {
        let optional = source.optional.unwrap_or_default();
        let map = find_or_refuse(&fetched.config_maps, "configmap", &source.name, optional)?;
        let mode = source.default_mode.unwrap_or(MODE);
        config_map(map, source.items.as_deref().unwrap_or_default(), mode, optional)
    }

    pub(super) fn of_secret(source: &SecretVolumeSource, fetched: &Fetched) -> Result<Self, String> {
        let optional = source.optional.unwrap_or_default();
        let name = source.secret_name.as_deref().unwrap_or_default();
        let found = find_or_refuse(&fetched.secrets, "secret", name, optional)?;
        let mode = source.default_mode.unwrap_or(MODE);
        secret(found, source.items.as_deref().unwrap_or_default(), mode, optional)
    }

    pub(super) fn of_downward_api(
        source: &DownwardAPIVolumeSource,
        pod: &Pod,
        place: PodPlace<'_>,
    ) -> Result<Self, String> {
        let mode = source.default_mode.unwrap_or(MODE);
        downward_api(source.items.as_deref().unwrap_or_default(), pod, place, mode)
    }

    pub(super) fn of_projected(
        source: &ProjectedVolumeSource,
        pod: &Pod,
        fetched: &Fetched,
        place: PodPlace<'_>,
    ) -> Result<Self, String> {
        let mode = source.default_mode.unwrap_or(MODE);
        let (mut all, mut errors) = (Self::default(), Vec::new());
        for source in sources(source) {
            match projection(source, pod, fetched, place, mode) {
                Ok(payload) => all.0.extend(payload.0),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(all) } else { Err(aggregate(&errors)) }
    }
}

fn projection(
    source: &VolumeProjection,
    pod: &Pod,
    fetched: &Fetched,
    place: PodPlace<'_>,
    mode: i32,
) -> Result<Payload, String> {
    if let Some(source) = &source.secret {
        let optional = source.optional.unwrap_or_default();
        let found = find_or_refuse(&fetched.secrets, "secret", &source.name, optional)?;
        secret(found, source.items.as_deref().unwrap_or_default(), mode, optional)
    } else if let Some(source) = &source.config_map {
        let optional = source.optional.unwrap_or_default();
        let map = find_or_refuse(&fetched.config_maps, "configmap", &source.name, optional)?;
        config_map(map, source.items.as_deref().unwrap_or_default(), mode, optional)
    } else if let Some(source) = &source.downward_api {
        downward_api(source.items.as_deref().unwrap_or_default(), pod, place, mode)
    } else if let Some(source) = &source.service_account_token {
        token(source, pod, fetched, mode)
    } else if source.cluster_trust_bundle.is_some() {
        Err("ClusterTrustBundle projection is not supported by this node".to_owned())
    } else if newer::is_pod_certificate(source) {
        Err("PodCertificate projection is not supported by this node".to_owned())
    } else {
        Ok(Payload::default())
    }
}

fn config_map(
    map: Option<&ConfigMap>,
    items: &[KeyToPath],
    mode: i32,
    optional: bool,
) -> Result<Payload, String> {
    let texts = map.iter().flat_map(|map| map.data.iter().flatten());
    let texts = texts.map(|(key, text)| (key.as_str(), text.as_bytes()));
    let bytes = map.iter().flat_map(|map| map.binary_data.iter().flatten());
    let data: BTreeMap<_, _> =
        bytes.map(|(key, bytes)| (key.as_str(), bytes.0.as_slice())).chain(texts).collect();
    let missing = |key: &str| format!("configmap references non-existent config key: {key}");
    keys(&data, items, mode, optional, missing)
}

fn secret(
    secret: Option<&Secret>,
    items: &[KeyToPath],
    mode: i32,
    optional: bool,
) -> Result<Payload, String> {
    let data = secret.iter().flat_map(|secret| secret.data.iter().flatten());
    let data = data.map(|(key, bytes)| (key.as_str(), bytes.0.as_slice())).collect();
    keys(&data, items, mode, optional, |key| format!("references non-existent secret key: {key}"))
}

/// All keys as files, or those that `items` names (`MakePayload`).
fn keys(
    data: &BTreeMap<&str, &[u8]>,
    items: &[KeyToPath],
    mode: i32,
    optional: bool,
    missing: impl Fn(&str) -> String,
) -> Result<Payload, String> {
    if items.is_empty() {
        let files = data.iter().map(|(key, data)| ((*key).to_owned(), File::new(*data, mode)));
        return Ok(Payload(files.collect()));
    }
    let mut files = BTreeMap::new();
    for KeyToPath { key, path, mode: own, .. } in items {
        match data.get(key.as_str()) {
            Some(data) => {
                files.insert(path.clone(), File::new(*data, own.unwrap_or(mode)));
            }
            None if optional => {}
            None => return Err(missing(key)),
        }
    }
    Ok(Payload(files))
}

/// The pod's own fields (`CollectData`).
fn downward_api(
    items: &[DownwardAPIVolumeFile],
    pod: &Pod,
    place: PodPlace<'_>,
    mode: i32,
) -> Result<Payload, String> {
    let (mut files, mut errors) = (BTreeMap::new(), Vec::new());
    for item in items {
        let value = if let Some(selector) = &item.field_ref {
            fields::of_metadata(&selector.field_path, pod)
        } else if let Some(selector) = &item.resource_field_ref {
            resources::of_volume(selector, pod, &place.node.allocatable)
        } else {
            Ok(String::new())
        };
        match value {
            Ok(value) => {
                files.insert(item.path.clone(), File::new(value, item.mode.unwrap_or(mode)));
            }
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(Payload(files)) } else { Err(aggregate(&errors)) }
}

/// The token, which only the pod's user and group may read where it names them; else every user of its containers.
fn token(
    source: &ServiceAccountTokenProjection,
    pod: &Pod,
    fetched: &Fetched,
    mode: i32,
) -> Result<Payload, String> {
    let token = match fetched.tokens.get(&TokenNeed::of(source)) {
        Some(Ok(token)) => token,
        Some(Err(message)) => return Err(format!("failed to fetch token: {message}")),
        None => return Err("failed to fetch token: there is none yet".to_owned()),
    };
    let group = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref()?.fs_group);
    let owner = only_user(pod);
    let mode = if owner.is_some() || group.is_some() { 0o600 } else { mode };
    let file = File { owner, ..File::new(token.value(), mode) };
    Ok(Payload(BTreeMap::from([(source.path.clone(), file)])))
}

/// The user of all containers, when each says so and it is one (`FsUserFrom`).
fn only_user(pod: &Pod) -> Option<u32> {
    let spec = pod.spec.as_ref()?;
    let of_pod = spec.security_context.as_ref().and_then(|context| context.run_as_user);
    let users: Option<BTreeSet<i64>> = containers(spec)
        .map(|container| container.security_context.as_ref().and_then(|own| own.run_as_user).or(of_pod))
        .collect();
    let users = users?;
    let only = users.first().filter(|_| users.len() == 1)?;
    u32::try_from(*only).ok()
}

/// Several errors in one text (`utilerrors.NewAggregate`).
fn aggregate(errors: &[String]) -> String {
    let mut seen = BTreeSet::new();
    let different: Vec<&str> =
        errors.iter().map(String::as_str).filter(|error| seen.insert(*error)).collect();
    match different.as_slice() {
        [only] => (*only).to_owned(),
        several => format!("[{}]", several.join(", ")),
    }
}
