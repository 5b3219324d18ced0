use super::{rules, samples};
use crate::rules::Generation;

#[test]
fn kinds_with_a_spec_count_generations_and_others_do_not() {
    for kind in [samples::DEPLOYMENT, samples::POD, samples::JOB, samples::CRON_JOB] {
        assert!(rules(kind).generation.counts(), "{kind:?}");
    }
    for kind in [samples::CONFIG_MAP, samples::SERVICE, samples::NAMESPACE] {
        assert_eq!(rules(kind).generation, Generation::None, "{kind:?}");
    }
    assert_eq!(rules(("scheduling.k8s.io", "v1", "priorityclasses")).generation, Generation::Fixed);
}
