//! `kubewright why`: why an object is not as it should be. What is read and what is found is `kubewright-why`'s.

mod operator;
mod tree;

use std::{io, process::ExitCode};

use clap::Args;
use kubewright_why::{GatherError, Target, explain, gather};
use kubewright_world::World;

use crate::{
    about::Output,
    access::{ClusterArgs, chain},
    output::print,
    printer,
    project::Usage,
};

/// What is returned when causes were found: neither success nor an error.
const FOUND: u8 = 3;

/// What `kubewright why` takes. It ends with 0 when nothing is wrong with the object, and with 3 when causes were found.
#[derive(Args, Debug)]
pub(crate) struct WhyArgs {
    /// The object, as KIND/NAME or KIND NAME; kinds as kubectl takes them: deploy, deployments, deployments.apps, and custom ones
    #[arg(value_name = "OBJECT", required = true, num_args = 1..)]
    object: Vec<String>,

    /// Its namespace [default: that of the kubeconfig's context, or `default`]
    #[arg(long, short, value_name = "NAMESPACE")]
    namespace: Option<String>,

    #[command(flatten)]
    cluster: ClusterArgs,

    #[command(flatten)]
    operator: operator::OperatorArgs,

    /// How it is printed
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

/// Looks for the causes and prints them.
///
/// # Errors
/// When the words name no object, there is no cluster, or the object cannot be read.
pub(crate) async fn why(args: &WhyArgs) -> anyhow::Result<ExitCode> {
    Target::parse(&args.object, "default").map_err(|error| Usage(error.to_string()))?;
    let access = args.cluster.access().await?;
    let namespace = args.namespace.as_deref().unwrap_or_else(|| access.client.default_namespace());
    let target = Target::parse(&args.object, namespace).map_err(|error| Usage(error.to_string()))?;
    let mut picture =
        gather(&access.client, &target, World::real().clock.now()).await.map_err(|error| match error {
            GatherError::Discovery(error) => {
                crate::access::refused("the cluster does not say what it serves", &error)
            }
            error => anyhow::anyhow!(chain(&error)),
        })?;
    if let Some(reconciles) = args.operator.reconciles().await? {
        picture = picture.with_reconciles(reconciles);
    }
    let report = explain(&picture);
    let text = match args.output {
        Output::Json => serde_json::to_string_pretty(&report)? + "\n",
        Output::Text => tree::describe(&report, printer::shows_colours(&io::stdout())),
    };
    print(&text)?;
    Ok(if report.healthy { ExitCode::SUCCESS } else { ExitCode::from(FOUND) })
}
