//! What the test has made can be deleted: finalizers go.
//!
//! Judged: objects that the test made and then deleted, that are there minutes later, and that a finalizer holds.

use serde_json::Value;

use super::Evidence;

pub(super) fn judge(evidence: &Evidence) -> Option<String> {
    evidence.emptied.stuck.iter().find_map(|write| {
        let object = write.object();
        let finalizers = object["metadata"]["finalizers"].as_array()?;
        let names: Vec<&str> = finalizers.iter().filter_map(Value::as_str).collect();
        let held = names.join(", ");
        let what =
            format!("{} {} was deleted and is still there, held by {held}", write.collection, write.key);
        (!names.is_empty()).then_some(what)
    })
}

#[cfg(test)]
mod tests {
    use kubewright_cluster::recording::Did;
    use serde_json::json;

    use super::super::Emptied;
    use super::super::evidence::stories::{Story, TEST};
    use super::*;

    fn judged(finalizers: &Value) -> Option<String> {
        let object = json!({"metadata": {"finalizers": finalizers}});
        let story = Story::default().write(0.0, TEST, Did::Create, "shop.example/orders default/a", object);
        let mut evidence = story.evidence();
        evidence.emptied = Emptied { stuck: evidence.recording.writes().to_vec(), ..Emptied::default() };
        judge(&evidence)
    }

    #[test]
    fn a_finalizer_that_does_not_go_is_found() {
        let found = judged(&json!(["shop.example/bill"])).expect("found");
        assert!(
            found.ends_with("default/a was deleted and is still there, held by shop.example/bill"),
            "{found}"
        );
        assert_eq!(judged(&json!([])), None);
        assert_eq!(judged(&Value::Null), None);
    }
}
