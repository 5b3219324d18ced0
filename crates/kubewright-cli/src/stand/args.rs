//! Arguments that several commands with a stand have.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use kube::api::DynamicObject;

use super::{
    manifests::{self, Inputs},
    program::OperatorCommand,
    webhooks::WebhookPort,
};
use crate::{length::seconds, project::ProjectArgs};

/// Which operator: what is not named is what a project has.
#[derive(Args, Debug)]
pub(crate) struct OperatorArgs {
    /// What the operator needs in the cluster (definitions, roles, its Deployment): files, or folders with those below them; a folder
    /// with a kustomization.yaml or a Chart.yaml is rendered by kustomize (or kubectl) or helm [default: what a project has]
    #[arg(long, value_name = "PATH")]
    pub(super) manifests: Vec<PathBuf>,

    /// The namespace of what the manifests place in none, as with `kubectl apply -n` and `helm template -n` [default: default]
    #[arg(long, value_name = "NAME")]
    pub(super) namespace: Option<String>,

    #[command(flatten)]
    pub(super) project: ProjectArgs,

    /// The operator's program with its arguments; it finds its cluster by $KUBECONFIG. `{port}` in an argument
    /// becomes a free port, `{kubeconfig}` the path of the kubeconfig, `{webhook-port}` that of the webhooks, `{webhook-certs}` the folder of their certificate
    #[arg(value_name = "PROGRAM", last = true)]
    pub(super) program: Vec<String>,
}

/// Whom a program acts as, and where it is found.
#[derive(Args, Debug)]
pub(crate) struct PlaceArgs {
    /// The service account that the program runs under, where the manifests have several Deployments or none
    #[arg(long, value_name = "NAMESPACE/NAME")]
    service_account: Option<String>,

    /// The port on which the program serves its webhooks, such as 9443; or {webhook-port} in its arguments, for another one in each
    /// run. Without either they are not called, but for a project in Rust, whose program is given one
    #[arg(long, value_name = "PORT")]
    webhook_port: Option<u16>,
}

impl PlaceArgs {
    /// Namespace and name of the service account: the one that is named, else that of the operator's Deployment.
    ///
    /// # Errors
    /// When the name is none, or none is named and there is no Deployment, or are several.
    pub(crate) fn account(&self, inputs: &Inputs) -> anyhow::Result<(String, String)> {
        match &self.service_account {
            Some(text) => manifests::named_account(text),
            None => inputs.account(),
        }
    }

    /// Where the webhooks of these objects are served by a program; none where nobody says it.
    pub(crate) fn webhook_port(
        &self,
        needed: &[DynamicObject],
        command: &OperatorCommand,
    ) -> Option<WebhookPort> {
        WebhookPort::choose(self.webhook_port, needed, command)
    }
}

/// How a program is run to rest.
#[derive(Args, Debug)]
pub(crate) struct RestArgs {
    /// How long nobody may write for the program to be at rest, such as 2s; a number alone is one of seconds, here and below
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = seconds)]
    pub(crate) rest: Duration,

    /// How long the program has to come to rest, each time that it is waited for
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = seconds)]
    pub(crate) timeout: Duration,

    /// Show what the program prints, on standard error
    #[arg(long)]
    pub(crate) logs: bool,
}
