//! A program runs to rest on a stand.

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use kubewright_cluster::{Cluster, admin::Match, recording::Recording};
use tokio::time::{Instant, sleep};

use super::made::{self, End};
use crate::{
    run::account::Account,
    stand::{
        Stand, activity,
        manifests::Inputs,
        past,
        program::{OperatorCommand, Running},
        webhooks::{self, WebhookPort},
    },
};

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
    pub(super) end: End,
    pub(super) warnings: Vec<String>,
}

/// Runs a program on a new control plane, or on one with the objects of a recording, with what it needs, gives it its objects, and waits until nobody writes any more.
///
/// # Errors
/// When the control plane does not start, it or a webhook refuses an object, or the program ends, does not serve its webhooks or does not
/// come to rest.
pub(super) async fn run(
    inputs: &Inputs,
    account: &(String, String),
    command: &OperatorCommand,
    webhooks: Option<WebhookPort>,
    limits: Limits,
    past: Option<&Recording>,
) -> anyhow::Result<Ran> {
    let stand = match past {
        Some(past) => Stand::of(past::builder(past.clone())).await?,
        None => Stand::start().await?,
    };
    let ran = on(&stand, inputs, account, command, webhooks, limits, past).await;
    stand.cluster.stop().await;
    ran
}

async fn on(
    stand: &Stand,
    inputs: &Inputs,
    (namespace, name): &(String, String),
    command: &OperatorCommand,
    webhooks: Option<WebhookPort>,
    limits: Limits,
    past: Option<&Recording>,
) -> anyhow::Result<Ran> {
    let Stand { cluster, access } = stand;
    let deadline = Instant::now() + limits.timeout;
    let served = webhooks.map(WebhookPort::prepare).transpose()?;
    let mut warnings =
        stand.install(&inputs.needed, &inputs.given, namespace, deadline, served.as_ref()).await?;
    let command = served.as_ref().map_or_else(|| command.clone(), |served| command.with_webhooks(served));
    let called = served.as_ref().filter(|_| webhooks::has_some(&inputs.needed));
    if called.is_none() {
        stand.give(&inputs.given).await?;
    }
    let account = Account::of_any_client(access, namespace, name).await?;
    let user = format!("system:serviceaccount:{namespace}:{name}");
    let since = cluster.revision().0;
    let mut running = command.start(account.kubeconfig(), limits.shows_logs)?;
    let group = running.group();
    let to_rest = async {
        if let Some(called) = called {
            if let Err(why) = called.served(group, deadline).await {
                return Ok(Rest::Unserved(why));
            }
            stand.give(&inputs.given).await?;
        }
        at_rest(cluster, &user, deadline, limits.rest).await
    };
    let rested = tokio::select! {
        biased;
        status = running.ended() => Err(anyhow!("program ended ({status}) before it was at rest{}", running.tail())),
        rested = to_rest => rested,
    };
    let told = finish(running, rested).await?;
    warnings.extend(told);
    let end = End::of(cluster, &user, since, past);
    warnings.extend(made::refused(cluster, &user));
    if end.written.is_empty() {
        warnings.push("the program made nothing: --logs shows what it says".to_owned());
    }
    Ok(Ran { end, warnings })
}

/// Ends the program; one that never spoke to its control plane, or serves no webhooks, is an error with what it said.
async fn finish(mut running: Running, rested: anyhow::Result<Rest>) -> anyhow::Result<Option<String>> {
    let tail = running.tail();
    running.stop().await;
    match rested? {
        Rest::Quiet => Ok(None),
        Rest::Unserved(why) => bail!("{why}{tail}"),
        Rest::Silent => bail!(
            "program has not spoken to its control plane in time: it has to find it by $KUBECONFIG{tail}"
        ),
        Rest::Busy => Ok(Some(format!(
            "the program is not at rest: it, or a controller, goes on writing; what is printed is the state at the end of --timeout{tail}"
        ))),
    }
}

/// How waiting for rest ended.
enum Rest {
    Quiet,
    /// It wrote, or somebody did, to the end.
    Busy,
    /// It made no request.
    Silent,
    /// It does not serve its webhooks, for which its objects wait.
    Unserved(anyhow::Error),
}

/// Waits until the program has watched for as long as nobody has written: `rest`.
async fn at_rest(cluster: &Cluster, user: &str, deadline: Instant, rest: Duration) -> anyhow::Result<Rest> {
    let admin = cluster.admin().context("the control plane keeps no log")?;
    let journal = cluster.journal().context("the control plane keeps no journal")?;
    let of_program = Match { user: Some(user.to_owned()), ..Match::default() };
    let mut seen = 0;
    let (mut requested, mut quiet_since) = (false, Instant::now());
    loop {
        let count = activity(journal);
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
