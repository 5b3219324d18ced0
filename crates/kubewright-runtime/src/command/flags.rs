//! The flags, and their variables of the environment.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};
use kubewright_meta::duration::nanoseconds;

use super::Installation;
use crate::logging::LogFormat;

/// Runs the operator, or says how to install it.
#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Flags {
    #[command(subcommand)]
    pub(super) action: Option<Action>,
    #[command(flatten)]
    pub(super) run: Run,
}

#[derive(Subcommand)]
pub(super) enum Action {
    /// Run the operator (what happens without a command too)
    Run(Box<Run>),
    /// Print what installs the operator, as YAML
    Manifests(Installation),
    /// Print the operator's name and version
    Version,
}

/// How an operator is run: what the flags of `run` say. The defaults elect nobody, and open no port but that of
/// webhooks, where there are any.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct Run {
    /// This kubeconfig, instead of $KUBECONFIG, the pod's service account or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// This context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Look only at these namespaces, separated by commas
    #[arg(long = "namespace", short, value_name = "NAMES", value_delimiter = ',', env = "WATCH_NAMESPACE")]
    pub namespaces: Vec<String>,
    /// At most that many requests a second to the API server
    #[arg(long, value_name = "NUMBER", env = "KUBE_API_QPS")]
    pub kube_api_qps: Option<u32>,

    /// Work only as the leader of all replicas
    #[arg(long, env = "LEADER_ELECT", default_value_t = false, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub leader_elect: bool,
    /// Share the keys of the controllers with all replicas, in place of electing a leader. The flags of the Lease are those of
    /// the ring and its members too
    #[arg(long, env = "SHARD", default_value_t = false, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub shard: bool,
    /// The name of the Lease; the operator's own if not told
    #[arg(long, value_name = "NAME", env = "LEADER_ELECT_RESOURCE_NAME")]
    pub leader_elect_resource_name: Option<String>,
    /// The namespace of the Lease; the pod's own, or that of the kubeconfig, if not told
    #[arg(long, value_name = "NAME", env = "LEADER_ELECT_RESOURCE_NAMESPACE")]
    pub leader_elect_resource_namespace: Option<String>,
    /// How long others wait before they take over
    #[arg(long, value_name = "TIME", env = "LEADER_ELECT_LEASE_DURATION", default_value = "15s", value_parser = duration)]
    pub leader_elect_lease_duration: Duration,
    /// How long the leader goes on without a renewal
    #[arg(long, value_name = "TIME", env = "LEADER_ELECT_RENEW_DEADLINE", default_value = "10s", value_parser = duration)]
    pub leader_elect_renew_deadline: Duration,
    /// How often the lease is renewed
    #[arg(long, value_name = "TIME", env = "LEADER_ELECT_RETRY_PERIOD", default_value = "2s", value_parser = duration)]
    pub leader_elect_retry_period: Duration,

    /// Where metrics are served (`:8443`, `127.0.0.1:8080`); 0 for nowhere
    #[arg(long, value_name = "ADDRESS", env = "METRICS_BIND_ADDRESS", default_value = "0")]
    pub metrics_bind_address: String,
    /// Serve metrics over HTTPS, to those who may read them; =false for HTTP, to everybody
    #[arg(long, env = "METRICS_SECURE", default_value_t = true, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub metrics_secure: bool,
    /// The folder of the certificate of metrics; one is made if not told
    #[arg(long, value_name = "FOLDER", env = "METRICS_CERT_PATH")]
    pub metrics_cert_path: Option<PathBuf>,
    /// The file of the certificate in that folder
    #[arg(long, value_name = "FILE", default_value = "tls.crt")]
    pub metrics_cert_name: String,
    /// The file of its key in that folder
    #[arg(long, value_name = "FILE", default_value = "tls.key")]
    pub metrics_cert_key: String,
    /// Where /healthz and /readyz are served (`:8081`); 0 for nowhere
    #[arg(long, value_name = "ADDRESS", env = "HEALTH_PROBE_BIND_ADDRESS", default_value = "0")]
    pub health_probe_bind_address: String,

    /// Send spans and metrics to this OpenTelemetry collector (`http://collector:4318`), by OTLP over HTTP. Other variables of the
    /// OpenTelemetry SDK are read too: `OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER` and their siblings
    #[cfg(feature = "otel")]
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub otlp_endpoint: Option<String>,

    /// How its webhooks are served.
    #[cfg(feature = "webhook")]
    #[command(flatten)]
    pub webhooks: super::WebhookFlags,

    /// Write the least roles that the operator worked with into this file when it ends, as YAML, and log which rights were
    /// missing and which declared ones were never used
    #[arg(long, value_name = "FILE")]
    pub observe_rights: Option<PathBuf>,
    /// How long work may go on after the operator was asked to end
    #[arg(long, value_name = "TIME", env = "GRACEFUL_SHUTDOWN_TIMEOUT", default_value = "30s", value_parser = duration)]
    pub graceful_shutdown_timeout: Duration,
    /// How logs are written
    #[arg(long, value_enum, env = "LOG_FORMAT", default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// What is logged: off, error, warn, info, debug, trace, or for each module (`info,kube=debug`)
    #[arg(long, value_name = "LEVEL", env = "LOG_LEVEL", default_value = "info")]
    pub log_level: String,
}

impl Default for Run {
    /// What an empty command line says, whatever the environment.
    fn default() -> Self {
        Self {
            #[cfg(feature = "otel")]
            otlp_endpoint: None,
            kubeconfig: None,
            context: None,
            namespaces: Vec::new(),
            kube_api_qps: None,
            leader_elect: false,
            shard: false,
            leader_elect_resource_name: None,
            leader_elect_resource_namespace: None,
            leader_elect_lease_duration: Duration::from_secs(15),
            leader_elect_renew_deadline: Duration::from_secs(10),
            leader_elect_retry_period: Duration::from_secs(2),
            metrics_bind_address: "0".to_owned(),
            metrics_secure: true,
            metrics_cert_path: None,
            metrics_cert_name: "tls.crt".to_owned(),
            metrics_cert_key: "tls.key".to_owned(),
            health_probe_bind_address: "0".to_owned(),
            #[cfg(feature = "webhook")]
            webhooks: super::WebhookFlags::default(),
            observe_rights: None,
            graceful_shutdown_timeout: Duration::from_secs(30),
            log_format: LogFormat::Text,
            log_level: "info".to_owned(),
        }
    }
}

/// A time as Go writes it: `15s`, `1m30s`.
fn duration(text: &str) -> Result<Duration, String> {
    let read = nanoseconds(text).map_err(|_| format!("{text:?} is no time: write 15s or 1m30s"))?;
    u64::try_from(read).map(Duration::from_nanos).map_err(|_| format!("{text:?} is less than no time"))
}
