//! `kubewright deploy` and `undeploy`: an operator into a cluster and out of it, as its program says it is installed.

mod apply;
mod manifests;
mod plan;
mod removal;
mod rollout;
mod situation;
#[cfg(test)]
mod tests;

use std::{
    ffi::OsString,
    io::{self, Write},
    time::Duration,
};

use anyhow::bail;
use clap::Args;
use kube::Client;

use self::{
    apply::Applier,
    plan::{Plan, Role},
    removal::Removal,
    rollout::Rollout,
};
use crate::{
    access::{
        Access, ClusterArgs, MANAGER, Objects, Others,
        compatible::{self, StoredArgs},
        refused,
    },
    build::{self, BuildArgs, Last},
    output::print,
    project::{Needed, Project, Selection},
};

/// A client that the cluster answers, and where that is.
async fn reach(cluster: &ClusterArgs) -> anyhow::Result<(Client, String)> {
    let Access { client, server, .. } = cluster.access().await?;
    client.apiserver_version().await.map_err(|error| refused("nothing was done", &error))?;
    Ok((client, server.to_string().trim_end_matches('/').to_owned()))
}

/// What `kubewright deploy` takes.
#[derive(Args, Clone, Debug)]
pub(crate) struct DeployArgs {
    #[command(flatten)]
    selection: Selection,

    #[command(flatten)]
    cluster: ClusterArgs,

    /// The image of the operator; by default what `kubewright build` made last, by its digest
    #[arg(long, value_name = "REF", conflicts_with = "build")]
    image: Option<String>,

    /// Build the image first, and load it into the images of this machine
    #[arg(long)]
    build: bool,

    /// The profile that --build builds with
    #[arg(long, value_name = "NAME", default_value = "release", requires = "build")]
    profile: String,

    /// Do not run the project's tests before --build
    #[arg(long, requires = "build")]
    skip_tests: bool,

    /// How many seconds the operator may take until it runs
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,

    /// Take over fields that others manage
    #[arg(long)]
    force_conflicts: bool,

    #[command(flatten)]
    stored: StoredArgs,

    /// More for the operator's own `manifests`, such as `-- --install-namespace ops --replicas 2`
    #[arg(last = true, value_name = "MANIFESTS FLAGS")]
    manifests: Vec<OsString>,
}

/// What `kubewright undeploy` takes.
#[derive(Args, Clone, Debug)]
pub(crate) struct UndeployArgs {
    #[command(flatten)]
    selection: Selection,

    #[command(flatten)]
    cluster: ClusterArgs,

    /// Leave the kinds of the operator, and so their objects, in the cluster
    #[arg(long)]
    keep_crds: bool,

    /// Remove the objects of the operator's kinds too
    #[arg(long, short)]
    yes: bool,

    /// Say nothing when there is nothing to remove
    #[arg(long)]
    ignore_not_found: bool,

    /// How many seconds the cluster may take until all is gone
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,

    /// More for the operator's own `manifests`, as it was deployed with
    #[arg(last = true, value_name = "MANIFESTS FLAGS")]
    manifests: Vec<OsString>,
}

/// Deploys the operator of this folder, and waits until it runs.
///
/// # Errors
/// When there is no operator, image or cluster, the cluster refuses something, or the operator does not run in time.
pub(crate) async fn deploy(args: &DeployArgs) -> anyhow::Result<()> {
    if args.build {
        let build = BuildArgs::loading(args.selection.clone(), &args.profile, args.skip_tests);
        build::run(&build).await?;
    }
    let project = Project::select(&args.selection, Needed::Operator)?;
    let last = Last::read(&project.state());
    let image = match (&args.image, &last) {
        (Some(image), _) => image.clone(),
        (None, Some(last)) => last.image(),
        (None, None) => bail!(
            "there is no image yet: `kubewright build --load` makes one for this machine, `kubewright build --push --tag \
             registry.example/operator:v1` one for any cluster; or name one with --image"
        ),
    };
    let program = last.as_ref().and_then(Last::program);
    let plan = Plan::new(manifests::of(&project, program, Some(&image), &args.manifests)?)?;
    let (client, server) = reach(&args.cluster).await?;
    print(&format!("Deploying {image} to {server}\n"))?;
    let timeout = Duration::from_secs(args.timeout);
    let others = if args.force_conflicts { Others::TakenOver } else { Others::Respected };
    let report = &mut |line: &str| drop(print(&format!("{line}\n")));
    for warning in install(&client, &plan, others, args.stored, timeout, report).await? {
        let _ = writeln!(io::stderr(), "warning: {warning}");
    }
    Ok(())
}

/// Applies all of a plan in its order, and waits until what it starts runs. `told` is given a line for each change. Gives
/// what has to be known of what was started.
///
/// # Errors
/// When objects that are stored are in the way of a kind, the cluster refuses something, or it does not run in time, with what
/// it waits for.
async fn install(
    client: &Client,
    plan: &Plan,
    others: Others,
    stored: StoredArgs,
    timeout: Duration,
    report: &mut (dyn FnMut(&str) + Send),
) -> anyhow::Result<Vec<String>> {
    let deadline = tokio::time::Instant::now() + timeout;
    let mut objects = Objects::new(client);
    let kinds: Vec<_> = plan.of(Role::Kind).map(|manifest| manifest.object.clone()).collect();
    compatible::check(&mut objects, &kinds, stored).await?;
    Applier { objects: &mut objects, others, deadline }.apply(plan, report).await?;
    let mut warnings = Vec::new();
    for program in plan.programs() {
        warnings.extend(Rollout { client, program, deadline }.watch(report).await?);
    }
    match (apply::trusted(&mut objects, plan, deadline, report).await, warnings.pop()) {
        // What does not run does not get itself trusted either.
        (Err(error), Some(warning)) => Err(error.context(warning)),
        (trusted, last) => trusted.map(|()| warnings.into_iter().chain(last).collect()),
    }
}

/// Removes what [`deploy`] installed, and waits until it is gone.
///
/// # Errors
/// When there is no operator or cluster, objects of its kinds would be lost, or something is not gone in time.
pub(crate) async fn undeploy(args: &UndeployArgs) -> anyhow::Result<()> {
    let project = Project::select(&args.selection, Needed::Operator)?;
    let last = Last::read(&project.state());
    let program = last.as_ref().and_then(Last::program);
    // Before it is built, which may take minutes.
    let (client, server) = reach(&args.cluster).await?;
    let plan = Plan::new(manifests::of(&project, program, None, &args.manifests)?)?;
    let removal = Removal {
        client: &client,
        deadline: tokio::time::Instant::now() + Duration::from_secs(args.timeout),
        keep_kinds: args.keep_crds,
        lose_objects: args.yes,
    };
    let removed = removal.run(&plan, &mut |line| drop(print(&format!("{line}\n")))).await?;
    if removed == 0 && !args.ignore_not_found {
        bail!("nothing of {} that `kubewright deploy` installed is in the cluster at {server}", project.bin);
    }
    Ok(())
}
