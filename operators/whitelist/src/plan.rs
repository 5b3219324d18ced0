//! From what is observed to what should be: a pure function.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use kubewright::owner;
use serde_json::Value;

use crate::{Enforce, WhiteList, WhiteListStatus, desired, diff::differences, status};

/// What a pass over one WhiteList does.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What happens to the Deployment.
    pub step: Step,
    /// The status that the WhiteList should have, by what was observed before the step.
    pub status: WhiteListStatus,
}

/// What happens to the Deployment.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Nothing: it is as it should be, or on its way out, or a human has it (`spec.paused`).
    Leave,
    /// Nothing either: a Deployment has the name but not this WhiteList as its controller.
    LeaveToItsOwner,
    /// There is none, and this one is created.
    Create(Box<Deployment>),
    /// Somebody changed its spec, and this one replaces it: the wanted spec, the found metadata.
    Restore {
        /// What is to be written.
        deployment: Box<Deployment>,
        /// What differed, for people.
        differences: Vec<String>,
    },
    /// Only the operator's fields are enforced, and these are applied: others stay.
    Apply(Box<Deployment>),
}

/// What to do for `whitelist`, whose Deployment was `found` so; `now` dates the conditions that turn.
///
/// The whole spec of the Deployment is enforced, replicas and the template's annotations included, or (`spec.enforce`) the
/// operator's fields alone; its own labels and annotations are anybody's.
#[must_use]
pub fn plan(whitelist: &WhiteList, found: Option<&Deployment>, now: Timestamp) -> Plan {
    let step = step(whitelist, found);
    let status = status::observe(whitelist, found, step == Step::LeaveToItsOwner, now);
    Plan { step, status }
}

fn step(whitelist: &WhiteList, found: Option<&Deployment>) -> Step {
    let Some(found) = found else {
        let wanted = || Step::Create(Box::new(desired::deployment(whitelist)));
        return if whitelist.spec.paused { Step::Leave } else { wanted() };
    };
    if !owner::is_controlled_by(found, whitelist) {
        return Step::LeaveToItsOwner;
    }
    // Once it is gone its deletion brings us here again.
    if whitelist.spec.paused || found.metadata.deletion_timestamp.is_some() {
        return Step::Leave;
    }
    if whitelist.spec.enforce == Enforce::OwnFields {
        return Step::Apply(Box::new(desired::own_fields(whitelist)));
    }
    let wanted = desired::deployment(whitelist);
    let differences = differences("spec", &json(&found.spec), &json(&wanted.spec));
    if differences.is_empty() {
        return Step::Leave;
    }
    let deployment = Box::new(Deployment { spec: wanted.spec, ..found.clone() });
    Step::Restore { deployment, differences }
}

fn json<T: serde::Serialize>(value: &T) -> Value {
    kubewright::object::to_value(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use kube::ResourceExt;
    use serde_json::json;

    use super::*;
    use crate::WhiteListSpec;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn whitelist() -> WhiteList {
        let mut whitelist = WhiteList::new("sample", WhiteListSpec::default());
        whitelist.metadata.namespace = Some("default".to_owned());
        whitelist.metadata.uid = Some("uid-1".to_owned());
        whitelist.metadata.generation = Some(3);
        whitelist
    }

    fn paused() -> WhiteList {
        let mut whitelist = whitelist();
        whitelist.spec.paused = true;
        whitelist
    }

    fn deployment(change: impl FnOnce(&mut Deployment)) -> Deployment {
        let mut deployment = desired::deployment(&whitelist());
        deployment.metadata.resource_version = Some("7".to_owned());
        change(&mut deployment);
        deployment
    }

    fn condition(plan: &Plan, type_: &str) -> (String, String) {
        let found = plan.status.conditions.iter().find(|condition| condition.type_ == type_).expect(type_);
        (found.status.clone(), found.reason.clone())
    }

    #[test]
    fn a_missing_deployment_is_created_under_the_control_of_the_whitelist() {
        let Step::Create(created) = plan(&whitelist(), None, NOW).step else { panic!("it is created") };
        assert_eq!(created.name_any(), "sample-deployment");
        assert!(owner::is_controlled_by(&*created, &whitelist()));
    }

    #[test]
    fn a_deployment_as_it_should_be_is_left() {
        let found = deployment(|found| {
            found.metadata.labels = Some([("foo".to_owned(), "bar".to_owned())].into());
            found.metadata.annotations = Some([("who".to_owned(), "a human".to_owned())].into());
        });
        assert_eq!(plan(&whitelist(), Some(&found), NOW).step, Step::Leave);
    }

    #[test]
    fn every_change_of_the_spec_is_undone_and_the_metadata_kept() {
        let found = deployment(|found| {
            found.metadata.labels = Some([("foo".to_owned(), "bar".to_owned())].into());
            let spec = found.spec.as_mut().expect("a spec");
            spec.replicas = Some(4);
            spec.min_ready_seconds = Some(5);
        });
        let Step::Restore { deployment, differences } = plan(&whitelist(), Some(&found), NOW).step else {
            panic!("it is restored")
        };
        assert_eq!(differences, ["spec.minReadySeconds: 5 -> nothing", "spec.replicas: 4 -> 1"]);
        assert_eq!(deployment.metadata, found.metadata);
        assert_eq!(deployment.spec, desired::deployment(&whitelist()).spec);
    }

    /// WL-08, Beyond 1.
    #[test]
    fn wl_08_where_only_own_fields_are_enforced_others_stay() {
        let mut whitelist = whitelist();
        whitelist.spec.enforce = Enforce::OwnFields;
        let scaled = deployment(|found| found.spec.as_mut().expect("a spec").replicas = Some(4));
        let Step::Apply(applied) = plan(&whitelist, Some(&scaled), NOW).step else { panic!("it is applied") };
        assert_eq!(applied.spec.expect("a spec").replicas, None);
    }

    #[test]
    fn somebody_elses_deployment_is_left_and_the_conflict_told() {
        for owners in [None, Some(vec![])] {
            let found = deployment(|found| found.metadata.owner_references = owners);
            for whitelist in [whitelist(), paused()] {
                let plan = plan(&whitelist, Some(&found), NOW);
                assert_eq!(plan.step, Step::LeaveToItsOwner);
                assert_eq!(
                    condition(&plan, "Conflict"),
                    ("True".to_owned(), "DeploymentNotOwned".to_owned())
                );
                assert_eq!(condition(&plan, "Available"), ("False".to_owned(), "Conflict".to_owned()));
                assert!(!plan.status.ready);
            }
        }
    }

    #[test]
    fn nothing_is_done_while_paused() {
        let changed = deployment(|found| found.spec.as_mut().expect("a spec").replicas = Some(4));
        for found in [None, Some(&changed)] {
            let plan = plan(&paused(), found, NOW);
            assert_eq!(plan.step, Step::Leave);
            assert_eq!(condition(&plan, "Paused").0, "True");
        }
    }

    #[test]
    fn a_deployment_on_its_way_out_is_left() {
        let found = deployment(|found| {
            found.metadata.deletion_timestamp =
                Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(NOW));
            found.spec.as_mut().expect("a spec").replicas = Some(4);
        });
        assert_eq!(plan(&whitelist(), Some(&found), NOW).step, Step::Leave);
    }

    #[test]
    fn the_status_repeats_what_the_deployment_says_of_its_availability() {
        let reported = |status: &str| {
            let conditions =
                json!([{"type": "Available", "status": status, "reason": "Because", "message": "so"}]);
            let found = deployment(|found| {
                found.status = Some(
                    kubewright::object::from_value(json!({"conditions": conditions})).expect("a status"),
                );
            });
            plan(&whitelist(), Some(&found), NOW)
        };
        for (status, ready) in [("True", true), ("False", false)] {
            let plan = reported(status);
            assert_eq!(condition(&plan, "Available"), (status.to_owned(), "Because".to_owned()));
            assert_eq!((plan.status.ready, plan.status.observed_generation), (ready, Some(3)));
        }
        let silent = plan(&whitelist(), Some(&deployment(|_| {})), NOW);
        assert_eq!(condition(&silent, "Available").1, "DeploymentProgressing");
    }

    #[test]
    fn a_condition_keeps_its_time_until_it_turns_and_the_same_state_gives_the_same_status() {
        let mut whitelist = whitelist();
        let first = plan(&whitelist, None, NOW).status;
        whitelist.status = Some(first.clone());
        let later = NOW + SignedDuration::from_hours(1);
        assert_eq!(plan(&whitelist, None, later).status, first);

        whitelist.spec.paused = true;
        let status = plan(&whitelist, None, later).status;
        let times: Vec<Timestamp> =
            status.conditions.iter().map(|condition| condition.last_transition_time.0).collect();
        assert_eq!(times, [NOW, NOW, later], "only Paused turned");
    }
}
