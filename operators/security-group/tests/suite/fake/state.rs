//! What is in the cloud.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kubewright::World;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::Call;

/// Everything by ID, as the JSON that the services answer with.
pub(crate) struct State {
    pub(crate) world: World,
    pub(crate) groups: BTreeMap<String, Value>,
    pub(crate) ports: BTreeMap<String, Value>,
    pub(crate) networks: BTreeMap<String, Value>,
    pub(crate) subnets: BTreeMap<String, Value>,
    /// By project.
    pub(crate) quotas: BTreeMap<String, Map<String, Value>>,
    /// Token to project and end.
    pub(crate) tokens: BTreeMap<String, (String, Instant)>,
    /// ID to secret and project.
    pub(crate) credentials: BTreeMap<String, (String, String)>,
    /// How long tokens live.
    pub(crate) token_life: Duration,
    pub(crate) passwords: BTreeMap<String, String>,
    /// How often somebody logged in.
    pub(crate) logins: usize,
    pub(crate) calls: Vec<Call>,
    /// Requests that were sent, whatever became of them.
    pub(crate) attempts: usize,
}

/// The projects, and their users of the same names.
pub(crate) const PROJECTS: [&str; 3] = ["admin", "demo", "other"];

impl State {
    pub(crate) fn new(world: World) -> Self {
        let mut state = Self {
            world,
            groups: BTreeMap::new(),
            ports: BTreeMap::new(),
            networks: BTreeMap::new(),
            subnets: BTreeMap::new(),
            quotas: BTreeMap::new(),
            tokens: BTreeMap::new(),
            credentials: BTreeMap::new(),
            token_life: Duration::from_secs(3600),
            passwords: PROJECTS.map(|name| (name.to_owned(), "secret".to_owned())).into(),
            logins: 0,
            calls: Vec::new(),
            attempts: 0,
        };
        for project in PROJECTS {
            let default = state.group_of(project, "default", "Default security group");
            let id = default["id"].as_str().expect("an ID").to_owned();
            state.groups.insert(id, default);
        }
        state
    }

    pub(crate) fn now(&self) -> String {
        self.world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    pub(crate) fn id(&self) -> String {
        self.world.dice.uid()
    }

    /// A new group, with the rules that a new group has.
    pub(crate) fn group_of(&self, project: &str, name: &str, description: &str) -> Value {
        let id = self.id();
        let egress = ["IPv4", "IPv6"].map(|ethertype| {
            json!({
                "id": self.id(), "security_group_id": id, "direction": "egress", "ethertype": ethertype,
                "protocol": null, "port_range_min": null, "port_range_max": null, "remote_ip_prefix": null,
                "remote_group_id": null, "remote_address_group_id": null, "normalized_cidr": null, "description": null,
                "project_id": project,
            })
        });
        json!({
            "id": id, "name": name, "description": description, "project_id": project, "tags": [],
            "security_group_rules": egress, "revision_number": 1, "stateful": true,
            "created_at": self.now(), "updated_at": self.now(),
        })
    }

    pub(crate) fn default_group(&self, project: &str) -> Option<String> {
        let is_default = |group: &&Value| group["name"] == "default" && group["project_id"] == project;
        self.groups.values().find(is_default)?["id"].as_str().map(str::to_owned)
    }

    /// A port of a server of the project demo, as Nova makes it.
    pub(crate) fn boot(&mut self, server: &str) -> String {
        let groups: Vec<String> = self.default_group("demo").into_iter().collect();
        self.add_port("demo", &json!({"device_id": server, "device_owner": "compute:nova"}), &groups)
    }

    pub(crate) fn add_port(&mut self, project: &str, wanted: &Value, groups: &[String]) -> String {
        let id = self.id();
        let text = |name: &str| wanted[name].as_str().unwrap_or_default();
        let network = text("network_id");
        let subnets = self.subnets.values().filter(|subnet| subnet["network_id"] == network);
        let addresses: Vec<Value> = subnets.map(|subnet| json!({"subnet_id": subnet["id"]})).collect();
        let port = json!({
            "id": id, "project_id": project, "network_id": network, "device_id": text("device_id"),
            "device_owner": text("device_owner"), "fixed_ips": addresses, "security_groups": groups,
            "port_security_enabled": wanted["port_security_enabled"].as_bool().unwrap_or(true), "revision_number": 1,
        });
        self.ports.insert(id.clone(), port);
        id
    }

    /// Nova's end of a server: its ports go too.
    pub(crate) fn delete_server(&mut self, server: &str) {
        self.ports.retain(|_, port| port["device_id"] != server);
    }

    /// The groups of a port.
    pub(crate) fn groups_of(&self, port: &str) -> BTreeSet<String> {
        let groups = self.ports[port]["security_groups"].as_array().into_iter().flatten();
        groups.filter_map(|id| id.as_str().map(str::to_owned)).collect()
    }

    /// The ports of a group, by server.
    pub(crate) fn members(&self, group: &str) -> BTreeSet<String> {
        let is_in =
            |port: &&Value| port["security_groups"].as_array().is_some_and(|ids| ids.contains(&group.into()));
        let ports = self.ports.values().filter(is_in);
        ports.map(|port| port["device_id"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The IDs of the groups of this name.
    pub(crate) fn named(&self, name: &str) -> Vec<String> {
        let groups = self.groups.values().filter(|group| group["name"] == name);
        groups.filter_map(|group| group["id"].as_str().map(str::to_owned)).collect()
    }

    /// The rules of a group in words, sorted.
    pub(crate) fn rules(&self, group: &str) -> Vec<String> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let rules = self.groups[group]["security_group_rules"].as_array().into_iter().flatten();
        let mut told: Vec<String> = rules
            .map(|rule| {
                let fields = ["direction", "ethertype", "protocol", "port_range_min", "port_range_max"];
                let remote =
                    if rule["remote_group_id"].is_null() { "remote_ip_prefix" } else { "remote_group_id" };
                fields.into_iter().chain([remote]).map(|name| text(&rule[name])).collect::<Vec<_>>().join(" ")
            })
            .collect();
        told.sort();
        told
    }

    /// Another writer has written every port.
    pub(crate) fn touch_all_ports(&mut self) {
        for port in self.ports.values_mut() {
            bump(port);
        }
    }
}

/// Counts a change.
pub(crate) fn bump(object: &mut Value) {
    let revision = object["revision_number"].as_i64().unwrap_or_default();
    object["revision_number"] = (revision + 1).into();
}
