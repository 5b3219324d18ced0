//! What a pod is called, and what its `/etc/hosts` says (`pkg/kubelet/kubelet_pods.go`).

use std::fmt::Write as _;
use std::net::SocketAddr;

use k8s_openapi::api::core::v1::{HostAlias, Pod};

use super::InputError;
use super::place::{self, PodPlace};
use crate::newer;

/// The longest name of a host; the kernel has room for one byte more, of which the end takes one.
const LONGEST: usize = 63;

/// The longest name that `setHostnameAsFQDN` can give (`pkg/kubelet/util`, `fqdnMaxLen`).
const LONGEST_WHOLE: usize = 64;

/// What a pod is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName {
    /// Its short name.
    pub name: String,
    /// The domain that it is in; empty without a `subdomain`.
    pub domain: String,
}

impl HostName {
    /// What this pod is called (`GeneratePodHostNameAndDomain`): `hostnameOverride`, else `hostname`, else its own name.
    ///
    /// # Errors
    /// The name was cut to its longest and nothing of it was left.
    pub fn of(pod: &Pod, cluster_domain: &str) -> Result<Self, InputError> {
        let spec = pod.spec.as_ref();
        if let Some(name) = newer::host_name_override(pod) {
            return Ok(Self { name: cut(pod, name)?, domain: String::new() });
        }
        let named = spec.and_then(|spec| spec.hostname.as_deref()).filter(|name| !name.is_empty());
        let name = cut(pod, named.unwrap_or(place::name(pod)))?;
        let subdomain = spec.and_then(|spec| spec.subdomain.as_deref()).filter(|domain| !domain.is_empty());
        let domain = subdomain
            .map(|subdomain| format!("{subdomain}.{}.svc.{cluster_domain}", place::namespace(pod)))
            .unwrap_or_default();
        Ok(Self { name, domain })
    }

    /// What its containers are told that the machine is called (`GetNodenameForKernel`): with the domain where
    /// `setHostnameAsFQDN` is set; the node's name in its network.
    ///
    /// # Errors
    /// It is too long with the domain.
    pub fn for_kernel(&self, pod: &Pod) -> Result<String, InputError> {
        let spec = pod.spec.as_ref();
        if is_on_host_network(pod) {
            return Ok(spec.and_then(|spec| spec.node_name.clone()).unwrap_or_default());
        }
        let whole = spec.and_then(|spec| spec.set_hostname_as_fqdn).unwrap_or_default();
        if !whole || self.domain.is_empty() {
            return Ok(self.name.clone());
        }
        let name = format!("{}.{}", self.name, self.domain);
        if name.len() > LONGEST_WHOLE {
            let length = name.len();
            return Err(InputError::Config(format!(
                "failed to construct FQDN from pod hostname and cluster domain, FQDN {name} is too long \
                 ({LONGEST_WHOLE} characters is the max, {length} characters requested)"
            )));
        }
        Ok(name)
    }
}

/// Whether the pod wants the network of its node.
pub(super) fn is_on_host_network(pod: &Pod) -> bool {
    pod.spec.as_ref().and_then(|spec| spec.host_network).unwrap_or_default()
}

/// The `/etc/hosts` of a pod: the kubelet's, and the names of the API server's Service, since nothing here answers for
/// the names of Services. `of_node` is the node's own, which a pod on its network gets.
///
/// Only names can be given here: a client has to take the port from its environment, `https://kubernetes.default.svc` alone
/// leads to port 443.
#[must_use]
pub fn hosts_file(pod: &Pod, called: &HostName, place: PodPlace<'_>, of_node: &str) -> String {
    let mut text = String::new();
    if is_on_host_network(pod) {
        text.push_str("# Kubernetes-managed hosts file (host network).\n");
        text.push_str(of_node);
        if !of_node.is_empty() && !of_node.ends_with('\n') {
            text.push('\n');
        }
    } else {
        text.push_str(MANAGED);
        for address in place.pod_ips {
            let HostName { name, domain } = called;
            let names = if domain.is_empty() { name.clone() } else { format!("{name}.{domain}\t{name}") };
            line(&mut text, &address.to_string(), &names);
        }
    }
    let aliases = pod.spec.iter().flat_map(|spec| spec.host_aliases.iter().flatten());
    add_aliases(aliases, &mut text);
    if place.node.cluster_dns.is_empty() {
        add_api_server(pod, place.node.api_server, &place.node.cluster_domain, &mut text);
    }
    text
}

const MANAGED: &str = "# Kubernetes-managed hosts file.\n\
    127.0.0.1\tlocalhost\n\
    ::1\tlocalhost ip6-localhost ip6-loopback\n\
    fe00::0\tip6-localnet\n\
    fe00::0\tip6-mcastprefix\n\
    fe00::1\tip6-allnodes\n\
    fe00::2\tip6-allrouters\n";

fn add_aliases<'a>(aliases: impl Iterator<Item = &'a HostAlias>, text: &mut String) {
    let mut aliases = aliases.peekable();
    if aliases.peek().is_some() {
        text.push_str("\n# Entries added by HostAliases.\n");
    }
    for alias in aliases {
        line(text, &alias.ip, &alias.hostnames.iter().flatten().cloned().collect::<Vec<_>>().join("\t"));
    }
}

/// The names that the Service `kubernetes` has in a cluster with a name server: by itself only in its own namespace.
fn add_api_server(pod: &Pod, address: SocketAddr, cluster_domain: &str, text: &mut String) {
    let mut names = vec![
        format!("kubernetes.default.svc.{cluster_domain}"),
        "kubernetes.default.svc".to_owned(),
        "kubernetes.default".to_owned(),
    ];
    if place::namespace(pod) == "default" {
        names.push("kubernetes".to_owned());
    }
    text.push_str("\n# The API server, which no name server here knows.\n");
    line(text, &address.ip().to_string(), &names.join("\t"));
}

fn line(text: &mut String, address: &str, names: &str) {
    let written = writeln!(text, "{address}\t{names}");
    debug_assert!(written.is_ok(), "a String takes every text");
}

/// A name of at most the kernel's length (`truncatePodHostnameIfNeeded`).
fn cut(pod: &Pod, name: &str) -> Result<String, InputError> {
    if name.len() <= LONGEST {
        return Ok(name.to_owned());
    }
    let kept = name.get(..LONGEST).unwrap_or_default().trim_end_matches(['-', '.']);
    if kept.is_empty() {
        let pod = place::name(pod);
        return Err(InputError::Config(format!("hostname for pod {pod:?} was invalid: {name:?}")));
    }
    Ok(kept.to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;
    use crate::inputs::fixture::{node, place, pod};

    fn called(spec: Value) -> HostName {
        HostName::of(&pod(spec), "cluster.local").unwrap()
    }

    fn name(name: &str, domain: &str) -> HostName {
        HostName { name: name.to_owned(), domain: domain.to_owned() }
    }

    #[test]
    fn a_pod_is_called_as_its_spec_says() {
        assert_eq!(called(json!({"containers": []})), name("web", ""));
        assert_eq!(
            called(json!({"containers": [], "hostname": "a", "subdomain": "b"})),
            name("a", "b.ns.svc.cluster.local")
        );
        assert_eq!(
            called(json!({"containers": [], "hostnameOverride": "x.y", "subdomain": "b"})),
            name("x.y", "")
        );
        let mut long = pod(json!({"containers": []}));
        long.metadata.name = Some(format!("{}-.tail", "a".repeat(61)));
        assert_eq!(HostName::of(&long, "").unwrap().name, "a".repeat(61));
    }

    #[test]
    fn the_machine_is_called_after_the_domain_too_where_that_is_wanted_and_fits() {
        let spec =
            |subdomain: &str| json!({"containers": [], "setHostnameAsFQDN": true, "subdomain": subdomain});
        let of = |spec: Value| {
            let pod = pod(spec);
            HostName::of(&pod, "cluster.local").unwrap().for_kernel(&pod)
        };
        assert_eq!(of(spec("db")).unwrap(), "web.db.ns.svc.cluster.local");
        assert_eq!(of(json!({"containers": [], "subdomain": "db"})).unwrap(), "web");
        assert_eq!(of(json!({"containers": [], "hostNetwork": true, "nodeName": "n1"})).unwrap(), "n1");
        let domain = "d".repeat(50);
        assert_eq!(
            of(spec(&domain)).unwrap_err().to_string(),
            format!(
                "failed to construct FQDN from pod hostname and cluster domain, FQDN web.{domain}.ns.svc.cluster.local \
                 is too long (64 characters is the max, 75 characters requested)"
            )
        );
    }

    const LOCAL: &str = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\n\
        fe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n";

    const API_SERVER: &str = "\n# The API server, which no name server here knows.\n\
        127.0.0.1\tkubernetes.default.svc.cluster.local\tkubernetes.default.svc\tkubernetes.default\n";

    #[test]
    fn the_hosts_file_knows_the_pod_its_aliases_and_the_api_server() {
        let node = node(Path::new("/"));
        let pod = pod(json!({"containers": [], "hostAliases": [
            {"ip": "1.2.3.4", "hostnames": ["foo.bar", "foo"]}, {"ip": "::5", "hostnames": ["v6"]}]}));
        let text = hosts_file(&pod, &name("a", "b.c"), place(&node), "");
        let aliases = "\n# Entries added by HostAliases.\n1.2.3.4\tfoo.bar\tfoo\n::5\tv6\n";
        let own = "10.1.0.7\ta.b.c\ta\n";
        assert_eq!(text, format!("# Kubernetes-managed hosts file.\n{LOCAL}{own}{aliases}{API_SERVER}"));
    }

    #[test]
    fn only_the_default_namespace_knows_the_api_server_by_its_short_name() {
        let node = node(Path::new("/"));
        let mut pod = pod(json!({"containers": []}));
        pod.metadata.namespace = Some("default".to_owned());
        let text = hosts_file(&pod, &name("a", ""), place(&node), "");
        assert!(text.contains("10.1.0.7\ta\n"));
        assert!(text.ends_with("\tkubernetes.default\tkubernetes\n"), "{text}");
    }

    #[test]
    fn a_pod_on_the_nodes_network_has_the_nodes_hosts() {
        let node = node(Path::new("/"));
        let pod = pod(json!({"containers": [], "hostNetwork": true}));
        let text = hosts_file(&pod, &name("a", ""), place(&node), "10.9.9.9\tx");
        assert_eq!(
            text,
            format!("# Kubernetes-managed hosts file (host network).\n10.9.9.9\tx\n{API_SERVER}")
        );
    }
}
