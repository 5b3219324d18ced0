//! What is read from files: what an operator needs in a cluster, and the objects that it is given.

use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use kube::api::DynamicObject;
use serde_json::Value;

use crate::{
    access,
    convert::{self, Source},
    project::Usage,
};

/// What an operator is run on.
pub(crate) struct Inputs {
    /// What it needs: definitions, roles, its Deployment.
    pub(crate) needed: Vec<DynamicObject>,
    /// What it is given.
    pub(crate) given: Vec<DynamicObject>,
}

impl Inputs {
    /// The namespace and name of the service account that the operator's Deployment runs under.
    ///
    /// # Errors
    /// When there is no Deployment or StatefulSet, or several with accounts of their own.
    pub(crate) fn account(&self) -> anyhow::Result<(String, String)> {
        let mut accounts: Vec<(String, String)> =
            self.needed.iter().filter(|one| is_program(one)).filter_map(account).collect();
        accounts.sort();
        accounts.dedup();
        match accounts.as_slice() {
            [one] => Ok(one.clone()),
            [] => bail!(
                "service account: the manifests have no Deployment that says which one the program runs under; name it with \
                 --service-account NAMESPACE/NAME"
            ),
            several => {
                let names: Vec<String> =
                    several.iter().map(|(namespace, name)| format!("{namespace}/{name}")).collect();
                bail!(
                    "service account: the manifests have several Deployments ({}); say which one with --service-account",
                    names.join(", ")
                )
            }
        }
    }
}

impl Inputs {
    /// The environment that the operator's Deployment gives its first container: what is said as a value, and the name and namespace of
    /// the pod. What comes from Secrets and ConfigMaps is left out.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let deployment = self.needed.iter().find(|one| is_program(one));
        let place = "/spec/template/spec/containers/0/env";
        let variables = deployment.and_then(|one| one.data.pointer(place)).and_then(Value::as_array);
        let namespace = deployment.and_then(|one| one.metadata.namespace.clone());
        let namespace = namespace.unwrap_or_else(|| "default".to_owned());
        let value = |variable: &Value| {
            let name = variable["name"].as_str()?.to_owned();
            let value = match variable["valueFrom"]["fieldRef"]["fieldPath"].as_str() {
                Some("metadata.namespace") => namespace.clone(),
                Some("metadata.name") => deployment?.metadata.name.clone()?,
                Some(_) => return None,
                None => variable["value"].as_str()?.to_owned(),
            };
            Some((name, value))
        };
        variables.into_iter().flatten().filter_map(value).collect()
    }
}

/// Whether an object runs a program; the one that is rendered runs on this machine instead.
pub(crate) fn is_program(object: &DynamicObject) -> bool {
    object.types.as_ref().is_some_and(|types| matches!(&*types.kind, "Deployment" | "StatefulSet"))
}

/// The account that somebody has named, as `NAMESPACE/NAME`.
///
/// # Errors
/// When it is no such name.
pub(crate) fn named_account(text: &str) -> anyhow::Result<(String, String)> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => bail!(Usage(format!("service account {text:?} is no NAMESPACE/NAME"))),
    }
}

/// Under which account the pods of a Deployment run.
pub(crate) fn account(deployment: &DynamicObject) -> Option<(String, String)> {
    let name = deployment.data.pointer("/spec/template/spec/serviceAccountName")?.as_str()?;
    let namespace = deployment.metadata.namespace.clone().unwrap_or_else(|| "default".to_owned());
    Some((namespace, name.to_owned()))
}

/// The objects of files and folders.
///
/// # Errors
/// When a file cannot be read, is no YAML, or has no object in it.
pub(crate) fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<DynamicObject>> {
    let mut found = Vec::new();
    for source in convert::sources(paths)? {
        found.extend(of_source(&source)?);
    }
    if found.is_empty() {
        bail!(
            "objects: there is none in {}",
            paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
        );
    }
    Ok(found)
}

/// The objects of a text.
///
/// # Errors
/// As [`read`].
pub(crate) fn of_text(name: &str, text: String) -> anyhow::Result<Vec<DynamicObject>> {
    of_source(&Source { name: name.to_owned(), text })
}

fn of_source(source: &Source) -> anyhow::Result<Vec<DynamicObject>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(&source.text)
        .map_err(|error| anyhow!("{}: no YAML: {error}", source.name))?;
    let objects = documents.into_iter().filter(|document| !document.is_null()).flat_map(convert::items);
    // What kustomize reads itself is no object of a cluster.
    let objects = objects.filter(|object| {
        !object["apiVersion"].as_str().is_some_and(|version| version.starts_with("kustomize.config.k8s.io/"))
    });
    self::objects(objects.collect()).with_context(|| source.name.clone())
}

/// Objects of their JSON.
///
/// # Errors
/// When one has no kind or no name.
pub(crate) fn objects(json: Vec<Value>) -> anyhow::Result<Vec<DynamicObject>> {
    json.into_iter().map(object).collect()
}

fn object(json: Value) -> anyhow::Result<DynamicObject> {
    let object = access::object(json)?;
    let kind = object.types.as_ref().map(|types| types.kind.clone()).context("an object has no kind")?;
    if object.metadata.name.is_none() {
        bail!("a {kind} has no metadata.name");
    }
    Ok(object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_environment_of_the_deployment_is_the_programs() {
        let variables = json!([
            {"name": "IMAGE", "value": "x:1"},
            {"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ]);
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "m", "namespace": "system"},
            "spec": {"template": {"spec": {"containers": [{"name": "manager", "env": variables}]}}}});
        let inputs = Inputs { needed: objects(vec![deployment]).expect("an object"), given: Vec::new() };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(inputs.environment(), [pair("IMAGE", "x:1"), pair("NAMESPACE", "system")]);
    }
}
