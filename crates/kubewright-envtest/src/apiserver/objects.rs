//! What is admitted, served and given out, and how much at a time: admission plugins, versions, addresses of services,
//! feature gates, limits.

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use kubewright_control_plane::{Builder, NodePorts, RuntimeConfig, ServiceCidrs, admission::Plugins};

use crate::{
    flags::{Flags, switch},
    kubernetes, say,
};

/// The network of service addresses unless another is given.
const SERVICES: &str = "10.0.0.0/24";

/// # Errors
/// When a flag names something that there is not.
pub(super) fn configure(flags: &Flags, mut builder: Builder) -> anyhow::Result<Builder> {
    let plugins = plugins(flags)?;
    for warning in plugins.warnings() {
        say(&format!("Warning: {warning}"));
    }
    let named = |flag: &'static str| move |why: String| anyhow!("--{flag}: {why}");
    let cidrs = flags.text("service-cluster-ip-range").unwrap_or(SERVICES);
    builder = builder
        .kubernetes_version(kubernetes::version()?)
        .admission(plugins)
        .service_cidr(ServiceCidrs::parse(cidrs).map_err(named("service-cluster-ip-range"))?);
    if let Some(ports) = flags.text("service-node-port-range") {
        builder = builder.node_ports(NodePorts::parse(ports).map_err(named("service-node-port-range"))?);
    }
    if let Some(pairs) = flags.list("runtime-config") {
        let (config, warnings) = RuntimeConfig::parse(pairs).map_err(named("runtime-config"))?;
        for warning in warnings {
            say(&format!("Warning: {warning}"));
        }
        builder = builder.runtime_config(config);
    }
    if let Some(on) = feature_gate(flags, "AggregatedDiscoveryEndpoint")? {
        builder = builder.aggregated_discovery(on);
    }
    limits(flags, builder)
}

fn plugins(flags: &Flags) -> anyhow::Result<Plugins> {
    if let Some(only) = flags.list("admission-control") {
        return Ok(Plugins::only(only)?);
    }
    let mut plugins = Plugins::default();
    for name in flags.list("enable-admission-plugins").unwrap_or_default() {
        plugins = plugins.enable(name)?;
    }
    for name in flags.list("disable-admission-plugins").unwrap_or_default() {
        plugins = plugins.disable(name)?;
    }
    Ok(plugins)
}

/// Whether a gate is said to be on or off. Others are accepted, whatever they are called: those of other versions, too.
fn feature_gate(flags: &Flags, gate: &str) -> anyhow::Result<Option<bool>> {
    let mut found = None;
    for pair in flags.list("feature-gates").unwrap_or_default() {
        let pair = pair.strip_prefix("kube:").unwrap_or(pair);
        let Some((name, value)) = pair.split_once('=') else {
            bail!("missing bool value for feature gate {pair:?}");
        };
        let Some(on) = switch(value) else {
            bail!(
                "invalid value of {name}={value}, err: strconv.ParseBool: parsing {value:?}: invalid syntax"
            );
        };
        if name == gate {
            found = Some(on);
        }
    }
    Ok(found)
}

fn limits(flags: &Flags, mut builder: Builder) -> anyhow::Result<Builder> {
    let count = |flag: &'static str| -> anyhow::Result<Option<usize>> {
        let number = flags.number(flag).map(usize::try_from).transpose();
        number.with_context(|| format!("--{flag} can not be negative value"))
    };
    if let Some(most) = count("max-requests-inflight")? {
        builder = builder.max_requests_inflight(most);
    }
    if let Some(most) = count("max-mutating-requests-inflight")? {
        builder = builder.max_mutating_requests_inflight(most);
    }
    if let Some(longest) = flags.duration("request-timeout") {
        builder = builder.request_timeout(longest);
    }
    if let Some(seconds) = flags.number("min-request-timeout") {
        let seconds = u64::try_from(seconds).context("--min-request-timeout can not be negative value")?;
        builder = builder.min_request_timeout(Duration::from_secs(seconds));
    }
    Ok(builder)
}
