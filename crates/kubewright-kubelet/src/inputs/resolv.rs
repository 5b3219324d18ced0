//! The `/etc/resolv.conf` of a pod (`pkg/kubelet/network/dns`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;

use super::hosts::is_on_host_network;
use super::place::{Node, namespace};

/// How many points a name has that is asked for as it is, in pods that know names of the cluster.
const NDOTS: &str = "5";

/// How names are found.
#[derive(Default)]
struct Settings {
    servers: Vec<String>,
    searches: Vec<String>,
    /// By name, with the value behind `:`.
    options: BTreeMap<String, Option<String>>,
}

/// The file of a pod on a node with the file `of_node`. Where the node has no name server of the cluster, `ClusterFirst` means the
/// node's own settings.
pub(super) fn resolv_conf(pod: &Pod, node: &Node, of_node: &str) -> String {
    let spec = pod.spec.as_ref();
    let mut settings = match spec.and_then(|spec| spec.dns_policy.as_deref()) {
        Some("None") => Settings::default(),
        Some("Default") => Settings::of(of_node),
        policy => {
            let own = Settings::of(of_node);
            let is_of_node = is_on_host_network(pod) && policy != Some("ClusterFirstWithHostNet");
            if is_of_node || node.cluster_dns.is_empty() { own } else { own.of_cluster(pod, node) }
        }
    };
    if let Some(config) = spec.and_then(|spec| spec.dns_config.as_ref()) {
        add(&mut settings.servers, config.nameservers.iter().flatten());
        add(&mut settings.searches, config.searches.iter().flatten());
        for option in config.options.iter().flatten() {
            settings.options.insert(option.name.clone().unwrap_or_default(), option.value.clone());
        }
    }
    settings.text()
}

impl Settings {
    /// What a file says (`parseResolvConf`): the last list of domains counts, and the last value of an option.
    fn of(file: &str) -> Self {
        let mut settings = Self::default();
        for line in file.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("nameserver") => settings.servers.extend(words.next().map(ToOwned::to_owned)),
                Some("search") => {
                    let domains = words.filter(|domain| *domain != ".");
                    let domains = domains.map(|domain| domain.strip_suffix('.').unwrap_or(domain).to_owned());
                    settings.searches = domains.collect();
                }
                Some("options") => {
                    let options = words.map(|option| match option.split_once(':') {
                        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                        None => (option.to_owned(), None),
                    });
                    settings.options.extend(options);
                }
                _ => {}
            }
        }
        settings
    }

    /// What a pod of the cluster has instead: its name server, which asks the machine's, and names that are completed by those of
    /// its namespace first.
    fn of_cluster(self, pod: &Pod, node: &Node) -> Self {
        let (namespace, domain) = (namespace(pod), &node.cluster_domain);
        let own = [format!("{namespace}.svc.{domain}"), format!("svc.{domain}"), domain.clone()];
        let mut searches = Vec::new();
        add(&mut searches, own.iter().chain(&self.searches));
        Self {
            servers: node.cluster_dns.iter().map(ToString::to_string).collect(),
            searches,
            options: BTreeMap::from([("ndots".to_owned(), Some(NDOTS.to_owned()))]),
        }
    }

    /// The file that says it (containerd's `parseDNSOptions`).
    fn text(&self) -> String {
        let mut text = String::new();
        if !self.searches.is_empty() {
            text.extend(["search ", &self.searches.join(" "), "\n"]);
        }
        for server in &self.servers {
            text.extend(["nameserver ", server, "\n"]);
        }
        if !self.options.is_empty() {
            let options = self.options.iter().map(|(name, value)| match value.as_deref() {
                Some(value) if !value.is_empty() => format!("{name}:{value}"),
                _ => name.clone(),
            });
            text.extend(["options ", &options.collect::<Vec<_>>().join(" "), "\n"]);
        }
        text
    }
}

fn add<'a>(to: &mut Vec<String>, more: impl Iterator<Item = &'a String>) {
    for one in more {
        if !to.contains(one) {
            to.push(one.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::inputs::fixture::{node, pod};

    const OF_NODE: &str = "# a\nnameserver 10.0.0.2\nsearch old.org\n  search corp.org. . lan\noptions ndots:2 rotate\nsortlist 1\n";

    fn of(mut spec: Value) -> String {
        spec["containers"] = json!([]);
        resolv_conf(&pod(spec), &node("/".as_ref()), OF_NODE)
    }

    /// With a name server of the cluster.
    fn in_cluster(mut spec: Value) -> String {
        spec["containers"] = json!([]);
        let mut node = node("/".as_ref());
        node.cluster_dns = vec!["127.128.0.10".parse().expect("an address")];
        resolv_conf(&pod(spec), &node, OF_NODE)
    }

    #[test]
    fn names_are_found_as_on_the_node() {
        let expected = "search corp.org lan\nnameserver 10.0.0.2\noptions ndots:2 rotate\n";
        assert_eq!(of(json!({})), expected);
        assert_eq!(of(json!({"dnsPolicy": "ClusterFirst"})), expected);
    }

    #[test]
    fn names_of_the_cluster_come_first_where_a_server_knows_them() {
        let expected = "search ns.svc.cluster.local svc.cluster.local cluster.local corp.org lan\n\
             nameserver 127.128.0.10\noptions ndots:5\n";
        for spec in [
            json!({}),
            json!({"dnsPolicy": "ClusterFirst"}),
            json!({"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": true}),
        ] {
            assert_eq!(in_cluster(spec.clone()), expected, "{spec}");
        }
        for spec in
            [json!({"dnsPolicy": "Default"}), json!({"dnsPolicy": "ClusterFirst", "hostNetwork": true})]
        {
            assert_eq!(in_cluster(spec.clone()), of(spec));
        }
        let more = json!({"dnsConfig": {"options": [{"name": "ndots", "value": "2"}]}});
        assert!(in_cluster(more).ends_with("options ndots:2\n"));
    }

    #[test]
    fn a_pod_adds_its_own_or_has_only_its_own() {
        let config = json!({"nameservers": ["1.1.1.1", "10.0.0.2"], "searches": ["lan", "my.org"],
            "options": [{"name": "ndots", "value": "5"}, {"name": "edns0"}]});
        assert_eq!(
            of(json!({"dnsPolicy": "Default", "dnsConfig": config})),
            "search corp.org lan my.org\nnameserver 10.0.0.2\nnameserver 1.1.1.1\noptions edns0 ndots:5 rotate\n"
        );
        assert_eq!(
            of(json!({"dnsPolicy": "None", "dnsConfig": config})),
            "search lan my.org\nnameserver 1.1.1.1\nnameserver 10.0.0.2\noptions edns0 ndots:5\n"
        );
    }
}
