//! Plan: what is asked of an operator, and what goes wrong meanwhile.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::{change::Change, story::ObjectId};

/// What users want of the operator at a moment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Desired {
    /// The samples as they are in their files.
    Samples,
    /// The samples with one change.
    Changed(Change),
    /// Nothing: the samples are gone.
    Nothing,
}

/// How a node is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeLoss {
    /// The node is deleted, and its pods with it, as the pod garbage collector does it later. It comes back after some seconds.
    Deleted,
    /// Its kubelet is silent for some seconds: its Lease is over, nobody knows how it is, and its pods are not ready.
    NotReady,
    /// It is cordoned and its pods are evicted; after some seconds it takes pods again.
    Drained,
}

impl NodeLoss {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Deleted, Self::NotReady, Self::Drained];

    /// As plans are called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::NotReady => "not-ready",
            Self::Drained => "drained",
        }
    }

    /// What happens to the node, in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Deleted => "is deleted with its pods, and comes back",
            Self::NotReady => "is not ready for some seconds, with a Lease that is over",
            Self::Drained => "is drained by evictions, and takes pods again",
        }
    }
}

/// What is done in a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// The samples are created, with a change or as they are.
    Create(Option<Change>),
    /// A sample is changed, or changed back to what is in its file.
    Change(Option<Change>),
    /// The samples get an annotation, so that the operator looks at them.
    Touch,
    /// The samples are deleted.
    DeleteSamples,
    /// Somebody deletes an object of the operator.
    DeleteObject(ObjectId),
    /// Somebody changes one field of an object of the operator.
    ChangeObject(ObjectId, String, Value),
    /// Somebody adds what is his to an object of the operator: an annotation, a label, an owner reference.
    Extend(ObjectId),
    /// Somebody else has an object under the name that the operator will want.
    Occupy(ObjectId, Value),
    /// The program is killed, and started again.
    Restart,
    /// The same, and its first lists show the samples as they were right after the act of an earlier step, as an API server that lags
    /// would: the so-manieth step, from 0.
    RestartInThePast(usize),
    /// The watches of the program on an object's kind end with 410, so that it lists anew.
    Relist(ObjectId),
    /// A node is lost on which there are pods of the samples; a seed says which.
    LoseNode(NodeLoss, u64),
    /// Nothing.
    Wait,
}

/// A fault of the API server, as the program sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Updates, patches and deletions are answered with 409.
    Conflict,
    /// Requests are answered with 429.
    Throttle,
    /// Requests are answered with 500.
    Error,
    /// Writes are not carried out, and get no answer.
    Lost,
    /// Writes are carried out, and get no answer.
    LateAnswer,
    /// Requests take half a second.
    Latency,
    /// Watches end.
    DropWatch,
    /// Watches tell nothing: the cache is old.
    StaleWatch,
    /// Watches end with 410.
    ExpireWatch,
    /// Events are told twice.
    RepeatWatch,
    /// The API server is away.
    ServerAway,
    /// Leases cannot be renewed: who leads loses it.
    LostLease,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Conflict,
        Self::Throttle,
        Self::Error,
        Self::Lost,
        Self::LateAnswer,
        Self::Latency,
        Self::DropWatch,
        Self::StaleWatch,
        Self::ExpireWatch,
        Self::RepeatWatch,
        Self::ServerAway,
        Self::LostLease,
    ];

    /// As `docs/faults.md` calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::Throttle => "throttle",
            Self::Error => "error",
            Self::Lost => "lost-write",
            Self::LateAnswer => "lost-answer",
            Self::Latency => "latency",
            Self::DropWatch => "drop-watch",
            Self::StaleWatch => "stale-watch",
            Self::ExpireWatch => "expire-watch",
            Self::RepeatWatch => "repeat-watch",
            Self::ServerAway => "server-away",
            Self::LostLease => "lost-lease",
        }
    }

    /// What happens, in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Conflict => "updates and deletions are answered with 409",
            Self::Throttle => "requests are answered with 429",
            Self::Error => "requests are answered with 500",
            Self::Lost => "writes are lost",
            Self::LateAnswer => "answers to writes are lost",
            Self::Latency => "requests take half a second",
            Self::DropWatch => "watches end",
            Self::StaleWatch => "watches tell nothing",
            Self::ExpireWatch => "watches end with 410",
            Self::RepeatWatch => "watches tell events twice",
            Self::ServerAway => "the API server is away",
            Self::LostLease => "its Lease cannot be renewed",
        }
    }
}

/// What goes wrong in a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disturbance {
    /// The program is killed after so many of its writes, and started again.
    Kill(u64),
    /// The same, and before it is started again this happens. With 0 it is away before the act, and this happens first.
    KillAnd(u64, Box<Act>),
    /// A second replica waits for its Lease; the first is killed after so many of its writes, and the second takes over.
    TakeOver(u64),
    /// One write, the so-manieth, meets a fault of writes.
    OneWrite(Fault, u64),
    /// A fault for some seconds, on one resource (`<group>/<plural>`) or on all; a seed says which requests it strikes, without it
    /// strikes all.
    Fault(Fault, Option<String>, Option<u64>),
    /// A quota of the namespaces lets no object of a resource (`<group>/<plural>`) be created for some seconds.
    Quota(String),
    /// Another act comes before that of the step, and the watches of the program leave out what it writes.
    Unseen(Box<Act>),
    /// The webhooks of the program cannot be called for some seconds. Users whom that refuses something ask again later.
    WebhooksDown,
}

/// What goes wrong in a plan, in one word: what an operator does of it wrongly has one cause more often than several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trouble {
    /// Nothing: users ask for this and that.
    None,
    /// The operator cannot do what it is about to: it is killed, or its requests fail.
    Interrupted,
    /// It sees what is no longer so.
    OldState,
    /// Somebody changes what it has made, or takes it away.
    Meddled,
}

impl Trouble {
    /// Behind a key: `, interrupted`.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Interrupted => ", interrupted",
            Self::OldState => ", by an old state",
            Self::Meddled => ", meddled with",
        }
    }
}

/// One act, and what goes wrong while the operator answers it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// What is done.
    pub act: Act,
    /// What goes wrong.
    pub disturbance: Option<Disturbance>,
    /// What users want when all is at rest again.
    pub desired: Desired,
}

impl Step {
    /// An act with nothing that goes wrong.
    #[must_use]
    pub fn new(act: Act, desired: Desired) -> Self {
        Self { act, disturbance: None, desired }
    }

    /// The samples are created.
    #[must_use]
    pub fn create() -> Self {
        Self::new(Act::Create(None), Desired::Samples)
    }

    /// The samples are deleted.
    #[must_use]
    pub fn delete() -> Self {
        Self::new(Act::DeleteSamples, Desired::Nothing)
    }

    /// Whether the program meets faults of the server in it: what it is told is wrong, late or old.
    #[must_use]
    pub fn meets_faults(&self) -> bool {
        let is_fault = |disturbance: &Disturbance| {
            matches!(
                disturbance,
                Disturbance::Fault(..)
                    | Disturbance::OneWrite(..)
                    | Disturbance::Quota(_)
                    | Disturbance::WebhooksDown
            )
        };
        matches!(self.act, Act::RestartInThePast(_)) || self.disturbance.as_ref().is_some_and(is_fault)
    }

    /// What goes wrong in it, in one word.
    fn trouble(&self) -> Trouble {
        let of_act = |act: &Act| match act {
            Act::DeleteObject(_)
            | Act::ChangeObject(..)
            | Act::Extend(_)
            | Act::Occupy(..)
            | Act::LoseNode(..) => Trouble::Meddled,
            Act::RestartInThePast(_) | Act::Relist(_) => Trouble::OldState,
            _ => Trouble::None,
        };
        let of_disturbance = match &self.disturbance {
            None => Trouble::None,
            Some(Disturbance::KillAnd(_, act)) => of_act(act).max(Trouble::Interrupted),
            Some(Disturbance::Unseen(_) | Disturbance::Fault(Fault::StaleWatch, ..)) => Trouble::OldState,
            Some(_) => Trouble::Interrupted,
        };
        of_act(&self.act).max(of_disturbance)
    }

    /// What somebody does to the objects of the operator in it.
    #[must_use]
    pub fn meddling(&self) -> &Act {
        match &self.disturbance {
            Some(Disturbance::Unseen(act)) => act,
            _ => &self.act,
        }
    }

    /// While something goes wrong.
    #[must_use]
    pub fn under(mut self, disturbance: Disturbance) -> Self {
        self.disturbance = Some(disturbance);
        self
    }
}

/// Plan of a run. The same name is the same plan for the same operator and samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Such as `kill/create/3`.
    pub name: String,
    /// What happens, one after the other.
    pub steps: Vec<Step>,
}

impl Plan {
    /// A plan of steps.
    #[must_use]
    pub fn new(name: impl Into<String>, steps: impl IntoIterator<Item = Step>) -> Self {
        Self { name: name.into(), steps: steps.into_iter().collect() }
    }

    /// Whether nothing goes wrong in it, and nobody interferes.
    #[must_use]
    pub fn is_undisturbed(&self) -> bool {
        self.steps.iter().all(|step| {
            step.disturbance.is_none()
                && matches!(step.act, Act::Create(_) | Act::Change(_) | Act::DeleteSamples)
        })
    }

    /// What goes wrong in its first `steps` steps, in one word; of several things the one that stands last in [`Trouble`].
    #[must_use]
    pub fn trouble(&self, steps: usize) -> Trouble {
        let troubles = self.steps.iter().take(steps).map(Step::trouble);
        troubles.max().unwrap_or(Trouble::None)
    }

    /// The changes of the samples that are asked for in it.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.steps.iter().filter_map(|step| match &step.desired {
            Desired::Changed(change) => Some(change),
            Desired::Samples | Desired::Nothing => None,
        })
    }

    /// Whether something goes wrong in it.
    #[must_use]
    pub fn has_fault(&self) -> bool {
        self.steps.iter().any(|step| step.disturbance.is_some() || step.meets_faults())
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(None) => f.write_str("the samples are created"),
            Self::Create(Some(change)) => write!(f, "the samples are created with {change}"),
            Self::Change(Some(change)) => write!(f, "the sample is changed: {change}"),
            Self::Change(None) => f.write_str("the sample is changed back"),
            Self::Touch => f.write_str("the samples get an annotation"),
            Self::DeleteSamples => f.write_str("the samples are deleted"),
            Self::DeleteObject(id) => write!(f, "somebody deletes {id}"),
            Self::ChangeObject(id, field, value) => write!(f, "somebody sets {field} of {id} to {value}"),
            Self::Extend(id) => {
                write!(f, "somebody adds an annotation, a label and an owner reference to {id}")
            }
            Self::Occupy(id, _) => write!(f, "somebody else has made {id}"),
            Self::Restart => f.write_str("the program is killed and started again"),
            Self::RestartInThePast(step) => write!(
                f,
                "the program is killed and started again, and reads the samples first as they were after step {}",
                step + 1
            ),
            Self::Relist(id) => {
                write!(f, "the program's watches of {} end with 410, and it lists anew", id.resource())
            }
            Self::LoseNode(loss, seed) => {
                write!(f, "a node with pods of the samples {} (seed {seed})", loss.words())
            }
            Self::Wait => f.write_str("nothing is done"),
        }
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill(0) => f.write_str("killed before its first write and started again"),
            Self::Kill(writes) => write!(f, "killed after write {writes} and started again"),
            Self::KillAnd(0, act) if **act == Act::Wait => {
                f.write_str("killed before that, and started again after it")
            }
            Self::KillAnd(0, act) => write!(f, "killed before that, and {act}, then it is started again"),
            Self::KillAnd(writes, act) => {
                write!(f, "killed after write {writes}, then {act}, then it is started again")
            }
            Self::TakeOver(writes) => {
                write!(f, "killed after write {writes}, and a second replica that waited takes over")
            }
            Self::Quota(resource) => {
                write!(f, "a quota allows no {} for some seconds", crate::story::resource(resource))
            }
            Self::Unseen(act) => write!(f, "before that, and unseen by the program's watches, {act}"),
            Self::WebhooksDown => f.write_str("its webhooks cannot be called for some seconds"),
            Self::OneWrite(Fault::LateAnswer, number) => write!(f, "the answer to write {number} is lost"),
            Self::OneWrite(_, number) => write!(f, "write {number} fails with 500"),
            Self::Fault(fault, resource, seed) => {
                f.write_str(fault.words())?;
                if let Some(resource) = resource {
                    write!(f, " ({})", crate::story::resource(resource))?;
                }
                seed.map_or(Ok(()), |seed| write!(f, " at times (seed {seed})"))
            }
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.act)?;
        self.disturbance.as_ref().map_or(Ok(()), |disturbance| write!(f, "; {disturbance}"))
    }
}
