//! Which ports go into a group and which leave it: a pure function.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    cloud::Port,
    nodes::SelectedNode,
    types::{AttachedPort, NodeProblem, PortFilter},
};

/// What decides about ports.
#[derive(Clone, Copy, Debug)]
pub struct Desired<'a> {
    /// The group's ID.
    pub group: &'a str,
    /// The selected nodes.
    pub nodes: &'a [SelectedNode],
    /// Which of their servers' ports are meant.
    pub filter: Option<&'a PortFilter>,
    /// Whose membership is the operator's doing.
    pub ours: Ours<'a>,
}

/// Which members of a group are there by this operator, and may be taken out by it.
#[derive(Clone, Copy, Debug)]
pub enum Ours<'a> {
    /// All of them: it made the group, and has lost what it knew of it.
    All,
    /// These ports, and the ports of these servers (which is all that the first generation wrote down).
    These {
        /// Ports.
        ports: &'a [AttachedPort],
        /// Servers, by ID.
        servers: &'a [String],
    },
}

/// What is to be done about ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    /// To be put into the group.
    pub join: Vec<Port>,
    /// To be taken out of it.
    pub leave: Vec<Port>,
    /// In it, as they should be.
    pub stay: Vec<AttachedPort>,
    /// What is the matter with nodes whose servers cannot be in the group.
    pub problems: Vec<NodeProblem>,
}

impl Membership {
    /// All ports that are in the group by this operator, or were, or will be: what has to be written down first.
    #[must_use]
    pub fn all(&self) -> Vec<AttachedPort> {
        let moving = self.join.iter().chain(&self.leave).map(attached);
        let all: BTreeSet<AttachedPort> = moving.chain(self.stay.iter().cloned()).collect();
        all.into_iter().collect()
    }
}

/// A port as it is written down.
#[must_use]
pub fn attached(port: &Port) -> AttachedPort {
    AttachedPort { id: port.id.clone(), server: port.device_id.clone() }
}

/// What to do about `ports`, which have all of the selected servers and all that are in the group.
#[must_use]
pub fn membership(desired: &Desired<'_>, ports: &BTreeMap<String, Port>) -> Membership {
    let servers: BTreeSet<&str> =
        desired.nodes.iter().filter_map(|node| node.server.as_deref().ok()).collect();
    let mut result = Membership::default();
    for port in ports.values() {
        let is_in = port.security_groups.iter().any(|id| id == desired.group);
        let is_wanted = servers.contains(port.device_id.as_str())
            && is_meant(desired.filter, port)
            && port.port_security_enabled;
        match (is_wanted, is_in) {
            (true, true) => result.stay.push(attached(port)),
            (true, false) => result.join.push(port.clone()),
            (false, true) if is_ours(desired.ours, port) => result.leave.push(port.clone()),
            (false, _) => {}
        }
    }
    result.problems = desired.nodes.iter().filter_map(|node| problem(desired, node, ports)).collect();
    result
}

fn is_ours(ours: Ours<'_>, port: &Port) -> bool {
    match ours {
        Ours::All => true,
        Ours::These { ports, servers } => {
            ports.iter().any(|known| known.id == port.id) || servers.contains(&port.device_id)
        }
    }
}

fn is_meant(filter: Option<&PortFilter>, port: &Port) -> bool {
    let Some(filter) = filter else { return true };
    let in_subnet = |address: &crate::cloud::FixedIp| filter.subnet_ids.contains(&address.subnet_id);
    (filter.network_ids.is_empty() || filter.network_ids.contains(&port.network_id))
        && (filter.subnet_ids.is_empty() || port.fixed_ips.iter().any(in_subnet))
}

/// What keeps a node's server, or a port of it, out of the group.
fn problem(
    desired: &Desired<'_>,
    node: &SelectedNode,
    ports: &BTreeMap<String, Port>,
) -> Option<NodeProblem> {
    let describe = |reason: &str, message: String| {
        Some(NodeProblem { node: node.name.clone(), reason: reason.to_owned(), message })
    };
    let server = match &node.server {
        Ok(server) => server,
        Err(why) => return describe("NotOfOpenStack", why.clone()),
    };
    let all: Vec<&Port> = ports.values().filter(|port| port.device_id == *server).collect();
    if all.is_empty() {
        let message =
            format!("no port in this project is of server {server}: it is gone, or another project's");
        return describe("ServerNotFound", message);
    }
    let meant: Vec<&Port> = all.into_iter().filter(|port| is_meant(desired.filter, port)).collect();
    if meant.is_empty() {
        return describe(
            "NoMatchingPort",
            format!("no port of server {server} is in these networks and subnets"),
        );
    }
    let open: Vec<&str> =
        meant.iter().filter(|port| !port.port_security_enabled).map(|port| port.id.as_str()).collect();
    if open.is_empty() {
        return None;
    }
    describe(
        "PortSecurityDisabled",
        format!("ports without port security take no groups: {}", open.join(", ")),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn port(id: &str, server: &str, groups: &[&str]) -> (String, Port) {
        let port = Port {
            id: id.to_owned(),
            device_id: server.to_owned(),
            network_id: "net".to_owned(),
            security_groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            port_security_enabled: true,
            ..Port::default()
        };
        (id.to_owned(), port)
    }

    fn nodes(servers: &[&str]) -> Vec<SelectedNode> {
        servers
            .iter()
            .map(|id| SelectedNode { name: format!("node-{id}"), server: Ok((*id).to_owned()) })
            .collect()
    }

    fn ids(ports: &[Port]) -> Vec<&str> {
        ports.iter().map(|port| port.id.as_str()).collect()
    }

    fn known(ids: &[&str]) -> Vec<AttachedPort> {
        ids.iter().map(|id| AttachedPort { id: (*id).to_owned(), server: String::new() }).collect()
    }

    /// SG-04.
    #[test]
    fn sg_04_servers_that_are_not_selected_any_more_leave() {
        let ports = [port("p1", "a", &["g"]), port("p2", "b", &["x", "g"]), port("p3", "c", &["x"])].into();
        let (nodes, memory) = (nodes(&["a", "c"]), known(&["p1", "p2"]));
        let ours = Ours::These { ports: &memory, servers: &[] };
        let plan = membership(&Desired { group: "g", nodes: &nodes, filter: None, ours }, &ports);
        assert_eq!((ids(&plan.join), ids(&plan.leave)), (vec!["p3"], vec!["p2"]));
        assert_eq!(plan.stay, [attached(&ports["p1"])]);
        assert_eq!(plan.all().len(), 3, "what is under way is written down too");
    }

    /// SG-10: only what is written down in the status is taken out.
    #[test]
    fn sg_10_what_others_put_into_the_group_stays_there() {
        let ports = [port("p1", "a", &["g"]), port("p2", "b", &["g"])].into();
        let memory = known(&["p1"]);
        let desired = |ours| Desired { group: "g", nodes: &[], filter: None, ours };
        let plan = membership(&desired(Ours::These { ports: &memory, servers: &[] }), &ports);
        assert_eq!(ids(&plan.leave), ["p1"]);
        let old_status = ["b".to_owned()];
        let plan = membership(&desired(Ours::These { ports: &[], servers: &old_status }), &ports);
        assert_eq!(ids(&plan.leave), ["p2"], "the first generation knew servers only");
        assert_eq!(ids(&membership(&desired(Ours::All), &ports).leave), ["p1", "p2"]);
    }

    #[test]
    fn the_filter_means_ports_by_network_and_subnet() {
        let mut ports: BTreeMap<String, Port> = [port("p1", "a", &[]), port("p2", "a", &["g"])].into();
        ports
            .get_mut("p1")
            .expect("it is there")
            .fixed_ips
            .push(crate::cloud::FixedIp { subnet_id: "s".to_owned() });
        let (nodes, memory) = (nodes(&["a"]), known(&["p2"]));
        let ours = Ours::These { ports: &memory, servers: &[] };
        let filter = PortFilter { network_ids: vec!["net".to_owned()], subnet_ids: vec!["s".to_owned()] };
        let plan = membership(&Desired { group: "g", nodes: &nodes, filter: Some(&filter), ours }, &ports);
        assert_eq!((ids(&plan.join), ids(&plan.leave)), (vec!["p1"], vec!["p2"]));
        let filter = PortFilter { network_ids: vec!["other".to_owned()], subnet_ids: Vec::new() };
        let plan = membership(&Desired { group: "g", nodes: &nodes, filter: Some(&filter), ours }, &ports);
        assert_eq!(plan.problems[0].reason, "NoMatchingPort");
    }

    #[test]
    fn a_node_that_cannot_be_in_the_group_is_told_and_keeps_nobody_out() {
        let mut ports: BTreeMap<String, Port> = [port("p1", "a", &[]), port("p2", "b", &[])].into();
        ports.get_mut("p2").expect("it is there").port_security_enabled = false;
        let mut nodes = nodes(&["a", "b", "gone"]);
        nodes.push(SelectedNode { name: "odd".to_owned(), server: Err("because".to_owned()) });
        let ours = Ours::These { ports: &[], servers: &[] };
        let plan = membership(&Desired { group: "g", nodes: &nodes, filter: None, ours }, &ports);
        assert_eq!(ids(&plan.join), ["p1"]);
        let reasons: Vec<&str> = plan.problems.iter().map(|problem| problem.reason.as_str()).collect();
        assert_eq!(reasons, ["PortSecurityDisabled", "ServerNotFound", "NotOfOpenStack"]);
    }

    proptest! {
        /// Whatever is there: afterwards the members are those that are wanted and those that others put there.
        #[test]
        fn one_pass_is_enough(all in proptest::collection::vec((0..4usize, any::<bool>(), any::<bool>()), 0..12), selected in proptest::collection::btree_set(0..4usize, 0..4)) {
            let names = ["a", "b", "c", "d"];
            let mut memory = Vec::new();
            let ports: BTreeMap<String, Port> = all.iter().enumerate().map(|(at, (server, is_in, ours))| {
                let id = format!("p{at}");
                if *ours { memory.push(AttachedPort { id: id.clone(), server: String::new() }); }
                port(&id, names[*server], if *is_in { &["x", "g"] } else { &["x"] })
            }).collect();
            let chosen: Vec<&str> = selected.iter().map(|at| names[*at]).collect();
            let nodes = nodes(&chosen);
            let desired = Desired { group: "g", nodes: &nodes, filter: None, ours: Ours::These { ports: &memory, servers: &[] } };
            let plan = membership(&desired, &ports);
            for one in &plan.leave { prop_assert!(!chosen.contains(&one.device_id.as_str())); }
            let mut after = ports.clone();
            for one in &plan.join { after.get_mut(&one.id).expect("known").security_groups.push("g".to_owned()); }
            for one in &plan.leave { after.get_mut(&one.id).expect("known").security_groups.retain(|id| id != "g"); }
            let again = membership(&desired, &after);
            prop_assert!(again.join.is_empty() && again.leave.is_empty());
            prop_assert_eq!(again.stay.len(), after.values().filter(|port| chosen.contains(&port.device_id.as_str())).count());
        }
    }
}
