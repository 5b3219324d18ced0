//! The cluster addresses of a service, and addresses of endpoints.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::ip;

/// `clusterIP`, `clusterIPs`, `ipFamilies` and `ipFamilyPolicy` (`ValidateServiceClusterIPsRelatedFields`).
pub(super) fn check_cluster_ips(spec: &At<'_>, errors: &mut Errors) {
    if spec.get("type").text() == "ExternalName" {
        return;
    }
    let (first, all, families) = (spec.get("clusterIP"), spec.get("clusterIPs"), spec.get("ipFamilies"));
    if first.is_empty() {
        if !all.is_empty() {
            errors.invalid(&all, "must be empty when `clusterIP` is not specified");
        }
    } else if all.is_empty() {
        errors.required(&all, "");
    } else if all.items().next().is_some_and(|one| one.text() != first.text()) {
        errors.invalid(&all, "first value must match `clusterIP`");
    }
    check_families(&families, errors);
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    errors.maybe_one_of(&spec.get("ipFamilyPolicy"), &policies);
    let before = errors.count();
    for (index, address) in all.items().enumerate() {
        if index > 0 || address.text() != "None" {
            errors.text(&address, ip::address);
        } else if all.len() > 1 {
            errors.invalid(&all, "'None' must be the first and only value");
        }
    }
    let readable = errors.count() == before;
    if all.len() > 2 {
        errors.invalid(&all, "may only hold up to 2 values");
    }
    if readable {
        check_stack(&all, &families, errors);
    }
}

fn check_families(families: &At<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for family in families.items() {
        errors.one_of(&family, &["IPv4", "IPv6"]);
        if !seen.insert(family.text()) {
            errors.duplicate(&family);
        }
    }
}

fn check_stack(all: &At<'_>, families: &At<'_>, errors: &mut Errors) {
    let is_six = |ip: &At<'_>| ip.text().contains(':');
    let mut ips = all.items();
    if let (Some(one), Some(two), None) = (ips.next(), ips.next(), ips.next())
        && is_six(&one) == is_six(&two)
    {
        errors.invalid(all, "may specify no more than one IP for each IP family");
    }
    for (index, (ip, family)) in all.items().zip(families.items()).enumerate() {
        let wanted = family.text();
        if ip.text() != "None" && matches!((wanted, is_six(&ip)), ("IPv4", true) | ("IPv6", false)) {
            errors.invalid(&ip, format!("expected an {wanted} value as indicated by `ipFamilies[{index}]`"));
        }
    }
}

/// The addresses of pods that run as processes of this machine: 127.64.0.0/10 (`docs/process.md`).
fn is_of_process(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V4(ip) if ip.octets()[0] == 127 && ip.octets()[1] & 0xc0 == 64)
}

/// An address at which an endpoint of an Endpoints or EndpointSlice may be: as [`check_endpoint_ip`], but that pods which
/// run as processes of this machine have addresses of its loopback network. A real API server refuses these.
pub(super) fn check_pod_ip(at: &At<'_>, errors: &mut Errors) {
    if !at.text().parse().is_ok_and(is_of_process) {
        check_endpoint_ip(at, errors);
    }
}

/// An address at which an endpoint may be (`ValidateEndpointIP`): a text that is none has been told already.
pub(super) fn check_endpoint_ip(at: &At<'_>, errors: &mut Errors) {
    let Ok(ip) = at.text().parse::<IpAddr>() else { return };
    if ip.is_unspecified() {
        errors.invalid(at, format!("may not be unspecified ({})", at.text()));
    }
    if ip.is_loopback() {
        errors.invalid(at, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    let (link_local, multicast) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(ip) => (ip.is_unicast_link_local(), ip.segments()[0] & 0xff0f == 0xff02),
    };
    if link_local {
        errors.invalid(at, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
    if multicast {
        errors.invalid(at, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    }
}
