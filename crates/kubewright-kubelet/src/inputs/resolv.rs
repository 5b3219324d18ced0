//! The `/etc/resolv.conf` of a pod (`pkg/kubelet/network/dns`). There is no name server of the cluster here, so that
//! `ClusterFirst` means the node's own settings, as it does to a kubelet without `--cluster-dns`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;

/// How names are found.
#[derive(Default)]
struct Settings {
    servers: Vec<String>,
    searches: Vec<String>,
    /// By name, with the value behind `:`.
    options: BTreeMap<String, Option<String>>,
}

/// The file of a pod on a node with the file `of_node`.
pub(super) fn resolv_conf(pod: &Pod, of_node: &str) -> String {
    let spec = pod.spec.as_ref();
    let alone = spec.and_then(|spec| spec.dns_policy.as_deref()) == Some("None");
    let mut settings = if alone { Settings::default() } else { Settings::of(of_node) };
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
    use crate::inputs::fixture::pod;

    const OF_NODE: &str = "# a\nnameserver 10.0.0.2\nsearch old.org\n  search corp.org. . lan\noptions ndots:2 rotate\nsortlist 1\n";

    fn of(mut spec: Value) -> String {
        spec["containers"] = json!([]);
        resolv_conf(&pod(spec), OF_NODE)
    }

    #[test]
    fn names_are_found_as_on_the_node() {
        let expected = "search corp.org lan\nnameserver 10.0.0.2\noptions ndots:2 rotate\n";
        assert_eq!(of(json!({})), expected);
        assert_eq!(of(json!({"dnsPolicy": "ClusterFirst"})), expected);
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
