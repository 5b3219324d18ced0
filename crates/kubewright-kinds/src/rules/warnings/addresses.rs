//! Warnings of addresses that are written in an unusual way, and of what names them: services and their endpoints,
//! network policies.

use super::super::at::At;
use super::super::ip;
use super::WarningContext;

/// An address (`GetWarningsForIP`).
pub(super) fn of_ip(at: &At<'_>, out: &mut Vec<String>) {
    out.extend(ip::warning_of_address(at.text()).map(|warning| format!("{}: {warning}", at.path)));
}

/// A range of addresses (`GetWarningsForCIDR`).
pub(super) fn of_range(at: &At<'_>, out: &mut Vec<String>) {
    let warnings = ip::warnings_of_range(at.text()).into_iter();
    out.extend(warnings.map(|warning| format!("{}: {warning}", at.path)));
}

/// A service (`GetWarningsForService`).
pub(crate) fn of_service(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    let spec = subject.new.get("spec");
    let is_named = spec.get("type").text() == "ExternalName";
    let is_headless = spec.get("type").text() == "ClusterIP" && spec.get("clusterIP").text() == "None";
    if subject
        .new
        .dig(&["metadata", "annotations"])
        .get("service.kubernetes.io/topology-aware-hints")
        .is_set()
    {
        out.push("annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead".to_owned());
    }
    for ip in spec.get("clusterIPs").items() {
        of_ip(&ip, out);
    }
    let external = spec.get("externalIPs");
    if is_headless {
        let ignored = [
            ("spec.loadBalancerIP", !spec.get("loadBalancerIP").is_empty()),
            ("spec.externalIPs", !external.is_empty()),
            ("spec.SessionAffinity", spec.get("sessionAffinity").text() != "None"),
        ];
        for (field, _) in ignored.iter().filter(|(_, given)| *given) {
            out.push(format!("{field} is ignored for headless services"));
        }
    }
    for ip in external.items() {
        of_ip(&ip, out);
    }
    if !external.is_empty() && !is_headless && !is_named {
        out.push(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned(),
        );
    }
    of_ip(&spec.get("loadBalancerIP"), out);
    for range in spec.get("loadBalancerSourceRanges").items() {
        of_range(&range, out);
    }
    if is_named && !external.is_empty() {
        out.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if !is_named && !spec.get("externalName").is_empty() {
        out.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if spec.get("trafficDistribution").text() == "PreferClose" {
        out.push(
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".to_owned(),
        );
    }
}

pub(crate) fn of_endpoints(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    for subset in subject.new.get("subsets").items() {
        for address in ["addresses", "notReadyAddresses"].iter().flat_map(|list| subset.get(list).items()) {
            of_ip(&address.get("ip"), out);
        }
    }
}

pub(crate) fn of_slice(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    if subject.is_new() && subject.new.get("addressType").text() == "FQDN" {
        out.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    for address in subject.new.get("endpoints").items().flat_map(|endpoint| endpoint.get("addresses").items())
    {
        of_ip(&address, out);
    }
}

pub(crate) fn of_policy(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    let spec = subject.new.get("spec");
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for peer in spec.get(direction).items().flat_map(|rule| rule.get(peers).items()) {
            let block = peer.get("ipBlock");
            of_range(&block.get("cidr"), out);
            for except in block.get("except").items() {
                of_range(&except, out);
            }
        }
    }
}
