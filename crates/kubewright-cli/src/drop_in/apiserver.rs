//! kube-apiserver: a cluster of its own in memory, behind the flags of the real one.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
};

use anyhow::{Context, bail};
use kubewright_cluster::{Bundle, Cluster, Endpoint, Serving, ServingCertificate};
use kubewright_world::World;

use super::{environment::Settings, flags::Flags};
use crate::signals::Signals;

/// Serves until a signal comes.
///
/// # Errors
/// When a flag's value cannot be followed, or the port cannot be had.
pub(super) fn run(flags: &Flags) -> anyhow::Result<()> {
    let settings = Settings::read(flags)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(serve(flags, settings))?;
    // Nobody waits for what still runs: clients are cut off when the process ends, at once.
    runtime.shutdown_background();
    Ok(())
}

async fn serve(flags: &Flags, settings: Settings) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let world = World::real();
    let address = address(flags)?;
    let folder = Path::new(flags.text("cert-dir").unwrap_or("/var/run/kubernetes"));
    let certificate = ServingCertificate::of_pem(
        &read(&folder.join("apiserver.crt"))?,
        &read(&folder.join("apiserver.key"))?,
    )?;
    let clients = flags.text("client-ca-file").map(|path| read(Path::new(path))).transpose()?;
    let clients = clients.map(|text| Bundle::of_pem(text.as_bytes())).transpose()?;
    let serving = Serving { certificate: Some(certificate), client_ca: clients };
    let endpoint = Endpoint::bind_with(address, &world, serving).await?;
    let _cluster = Cluster::builder()
        .world(world)
        .controllers(settings.controllers)
        .nodes(settings.nodes)
        .endpoint(endpoint)
        .start()
        .await?;
    signals.next().await;
    Ok(())
}

fn address(flags: &Flags) -> anyhow::Result<SocketAddr> {
    let ip = match flags.text("bind-address") {
        Some(ip) => ip.parse()?,
        None => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    };
    let port = flags.number("secure-port").unwrap_or(6443);
    match u16::try_from(port) {
        Ok(port) if port > 0 => Ok(SocketAddr::new(ip, port)),
        _ => bail!(
            "--secure-port {port} must be between 1 and 65535, inclusive. It cannot be turned off with 0"
        ),
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}
