//! The cluster of a kubeconfig, for commands that work on one: how it is reached, and what is done with objects there.

pub(crate) mod compatible;
mod objects;
pub(crate) mod stored;

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Args;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

pub(crate) use self::objects::{Applied, Objects, Others, called, object};

/// Who writes: the field manager of what commands apply.
pub(crate) const MANAGER: &str = "kubewright";

/// What an API server says of a request that a webhook has denied.
const DENIED: &str = "denied the request";

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

/// An error and what is behind it, in a line; nothing is said twice.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let more = source.to_string();
        if !message.contains(&more) {
            message += ": ";
            message += &more;
        }
        next = source.source();
    }
    message
}

/// What an API server, or the way to it, says against a request; with the remedy.
pub(crate) fn refused(what: &str, error: &kube::Error) -> anyhow::Error {
    match error {
        // A webhook that denies a request says so by 403 too: that is no right that is lacking.
        kube::Error::Api(status) if status.code == 403 && !status.message.contains(DENIED) => {
            anyhow!(
                "{what}: {}: `kubewright doctor` says which rights you lack; ask an administrator of the cluster for them",
                status.message
            )
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
