//! The cluster of a kubeconfig, for commands that work on one.

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Args;
use kube::{
    Api, Client, Config,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::Value;

/// Who writes: the field manager of what commands apply.
pub(crate) const MANAGER: &str = "kubewright";

/// Which cluster.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ClusterArgs {
    /// This kubeconfig, instead of $KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// This context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

/// A cluster, and what the kubeconfig says of it.
pub(crate) struct Access {
    pub(crate) client: Client,
    /// `https://127.0.0.1:6443/`.
    pub(crate) server: http::Uri,
    /// The whole of it, for one of another account.
    pub(crate) kubeconfig: Kubeconfig,
}

impl ClusterArgs {
    /// Reads the kubeconfig. Nothing is asked of the cluster yet.
    ///
    /// # Errors
    /// When there is none, or not this context in it.
    pub(crate) async fn access(&self) -> anyhow::Result<Access> {
        let read = match &self.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        let kubeconfig = read.map_err(|error| {
            anyhow!(
                "there is no cluster to work on: {}: name a kubeconfig with --kubeconfig, or start a control plane with \
                 `kubewright up`",
                chain(&error)
            )
        })?;
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &options)
            .await
            .map_err(|error| anyhow!("the kubeconfig leads to no cluster: {}", chain(&error)))?;
        let server = config.cluster_url.clone();
        let client = Client::try_from(config).context("the kubeconfig")?;
        Ok(Access { client, server, kubeconfig })
    }
}

/// An error and what is behind it, in a line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let more = source.to_string();
        if !told.contains(&more) {
            told += ": ";
            told += &more;
        }
        next = source.source();
    }
    told
}

/// What an API server, or the way to it, says against a request; with the remedy.
pub(crate) fn refused(what: &str, error: &kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) if status.code == 403 => {
            anyhow!("{what}: {}: `kubewright doctor` says which rights you lack", status.message)
        }
        kube::Error::Api(status) if status.code == 401 => {
            anyhow!(
                "{what}: the API server does not know you: the credentials of the kubeconfig are wrong or expired"
            )
        }
        kube::Error::Api(status) => anyhow!("{what}: {}", status.message),
        kube::Error::Service(error) => anyhow!(
            "{what}: the API server cannot be reached: {}: is it running, and is this the right kubeconfig?",
            chain(error.as_ref())
        ),
        other => anyhow!("{what}: {}", chain(other)),
    }
}

/// What became of an object that was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    Created,
    Configured,
    Unchanged,
}

impl Applied {
    /// As kubectl says it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Configured => "configured",
            Self::Unchanged => "unchanged",
        }
    }
}

/// Applies an object server-side, as [`MANAGER`]: there is no limit to its size but the server's, and what others manage in
/// it stays, unless it is said otherwise here.
///
/// # Errors
/// When the server refuses it.
pub(crate) async fn apply(client: &Client, object: &Value) -> anyhow::Result<Applied> {
    let what = || format!("{} cannot be applied", called(object));
    let (api, name) = api(client, object)?;
    let before = api.get_opt(&name).await.map_err(|error| refused(&what(), &error))?;
    let params = PatchParams::apply(MANAGER).force();
    let after =
        api.patch(&name, &params, &Patch::Apply(object)).await.map_err(|error| refused(&what(), &error))?;
    Ok(match before {
        None => Applied::Created,
        Some(before) if before.metadata.resource_version == after.metadata.resource_version => {
            Applied::Unchanged
        }
        Some(_) => Applied::Configured,
    })
}

/// Where an object is, and its name.
///
/// # Errors
/// When it has no kind.
pub(crate) fn api(client: &Client, object: &Value) -> anyhow::Result<(Api<DynamicObject>, String)> {
    let object: DynamicObject = serde_json::from_value(object.clone()).context("this is no object")?;
    let types = object.types.as_ref().context("an object has no kind")?;
    let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(types)?);
    let api = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    };
    Ok((api, object.metadata.name.unwrap_or_default()))
}

/// `customresourcedefinition.apiextensions.k8s.io/x`, as kubectl calls it.
pub(crate) fn called(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match object["apiVersion"].as_str().and_then(|version| version.split_once('/')) {
        Some((group, _)) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}
