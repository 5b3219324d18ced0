//! Who called what: the last requests.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::faults::RuleId;
use super::matching::Match;
use super::request_info::RequestInfo;

/// How many requests are kept.
const KEPT: usize = 10_000;

/// One request that was answered.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AnsweredRequest {
    /// When it came, in cluster time.
    pub time: Timestamp,
    /// What it asked for, and who did.
    #[serde(flatten)]
    pub info: Arc<RequestInfo>,
    /// The status of its answer; none where its connection was cut.
    pub code: Option<u16>,
    /// How long the answer took to begin, in milliseconds of cluster time.
    pub milliseconds: f64,
    /// The rule that struck it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<RuleId>,
}

/// Count of requests: how often somebody did something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Count {
    /// The header `User-Agent`.
    pub user_agent: String,
    /// What was done.
    pub verb: &'static str,
    /// To what, as `deployments.apps/status`; a path for what is no request for objects.
    pub resource: String,
    /// How often.
    pub count: u64,
}

/// Requests of the log.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Requests {
    /// How many there were since the log was last emptied, whether asked for or not.
    pub total: u64,
    /// How many of these are not kept any more.
    pub forgotten: u64,
    /// Who did what how often, among those that are kept and asked for.
    pub counts: Vec<Count>,
    /// The last of them, oldest first.
    pub requests: Vec<AnsweredRequest>,
}

/// The last requests.
#[derive(Debug, Default)]
pub(super) struct Log {
    entries: VecDeque<AnsweredRequest>,
    total: u64,
}

impl Log {
    pub(super) fn add(
        &mut self,
        time: Timestamp,
        info: Arc<RequestInfo>,
        took: Duration,
        code: Option<u16>,
        fault: Option<RuleId>,
    ) {
        if self.entries.len() == KEPT {
            self.entries.pop_front();
        }
        self.total += 1;
        let milliseconds = took.as_secs_f64() * 1e3;
        self.entries.push_back(AnsweredRequest { time, info, code, milliseconds, fault });
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The requests after the first `position`, and how many of these are not kept any more.
    pub(super) fn since(&self, position: u64) -> (Vec<AnsweredRequest>, u64) {
        let forgotten = self.total - self.entries.len() as u64;
        let skipped = usize::try_from(position.saturating_sub(forgotten)).unwrap_or(usize::MAX);
        (self.entries.iter().skip(skipped).cloned().collect(), forgotten.saturating_sub(position))
    }

    /// The requests that `wanted` means (all of them, if it says nothing), counted; the last `limit` of them in full.
    pub(super) fn requests(&self, wanted: &Match, limit: usize) -> Requests {
        let all = *wanted == Match::default();
        let found: Vec<_> = self.entries.iter().filter(|entry| all || wanted.matches(&entry.info)).collect();
        let mut counts = BTreeMap::new();
        for entry in &found {
            let info = &entry.info;
            *counts.entry((info.user_agent.as_str(), resource(info), info.verb)).or_insert(0) += 1;
        }
        let counts = counts.into_iter().map(|((user_agent, resource, verb), count)| Count {
            user_agent: user_agent.to_owned(),
            verb,
            resource,
            count,
        });
        let last = &found[found.len().saturating_sub(limit)..];
        Requests {
            total: self.total,
            forgotten: self.total - self.entries.len() as u64,
            counts: counts.collect(),
            requests: last.iter().map(|entry| (*entry).clone()).collect(),
        }
    }
}

fn resource(info: &RequestInfo) -> String {
    if !info.is_for_objects() {
        return info.path.clone();
    }
    let dot = if info.group.is_empty() { "" } else { "." };
    let slash = if info.subresource.is_empty() { "" } else { "/" };
    format!("{}{dot}{}{slash}{}", info.resource, info.group, info.subresource)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(requests: usize) -> Log {
        let mut log = Log::default();
        for number in 0..requests {
            let info = RequestInfo {
                user_agent: if number % 2 == 0 { "even".into() } else { "odd".into() },
                verb: "update",
                group: "apps".into(),
                resource: "deployments".into(),
                subresource: "status".into(),
                name: number.to_string(),
                ..RequestInfo::default()
            };
            log.add(Timestamp::UNIX_EPOCH, Arc::new(info), Duration::ZERO, Some(200), None);
        }
        let health = RequestInfo { verb: "get", path: "/healthz".into(), ..RequestInfo::default() };
        log.add(Timestamp::UNIX_EPOCH, Arc::new(health), Duration::ZERO, Some(200), None);
        log
    }

    #[test]
    fn requests_are_counted_by_who_did_what() {
        let counts = log(5).requests(&Match::default(), 0).counts;
        let counted: Vec<_> = counts
            .iter()
            .map(|count| (&*count.user_agent, count.verb, &*count.resource, count.count))
            .collect();
        assert_eq!(
            counted,
            [
                ("", "get", "/healthz", 1),
                ("even", "update", "deployments.apps/status", 3),
                ("odd", "update", "deployments.apps/status", 2)
            ]
        );
    }

    #[test]
    fn the_last_of_those_that_are_asked_for_are_told_in_full() {
        let wanted = Match { user_agent: Some("even".into()), ..Match::default() };
        let found = log(9).requests(&wanted, 2);
        let names: Vec<_> = found.requests.iter().map(|request| request.info.name.as_str()).collect();
        assert_eq!(names, ["6", "8"]);
        assert_eq!((found.total, found.counts[0].count), (10, 5));
    }

    #[test]
    fn old_requests_are_forgotten_so_that_the_log_does_not_grow() {
        let mut log = log(KEPT + 5);
        let found = log.requests(&Match::default(), usize::MAX);
        assert_eq!((found.total, found.forgotten, found.requests.len()), (10_006, 6, KEPT));
        log.clear();
        assert_eq!(log.requests(&Match::default(), 1).total, 0);
    }
}
