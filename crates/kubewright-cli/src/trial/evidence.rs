//! What the control plane has noted of a run, as a story has it.

use std::{ops::Range, time::Duration};

use jiff::Timestamp;
use kubewright_cluster::{
    Cluster,
    admin::{AnsweredRequest, Match},
    journal::{Journal, Written},
    recording,
};
use kubewright_trial::story::{Did, ObjectId, Request, Who, Write};

/// The user of the administrator's token.
const ADMINISTRATOR: &str = "kubernetes-admin";

/// Whose writes and requests are meant, and since when.
#[derive(Clone, Debug)]
pub(super) struct Witness {
    /// Whom the program acts as.
    pub(super) user: String,
    /// When the run began.
    pub(super) began: Timestamp,
    /// The revision before it.
    pub(super) since: u64,
}

impl Witness {
    /// How long after its beginning.
    pub(super) fn at(&self, time: Timestamp) -> Duration {
        time.duration_since(self.began).try_into().unwrap_or_default()
    }

    /// The commits of the run, in their order.
    pub(super) fn writes(&self, journal: &Journal) -> Vec<Write> {
        let mut written = journal.written(|one| one.revision.0 > self.since);
        written.sort_by_key(|one| one.revision);
        written.iter().map(|one| self.write(one)).collect()
    }

    /// The revision of the last thing that the trial did to one of these objects between two revisions.
    pub(super) fn of_trial(
        &self,
        journal: &Journal,
        objects: &[ObjectId],
        between: Range<u64>,
    ) -> Option<u64> {
        let written = journal.written(|one| {
            between.start < one.revision.0
                && one.revision.0 <= between.end
                && one.by.as_ref().is_some_and(|by| by.user == ADMINISTRATOR)
                && objects.iter().any(|id| *one.collection == *id.collection && *one.key == *id.key)
        });
        written.iter().map(|one| one.revision.0).max()
    }

    fn write(&self, one: &Written) -> Write {
        let by = match one.by.as_ref().map(|by| &*by.user) {
            Some(user) if user == self.user => Who::Program,
            Some(ADMINISTRATOR) => Who::Trial,
            _ => Who::Cluster,
        };
        Write {
            at: self.at(one.time),
            id: ObjectId::new(one.collection.to_string(), one.key.to_string()),
            did: match recording::Did::from(one.happening) {
                recording::Did::Create => Did::Create,
                recording::Did::Update => Did::Update,
                recording::Did::Delete => Did::Delete,
            },
            by,
            subresource: one.by.as_ref().map(|by| by.subresource.clone()).unwrap_or_default(),
            object: serde_json::from_slice(&one.bytes).unwrap_or_default(),
        }
    }

    /// The requests of the program.
    pub(super) fn requests(&self, cluster: &Cluster) -> Vec<Request> {
        let wanted = Match { user: Some(self.user.clone()), ..Match::default() };
        let Some(admin) = cluster.admin() else { return Vec::new() };
        let answered = admin.requests(&wanted, usize::MAX).requests;
        answered.iter().map(|one| self.request(one)).collect()
    }

    fn request(&self, one: &AnsweredRequest) -> Request {
        let info = &one.info;
        Request {
            at: self.at(one.time),
            verb: info.verb.to_owned(),
            collection: format!("{}/{}", info.group, info.resource),
            subresource: info.subresource.clone(),
            namespace: info.namespace.clone(),
            patch: info.patch.to_owned(),
            name: info.name.clone(),
            code: one.code,
            struck: one.fault.is_some(),
        }
    }
}
