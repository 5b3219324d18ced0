//! Watches a Deployment until its pods run.

use anyhow::bail;
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::{Event, Pod},
};
use kube::{
    Api, Client,
    api::{ListParams, LogParams},
};
use tokio::time::{Instant, sleep};

use super::{
    apply::PAUSE,
    plan::Manifest,
    situation::{Log, Observed, Situation},
};
use crate::access::refused;

/// How many lines of a log are shown.
const LINES: i64 = 10;

/// A Deployment on its way.
pub(super) struct Rollout<'a> {
    pub(super) client: &'a Client,
    pub(super) program: &'a Manifest,
    pub(super) deadline: Instant,
}

impl Rollout<'_> {
    /// Waits until all its pods run; tells each change of what it waits for, and the end of a log once. Gives a warning if
    /// they only are said to run.
    ///
    /// # Errors
    /// When they do not in time, with the reason.
    pub(super) async fn watch(
        &self,
        report: &mut (dyn FnMut(&str) + Send),
    ) -> anyhow::Result<Option<String>> {
        let program = self.program.called();
        let (mut last, mut shown) = (String::new(), None);
        loop {
            let Situation { done, line, log, remedy, simulated } = self.observe().await?.situation();
            if line != last {
                report(&format!("{program}: {line}"));
                last.clone_from(&line);
            }
            if done {
                return Ok(simulated.map(|node| {
                    format!(
                        "{node} is simulated: the pods of {program} do not run; `kubewright up --runtime process` runs them"
                    )
                }));
            }
            if log != shown
                && let Some(log) = log
            {
                self.show(&log, report).await;
                shown = Some(log);
            }
            if Instant::now() >= self.deadline {
                let remedy = if remedy.is_empty() { String::new() } else { format!("; {remedy}") };
                bail!("{program} does not run in time: {line}{remedy}");
            }
            sleep(PAUSE).await;
        }
    }

    async fn observe(&self) -> anyhow::Result<Observed> {
        let (namespace, name) = (&self.program.namespace, &self.program.name);
        let unread = |error| refused(&self.program.unread(), &error);
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), namespace);
        let deployment = deployments.get(name).await.map_err(unread)?;
        let labels = deployment.spec.iter().flat_map(|spec| spec.selector.match_labels.iter().flatten());
        let labels: Vec<String> = labels.map(|(key, value)| format!("{key}={value}")).collect();
        let selected = ListParams::default().labels(&labels.join(","));
        let sets: Api<ReplicaSet> = Api::namespaced(self.client.clone(), namespace);
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let events: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let about_pods = ListParams::default().fields("involvedObject.kind=Pod,type=Warning");
        Ok(Observed {
            sets: sets.list(&selected).await.map_err(unread)?.items,
            pods: pods.list(&selected).await.map_err(unread)?.items,
            // Who may not read events is told less.
            events: events.list(&about_pods).await.map(|list| list.items).unwrap_or_default(),
            deployment,
        })
    }

    /// Shows the end of a log; there may be none yet.
    async fn show(&self, log: &Log, report: &mut (dyn FnMut(&str) + Send)) {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.program.namespace);
        let parameters = LogParams {
            container: Some(log.container.clone()),
            previous: log.previous,
            tail_lines: Some(LINES),
            ..LogParams::default()
        };
        if let Ok(text) = pods.logs(&log.pod, &parameters).await {
            text.lines().for_each(|line| report(&format!("  {}: {line}", log.pod)));
        }
    }
}
