//! What is read from files: what an operator needs in a cluster, and the objects that it is given.

use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use kube::api::DynamicObject;
use serde_json::Value;

use crate::{
    access,
    convert::{self, Source},
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

/// Whether an object runs a program; the one that is rendered runs on this machine instead.
pub(crate) fn is_program(object: &DynamicObject) -> bool {
    object.types.as_ref().is_some_and(|types| matches!(&*types.kind, "Deployment" | "StatefulSet"))
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
