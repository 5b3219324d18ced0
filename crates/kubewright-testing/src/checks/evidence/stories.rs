//! Evidence that is made up.

use std::time::Duration;

use bytes::Bytes;
use kubewright_cluster::admin::RequestInfo;
use kubewright_cluster::recording::{Did, Writer};
use serde_json::Value;

use super::*;

pub(crate) const OPERATOR: &str = "system:serviceaccount:shop-system:shop";
pub(crate) use super::TEST;

/// Tells what happened, one thing after the other; times are in seconds.
#[derive(Default)]
pub(crate) struct Story {
    writes: Vec<Write>,
    requests: Vec<AnsweredRequest>,
}

pub(crate) fn at(seconds: f64) -> Timestamp {
    Timestamp::UNIX_EPOCH + Duration::from_secs_f64(seconds)
}

impl Story {
    /// Somebody writes: `path` is a collection and a key.
    #[expect(clippy::needless_pass_by_value, reason = "as it is written down")]
    pub(crate) fn write(mut self, time: f64, user: &str, did: Did, path: &str, object: Value) -> Self {
        let (collection, key) = path.split_once(' ').expect("a collection and a key");
        self.writes.push(Write {
            revision: Revision(self.writes.len() as u64 + 1),
            time: at(time),
            by: Writer { user: user.to_owned(), program: String::new() },
            did,
            collection: collection.into(),
            key: key.into(),
            bytes: Bytes::from(object.to_string()),
        });
        self
    }

    /// The operator asks for something, and this is the answer; `fault`: because of a rule.
    pub(crate) fn request(
        mut self,
        time: f64,
        verb: &'static str,
        path: &str,
        code: u16,
        fault: bool,
    ) -> Self {
        let (resource, name) = path.split_once(' ').expect("a resource and a name");
        let info = RequestInfo {
            user: OPERATOR.into(),
            verb,
            resource: resource.into(),
            namespace: "default".into(),
            name: name.into(),
            ..RequestInfo::default()
        };
        self.requests.push(AnsweredRequest {
            time: at(time),
            info: Arc::new(info),
            code: Some(code),
            milliseconds: 1.0,
            fault: fault.then_some(1),
        });
        self
    }

    pub(crate) fn evidence(self) -> Evidence {
        let recording = self.writes.into_iter().collect();
        Evidence { recording, requests: self.requests, ..Evidence::default() }
    }
}
