//! When everything that the test has made is gone, so is what operators made for it.
//!
//! Judged: objects that an operator made since the test began, that are there when all of the test's are gone, and that it
//! does not make again when they are taken away, although it is started anew: nobody wants them. Not judged: leases and
//! Events; what an operator keeps for itself, which it makes again; all of it where no garbage collector runs.

use std::sync::Arc;

use super::Evidence;

pub(super) fn judge(evidence: &Evidence) -> Option<String> {
    let missed = &evidence.emptied.missed;
    let mut left = evidence.emptied.left.iter();
    let leaked = left.find(|one| !missed.contains(&(Arc::clone(&one.collection), Arc::clone(&one.key))))?;
    let owners = leaked.object()["metadata"]["ownerReferences"].as_array().map_or(0, Vec::len);
    let why = if owners == 0 { "it has no owner reference" } else { "its owners are gone" };
    let name = format!("{} {}", leaked.collection, leaked.key);
    Some(format!("{} made {name}; nothing that it was made for is left, and it is: {why}", leaked.by.user))
}

#[cfg(test)]
mod tests {
    use kubewright_cluster::recording::Did;
    use serde_json::json;

    use super::super::Emptied;
    use super::super::evidence::stories::{OPERATOR, Story};
    use super::*;

    fn judged(is_missed: bool) -> Option<String> {
        let story = Story::default().write(0.0, OPERATOR, Did::Create, "/configmaps default/a", json!({}));
        let mut evidence = story.evidence();
        let left = evidence.recording.writes().to_vec();
        let missed = left.iter().filter(|_| is_missed).map(|one| (one.collection.clone(), one.key.clone()));
        evidence.emptied = Emptied { missed: missed.collect(), left, ..Emptied::default() };
        judge(&evidence)
    }

    #[test]
    fn what_nobody_wants_is_found() {
        let found = judged(false).expect("found");
        assert!(
            found.contains("made /configmaps default/a") && found.ends_with("no owner reference"),
            "{found}"
        );
    }

    #[test]
    fn what_an_operator_makes_again_is_its_own() {
        assert_eq!(judged(true), None);
    }
}
