//! What a SecurityGroup's status says, from what a pass found out: a pure function.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kubewright::conditions::{self, NewCondition, Status};

use crate::{
    SecurityGroup,
    cloud::CloudError,
    nodes::SelectedNode,
    types::{NodeProblem, SecurityGroupStatus},
};

/// The most of what is wrong that one condition tells.
const TOLD: usize = 5;

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// One word for programs.
    pub(crate) reason: String,
    /// For people.
    pub(crate) message: String,
    /// Whether it may be over in a moment, whatever anybody does.
    pub(crate) is_passing: bool,
}

impl Trouble {
    pub(crate) fn lasting(reason: &str, message: impl Into<String>) -> Self {
        Self { reason: reason.to_owned(), message: message.into(), is_passing: false }
    }
}

impl From<&CloudError> for Trouble {
    fn from(error: &CloudError) -> Self {
        let message = error.to_string();
        Self { reason: error.reason().to_owned(), message, is_passing: error.is_passing() }
    }
}

/// What a pass found out.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Why it came no further than the group.
    pub(crate) group: Option<Trouble>,
    /// What became of the rules; `None` if it did not come so far.
    pub(crate) rules: Option<Vec<Trouble>>,
    /// What became of the servers; `None` if it did not come so far.
    pub(crate) servers: Option<Servers>,
}

#[derive(Debug, Default)]
pub(crate) struct Servers {
    /// The selected nodes.
    pub(crate) nodes: Vec<SelectedNode>,
    /// Why some are not in the group, or not as they should be.
    pub(crate) problems: Vec<NodeProblem>,
    /// What is not about one node.
    pub(crate) troubles: Vec<Trouble>,
}

impl Findings {
    pub(crate) fn troubles(&self) -> impl Iterator<Item = &Trouble> {
        let of_servers = self.servers.iter().flat_map(|servers| &servers.troubles);
        self.group.iter().chain(self.rules.iter().flatten()).chain(of_servers)
    }
}

/// Makes `status` say what was found out about `object`. What was not found out stays as it was.
pub(crate) fn update_status(
    status: &mut SecurityGroupStatus,
    object: &SecurityGroup,
    findings: &Findings,
    now: Timestamp,
) {
    status.observed_generation = object.metadata.generation;
    let mut wanted = Vec::new();
    if let Some(troubles) = &findings.rules {
        wanted.push(rules(troubles));
    }
    if let Some(servers) = &findings.servers {
        let members: BTreeSet<&str> = status.nodes.iter().map(String::as_str).collect();
        let is_in = |node: &&SelectedNode| node.server.as_ref().is_ok_and(|id| members.contains(id.as_str()));
        let (count, all) = (servers.nodes.iter().filter(is_in).count(), servers.nodes.len());
        status.attached = Some(format!("{count}/{all}"));
        status.problems.clone_from(&servers.problems);
        wanted.push(attached(servers, count));
    }
    for condition in wanted {
        conditions::set(&mut status.conditions, &condition.of(object), now);
    }
    let ready = ready(status, findings).of(object);
    conditions::set(&mut status.conditions, &ready, now);
}

fn rules(troubles: &[Trouble]) -> NewCondition {
    match troubles.first() {
        None => NewCondition::new("RulesSynced", Status::True, "Synced")
            .message("the rules are those of the spec"),
        Some(first) => NewCondition::new("RulesSynced", Status::False, first.reason.clone())
            .message(few(troubles.iter().map(|trouble| trouble.message.clone()))),
    }
}

fn attached(servers: &Servers, count: usize) -> NewCondition {
    let all = servers.nodes.len();
    let problems = servers.problems.iter().map(|problem| format!("{}: {}", problem.node, problem.message));
    let troubles = servers.troubles.iter().map(|trouble| trouble.message.clone());
    let messages: Vec<String> = problems.chain(troubles).collect();
    let numbers = format!("{count}/{all} servers of selected nodes are in the group");
    if messages.is_empty() && count == all {
        let reason = if all == 0 { "NoNodeSelected" } else { "AllAttached" };
        return NewCondition::new("Attached", Status::True, reason).message(numbers);
    }
    NewCondition::new("Attached", Status::False, "NotAllAttached")
        .message(format!("{numbers}; {}", few(messages.into_iter())))
}

fn ready(status: &SecurityGroupStatus, findings: &Findings) -> NewCondition {
    if let Some(trouble) = &findings.group {
        return NewCondition::new("Ready", Status::False, trouble.reason.clone())
            .message(trouble.message.clone());
    }
    let fails = |type_: &str| !conditions::is_true(&status.conditions, type_);
    let failing = ["RulesSynced", "Attached"].into_iter().find(|type_| fails(type_));
    match failing.and_then(|type_| conditions::find(&status.conditions, type_)) {
        Some(condition) => NewCondition::new("Ready", Status::False, condition.reason.clone())
            .message(condition.message.clone()),
        None => NewCondition::new("Ready", Status::True, "Synced"),
    }
}

fn few(texts: impl Iterator<Item = String>) -> String {
    let mut texts: Vec<String> = texts.collect();
    if texts.len() > TOLD {
        let more = texts.len() - TOLD;
        texts.truncate(TOLD);
        texts.push(format!("and {more} more"));
    }
    texts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SecurityGroupSpec;

    fn describe(status: &mut SecurityGroupStatus, findings: &Findings) -> Vec<String> {
        let object = SecurityGroup::new("x", SecurityGroupSpec::default());
        update_status(status, &object, findings, Timestamp::UNIX_EPOCH);
        let lines = status.conditions.iter();
        lines.map(|one| format!("{} {} {}", one.type_, one.status, one.reason)).collect()
    }

    fn nodes(servers: &[&str]) -> Vec<SelectedNode> {
        servers
            .iter()
            .map(|id| SelectedNode { name: format!("n-{id}"), server: Ok((*id).to_owned()) })
            .collect()
    }

    #[test]
    fn two_of_three_servers_is_told_in_numbers_and_names() {
        let mut status = SecurityGroupStatus { nodes: vec!["a".into(), "b".into()], ..Default::default() };
        let gone =
            NodeProblem { node: "n-c".into(), reason: "ServerNotFound".into(), message: "gone".into() };
        let servers = Servers { nodes: nodes(&["a", "b", "c"]), problems: vec![gone], troubles: vec![] };
        let findings = Findings { group: None, rules: Some(vec![]), servers: Some(servers) };
        assert_eq!(
            describe(&mut status, &findings),
            ["RulesSynced True Synced", "Attached False NotAllAttached", "Ready False NotAllAttached"]
        );
        assert_eq!(status.attached.as_deref(), Some("2/3"));
        assert_eq!(status.conditions[1].message, "2/3 servers of selected nodes are in the group; n-c: gone");
    }

    #[test]
    fn what_was_not_looked_at_stays_as_it_was() {
        let mut status = SecurityGroupStatus { nodes: vec!["a".into()], ..Default::default() };
        let servers = Servers { nodes: nodes(&["a"]), ..Servers::default() };
        let good = Findings { group: None, rules: Some(vec![]), servers: Some(servers) };
        assert_eq!(describe(&mut status, &good)[2], "Ready True Synced");
        let error = CloudError::Unreachable("no route".to_owned());
        let bad = Findings { group: Some((&error).into()), ..Findings::default() };
        assert_eq!(
            describe(&mut status, &bad),
            ["RulesSynced True Synced", "Attached True AllAttached", "Ready False CloudUnreachable"]
        );
        assert_eq!(status.attached.as_deref(), Some("1/1"));
    }
}
