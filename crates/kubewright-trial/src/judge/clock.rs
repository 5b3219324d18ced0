//! What an operator makes because it is time, as a CronJob does: a run that takes longer, or passes the full minute, has more of it.

use std::time::Duration;

use jiff::Timestamp;

use crate::story::{ObjectId, Story};

/// How far a time in a name may be from that of the run.
const NEAR: Duration = Duration::from_secs(3600);

/// Whether an object is called after a time near that of a story: by seconds since 1970, or minutes, as Kubernetes' CronJobs call theirs.
pub(super) fn is_by_the_clock(id: &ObjectId, story: &Story) -> bool {
    let end = id.name().rsplit('-').next().and_then(|end| end.parse::<i64>().ok());
    let (Some(end), Some(now)) = (end, time_of(story)) else { return false };
    [Some(end), end.checked_mul(60)].into_iter().flatten().any(|seconds| {
        Timestamp::from_second(seconds).is_ok_and(|named| named.duration_since(now).unsigned_abs() < NEAR)
    })
}

/// When the first object was created that the story tells of.
fn time_of(story: &Story) -> Option<Timestamp> {
    let created =
        |write: &crate::story::Write| write.object["metadata"]["creationTimestamp"].as_str()?.parse().ok();
    story.writes.iter().find_map(created)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        plan::Plan,
        story::{Did, Who, Write},
    };

    #[test]
    fn what_is_called_after_the_time_of_the_run_is_made_by_the_clock() {
        let write = Write {
            at: Duration::ZERO,
            id: ObjectId::new("g/tabs", "a/tab"),
            did: Did::Create,
            by: Who::Trial,
            subresource: String::new(),
            object: json!({"metadata": {"creationTimestamp": "2026-11-29T21:40:10Z"}}),
        };
        let story = Story {
            plan: Plan::new("x", []),
            steps: Vec::new(),
            writes: vec![write],
            requests: Vec::new(),
            lives: Vec::new(),
        };
        let is_it = |name: &str| is_by_the_clock(&ObjectId::new("batch/jobs", format!("a/{name}")), &story);
        assert!(is_it("tab-1795988460"), "2026-11-29T21:41:00Z");
        assert!(is_it("tab-29933141"), "the same in minutes");
        assert!(!is_it("tab-1795902060"), "a day before");
        assert!(!is_it("tab-2") && !is_it("tab") && !is_it("web-5d8f9"));
    }
}
