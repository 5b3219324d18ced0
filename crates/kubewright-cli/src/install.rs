//! `kubewright install` and `uninstall`: the definitions of an operator's kinds in a cluster.

use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::Args;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject},
};
use tokio::time::{Instant, sleep};

use crate::{
    access::{self, ClusterArgs, Objects, Others, called, refused},
    output::tell,
    project::{Project, ProjectArgs},
};

/// How long a definition may take to be served, or to go.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);

/// What `kubewright install` takes.
#[derive(Args, Debug)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    project: ProjectArgs,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// What `kubewright uninstall` takes.
#[derive(Args, Debug)]
pub(crate) struct UninstallArgs {
    #[command(flatten)]
    project: ProjectArgs,

    #[command(flatten)]
    cluster: ClusterArgs,

    /// Say nothing against definitions that are not there
    #[arg(long)]
    ignore_not_found: bool,
}

/// Applies the definitions, and waits until they are served.
///
/// # Errors
/// When there is no project or no cluster, or the cluster refuses one.
pub(crate) async fn install(args: &InstallArgs) -> anyhow::Result<()> {
    let definitions = definitions(&args.project)?;
    let mut objects = Objects::new(&args.cluster.access().await?.client);
    for definition in &definitions {
        let applied = objects.apply(definition, Others::TakenOver).await?;
        tell(&format!("{} {}\n", called(definition), applied.word()))?;
    }
    let deadline = Instant::now() + LONGEST;
    for definition in &definitions {
        objects.established(definition, deadline).await?;
    }
    Ok(())
}

/// Deletes the definitions, and with them all objects of these kinds.
///
/// # Errors
/// When one is not there (unless that is to be ignored), cannot be deleted, or does not go.
pub(crate) async fn uninstall(args: &UninstallArgs) -> anyhow::Result<()> {
    let definitions = definitions(&args.project)?;
    let mut objects = Objects::new(&args.cluster.access().await?.client);
    let mut missing = Vec::new();
    for definition in &definitions {
        let (api, name) = (objects.api(definition).await?, definition.name_any());
        match api.delete(&name, &DeleteParams::background()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {
                missing.push(name);
                continue;
            }
            Err(error) => return Err(refused(&format!("{name} cannot be deleted"), &error)),
        }
        gone(&api, &name).await?;
        tell(&format!("customresourcedefinition.apiextensions.k8s.io \"{name}\" deleted\n"))?;
    }
    match missing.is_empty() || args.ignore_not_found {
        true => Ok(()),
        false => bail!("not installed: {}: --ignore-not-found says nothing against that", missing.join(", ")),
    }
}

fn definitions(project: &ProjectArgs) -> anyhow::Result<Vec<DynamicObject>> {
    let definitions = Project::find(project)?.build()?.manifests(&["--crds-only"])?;
    if definitions.is_empty() {
        bail!("the operator has no kinds of its own: there is nothing to install");
    }
    definitions.into_iter().map(access::object).collect()
}

async fn gone(api: &Api<DynamicObject>, name: &str) -> anyhow::Result<()> {
    let deadline = Instant::now() + LONGEST;
    while api.get_opt(name).await.map_err(|error| refused(name, &error))?.is_some() {
        if Instant::now() > deadline {
            return Err(anyhow!(
                "{name} is being deleted, but has not gone within {} s: its objects wait for their finalizers; start the \
                 operator that removes them, and it goes",
                LONGEST.as_secs()
            ));
        }
        sleep(PAUSE).await;
    }
    Ok(())
}
