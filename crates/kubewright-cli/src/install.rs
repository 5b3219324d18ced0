//! `kubewright install` and `uninstall`: the definitions of an operator's kinds in a cluster.

use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::Args;
use kube::{Client, api::DeleteParams};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::{
    access::{self, ClusterArgs, refused},
    output::tell,
    project::{Project, ProjectArgs},
};

/// How long a definition may take to be served, or to go.
const LONGEST: Duration = Duration::from_secs(60);
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
    let client = args.cluster.access().await?.client;
    for definition in &definitions {
        let applied = access::apply(&client, definition).await?;
        tell(&format!("{} {}\n", access::called(definition), applied.word()))?;
    }
    for definition in &definitions {
        established(&client, definition).await?;
    }
    Ok(())
}

/// Deletes the definitions, and with them all objects of these kinds.
///
/// # Errors
/// When one is not there (unless that is to be ignored), cannot be deleted, or does not go.
pub(crate) async fn uninstall(args: &UninstallArgs) -> anyhow::Result<()> {
    let definitions = definitions(&args.project)?;
    let client = args.cluster.access().await?.client;
    let mut missing = Vec::new();
    for definition in &definitions {
        let (api, name) = access::api(&client, definition)?;
        match api.delete(&name, &DeleteParams::background()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {
                missing.push(name);
                continue;
            }
            Err(error) => return Err(refused(&format!("{name} cannot be deleted"), &error)),
        }
        gone(&client, definition).await?;
        tell(&format!("customresourcedefinition.apiextensions.k8s.io \"{name}\" deleted\n"))?;
    }
    match missing.is_empty() || args.ignore_not_found {
        true => Ok(()),
        false => bail!("not installed: {}: --ignore-not-found says nothing against that", missing.join(", ")),
    }
}

fn definitions(project: &ProjectArgs) -> anyhow::Result<Vec<Value>> {
    let definitions = Project::find(project)?.build()?.manifests(&["--crds-only"])?;
    if definitions.is_empty() {
        bail!("the operator has no kinds of its own: there is nothing to install");
    }
    Ok(definitions)
}

/// Waits until a definition is served.
///
/// # Errors
/// When it is not in time, with what the server says against it.
pub(crate) async fn established(client: &Client, definition: &Value) -> anyhow::Result<()> {
    let (api, name) = access::api(client, definition)?;
    let deadline = Instant::now() + LONGEST;
    loop {
        let found = api.get_opt(&name).await.map_err(|error| refused(&name, &error))?;
        let conditions = found.as_ref().map(|found| &found.data["status"]["conditions"]);
        let conditions = || conditions.and_then(Value::as_array).into_iter().flatten();
        if conditions().any(|condition| condition["type"] == "Established" && condition["status"] == "True") {
            return Ok(());
        }
        if Instant::now() > deadline {
            let told: Vec<&str> = conditions()
                .filter(|condition| condition["status"] == "False")
                .filter_map(|condition| condition["message"].as_str())
                .collect();
            bail!("{name} is not served after {} s: {}", LONGEST.as_secs(), told.join("; "));
        }
        sleep(PAUSE).await;
    }
}

async fn gone(client: &Client, definition: &Value) -> anyhow::Result<()> {
    let (api, name) = access::api(client, definition)?;
    let deadline = Instant::now() + LONGEST;
    while api.get_opt(&name).await.map_err(|error| refused(&name, &error))?.is_some() {
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
