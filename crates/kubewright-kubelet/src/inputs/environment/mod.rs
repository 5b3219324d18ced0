//! The environment of a container (`Kubelet.makeEnvironmentVariables`).

mod file;
mod services;

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{
    ConfigMapKeySelector, Container, EnvFromSource, EnvVarSource, Pod, SecretKeySelector,
};
use kubewright_image::Config;

use super::expansion::expand;
use super::fetched::{Fetched, find_or_refuse};
use super::place::{self, PodPlace};
use super::{fields, hosts, resources};
use crate::newer::{self, FileKey};

pub(super) use self::file::value_of;

/// Where programs are looked for when the image does not say (`containerd/pkg/oci`, `WithDefaultPathEnv`).
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The address of its own that a pod has here. All pods share the network of this machine: what listens on all addresses
/// takes its port from the others, and listens on this one in place of it (Kubewright's operators do).
const POD_ADDRESS: &str = "KUBEWRIGHT_POD_ADDRESS";

type Variables = BTreeMap<String, String>;

/// What the kubelet makes: the variables of Services and [`POD_ADDRESS`], overlaid by `envFrom`, overlaid by `env`. Any name goes, as since
/// Kubernetes 1.34 (`RelaxedEnvironmentVariableValidation`). What is not UTF-8 in a Secret is replaced by `U+FFFD`.
///
/// `file` reads a `fileKeyRef`: nothing when the key is not in its file.
pub(super) fn environment(
    pod: &Pod,
    container: &Container,
    fetched: &Fetched,
    place: PodPlace<'_>,
    file: impl Fn(FileKey<'_>) -> Result<Option<String>, String>,
) -> Result<Variables, String> {
    let links = pod.spec.as_ref().and_then(|spec| spec.enable_service_links).unwrap_or(true);
    let mut given =
        services::variables(&fetched.services, place::namespace(pod), links, place.node.api_server);
    if let Some(address) = place.pod_ips.first().filter(|_| !hosts::is_on_host_network(pod)) {
        given.insert(POD_ADDRESS.to_owned(), address.to_string());
    }
    let mut own = Variables::new();
    for source in container.env_from.iter().flatten() {
        take_all(source, fetched, &mut own)?;
    }
    for variable in container.env.iter().flatten() {
        let text = variable.value.as_deref().unwrap_or_default();
        let value = match &variable.value_from {
            Some(source) if text.is_empty() => {
                match of_source(source, pod, container, fetched, place, &file)? {
                    Some(value) => value,
                    None => continue,
                }
            }
            _ => expand(text, |name| own.get(name).or_else(|| given.get(name)).cloned()),
        };
        own.insert(variable.name.clone(), value);
    }
    let mut all = given;
    all.append(&mut own);
    Ok(all)
}

/// All that the container sees: what the runtime (containerd and runc) and the image say, overlaid by what the kubelet
/// [made](environment). `home` is that of its user.
pub(super) fn complete(
    made: Variables,
    container: &Container,
    image: &Config,
    hostname: &str,
    home: &str,
) -> Variables {
    let mut all = Variables::from([
        ("PATH".to_owned(), PATH.to_owned()),
        ("HOSTNAME".to_owned(), hostname.to_owned()),
        ("HOME".to_owned(), home.to_owned()),
    ]);
    if container.tty == Some(true) {
        all.insert("TERM".to_owned(), "xterm".to_owned());
    }
    all.extend(image.env.iter().cloned());
    all.extend(made);
    all
}

fn take_all(source: &EnvFromSource, fetched: &Fetched, variables: &mut Variables) -> Result<(), String> {
    let prefix = source.prefix.as_deref().unwrap_or_default();
    let name = |key: &String| format!("{prefix}{key}");
    if let Some(reference) = &source.config_map_ref {
        let optional = reference.optional.unwrap_or_default();
        let map = find_or_refuse(&fetched.config_maps, "configmap", &reference.name, optional)?;
        let data = map.iter().flat_map(|map| map.data.iter().flatten());
        variables.extend(data.map(|(key, value)| (name(key), value.clone())));
    } else if let Some(reference) = &source.secret_ref {
        let optional = reference.optional.unwrap_or_default();
        let secret = find_or_refuse(&fetched.secrets, "secret", &reference.name, optional)?;
        let data = secret.iter().flat_map(|secret| secret.data.iter().flatten());
        variables.extend(data.map(|(key, value)| (name(key), text(value))));
    }
    Ok(())
}

/// The value that a source gives; nothing when it is optional and not there.
fn of_source(
    source: &EnvVarSource,
    pod: &Pod,
    container: &Container,
    fetched: &Fetched,
    place: PodPlace<'_>,
    file: impl Fn(FileKey<'_>) -> Result<Option<String>, String>,
) -> Result<Option<String>, String> {
    let namespace = place::namespace(pod);
    if let Some(selector) = &source.field_ref {
        fields::of_pod(selector, pod, place).map(Some)
    } else if let Some(selector) = &source.resource_field_ref {
        resources::of_environment(selector, pod, container, &place.node.allocatable).map(Some)
    } else if let Some(selector) = &source.config_map_key_ref {
        of_config_map(selector, namespace, fetched)
    } else if let Some(selector) = &source.secret_key_ref {
        of_secret(selector, namespace, fetched)
    } else if let Some(selector) = newer::file_key(source) {
        file(selector)
    } else {
        Ok(Some(String::new()))
    }
}

fn of_config_map(
    selector: &ConfigMapKeySelector,
    namespace: &str,
    fetched: &Fetched,
) -> Result<Option<String>, String> {
    let ConfigMapKeySelector { key, name, optional } = selector;
    let optional = optional.unwrap_or_default();
    let Some(map) = find_or_refuse(&fetched.config_maps, "configmap", name, optional)? else {
        return Ok(None);
    };
    match map.data.as_ref().and_then(|data| data.get(key)) {
        None if !optional => Err(format!("couldn't find key {key} in ConfigMap {namespace}/{name}")),
        value => Ok(value.cloned()),
    }
}

fn of_secret(
    selector: &SecretKeySelector,
    namespace: &str,
    fetched: &Fetched,
) -> Result<Option<String>, String> {
    let SecretKeySelector { key, name, optional } = selector;
    let optional = optional.unwrap_or_default();
    let Some(secret) = find_or_refuse(&fetched.secrets, "secret", name, optional)? else { return Ok(None) };
    match secret.data.as_ref().and_then(|data| data.get(key)) {
        None if !optional => Err(format!("couldn't find key {key} in Secret {namespace}/{name}")),
        value => Ok(value.map(text)),
    }
}

fn text(bytes: &ByteString) -> String {
    String::from_utf8_lossy(&bytes.0).into_owned()
}

#[cfg(test)]
mod tests;
