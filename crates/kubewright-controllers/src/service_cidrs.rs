//! The ServiceCIDR controller: which networks services may take addresses from, and that none goes whose addresses are in
//! use (`pkg/controller/servicecidrs/servicecidrs_controller.go`).

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::networking::v1::{IPAddress, ServiceCIDR};
use kube::Api;
use kube::api::{Patch, PatchParams};
use kubewright_meta::cidr::Cidr;
use kubewright_runtime::{Context, Controller, Error, EventType, Key, Outcome, Reconciler, finalizer};
use parking_lot::Mutex;
use serde_json::json;

/// Its name, also as the manager of the condition.
const NAME: &str = "service-cidr-controller";
const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";
const MANAGED_BY: &str = "ipaddress.kubernetes.io/managed-by";
const ALLOCATOR: &str = "ipallocator.k8s.io";
/// How long after its deletion a network stays at least (`deletionGracePeriod`).
const GRACE: Duration = Duration::from_secs(10);

/// The controller.
pub(crate) fn controller() -> Controller {
    let blocked = Arc::new(Blocked::default());
    let (of_networks, of_addresses) = (Arc::clone(&blocked), Arc::clone(&blocked));
    Controller::new(NAME, Networks { blocked })
        .for_kind::<ServiceCIDR>()
        .watches(move |_: &ServiceCIDR| of_networks.keys())
        .watches(move |_: &IPAddress| of_addresses.keys())
}

/// The names of networks that cannot go yet: another network, or an address less, may let them.
#[derive(Default)]
struct Blocked(Mutex<BTreeSet<String>>);

impl Blocked {
    fn keys(&self) -> Vec<Key> {
        self.0.lock().iter().map(Key::cluster_scoped).collect()
    }

    fn set(&self, name: &str, is_blocked: bool) {
        let mut names = self.0.lock();
        if is_blocked {
            names.insert(name.to_owned());
        } else {
            names.remove(name);
        }
    }
}

struct Networks {
    blocked: Arc<Blocked>,
}

/// What is to be done about a ServiceCIDR.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// It is to be protected and to be told ready.
    Serve,
    /// Addresses of it are in use.
    Block,
    /// Nobody needs it, but servers may not know yet that it goes.
    Wait(Duration),
    /// It may go.
    Release,
}

impl Reconciler for Networks {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let network = ctx.get::<ServiceCIDR>(key);
        let step = network.as_deref().map(|network| observe(ctx, network));
        self.blocked.set(&key.name, step == Some(Step::Block));
        let (Some(network), Some(step)) = (network, step) else { return Ok(Outcome::Done) };
        match step {
            Step::Serve => {
                if !finalizer::has(&*network, FINALIZER) {
                    let patch = json!({"metadata": {"finalizers": [FINALIZER]}});
                    gone_is_fine(ctx.patch_strategically::<ServiceCIDR>(key, patch).await)?;
                }
                let conditions =
                    set_ready(ctx, &network, "True", "", "Kubernetes Service CIDR is ready").await;
                if conditions.is_err() {
                    let note = "The ServiceCIDR Status can not be set to Ready=True";
                    ctx.event(&*network, EventType::Warning, "KubernetesServiceCIDRError", note);
                }
                conditions?;
            }
            Step::Block => {
                let why = "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a \
                           new ServiceCIDR";
                set_ready(ctx, &network, "False", "Terminating", why).await?;
            }
            Step::Wait(wait) => return Ok(Outcome::RequeueAfter(wait)),
            Step::Release if finalizer::has(&*network, FINALIZER) => {
                let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}});
                gone_is_fine(ctx.patch_strategically::<ServiceCIDR>(key, patch).await)?;
            }
            Step::Release => {}
        }
        Ok(Outcome::Done)
    }
}

fn gone_is_fine<T>(written: Result<T, Error>) -> Result<(), Error> {
    match written {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// Applies the condition `Ready` where it says something else.
async fn set_ready(
    ctx: &Context,
    network: &ServiceCIDR,
    status: &str,
    reason: &str,
    message: &str,
) -> Result<(), Error> {
    let conditions = network.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut conditions = conditions.filter(|condition| condition.type_ == "Ready");
    if conditions.next().is_some_and(|conditions| {
        (&*conditions.status, &*conditions.reason, &*conditions.message) == (status, reason, message)
    }) {
        return Ok(());
    }
    let name = network.metadata.name.as_deref().unwrap_or_default();
    let now = ctx.world().clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = json!({"type": "Ready", "status": status, "reason": reason, "message": message,
        "lastTransitionTime": now});
    let apply = json!({"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": name},
        "status": {"conditions": [condition]}});
    let networks = Api::<ServiceCIDR>::all(ctx.client().clone());
    let params = PatchParams::apply(NAME).force();
    networks.patch_status(name, &params, &Patch::Apply(apply)).await?;
    Ok(())
}

fn observe(ctx: &Context, network: &ServiceCIDR) -> Step {
    let Some(deleted) = network.metadata.deletion_timestamp.as_ref() else { return Step::Serve };
    let name = network.metadata.name.as_deref().unwrap_or_default();
    let all = ctx.list::<ServiceCIDR>(None);
    let others = all.iter().filter(|other| other.metadata.name.as_deref() != Some(name));
    let others: Vec<Cidr> = others.flat_map(|other| cidrs(other)).collect();
    let held = ctx.list::<IPAddress>(None);
    let held: Vec<IpAddr> = held.iter().filter_map(|address| allocated(address)).collect();
    plan(&cidrs(network), &others, &held, deleted.0, ctx.world().clock.now())
}

/// What becomes of a network that was deleted at this moment, given the networks of others and the addresses in use.
fn plan(own: &[Cidr], others: &[Cidr], held: &[IpAddr], deleted: Timestamp, now: Timestamp) -> Step {
    let is_covered = own.iter().all(|cidr| others.iter().any(|other| other.contains(*cidr)));
    let is_orphan = |address: &IpAddr| {
        own.iter().any(|cidr| cidr.offers(*address)) && !others.iter().any(|other| other.offers(*address))
    };
    if !is_covered && held.iter().any(is_orphan) {
        return Step::Block;
    }
    let since = Duration::try_from(now.duration_since(deleted)).unwrap_or_default();
    match GRACE.saturating_sub(since) {
        Duration::ZERO => Step::Release,
        wait => Step::Wait(wait),
    }
}

fn cidrs(network: &ServiceCIDR) -> Vec<Cidr> {
    let texts = network.spec.iter().flat_map(|spec| spec.cidrs.iter().flatten());
    texts.filter_map(|text| Cidr::parse(text)).collect()
}

/// The address of an IPAddress that the server has made for a service.
fn allocated(address: &IPAddress) -> Option<IpAddr> {
    let manager = address.metadata.labels.as_ref()?.get(MANAGED_BY)?;
    address.metadata.name.as_ref().filter(|_| manager == ALLOCATOR)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START as NOW;

    use super::*;

    fn decided(own: &[&str], others: &[&str], held: &[&str], after: u64) -> Step {
        let read =
            |texts: &[&str]| -> Vec<Cidr> { texts.iter().filter_map(|text| Cidr::parse(text)).collect() };
        let held: Vec<IpAddr> = held.iter().filter_map(|text| text.parse().ok()).collect();
        plan(&read(own), &read(others), &held, NOW, NOW + Duration::from_secs(after))
    }

    #[test]
    fn a_network_stays_while_only_it_has_an_address_that_is_in_use() {
        assert_eq!(decided(&["10.1.0.0/24"], &[], &["10.1.0.7"], 60), Step::Block);
        assert_eq!(decided(&["10.1.0.0/24"], &["10.1.0.0/28"], &["10.1.0.7"], 60), Step::Release);
        assert_eq!(decided(&["10.1.0.0/24"], &["10.1.0.0/28"], &["10.1.0.7", "10.1.0.77"], 60), Step::Block);
        assert_eq!(decided(&["10.1.0.0/24"], &["10.1.0.0/16"], &["10.1.0.7"], 60), Step::Release);
        assert_eq!(decided(&["10.1.0.0/24"], &["10.2.0.0/24"], &["10.2.0.7"], 60), Step::Release);
    }

    #[test]
    fn of_two_families_both_have_to_be_covered() {
        let own = ["10.1.0.0/24", "fd00::/112"];
        assert_eq!(decided(&own, &["10.1.0.0/16"], &["fd00::5"], 60), Step::Block);
        assert_eq!(decided(&own, &["10.1.0.0/16", "fd00::/64"], &["fd00::5"], 60), Step::Release);
    }

    #[test]
    fn it_goes_ten_seconds_after_it_was_deleted() {
        assert_eq!(decided(&["10.1.0.0/24"], &[], &[], 4), Step::Wait(Duration::from_secs(6)));
        assert_eq!(decided(&["10.1.0.0/24"], &[], &[], 10), Step::Release);
    }
}
