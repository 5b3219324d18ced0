//! What was measured of pods: the values that the arithmetic starts from.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

/// A value of one pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    /// In thousandths.
    pub(super) value: i64,
    /// When it was measured; nothing where nobody said, which is before everything.
    pub(super) at: Option<Timestamp>,
    /// Over which time before that.
    pub(super) window: SignedDuration,
}

impl Sample {
    /// A value that nobody measured.
    pub(super) const fn assumed(value: i64) -> Self {
        Self { value, at: None, window: SignedDuration::ZERO }
    }
}

/// Values of pods, by their names.
pub(super) type Samples = BTreeMap<String, Sample>;

/// What was measured for one metric of an autoscaler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Of the pods of its target.
    Pods(Samples),
    /// Of an object, or of something outside: one value or several, in thousandths.
    Values(Vec<i64>),
}

/// What the containers of a pod use of one resource, as the resource metrics API tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodUsage {
    pub(super) pod: String,
    pub(super) at: Option<Timestamp>,
    pub(super) window: SignedDuration,
    /// By container, in thousandths; nothing where it is not told.
    pub(super) containers: Vec<(String, Option<i64>)>,
}

/// The usage of one container in each pod, or of all containers together; a pod of which a part is not known has none
/// (`getContainerMetrics` and `getPodMetrics` in `pkg/controller/podautoscaler/metrics/client.go`).
pub(super) fn of_usage(usages: Vec<PodUsage>, container: Option<&str>) -> Samples {
    let sample = |usage: PodUsage| {
        let value = match container {
            Some(wanted) => {
                usage.containers.iter().find(|(name, _)| name == wanted).and_then(|(_, used)| *used)
            }
            None if usage.containers.is_empty() => None,
            None => usage
                .containers
                .iter()
                .map(|(_, used)| *used)
                .try_fold(0_i64, |sum, used| Some(sum.saturating_add(used?))),
        };
        value.map(|value| (usage.pod, Sample { value, at: usage.at, window: usage.window }))
    };
    usages.into_iter().filter_map(sample).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(pod: &str, containers: &[(&str, Option<i64>)]) -> PodUsage {
        let containers = containers.iter().map(|(name, used)| ((*name).to_owned(), *used)).collect();
        PodUsage { pod: pod.into(), at: None, window: SignedDuration::ZERO, containers }
    }

    #[test]
    fn a_pod_is_the_sum_of_its_containers_if_all_are_known() {
        let usages = vec![
            usage("a", &[("c", Some(100)), ("d", Some(5))]),
            usage("b", &[("c", Some(100)), ("d", None)]),
            usage("none", &[]),
        ];
        let values =
            |samples: Samples| samples.into_iter().map(|(pod, one)| (pod, one.value)).collect::<Vec<_>>();
        assert_eq!(values(of_usage(usages.clone(), None)), [("a".to_owned(), 105)]);
        assert_eq!(
            values(of_usage(usages.clone(), Some("c"))),
            [("a".to_owned(), 100), ("b".to_owned(), 100)]
        );
        assert_eq!(values(of_usage(usages, Some("d"))), [("a".to_owned(), 5)]);
    }
}
