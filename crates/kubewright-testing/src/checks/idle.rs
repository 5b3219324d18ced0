//! A second look at a cluster in which nothing has changed writes nothing.
//!
//! Judged: what operators write after they were started anew in a cluster at rest, and updates (`PUT`) that change nothing;
//! if it is there each time that they are started. Not judged: leases and Events; patches that change nothing, which is how
//! server-side apply says that all is well; what is written only now and then, as by a timer.

use std::collections::BTreeSet;

use super::evidence::{Evidence, Span, collection, is_work};

pub(super) fn judge(evidence: &Evidence) -> Option<String> {
    let mut passes = evidence.passes.iter().map(|span| writes(evidence, *span));
    let first = passes.next()?;
    let each_time = passes.fold(first, |all, pass| all.intersection(&pass).cloned().collect());
    let (user, what) = each_time.into_iter().next()?;
    Some(format!("{user} was started anew in a cluster in which all was done, and {what}"))
}

/// Who wrote what in a pass.
fn writes(evidence: &Evidence, span: Span) -> BTreeSet<(String, String)> {
    let written = evidence.work(span).map(|write| {
        let what = format!("wrote ({:?}) {} {}", write.did, write.collection, write.key);
        (write.by.user.clone(), what)
    });
    let mut all: BTreeSet<_> = written.collect();
    let is_update = |verb, code| verb == "update" && code == Some(200);
    let updates =
        evidence.requests.iter().filter(|one| span.has(one.time) && is_update(one.info.verb, one.code));
    for update in updates {
        let (info, collection) = (&update.info, collection(update));
        let key = format!("{}/{}", info.namespace, info.name);
        let key = key.trim_start_matches('/');
        let changed = evidence.work(span).any(|one| *one.collection == *collection && *one.key == *key);
        if is_work(&collection) && !changed {
            all.insert((info.user.clone(), format!("updated {collection} {key} to what it was")));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use kubewright_cluster::recording::Did;
    use serde_json::json;

    use super::super::evidence::stories::{OPERATOR, Story, TEST, at};
    use super::*;

    /// Two passes: seconds 0 to 10 and 10 to 20.
    fn judged(story: Story) -> Option<String> {
        let passes = [(0.0, 10.0), (10.0, 20.0)].map(|(from, to)| Span { from: at(from), to: at(to) }).into();
        judge(&Evidence { passes, ..story.evidence() })
    }

    fn written(user: &str, path: &str, times: &[f64]) -> Story {
        let write = |story: Story, time: &f64| story.write(*time, user, Did::Update, path, json!({}));
        times.iter().fold(Story::default(), write)
    }

    fn info(verb: &'static str, times: &[f64]) -> Story {
        let request = |story: Story, time: &f64| story.request(*time, verb, "configmaps a", 200, false);
        times.iter().fold(Story::default(), request)
    }

    #[test]
    fn a_write_in_each_pass_is_found() {
        let found = judged(written(OPERATOR, "/configmaps default/a", &[1.0, 11.0])).expect("found");
        assert!(found.contains("wrote (Update) /configmaps default/a"), "{found}");
    }

    #[test]
    fn an_update_that_changes_nothing_is_found() {
        let found = judged(info("update", &[1.0, 11.0])).expect("found");
        assert!(found.ends_with("updated /configmaps default/a to what it was"), "{found}");
    }

    #[test]
    fn what_others_write_and_what_is_no_work_and_what_comes_once_is_not() {
        let both = &[1.0, 11.0];
        assert_eq!(judged(written(TEST, "/configmaps default/a", both)), None);
        assert_eq!(judged(written(OPERATOR, "coordination.k8s.io/leases shop-system/shop", both)), None);
        assert_eq!(judged(written(OPERATOR, "/configmaps default/a", &[1.0])), None);
        assert_eq!(judged(info("update", &[1.0])), None);
        assert_eq!(judged(info("patch", both)), None);
    }
}
