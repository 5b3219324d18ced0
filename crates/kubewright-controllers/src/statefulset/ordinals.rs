//! Which pods belong to a StatefulSet: by number (`pkg/controller/statefulset/stateful_set_utils.go`).

use std::ops::Range;

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use kubewright_objects::optional;

/// The set's name.
pub(super) fn name(set: &StatefulSet) -> &str {
    set.metadata.name.as_deref().unwrap_or_default()
}

/// The ordinals that the set should have: `spec.replicas` of them from `spec.ordinals.start` on.
pub(super) fn wanted(set: &StatefulSet) -> Range<i32> {
    let spec = optional::<StatefulSetSpec>(&set.spec);
    let start =
        spec.and_then(|spec| spec.ordinals.as_ref()).and_then(|ordinals| ordinals.start).unwrap_or_default();
    start..start.saturating_add(replicas(set))
}

/// `spec.replicas`.
pub(super) fn replicas(set: &StatefulSet) -> i32 {
    optional::<StatefulSetSpec>(&set.spec).and_then(|spec| spec.replicas).unwrap_or(1)
}

/// The name of the set's pod with this ordinal.
pub(super) fn pod_name(set: &StatefulSet, ordinal: i32) -> String {
    format!("{}-{ordinal}", name(set))
}

/// The set's name and the ordinal that the name of a pod is made of (`getParentNameAndOrdinal`).
pub(super) fn split(pod: &str) -> Option<(&str, Option<i32>)> {
    let (parent, number) = pod.rsplit_once('-')?;
    let digits = !number.is_empty() && number.bytes().all(|letter| letter.is_ascii_digit());
    digits.then(|| (parent, number.parse().ok()))
}

/// Whether the name is one of a pod of `set`, whatever its ordinal.
pub(super) fn is_member(set: &StatefulSet, pod: &str) -> bool {
    split(pod).is_some_and(|(parent, _)| parent == name(set))
}

/// The ordinal in the name of a pod; `None` when it has none, or one too large to be an ordinal.
pub(super) fn of(pod: Option<&str>) -> Option<i32> {
    split(pod?)?.1
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::stateful_set;
    use super::*;

    #[test]
    fn the_last_number_of_a_name_is_the_ordinal() {
        assert_eq!(split("web-10"), Some(("web", Some(10))));
        assert_eq!(split("web-1-0"), Some(("web-1", Some(0))));
        assert_eq!(split("web-99999999999"), Some(("web", None)));
        assert_eq!((split("web-x"), split("web-"), split("web")), (None, None, None));
        assert!(is_member(&stateful_set(1), "web-7") && !is_member(&stateful_set(1), "web-7-7"));
    }

    #[test]
    fn ordinals_start_where_the_spec_says() {
        let mut set = stateful_set(3);
        assert_eq!(wanted(&set), 0..3);
        set.spec.as_mut().expect("a spec").ordinals =
            kubewright_objects::from_value(json!({"start": 5})).ok();
        assert_eq!(wanted(&set), 5..8);
    }
}
