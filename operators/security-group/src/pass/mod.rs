//! One pass over one SecurityGroup: what is observed, what is decided by pure functions, what is done.

pub(crate) mod ports;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::Time};
use kube::ResourceExt;
use kubewright::{Context, Error, EventType, Key, Outcome};

use crate::{
    SecurityGroup, SecurityGroupStatus,
    cloud::{CloudError, Group, Neutron, Port},
    identity::{self, Found, Identity, Marks},
    membership::{Desired, Membership, Ours, membership},
    nodes::{self, NodeSelector, SelectedNode},
    rule::{Rule, Unfit, WantedRule, difference},
    status::{self, Findings, Servers, Trouble},
    types::{AttachedPort, NodeProblem},
};

/// How often a cloud is looked at unless it is told.
const PERIOD: Duration = Duration::from_secs(60);
/// How soon a pass is made again after what may be over in a moment.
const SOON: Duration = Duration::from_secs(5);

/// One pass over one object.
pub(crate) struct Pass<'a> {
    ctx: &'a Context,
    object: Arc<SecurityGroup>,
    neutron: Neutron,
    /// The status as it will be.
    status: SecurityGroupStatus,
    findings: Findings,
    /// For how long the cloud wants to be left alone.
    busy: Option<Duration>,
    /// What was wrong when the last pass ended.
    known: String,
}

/// Why a pass ends early.
enum Stop {
    /// The cloud, or what it has, does not allow it to go on.
    Trouble(Trouble),
    /// The API server did not take what has to be written down first.
    Kube(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Kube(error)
    }
}

impl<'a> Pass<'a> {
    pub(crate) fn new(ctx: &'a Context, object: Arc<SecurityGroup>, neutron: Neutron) -> Self {
        let status = object.status.clone().unwrap_or_default();
        let known = describe(&status);
        Self { ctx, object, neutron, status, findings: Findings::default(), busy: None, known }
    }

    /// What is done for an object whose cloud is not known: it is told.
    pub(crate) async fn without_cloud(
        ctx: &'a Context,
        object: Arc<SecurityGroup>,
        trouble: Trouble,
    ) -> Result<Outcome, Error> {
        let mut status = object.status.clone().unwrap_or_default();
        if !describe(&status).contains(&trouble.message) {
            tracing::warn!(securitygroup = %Key::of(&*object), "{}", trouble.message);
            ctx.event(&*object, EventType::Warning, "FailureEnsure", &trouble.message);
        }
        let findings = Findings { group: Some(trouble), ..Findings::default() };
        status::update_status(&mut status, &object, &findings, ctx.world().clock.now());
        write(ctx, &object, status).await?;
        Ok(Outcome::RequeueAfter(period(&object)))
    }

    pub(crate) async fn run(mut self) -> Result<Outcome, Error> {
        match self.work().await {
            Ok(()) => {}
            Err(Stop::Trouble(trouble)) => {
                self.warn("FailureEnsure", &trouble.message);
                self.findings.group = Some(trouble);
            }
            Err(Stop::Kube(error)) => return Err(error),
        }
        let now = self.ctx.world().clock.now();
        status::update_status(&mut self.status, &self.object, &self.findings, now);
        let next = self.next();
        write(self.ctx, &self.object, self.status).await?;
        Ok(Outcome::RequeueAfter(next))
    }

    async fn work(&mut self) -> Result<(), Stop> {
        let Found { group, adopted, surplus } = self.group().await?;
        // A group that is found and not known has lost its status, members and all.
        let is_lost = !adopted && self.status.id.as_ref() != Some(&group.id);
        if adopted && (!self.status.adopted || self.status.id.as_ref() != Some(&group.id)) {
            self.take_over(&group).await?;
        }
        self.status.adopted = adopted;
        self.mark(&group, adopted).await;
        self.rules(&group).await;
        self.servers(&group, is_lost).await?;
        for group in surplus {
            self.remove_surplus(&group).await;
        }
        Ok(())
    }

    /// The group of the object, made if it is not there.
    async fn group(&mut self) -> Result<Found, Stop> {
        let identity = identity::find(&self.neutron, &self.object).await;
        match identity.map_err(|error| self.stop(&error))? {
            Identity::Found(found) => Ok(*found),
            Identity::Refused(reason, message) => Err(Stop::Trouble(Trouble::lasting(reason, message))),
            Identity::Absent => self.create().await,
        }
    }

    async fn create(&mut self) -> Result<Found, Stop> {
        // Written down first: a group whose ID never arrives is looked for when the object goes.
        self.status.id = None;
        self.status.adopted = false;
        self.status.creating_since = Some(Time(self.ctx.world().clock.now()));
        write(self.ctx, &self.object, self.status.clone()).await?;
        let name = &self.object.spec.name;
        tracing::info!(name, "Creating SG");
        let description = Marks::of(&self.object).description;
        let group = match self.neutron.create_group(name, &description).await {
            Ok(group) => group,
            Err(error) => {
                if !error.is_passing() {
                    self.status.creating_since = None;
                }
                return Err(self.stop(&error));
            }
        };
        tracing::info!(name, id = group.id, "Success creating SG");
        self.status.creating_since = None;
        self.status.id = Some(group.id.clone());
        write(self.ctx, &self.object, self.status.clone()).await?;
        let note = format!("Created SecurityGroup {name}");
        self.ctx.event(&*self.object, EventType::Normal, "SuccessfulEnsure", &note);
        Ok(Found { group, adopted: false, surplus: Vec::new() })
    }

    /// Writes down that the group was there before: it is released, not deleted, whatever comes.
    async fn take_over(&mut self, group: &Group) -> Result<(), Error> {
        self.status.id = Some(group.id.clone());
        self.status.adopted = true;
        write(self.ctx, &self.object, self.status.clone()).await?;
        let note = format!("Took over SecurityGroup {} ({})", group.name, group.id);
        self.ctx.event(&*self.object, EventType::Normal, "SuccessfulEnsure", &note);
        Ok(())
    }

    /// Gives the group its name and its mark.
    async fn mark(&mut self, group: &Group, adopted: bool) {
        self.status.name = Some(group.name.clone());
        let tags = Marks::of(&self.object).tags(group, adopted);
        let mut failed = None;
        if tags != group.tags {
            failed = self.neutron.tag_group(&group.id, &tags).await.err();
        }
        let name = &self.object.spec.name;
        if group.name != *name {
            match self.neutron.rename_group(&group.id, name).await {
                Ok(()) => {
                    let note = format!("Renamed SecurityGroup {} to {name}", group.name);
                    self.ctx.event(&*self.object, EventType::Normal, "SuccessfulEnsure", &note);
                    self.status.name = Some(name.clone());
                }
                Err(error) => failed = Some(error),
            }
        }
        if let Some(error) = failed {
            self.note_busy(&error);
            self.warn("FailureEnsure", &error.to_string());
            self.findings.group = Some((&error).into());
        }
    }

    /// Brings the group's rules in line: first what is missing, then what is too much.
    async fn rules(&mut self, group: &Group) {
        let (wanted, mut troubles) = self.wanted_rules(group);
        let plan = difference(&wanted, &group.rules, self.object.spec.keep_default_egress);
        for rule in &plan.add {
            troubles.extend(self.add_rule(group, rule).await);
        }
        for (old, new) in &plan.replace {
            let text = new.rule.to_string();
            match self.delete_rule(&old.id, &text, &new.rule).await {
                None => troubles.extend(self.add_rule(group, new).await),
                trouble => troubles.extend(trouble),
            }
        }
        for rule in &plan.delete {
            let parsed = Rule::found(rule);
            let text = parsed.as_ref().map_or_else(|| format!("id={}", rule.id), ToString::to_string);
            troubles.extend(match &parsed {
                Some(parsed) => self.delete_rule(&rule.id, &text, parsed).await,
                None => self.delete_unknown_rule(&rule.id, &text).await,
            });
        }
        self.findings.rules = Some(troubles);
    }

    fn wanted_rules(&self, group: &Group) -> (Vec<WantedRule>, Vec<Trouble>) {
        let (mut wanted, mut troubles) = (Vec::new(), Vec::new());
        let own = self.object.name_any();
        let id_of = |name: &str| {
            if name == own {
                return Some(group.id.clone());
            }
            let key = Key::new(self.object.namespace(), name);
            self.ctx.get::<SecurityGroup>(&key)?.status.as_ref()?.id.clone()
        };
        for (at, spec) in self.object.spec.rules.iter().enumerate() {
            match Rule::of(spec, id_of) {
                Ok(rule) => {
                    wanted
                        .push(WantedRule { rule, description: spec.description.clone().unwrap_or_default() });
                }
                Err(Unfit::NoGroup(name)) => troubles.push(Trouble::lasting(
                    "RemoteGroupNotReady",
                    format!("rules[{at}]: SecurityGroup {name} has no ID yet"),
                )),
                Err(Unfit::Nonsense(what)) => {
                    troubles.push(Trouble::lasting("InvalidRule", format!("rules[{at}]: {what}")));
                }
            }
        }
        (wanted, troubles)
    }

    async fn add_rule(&mut self, group: &Group, wanted: &WantedRule) -> Option<Trouble> {
        let (cidr, port) = (wanted.rule.cidr(), wanted.rule.ports());
        tracing::info!(cidr, port, "Creating SG Rule");
        match self.neutron.create_rule(&group.id, wanted).await {
            Ok(_) => {
                tracing::info!(cidr, port, "Success to create SG Rule");
                let note = format!("Created SecurityGroupRule {}", wanted.rule);
                self.ctx.event(&*self.object, EventType::Normal, "SuccessfulAddRule", &note);
                None
            }
            Err(error) => Some(self.fail_rule("FailureAddRule", &wanted.rule.to_string(), &error)),
        }
    }

    async fn delete_rule(&mut self, id: &str, text: &str, rule: &Rule) -> Option<Trouble> {
        let (cidr, port) = (rule.cidr(), rule.ports());
        tracing::info!(cidr, port, "Deleting SG Rule");
        let trouble = self.delete_unknown_rule(id, text).await;
        if trouble.is_none() {
            tracing::info!(cidr, port, "Success to delete SG Rule");
        }
        trouble
    }

    async fn delete_unknown_rule(&mut self, id: &str, text: &str) -> Option<Trouble> {
        match self.neutron.delete_rule(id).await {
            Ok(_) => {
                let note = format!("Deleted SecurityGroupRule {text}");
                self.ctx.event(&*self.object, EventType::Normal, "SuccessfulDeleteRule", &note);
                None
            }
            Err(error) => Some(self.fail_rule("FailureDeleteRule", text, &error)),
        }
    }

    /// Brings the group's members in line.
    async fn servers(&mut self, group: &Group, is_lost: bool) -> Result<(), Stop> {
        let nodes = self.selected_nodes().map_err(Stop::Trouble)?;
        let found = self.ports(group, &nodes).await.map_err(|error| self.stop(&error))?;
        let old = self.status.clone();
        let ours = match is_lost {
            true => Ours::All,
            false => Ours::These { ports: &old.ports, servers: &old.nodes },
        };
        let filter = self.object.spec.ports.as_ref();
        let plan = membership(&Desired { group: &group.id, nodes: &nodes, filter, ours }, &found);

        self.status.id = Some(group.id.clone());
        self.status.creating_since = None;
        self.status.ports = plan.all();
        if !plan.join.is_empty() || is_lost {
            write(self.ctx, &self.object, self.status.clone()).await?;
        }
        let servers = self.move_ports(group, nodes, plan).await;
        self.findings.servers = Some(servers);
        Ok(())
    }

    fn selected_nodes(&self) -> Result<Vec<SelectedNode>, Trouble> {
        let selector = NodeSelector::of(&self.object.spec)
            .map_err(|error| Trouble::lasting("InvalidSelector", error.to_string()))?;
        let all = self.ctx.list::<Node>(None);
        Ok(nodes::select(&selector, all.iter().map(|node| &**node)))
    }

    /// The ports of the selected servers, and all that are in the group.
    async fn ports(
        &self,
        group: &Group,
        nodes: &[SelectedNode],
    ) -> Result<BTreeMap<String, Port>, CloudError> {
        let servers: BTreeSet<String> = nodes.iter().filter_map(|node| node.server.clone().ok()).collect();
        let mut ports = self.neutron.ports_of_servers(&servers).await?;
        ports.extend(self.neutron.ports_in_group(&group.id).await?);
        Ok(ports.into_iter().map(|port| (port.id.clone(), port)).collect())
    }

    async fn move_ports(&mut self, group: &Group, nodes: Vec<SelectedNode>, plan: Membership) -> Servers {
        let mut result = Servers { nodes, problems: plan.problems, troubles: Vec::new() };
        let mut members: BTreeSet<AttachedPort> = plan.stay.into_iter().collect();
        let mut remembered = members.clone();
        for (port, done) in ports::join(&self.neutron, &group.id, plan.join).await {
            match done {
                Ok(()) => {
                    tracing::info!("Attach SG to Server" = port.server, "Info");
                    let note = format!("Attached SecurityGroup {} to {}", group.name, port.server);
                    self.ctx.event(&*self.object, EventType::Normal, "AttachSecurityGroup", &note);
                    members.insert(port.clone());
                    remembered.insert(port);
                }
                // The server went meanwhile; the next pass sees what is left.
                Err(error) if error.is_not_found() => {
                    result.troubles.push(Trouble { is_passing: true, ..(&error).into() });
                }
                Err(error) => {
                    let text = format!("server {}, port {}", port.server, port.id);
                    let trouble = self.fail("FailureAttachSecurityGroup", &text, &error);
                    result.problems.extend(problems(&result.nodes, &port.server, &trouble));
                    result.troubles.push(trouble);
                    remembered.insert(port); // it may be in the group for all that is known
                }
            }
        }
        for (port, done) in ports::leave(&self.neutron, &group.id, plan.leave).await {
            match done {
                Ok(()) => {
                    tracing::info!("Dettach SG from Server" = port.server, "Info");
                    let note = format!("Detached SecurityGroup {} from {}", group.name, port.server);
                    self.ctx.event(&*self.object, EventType::Normal, "SuccessDetachSecurityGroup", &note);
                }
                Err(error) => {
                    let text = format!("server {}, port {}", port.server, port.id);
                    result.troubles.push(self.fail("FailureDetachSecurityGroup", &text, &error));
                    members.insert(port.clone());
                    remembered.insert(port);
                }
            }
        }
        let servers: BTreeSet<String> = members.into_iter().map(|port| port.server).collect();
        self.status.nodes = servers.into_iter().filter(|server| !server.is_empty()).collect();
        self.status.ports = remembered.into_iter().collect();
        result
    }

    /// Removes a group that was made twice.
    async fn remove_surplus(&mut self, group: &Group) {
        tracing::warn!(
            id = group.id,
            "a second group was made for the same object when an answer was lost: it goes"
        );
        let removed = async {
            let members = self.neutron.ports_in_group(&group.id).await?;
            for (_, done) in ports::leave(&self.neutron, &group.id, members).await {
                done?;
            }
            self.neutron.delete_group(&group.id).await
        };
        if let Err(error) = removed.await {
            let trouble = self.fail("FailureDeleteSecurityGroup", &group.id, &error);
            self.findings.group = Some(trouble);
        }
    }

    fn stop(&mut self, error: &CloudError) -> Stop {
        self.note_busy(error);
        Stop::Trouble(error.into())
    }

    fn note_busy(&mut self, error: &CloudError) {
        if let CloudError::Busy(left) = error {
            self.busy = self.busy.max(Some(*left));
        }
    }

    /// Tells of a failure, and gives what is to be told in the status.
    fn fail(&mut self, reason: &str, what: &str, error: &CloudError) -> Trouble {
        self.note_busy(error);
        let message = format!("{what}: {error}");
        self.warn(reason, &message);
        Trouble { message, ..error.into() }
    }

    /// As [`Pass::fail`], for a rule: of many rules with one error, such as a quota's, one is told.
    fn fail_rule(&mut self, reason: &str, rule: &str, error: &CloudError) -> Trouble {
        let cause = error.to_string();
        if self.known.contains(&cause) {
            self.note_busy(error);
            return Trouble { message: format!("{rule}: {cause}"), ..error.into() };
        }
        self.fail(reason, rule, error)
    }

    /// Tells of what is wrong, unless the last pass has: what lasts is in the status, not in the log again and again.
    fn warn(&mut self, reason: &str, message: &str) {
        if self.known.contains(message) {
            return;
        }
        self.known.push_str(message);
        tracing::warn!(securitygroup = %Key::of(&*self.object), reason, "{message}");
        self.ctx.event(&*self.object, EventType::Warning, reason, message);
    }

    /// When the next pass is due. Passes of many objects spread over the time.
    fn next(&self) -> Duration {
        let chance = self.ctx.world().dice.fraction();
        if let Some(busy) = self.busy {
            return busy.mul_f64(1.0 + chance / 4.0);
        }
        if self.findings.troubles().any(|trouble| trouble.is_passing) {
            return SOON.mul_f64(1.0 + chance);
        }
        period(&self.object).mul_f64(1.0 - chance / 5.0)
    }
}

fn period(object: &SecurityGroup) -> Duration {
    object.spec.sync_period_seconds.map_or(PERIOD, |seconds| Duration::from_secs(seconds.into()))
}

/// All that a status says is wrong, as one text.
fn describe(status: &SecurityGroupStatus) -> String {
    let conditions = status.conditions.iter().map(|condition| condition.message.as_str());
    let problems = status.problems.iter().map(|problem| problem.message.as_str());
    conditions.chain(problems).collect::<Vec<_>>().join("\n")
}

fn problems(nodes: &[SelectedNode], server: &str, trouble: &Trouble) -> Vec<NodeProblem> {
    let of_server = nodes.iter().filter(|node| node.server.as_deref() == Ok(server));
    of_server
        .map(|node| NodeProblem {
            node: node.name.clone(),
            reason: trouble.reason.clone(),
            message: trouble.message.clone(),
        })
        .collect()
}

/// Writes the status, if it is another than the one there is.
async fn write(ctx: &Context, object: &SecurityGroup, status: SecurityGroupStatus) -> Result<(), Error> {
    ctx.status(object).set(|told| *told = status).await.map(drop)
}
