//! What fails is tried again, but ever more rarely.
//!
//! Judged: a write that fails (with any error, or without an answer) so often within ten seconds that nobody can have waited
//! between the attempts. A back-off that begins at some milliseconds and doubles is far from it. Not judged: reads, and
//! watches that are opened anew.

use std::collections::{BTreeMap, VecDeque};

use jiff::SignedDuration;
use kubewright_cluster::admin::AnsweredRequest;

use super::Evidence;

/// For how long a failure counts.
const WITHIN: SignedDuration = SignedDuration::from_secs(10);
/// How many of one write are too many in that time.
const TOO_MANY: usize = 100;

pub(super) fn judge(evidence: &Evidence) -> Option<String> {
    let mut recent: BTreeMap<_, VecDeque<_>> = BTreeMap::new();
    for request in evidence.requests.iter().filter(is_failed_write) {
        let info = &request.info;
        let same = (&info.user, info.verb, &info.resource, &info.subresource, &info.namespace, &info.name);
        let times = recent.entry(same).or_default();
        times.push_back(request.time);
        while times.front().is_some_and(|first| request.time.duration_since(*first) > WITHIN) {
            times.pop_front();
        }
        if times.len() >= TOO_MANY {
            let code = request.code.map_or_else(|| "no answer".to_owned(), |code| code.to_string());
            return Some(format!(
                "{} tried to {} {} {}/{} {TOO_MANY} times in {:#}, the last time at {} ({code})",
                info.user,
                info.verb,
                info.resource,
                info.namespace,
                info.name,
                request.time.duration_since(times[0]),
                request.time,
            ));
        }
    }
    None
}

fn is_failed_write(request: &&AnsweredRequest) -> bool {
    let verb = request.info.verb;
    let is_write = matches!(verb, "create" | "update" | "patch" | "delete" | "deletecollection");
    is_write && request.code.is_none_or(|code| code >= 400)
}

#[cfg(test)]
mod tests {
    use super::super::evidence::stories::Story;
    use super::*;

    /// An update that is answered so again and again; how long is waited before each attempt.
    fn judged(attempts: u32, code: u16, wait: impl Fn(u32) -> f64) -> Option<String> {
        let mut time = 0.0;
        let story = (0..attempts).fold(Story::default(), |story, attempt| {
            time += wait(attempt);
            story.request(time, "update", "configmaps a", code, true)
        });
        judge(&story.evidence())
    }

    #[test]
    fn attempts_without_a_pause_are_found_whoever_answers_them() {
        let found = judged(200, 409, |_| 0.001).expect("found");
        assert!(found.contains("update configmaps default/a 100 times in 99ms"), "{found}");
    }

    #[test]
    fn a_back_off_that_doubles_or_a_pause_of_a_second_is_not() {
        assert_eq!(judged(200, 500, |attempt| 0.005 * f64::from(1 << attempt.min(14))), None);
        assert_eq!(judged(200, 500, |_| 1.0), None);
        assert_eq!(judged(200, 200, |_| 0.001), None, "they did not fail");
    }
}
