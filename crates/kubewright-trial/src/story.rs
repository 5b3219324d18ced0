//! Story: what happened in one run.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    plan::{Act, Plan, Step},
    state::State,
};

/// Name of an object: its collection and its key in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectId {
    /// `<group>/<plural>`, such as `apps/deployments` or `/pods`.
    pub collection: String,
    /// `<namespace>/<name>`, or the name alone.
    pub key: String,
}

impl ObjectId {
    /// An object of a collection.
    #[must_use]
    pub fn new(collection: impl Into<String>, key: impl Into<String>) -> Self {
        Self { collection: collection.into(), key: key.into() }
    }

    /// `deployments.apps`.
    #[must_use]
    pub fn resource(&self) -> String {
        resource(&self.collection)
    }

    /// The namespace; empty where there is none.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.key.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.key.split_once('/').map_or(&self.key, |(_, name)| name)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.resource(), self.key)
    }
}

/// `deployments.apps` of `apps/deployments`.
#[must_use]
pub fn resource(collection: &str) -> String {
    match collection.split_once('/') {
        Some(("", plural)) => plural.to_owned(),
        Some((group, plural)) => format!("{plural}.{group}"),
        None => collection.to_owned(),
    }
}

/// The collection of the locks of leaders.
pub const LEASES: &str = "coordination.k8s.io/leases";

/// Whether a collection is written for ever by who leads, tells or is alive: that is no work.
#[must_use]
pub fn is_upkeep(collection: &str) -> bool {
    collection == LEASES || collection.ends_with("/events")
}

/// Effect of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Did {
    /// The object came.
    Create,
    /// It changed.
    Update,
    /// It went.
    Delete,
}

impl Did {
    /// As a sentence says it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "created",
            Self::Update => "changed",
            Self::Delete => "deleted",
        }
    }
}

/// Author of a write or a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Who {
    /// The program that is tried.
    Program,
    /// The trial: what a user, an administrator or a stranger does.
    Trial,
    /// A built-in controller, a node, or the API server itself.
    Cluster,
}

/// One commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// When, after the run began.
    pub at: Duration,
    /// Which object.
    pub id: ObjectId,
    /// What became of it.
    pub did: Did,
    /// Who did it.
    pub by: Who,
    /// The subresource that was written; empty for the object itself.
    pub subresource: String,
    /// The object afterwards; of one that went, its last state.
    pub object: Value,
}

/// One request of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// When it came, after the run began.
    pub at: Duration,
    /// What it does, in the words of RBAC.
    pub verb: String,
    /// `<group>/<plural>`.
    pub collection: String,
    /// Such as `status`.
    pub subresource: String,
    /// The namespace; empty for none or all.
    pub namespace: String,
    /// Of a patch its kind: `json`, `merge`, `strategic` or `apply`.
    pub patch: String,
    /// The name in the URL; what is created has none there.
    pub name: String,
    /// The status; none where the connection was cut.
    pub code: Option<u16>,
    /// Whether a fault of the plan struck it.
    pub struck: bool,
}

impl Request {
    /// Whether it writes.
    #[must_use]
    pub fn writes(&self) -> bool {
        matches!(&*self.verb, "create" | "update" | "patch" | "delete" | "deletecollection")
    }

    /// Whether it goes on to a pod, or to its node for what the pod has said. A simulated one mostly has no answer.
    #[must_use]
    pub fn goes_to_pod(&self) -> bool {
        matches!(&*self.subresource, "exec" | "attach" | "portforward" | "proxy" | "log")
    }

    /// Whether it is work, not upkeep or a review.
    #[must_use]
    pub fn is_work(&self) -> bool {
        !is_upkeep(&self.collection) && !self.collection.ends_with("reviews")
    }

    /// `update deployments.apps/status default/web`.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{} {}", self.verb, resource(&self.collection));
        if !self.subresource.is_empty() {
            text += "/";
            text += &self.subresource;
        }
        let key = [&*self.namespace, &*self.name].into_iter().filter(|part| !part.is_empty());
        let key: Vec<&str> = key.collect();
        if key.is_empty() { text } else { format!("{text} {}", key.join("/")) }
    }
}

/// How waiting for rest ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rest {
    /// Nobody wrote any more.
    Quiet,
    /// Somebody wrote to the end.
    Busy,
    /// The program ended by itself.
    Exited,
    /// The program made no request.
    Silent,
}

/// What became of the act of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Passed {
    /// When it began.
    pub from: Duration,
    /// When nobody wrote for the first time for as long as counts as rest.
    pub until: Duration,
    /// How it ended.
    pub rest: Rest,
    /// The state at its end.
    pub state: State,
    /// Why the API server did not take what the act asks for: then nothing was tried.
    pub refused: Option<String>,
}

/// One life of the program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Life {
    /// How it ended by itself, such as `exit status: 1`; none where it was ended, or lives.
    pub exit: Option<String>,
    /// Lines in which it says that it panicked.
    pub panics: Vec<String>,
    /// What it said last.
    pub tail: String,
}

/// The most lines in which a life says that it panicked.
const PANICS: usize = 3;
/// Where the frames of a stack are that say nothing of a program.
const OF_LIBRARIES: [&str; 3] = ["/src/runtime/", "/sigs.k8s.io/controller-runtime", "/k8s.io/"];

/// Lines in which a program says that it panicked; of a program in Go with the function that did.
#[must_use]
pub fn panics(said: &str) -> Vec<String> {
    let is_panic = |line: &str| {
        line.starts_with("panic: ")
            || line.contains("Observed a panic")
            || line.contains("panicked at")
            || line.contains("Recovered from panic")
            || line.contains("\"panic\":")
            // A thread of a program in Java, whose others go on.
            || line.starts_with("Exception in thread \"")
    };
    let lines: Vec<&str> = said.lines().collect();
    let told = lines.iter().enumerate().filter(|(_, line)| is_panic(line)).take(PANICS);
    let with_origin = told.map(|(number, line)| match origin(&lines[number + 1..]) {
        Some(function) => format!("{} in {function}", line.trim()),
        None => line.trim().to_owned(),
    });
    with_origin.collect()
}

/// The first function of a stack of Go that is the program's own.
fn origin<'a>(stack: &[&'a str]) -> Option<&'a str> {
    let is_own = |place: &str| {
        place.starts_with('\t')
            && place.contains(".go:")
            && !OF_LIBRARIES.iter().any(|one| place.contains(one))
    };
    let frame = stack.windows(2).find(|pair| is_own(pair[1]))?;
    let function = frame[0].rsplit_once('(').map_or(frame[0], |(function, _)| function);
    Some(function.trim_start_matches("created by ").trim())
}

/// All that happened in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Story {
    /// What was tried.
    pub plan: Plan,
    /// One for each step that was carried out.
    pub steps: Vec<Passed>,
    /// Commits since the program was started, oldest first.
    pub writes: Vec<Write>,
    /// Requests of the program, oldest first.
    pub requests: Vec<Request>,
    /// Lives of the program.
    pub lives: Vec<Life>,
}

impl Story {
    /// Whether the API server has let something of the plan be tried: users, or who meddles, may ask for what it refuses.
    #[must_use]
    pub fn was_tried(&self) -> bool {
        let refused = self.steps.iter().filter(|step| step.refused.is_some()).count();
        let is_ordinary = |step: &&Step| matches!(step.act, Act::Create(None) | Act::DeleteSamples);
        let ordinary = self.plan.steps.iter().take(self.steps.len()).filter(is_ordinary).count();
        refused == 0 || self.steps.len() - refused > ordinary
    }

    /// The writes between two moments.
    pub fn writes_in(&self, step: &Passed) -> impl Iterator<Item = &Write> {
        self.writes.iter().filter(move |one| one.at >= step.from && one.at <= step.until)
    }

    /// The requests between two moments.
    pub fn requests_in(&self, step: &Passed) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(move |one| one.at >= step.from && one.at <= step.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_in_go_is_told_with_the_first_function_that_is_the_programs_own() {
        let said = "started\npanic: nil pointer [recovered]\n\ngoroutine 1 [running]:\npanic({0x1, 0x2})\n\t/usr/go/src/runtime/panic.go:770 +0x132\n\
            sigs.k8s.io/controller-runtime/pkg.(*C).Reconcile.func1()\n\t/go/sigs.k8s.io/controller-runtime@v0.1/a.go:1 +0x1\n\
            redis/k8sutils.container({0xc0}, 0x1)\n\t/src/k8sutils/statefulset.go:12 +0x45\n";
        assert_eq!(panics(said), ["panic: nil pointer [recovered] in redis/k8sutils.container"]);
        assert_eq!(panics("all is well"), Vec::<String>::new());
        let java = "Exception in thread \"main\" java.lang.IllegalStateException: no";
        assert_eq!(panics(java), [java]);
        assert_eq!(
            panics("thread 'main' panicked at src/main.rs:1:2:"),
            ["thread 'main' panicked at src/main.rs:1:2:"]
        );
    }
}
