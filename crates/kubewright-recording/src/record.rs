//! What is in a recording.

use jiff::Timestamp;
use kubewright_meta::access::Access;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What a recording is of. The first thing in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Header {
    /// The program that wrote it, such as `kubewright up`.
    pub program: String,
    /// The API server, as the program called it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// When it began, in cluster time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    /// The version of Kubernetes that the API server serves, such as `1.37`; empty where the program did not say.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kubernetes: String,
    /// Where the dice of the cluster started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What is hashed in it: `secrets`, and paths of fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub redacted: Vec<String>,
    /// What it is of and why it was kept, for people.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Record {
    /// An object came, changed or went.
    Write(Write),
    /// A request was answered.
    Request(Request),
    /// A reconcile of an operator has ended.
    Reconcile(Reconcile),
    /// Something that is none of these, such as the end of the recording.
    Mark(Mark),
}

impl Record {
    /// When, in cluster time.
    #[must_use]
    pub fn time(&self) -> Timestamp {
        match self {
            Self::Write(write) => write.time,
            Self::Request(request) => request.time,
            Self::Reconcile(reconcile) => reconcile.time,
            Self::Mark(mark) => mark.time,
        }
    }

    /// The revision that it made; `None` for what is no write.
    #[must_use]
    pub fn revision(&self) -> Option<u64> {
        match self {
            Self::Write(write) => Some(write.revision),
            Self::Request(_) | Self::Reconcile(_) | Self::Mark(_) => None,
        }
    }
}

/// Author: who has written or asked for something, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    /// The user. Empty for the API server itself, and where it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// The header `User-Agent`; where only objects are seen, the field manager that wrote last.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub program: String,
}

/// Effect of a write on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Did {
    /// It came, or was there when the recording began.
    Create,
    /// It changed.
    Update,
    /// It went.
    Delete,
}

/// One write.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Write {
    /// The revision that it made: the object's `resourceVersion`, as a number; 0 where it is none.
    pub revision: u64,
    /// When, in cluster time; of a cluster that was watched, when the event came.
    pub time: Timestamp,
    /// Who did it.
    #[serde(default)]
    pub by: Author,
    /// What it did.
    pub did: Did,
    /// Whether it was not seen but follows from a list: something happened while nobody watched.
    #[serde(default, skip_serializing_if = "is_false")]
    pub inferred: bool,
    /// Group and plural of the resource, as `apps/deployments` or `/pods`.
    pub collection: String,
    /// Namespace and name, as `default/web`; the name alone where there is no namespace.
    pub key: String,
    /// The object in JSON; of one that went, its last state as far as it is known.
    pub object: Box<RawValue>,
}

impl PartialEq for Write {
    fn eq(&self, other: &Self) -> bool {
        let head = |write: &Self| (write.revision, write.time, write.did, write.inferred);
        head(self) == head(other)
            && (&self.by, &self.collection, &self.key) == (&other.by, &other.collection, &other.key)
            && self.object.get() == other.object.get()
    }
}

/// One request that was answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// When it came, in cluster time.
    pub time: Timestamp,
    /// Who made it.
    pub by: Author,
    /// What it does, in the words of RBAC.
    pub verb: String,
    /// Group, plural and subresource, as `apps/deployments/status` or `/pods`; the path of what is no request for objects.
    pub resource: String,
    /// Namespace and name as far as the URL has them, as `default/web`, `default/` or `/web`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// The status of its answer; none where its connection was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
    /// The number of the fault that was injected into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<u64>,
}

/// One reconcile of an operator that has told of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reconcile {
    /// When it began, in cluster time.
    pub time: Timestamp,
    /// Whose it was: the user and the program of the operator.
    #[serde(default)]
    pub by: Author,
    /// The controller.
    pub controller: String,
    /// Namespace and name of what was reconciled, as `default/web`.
    pub key: String,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasons: String,
    /// How many seconds the key had waited in the queue since it was due.
    #[serde(default)]
    pub waited: f64,
    /// How many seconds it took.
    #[serde(default)]
    pub took: f64,
    /// `done`, `requeue after 30s`, or what went wrong.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub outcome: String,
    /// Whether it went wrong.
    #[serde(default, skip_serializing_if = "is_false")]
    pub failed: bool,
    /// What it read and wrote, in its order, as far as its operator has told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accesses: Vec<Access>,
    /// How many accesses are left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub accesses_left_out: u64,
}

/// Something that is no write, no request and no reconcile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// When, in cluster time.
    pub time: Timestamp,
    /// What: `end`, `resumed`, `lost`, `left-out`; `fault` and `clock` where a test did something to the cluster.
    pub what: String,
    /// More of it, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn is_false(flag: &bool) -> bool {
    !flag
}
