//! What is read from files: what an operator needs in a cluster, and the objects that it is given.

use std::{collections::BTreeSet, path::PathBuf};

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
            self.needed.iter().filter(|one| is_program(one)).filter_map(|one| self.account_of(one)).collect();
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
    /// Under which account the pods of a Deployment run. Where it says no namespace, as in charts, it is that of the account.
    fn account_of(&self, deployment: &DynamicObject) -> Option<(String, String)> {
        let (namespace, name) = account(deployment)?;
        let is_it = |one: &&DynamicObject| {
            one.types.as_ref().is_some_and(|types| types.kind == "ServiceAccount")
                && one.metadata.name.as_ref() == Some(&name)
        };
        let mut said = self.needed.iter().filter(is_it).filter_map(|one| one.metadata.namespace.clone());
        match (&deployment.metadata.namespace, said.next(), said.next()) {
            (None, Some(of_account), None) => Some((of_account, name)),
            _ => Some((namespace, name)),
        }
    }

    /// The collections, such as `example.org/pages`, of the kinds that the manifests define.
    pub(crate) fn defined(&self) -> BTreeSet<String> {
        let collection = |one: &DynamicObject| {
            let plural = one.data.pointer("/spec/names/plural")?.as_str()?;
            Some(format!("{}/{plural}", one.data.pointer("/spec/group")?.as_str()?))
        };
        self.needed.iter().filter(|one| is_definition(one)).filter_map(collection).collect()
    }

    /// The environment that the operator's Deployment, which is the one with this account where there are several, gives its first
    /// container: what is said as a value, and what of a pod is known before it is there. What comes from Secrets and ConfigMaps is
    /// left out.
    pub(crate) fn environment(&self, account: &(String, String)) -> Vec<(String, String)> {
        let mut programs = self.needed.iter().filter(|one| is_program(one));
        let first = programs.clone().next();
        let deployment = programs.find(|one| self.account_of(one).as_ref() == Some(account)).or(first);
        let place = "/spec/template/spec/containers/0/env";
        let variables = deployment.and_then(|one| one.data.pointer(place)).and_then(Value::as_array);
        let namespace = deployment.and_then(|one| one.metadata.namespace.clone());
        let namespace = namespace.unwrap_or_else(|| "default".to_owned());
        let value = |variable: &Value| {
            let name = variable["name"].as_str()?.to_owned();
            let value = match variable["valueFrom"]["fieldRef"]["fieldPath"].as_str() {
                Some("metadata.namespace") => namespace.clone(),
                Some("metadata.name") => deployment?.metadata.name.clone()?,
                Some("spec.serviceAccountName") => account.1.clone(),
                Some("status.podIP" | "status.hostIP") => "127.0.0.1".to_owned(),
                Some(path) => of_template(deployment?, path)?,
                None => variable["value"].as_str()?.to_owned(),
            };
            Some((name, value))
        };
        variables.into_iter().flatten().filter_map(value).collect()
    }
}

/// The variable by which Operator SDK and Kubebuilder say which namespaces a program watches: some, with commas between them, or all where it
/// is empty.
const WATCHED: &str = "WATCH_NAMESPACE";

impl Inputs {
    /// Puts the samples that say no namespace where the program watches, as far as this environment says that; gives the namespace. The program
    /// would never see them in another one.
    pub(crate) fn place_samples(&mut self, environment: &[(String, String)]) -> Option<String> {
        let (_, watched) = environment.iter().find(|(name, _)| name == WATCHED)?;
        let namespace = watched.split(',').map(str::trim).find(|one| !one.is_empty())?;
        let unplaced = self.given.iter_mut().filter(|one| one.metadata.namespace.is_none());
        let count = unplaced.map(|one| one.metadata.namespace = Some(namespace.to_owned())).count();
        (count > 0).then(|| namespace.to_owned())
    }
}

/// The objects of kinds that others of these objects define.
pub(crate) fn of_defined_kinds(objects: &[DynamicObject]) -> Vec<DynamicObject> {
    let text = |one: &DynamicObject, pointer: &str| Some(one.data.pointer(pointer)?.as_str()?.to_owned());
    let kind = |one: &DynamicObject| Some((text(one, "/spec/group")?, text(one, "/spec/names/kind")?));
    let defined: BTreeSet<(String, String)> =
        objects.iter().filter(|one| is_definition(one)).filter_map(kind).collect();
    let is_of_them = |one: &&DynamicObject| {
        let types = one.types.as_ref();
        let group =
            types.and_then(|types| types.api_version.split_once('/')).map(|(group, _)| group.to_owned());
        group.zip(types.map(|types| types.kind.clone())).is_some_and(|kind| defined.contains(&kind))
    };
    objects.iter().filter(is_of_them).cloned().collect()
}

fn is_definition(object: &DynamicObject) -> bool {
    object.types.as_ref().is_some_and(|types| types.kind == "CustomResourceDefinition")
}

/// What a pod gets from the template of a Deployment by a path such as `metadata.labels['app']`.
fn of_template(deployment: &DynamicObject, path: &str) -> Option<String> {
    let (map, key) = path.strip_prefix("metadata.")?.split_once("['")?;
    let place = deployment.data.pointer("/spec/template/metadata")?.get(map)?;
    place.get(key.strip_suffix("']")?)?.as_str().map(str::to_owned)
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
    fn a_deployment_without_a_namespace_runs_where_its_account_is() {
        let needed = objects(vec![
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "m", "namespace": "system"}}),
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "m"},
                "spec": {"template": {"spec": {"serviceAccountName": "m"}}}}),
        ]);
        let inputs = Inputs { needed: needed.expect("objects"), given: Vec::new() };
        assert_eq!(inputs.account().expect("one"), ("system".to_owned(), "m".to_owned()));
    }

    #[test]
    fn samples_among_the_manifests_are_of_the_kinds_that_they_define() {
        let text = r#"[{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "pages.x.org"},
                "spec": {"group": "x.org", "names": {"kind": "Page", "plural": "pages"}}},
            {"apiVersion": "x.org/v1", "kind": "Page", "metadata": {"name": "a"}},
            {"apiVersion": "y.org/v1", "kind": "Page", "metadata": {"name": "b"}},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}]"#;
        let needed = of_text("kubernetes.json", text.to_owned()).expect("an array of objects");
        let samples = of_defined_kinds(&needed);
        assert_eq!(samples.iter().filter_map(|one| one.metadata.name.as_deref()).collect::<Vec<_>>(), ["a"]);
        let inputs = Inputs { needed, given: samples };
        assert_eq!(inputs.defined().into_iter().collect::<Vec<_>>(), ["x.org/pages"]);
    }

    #[test]
    fn samples_without_a_namespace_are_where_the_program_watches() {
        let sample = |name: &str, namespace: Option<&str>| json!({"apiVersion": "x.org/v1", "kind": "Page", "metadata": {"name": name, "namespace": namespace}});
        let placed = |watched: &str| {
            let given = objects(vec![sample("a", None), sample("b", Some("own"))]).expect("objects");
            let mut inputs = Inputs { needed: Vec::new(), given };
            let told = inputs.place_samples(&[(WATCHED.to_owned(), watched.to_owned())]);
            let namespaces =
                inputs.given.iter().map(|one| one.metadata.namespace.clone().unwrap_or_default());
            (told, namespaces.collect::<Vec<_>>().join(" "))
        };
        assert_eq!(placed("system"), (Some("system".to_owned()), "system own".to_owned()));
        assert_eq!(placed("one, two"), (Some("one".to_owned()), "one own".to_owned()));
        assert_eq!(placed(""), (None, " own".to_owned()), "all namespaces");
    }

    #[test]
    fn the_environment_of_the_deployment_is_the_programs() {
        let variables = json!([
            {"name": "IMAGE", "value": "x:1"},
            {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
            {"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ]);
        let deployment = |account: &str, variables: &Value| {
            let spec =
                json!({"serviceAccountName": account, "containers": [{"name": "manager", "env": variables}]});
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": account, "namespace": "system"},
                "spec": {"template": {"metadata": {"labels": {"app": "memcached"}}, "spec": spec}}})
        };
        let needed = objects(vec![deployment("other", &json!([])), deployment("m", &variables)]);
        let inputs = Inputs { needed: needed.expect("objects"), given: Vec::new() };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            inputs.environment(&("system".to_owned(), "m".to_owned())),
            [pair("IMAGE", "x:1"), pair("APP", "memcached"), pair("NAMESPACE", "system")]
        );
    }
}
