//! `run`: from flags to a running manager.

use std::sync::Arc;

use kubewright_world::World;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "otel")]
use super::telemetry;
use super::{Operator, Run};
use crate::{
    Connect, Error, LeaderElection, Manager, Metrics, Sharding, logging,
    rbac::Observed,
    serving::{Access, HealthServer, MetricsServer, Tls},
};

/// What flags say for "do not".
pub(super) fn is_off(address: &str) -> bool {
    address.is_empty() || address == "0"
}

impl Run {
    /// Writes logs from now on, as it says.
    ///
    /// # Errors
    /// [`Error::Misconfigured`] when the level is none, or something writes logs already.
    pub fn log(&self) -> Result<(), Error> {
        logging::init(self.log_format, &self.log_level)
    }

    /// Which API server it says.
    #[must_use]
    pub fn connect(&self, user_agent: &str) -> Connect {
        Connect {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            user_agent: Some(user_agent.to_owned()),
            queries_per_second: self.kube_api_qps,
        }
    }

    fn election(&self, name: &str, namespace: &str) -> LeaderElection {
        let name = self.leader_elect_resource_name.as_deref().unwrap_or(name);
        let namespace = self.leader_elect_resource_namespace.as_deref().unwrap_or(namespace);
        LeaderElection::lease(namespace, name)
            .lease_duration(self.leader_elect_lease_duration)
            .renew_deadline(self.leader_elect_renew_deadline)
            .retry_period(self.leader_elect_retry_period)
    }

    fn ring(&self, name: &str, namespace: &str) -> Sharding {
        let name = self.leader_elect_resource_name.as_deref().unwrap_or(name);
        let namespace = self.leader_elect_resource_namespace.as_deref().unwrap_or(namespace);
        Sharding::ring(namespace, name)
            .lease_duration(self.leader_elect_lease_duration)
            .renew_deadline(self.leader_elect_renew_deadline)
            .retry_period(self.leader_elect_retry_period)
    }

    fn metrics_server(&self) -> MetricsServer {
        let server = MetricsServer::at(&self.metrics_bind_address);
        if !self.metrics_secure {
            return server.tls(Tls::Off).access(Access::Everybody);
        }
        match &self.metrics_cert_path {
            None => server,
            Some(folder) => server.tls(Tls::Files {
                certificate: folder.join(&self.metrics_cert_name),
                key: folder.join(&self.metrics_cert_key),
            }),
        }
    }
}

impl Operator {
    /// Runs the operator against the API server that `run` says, until `stop`. With the feature `otel` its metrics go to the collector that `run` says; its
    /// spans are those of [`main`](Operator::main) alone.
    ///
    /// # Errors
    /// [`Error::Misconfigured`] before anything starts, and what [`Manager::run`] fails with.
    pub async fn run(&self, run: &Run, stop: CancellationToken) -> Result<(), Error> {
        let metrics = Metrics::new();
        let connect = run.connect(&self.user_agent());
        let (client, config) = connect.client(metrics.requests()).await?;
        tracing::info!(operator = self.name, version = self.version, server = %config.cluster_url, "starting");
        let observed = run.observe_rights.as_ref().map(|file| (file, Observed::new()));
        let client =
            observed.as_ref().map_or_else(|| client.clone(), |(_, observed)| observed.client(&client));
        let home = client.default_namespace().to_owned();
        #[cfg(feature = "otel")]
        let counted = metrics.clone();
        let manager = Manager::counting_in(metrics, client, World::real());
        #[cfg_attr(not(feature = "webhook"), expect(unused_mut, reason = "webhooks are put into it"))]
        let mut manager = self.manager(manager, run)?;
        #[cfg(feature = "webhook")]
        if let Some(server) = self.webhook_server(&run.webhooks)? {
            manager.serve(server);
        }
        let rights = manager.rights();
        #[cfg(feature = "otel")]
        let ended = match self.collector(run)? {
            None => manager.run(stop).await,
            Some(collector) => telemetry::beside(&collector, &counted, manager.run(stop)).await,
        };
        #[cfg(not(feature = "otel"))]
        let ended = manager.run(stop).await;
        if let Some((file, observed)) = observed {
            tracing::info!("{}", observed.report(&rights));
            let roles = observed.yaml(&self.name, &home)?;
            std::fs::write(file, roles).map_err(|error| {
                Error::new(format!("the observed rights cannot be written: {}: {error}", file.display()))
            })?;
        }
        ended
    }

    /// Puts the operator into a manager, as `run` says: for a test, or beside others in one process. It can be put into
    /// another one later, as a process that starts anew. Its webhooks are not served by that, as they need a port, or
    /// [somebody in this process](Operator::webhooks_in_process) who calls them.
    ///
    /// # Errors
    /// What a [setup](Operator::setup) failed with; [`Error::Misconfigured`].
    pub fn manager(&self, mut manager: Manager, run: &Run) -> Result<Manager, Error> {
        if !self.mistakes.is_empty() {
            return Err(Error::Misconfigured(self.mistakes.join("; ")));
        }
        let settings = self.settings()?;
        manager.may(self.rights.clone());
        manager.defaults(self.defaults.clone());
        self.check_namespaces(&run.namespaces)?;
        match &self.namespaces {
            Some(namespaces) => manager.follow_namespaces(namespaces),
            None => manager.watch_namespaces(run.namespaces.iter().cloned()),
        };
        manager.graceful_shutdown(run.graceful_shutdown_timeout);
        if run.leader_elect {
            let namespace = manager.client().default_namespace().to_owned();
            manager.elect(run.election(&self.name, &namespace));
        }
        if run.shard {
            let namespace = manager.client().default_namespace().to_owned();
            manager.share(run.ring(&self.name, &namespace));
        }
        if !is_off(&run.metrics_bind_address) {
            manager.serve_metrics(run.metrics_server());
        }
        if !is_off(&run.health_probe_bind_address) {
            manager.serve_health(HealthServer::at(&run.health_probe_bind_address));
        }
        for make in &self.controllers {
            manager.add(make());
        }
        for make in &self.controllers_with {
            manager.add(make(settings)?);
        }
        for make in &self.controllers_in {
            let controller = make(&manager);
            manager.add(controller);
        }
        for setup in &self.setups {
            setup(&mut manager, settings)?;
        }
        for setup in &self.late_setups {
            let (setup, settings) = (Arc::clone(setup), settings.clone());
            manager.before_run(move |manager| Box::pin(async move { setup(manager, &settings).await }));
        }
        Ok(manager)
    }
}
