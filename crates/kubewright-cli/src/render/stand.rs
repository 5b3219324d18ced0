//! A control plane of this process on which one program runs to rest.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use anyhow::{Context, anyhow, bail};
use kube::{
    Client, Config,
    api::DynamicObject,
    config::{KubeConfigOptions, Kubeconfig},
};
use kubewright_cluster::{Cluster, Endpoint, Secret, admin::Match};
use kubewright_world::World;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    made::{self, Made},
    manifests::{Inputs, is_program},
    program::{OperatorCommand, Running},
};
use crate::{
    access::{Access, ClusterArgs, Objects, Others, object},
    kubeconfig,
    run::account::Account,
};

/// How many writes are kept, to see what the program made.
const JOURNAL: usize = 100_000;
/// How often it is looked whether all is at rest.
const PAUSE: Duration = Duration::from_millis(100);

/// How long it may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// How long nobody writes when all is at rest.
    pub(super) rest: Duration,
    pub(super) timeout: Duration,
    pub(super) shows_logs: bool,
}

/// What came of a run.
pub(super) struct Ran {
    pub(super) made: Vec<Made>,
    pub(super) warnings: Vec<String>,
}

/// Runs a program on a new control plane with what it needs, gives it its objects, and waits until nobody writes any more.
///
/// # Errors
/// When the control plane does not start or refuses an object, or the program ends or does not come to rest.
pub(super) async fn run(
    inputs: &Inputs,
    account: &(String, String),
    command: &OperatorCommand,
    limits: Limits,
) -> anyhow::Result<Ran> {
    let (cluster, access) = start().await?;
    let ran = on(&cluster, &access, inputs, account, command, limits).await;
    cluster.stop().await;
    ran
}

async fn start() -> anyhow::Result<(Cluster, Access)> {
    let world = World::real();
    let endpoint = Endpoint::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), &world).await?;
    let token = Secret::random().map_err(|_| anyhow!("the machine gives no entropy for a token"))?;
    let server = format!("https://{}", endpoint.address());
    let text = kubeconfig::Access { server, ca: endpoint.ca_pem(), token: token.clone() }.kubeconfig();
    let builder = Cluster::builder().admin(true).journal(JOURNAL).nodes(1).world(world);
    let cluster = builder.endpoint(endpoint).admin_token(token).start().await?;
    let kubeconfig = Kubeconfig::from_yaml(&text).context("the kubeconfig of the control plane")?;
    let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &KubeConfigOptions::default()).await?;
    let server = config.cluster_url.clone();
    Ok((cluster, Access { client: Client::try_from(config)?, server, kubeconfig }))
}

async fn on(
    cluster: &Cluster,
    access: &Access,
    inputs: &Inputs,
    (namespace, name): &(String, String),
    command: &OperatorCommand,
    limits: Limits,
) -> anyhow::Result<Ran> {
    let deadline = Instant::now() + limits.timeout;
    let mut warnings = apply(access, inputs, namespace, deadline).await?;
    let account = Account::of(access, &ClusterArgs::default(), namespace, name).await?;
    let user = format!("system:serviceaccount:{namespace}:{name}");
    let since = cluster.revision().0;
    let mut running = command.start(account.kubeconfig(), limits.shows_logs)?;
    let rested = tokio::select! {
        biased;
        error = running.ended() => Err(error),
        rested = at_rest(cluster, &user, deadline, limits.rest) => rested,
    };
    let told = finish(running, rested).await?;
    warnings.extend(told);
    let made = made::by(cluster, &user, since);
    warnings.extend(made::refused(cluster, &user));
    if made.is_empty() {
        warnings.push("the program made nothing: --logs shows what it says".to_owned());
    }
    Ok(Ran { made, warnings })
}

/// Ends the program; one that never spoke to its control plane is an error with what it said.
async fn finish(mut running: Running, rested: anyhow::Result<Rest>) -> anyhow::Result<Option<String>> {
    let tail = running.tail();
    running.stop().await;
    match rested? {
        Rest::Quiet => Ok(None),
        Rest::Silent => bail!(
            "program has not spoken to its control plane in time: it has to find it by $KUBECONFIG{tail}"
        ),
        Rest::Busy => Ok(Some(format!(
            "the program is not at rest: it, or a controller, goes on writing; what is printed is the state at the end of --timeout{tail}"
        ))),
    }
}

/// Applies what the operator needs and what it is given; gives what was left out.
async fn apply(
    access: &Access,
    inputs: &Inputs,
    home: &str,
    deadline: Instant,
) -> anyhow::Result<Vec<String>> {
    let mut cluster = Objects::new(&access.client);
    let kind =
        |object: &DynamicObject| object.types.as_ref().map(|types| types.kind.clone()).unwrap_or_default();
    let mut warnings = Vec::new();
    let mut spaces = vec![home.to_owned()];
    spaces.extend(inputs.needed.iter().chain(&inputs.given).filter_map(|one| one.metadata.namespace.clone()));
    spaces.sort();
    spaces.dedup();
    for space in spaces.iter().filter(|space| !space.is_empty()) {
        let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}});
        cluster.apply(&object(space)?, Others::TakenOver).await?;
    }
    let (definitions, others): (Vec<_>, Vec<_>) =
        inputs.needed.iter().partition(|one| kind(one) == "CustomResourceDefinition");
    for definition in &definitions {
        cluster.apply(definition, Others::TakenOver).await?;
    }
    for definition in &definitions {
        cluster.established(definition, deadline).await?;
    }
    let is_webhook = |one: &DynamicObject| kind(one).ends_with("WebhookConfiguration");
    let skipped = others.iter().filter(|one| is_webhook(one)).count();
    if skipped > 0 {
        warnings.push(format!(
            "{skipped} webhook configurations are left out: the program's webhooks are not called"
        ));
    }
    // A kind of somebody else, such as a ServiceMonitor or a Certificate, is not needed to see what the operator makes.
    for one in others.iter().filter(|one| !is_webhook(one) && !is_program(one)) {
        match cluster.apply(one, Others::TakenOver).await {
            Err(error) if format!("{error:#}").contains("the cluster has no kind") => {
                warnings.push(format!("left out: {error:#}"));
            }
            applied => drop(applied?),
        }
    }
    for one in &inputs.given {
        cluster.apply(one, Others::TakenOver).await?;
    }
    Ok(warnings)
}

/// How waiting for rest ended.
enum Rest {
    Quiet,
    /// It wrote, or somebody did, to the end.
    Busy,
    /// It made no request.
    Silent,
}

/// Waits until the program has watched for as long as nobody has written: `rest`.
async fn at_rest(cluster: &Cluster, user: &str, deadline: Instant, rest: Duration) -> anyhow::Result<Rest> {
    let admin = cluster.admin().context("the control plane keeps no log")?;
    let journal = cluster.journal().context("the control plane keeps no journal")?;
    let of_program = Match { user: Some(user.to_owned()), ..Match::default() };
    let mut seen = 0;
    let (mut requested, mut quiet_since) = (false, Instant::now());
    loop {
        let count = made::activity(journal);
        if count != seen {
            (seen, quiet_since) = (count, Instant::now());
        }
        if !requested && !admin.requests(&of_program, 1).requests.is_empty() {
            (requested, quiet_since) = (true, Instant::now());
        }
        if requested && quiet_since.elapsed() >= rest {
            return Ok(Rest::Quiet);
        }
        if Instant::now() >= deadline {
            return Ok(if requested { Rest::Busy } else { Rest::Silent });
        }
        sleep(PAUSE).await;
    }
}
