//! From what is in a namespace to what is to be done: a pure function.

use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kubewright::command::{Installation, Operator};

use crate::{
    Enforcement, Exempt, Existing, Violation, WhiteListStatus,
    image::Image,
    judge::{Offence, offences},
    policy::{self, Policy},
    regime::Regime,
    rules::Rules,
    scope::Scope,
    status,
    workload::{Workload, WorkloadKind},
};

/// How long a deletion counts for the most that there may be in a minute.
pub const MINUTE: SignedDuration = SignedDuration::from_secs(60);

/// Where a pod is told its namespace.
const NAMESPACE_OF_POD: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Who the police is, so that it never arrests itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Police {
    /// The namespace that it lives in.
    pub namespace: String,
    /// The service account that it runs as.
    pub account: String,
}

impl Police {
    /// The operator as it runs here: in a pod in the namespace of the pod's service account; elsewhere in that which it is
    /// installed in.
    #[must_use]
    pub fn here(operator: &Operator) -> Self {
        let found = std::fs::read_to_string(NAMESPACE_OF_POD).ok();
        let found = found.map(|text| text.trim().to_owned()).filter(|name| !name.is_empty());
        Self {
            namespace: found.unwrap_or_else(|| operator.home(&Installation::default())),
            account: operator.name().to_owned(),
        }
    }
}

/// What is known of a namespace before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// The violations that were told of.
    pub violations: Vec<Violation>,
    /// The exemptions that were told of.
    pub exempt: Vec<Exempt>,
    /// When workloads were deleted; those of the last minute count.
    pub deletions: Vec<Timestamp>,
}

/// What is observed of a namespace.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Its name.
    pub namespace: String,
    /// The lists that hold in it.
    pub scope: Scope,
    /// Its workloads.
    pub workloads: Vec<Workload>,
    /// What was known before.
    pub known: Known,
    /// Who looks.
    pub police: Police,
    /// When.
    pub now: Timestamp,
}

/// What is to be done in a namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What happens to which workload.
    pub steps: Vec<Step>,
    /// Every violation, exempt ones not among them.
    pub violations: Vec<Violation>,
    /// Which of them nobody was told of.
    pub found: Vec<Violation>,
    /// Every workload that is exempt and would be a violation.
    pub exempt: Vec<Exempt>,
    /// Which of them nobody was told of.
    pub released: Vec<Exempt>,
    /// The status of each list, in their order.
    pub statuses: Vec<WhiteListStatus>,
    /// The policy that refuses in this namespace, if one does.
    pub policy: Option<Policy>,
    /// By which lists it is judged, for people.
    pub judges: String,
    /// The names of the lists of the cluster that are enforced here.
    pub wide: Vec<String>,
    /// When to look again although nothing happens.
    pub again: Option<Duration>,
}

/// What happens to a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What.
    pub deed: Deed,
    /// To which, as it was judged: nothing happens to one that is another by now.
    pub workload: Workload,
    /// Why, for people.
    pub why: String,
}

/// What is done about a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// The workload is scaled to zero or suspended.
    ScaleToZero,
    /// The workload is deleted.
    Delete,
}

/// What to do in a namespace that is observed so.
///
/// Nothing is done, and nothing judged, where no list is enforced. Nothing is deleted or scaled to zero while a list cannot be
/// understood: what it would allow is not known.
#[must_use]
pub fn plan(observed: &Observed) -> Plan {
    let compiled: Vec<Result<Rules, Vec<String>>> = observed.scope.specs().map(Rules::compile).collect();
    let regime = Regime::new(
        &observed.scope.lists(&observed.namespace),
        &compiled,
        &observed.namespace,
        &observed.police,
    );
    let mut plan = Plan {
        judges: regime.judges(),
        wide: observed
            .scope
            .wide
            .iter()
            .filter(|wide| wide.is_enforced)
            .map(|wide| wide.list.name_any())
            .collect(),
        ..Plan::default()
    };
    let mut capped = false;
    if regime.judges_at_all() {
        let rules: Vec<&Rules> = compiled.iter().flatten().collect();
        let others: Vec<Workload> =
            observed.workloads.iter().filter(|workload| !is_police(workload, observed)).cloned().collect();
        let offences = offences(&others, &rules);
        let guilty = plan.weigh(observed, &regime, &others, offences);
        capped = plan.sentence(observed, &regime, &guilty);
        plan.policy = policy::policy(observed, &regime);
    }
    if capped {
        let oldest = recent(observed).min().unwrap_or(observed.now);
        plan.look_again(observed.now, oldest + MINUTE);
    }
    plan.statuses = observed
        .scope
        .lists
        .iter()
        .zip(&compiled)
        .map(|(list, compiled)| status::status(list, compiled, &regime, &plan, capped, observed.now))
        .collect();
    plan
}

/// Whether a workload is the police's own.
pub(crate) fn is_police(workload: &Workload, observed: &Observed) -> bool {
    observed.namespace == observed.police.namespace
        && workload.account.as_deref() == Some(&observed.police.account)
}

/// The deletions of the last minute.
fn recent(observed: &Observed) -> impl Iterator<Item = Timestamp> {
    observed.known.deletions.iter().copied().filter(|at| observed.now.duration_since(*at) < MINUTE)
}

impl Plan {
    /// Sorts offences into violations and exemptions; gives the workloads of the violations, and why.
    fn weigh<'a>(
        &mut self,
        observed: &Observed,
        regime: &Regime,
        workloads: &[Workload],
        offences: Vec<Offence<'a>>,
    ) -> Vec<(&'a Workload, Vec<String>)> {
        let mut guilty: Vec<(&Workload, Vec<String>)> = Vec::new();
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for offence in offences {
            if let Some(exempt) = exemption(&offence, regime, workloads, observed.now) {
                self.look_again(observed.now, exempt.until.0);
                if !self.exempt.contains(&exempt) {
                    self.exempt.push(exempt);
                }
                continue;
            }
            let place = *places.entry(&offence.culprit.uid).or_insert(guilty.len());
            if place == guilty.len() {
                guilty.push((offence.culprit, Vec::new()));
            }
            let image = Image::read(&offence.of.image).normalized();
            guilty[place].1.push(format!("container {:?}: image {image}", offence.of.container));
            self.violations.push(Violation {
                kind: offence.culprit.kind.as_str().to_owned(),
                name: offence.culprit.name.clone(),
                container: offence.of.container.clone(),
                written: Some(&offence.of.image).filter(|written| **written != image).cloned(),
                image,
                reason: offence.reason.as_str().to_owned(),
                first_seen: Time(observed.now),
            });
        }
        self.compare(&observed.known);
        guilty
    }

    /// Finds what is new, and keeps the time at which the rest was first seen.
    fn compare(&mut self, known: &Known) {
        let identity =
            |one: &Violation| (one.kind.clone(), one.name.clone(), one.container.clone(), one.image.clone());
        let before: BTreeMap<_, &Violation> =
            known.violations.iter().map(|one| (identity(one), one)).collect();
        for violation in &mut self.violations {
            match before.get(&identity(violation)) {
                Some(before) => violation.first_seen = before.first_seen.clone(),
                None => self.found.push(violation.clone()),
            }
        }
        self.released = self.exempt.iter().filter(|one| !known.exempt.contains(one)).cloned().collect();
    }

    /// Decides what happens to the guilty; whether there were more of them than may be deleted in a minute.
    fn sentence(
        &mut self,
        observed: &Observed,
        regime: &Regime,
        guilty: &[(&Workload, Vec<String>)],
    ) -> bool {
        let most = usize::try_from(regime.max_deletions).unwrap_or(usize::MAX);
        let mut room = most.saturating_sub(recent(observed).count());
        let mut capped = false;
        for (workload, why) in guilty {
            let Some(deed) = deed(workload, regime) else { continue };
            if deed == Deed::Delete {
                if room == 0 {
                    capped = true;
                    continue;
                }
                room -= 1;
            }
            self.steps.push(Step { deed, workload: (*workload).clone(), why: why.join(", ") });
        }
        capped
    }

    fn look_again(&mut self, now: Timestamp, at: Timestamp) {
        let wait = Duration::try_from(at.duration_since(now)).unwrap_or_default();
        let wait = wait.max(Duration::from_millis(1));
        self.again = Some(self.again.map_or(wait, |known| known.min(wait)));
    }
}

/// What happens to a guilty workload, if something does.
fn deed(workload: &Workload, regime: &Regime) -> Option<Deed> {
    if regime.suspended.is_some() || workload.is_mirror {
        return None;
    }
    let was_there = workload.created.zip(regime.since).is_some_and(|(made, since)| made < since);
    if regime.existing == Existing::Report && was_there {
        return None;
    }
    match regime.enforcement {
        Enforcement::Audit | Enforcement::Deny => None,
        Enforcement::ScaleToZero => {
            (workload.kind.can_rest() && !workload.rests).then_some(Deed::ScaleToZero)
        }
        Enforcement::Delete => Some(Deed::Delete),
    }
}

/// The exemption of an offence, if there is one: of the workload that answers for it, or of one that made it.
fn exemption(
    offence: &Offence<'_>,
    regime: &Regime,
    workloads: &[Workload],
    now: Timestamp,
) -> Option<Exempt> {
    if !regime.may_exempt {
        return None;
    }
    let owner = |workload: &Workload| {
        let uid = workload.owner.as_ref()?;
        workloads.iter().find(|other| other.uid == *uid)
    };
    let line = std::iter::successors(Some(offence.culprit), |workload| owner(workload))
        .take(WorkloadKind::ALL.len());
    line.filter_map(|workload| granted(workload, now)).next()
}

/// The exemption that a workload's annotations grant: with a reason, and an end that has not come.
pub(crate) fn granted(workload: &Workload, now: Timestamp) -> Option<Exempt> {
    let (reason, until) = workload.exemption.as_ref()?;
    let until: Timestamp = until.as_ref()?.parse().ok()?;
    (!reason.trim().is_empty() && until > now).then(|| Exempt {
        kind: workload.kind.as_str().to_owned(),
        name: workload.name.clone(),
        reason: reason.clone(),
        until: Time(until),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kubewright::conditions;
    use serde_json::{Value, json};

    use super::*;
    use crate::{WhiteList, judge::tests::workload};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    #[expect(clippy::needless_pass_by_value, reason = "as it is written down")]
    fn list(name: &str, spec: Value) -> Arc<WhiteList> {
        let mut all = json!({"images": [{"name": "nginx", "tags": ["latest"]}]});
        for (field, value) in spec.as_object().expect("fields") {
            all[field] = value.clone();
        }
        let mut list = WhiteList::new(name, kubewright::object::from_value(all).expect("a spec"));
        list.metadata.namespace = Some("default".to_owned());
        Arc::new(list)
    }

    fn observed(lists: Vec<Arc<WhiteList>>, workloads: Vec<Workload>) -> Observed {
        Observed {
            namespace: "default".to_owned(),
            scope: Scope { lists, wide: Vec::new() },
            workloads,
            known: Known::default(),
            police: Police { namespace: "police".to_owned(), account: "police".to_owned() },
            now: NOW,
        }
    }

    fn described(plan: &Plan) -> Vec<String> {
        plan.steps.iter().map(|step| format!("{:?} {}", step.deed, step.workload.name)).collect()
    }

    fn enforced(plan: &Plan) -> &str {
        &conditions::find(&plan.statuses[0].conditions, "Enforced").expect("a condition").reason
    }

    #[test]
    fn ip_05_the_strictest_enforcement_holds() {
        let bad = || {
            vec![
                workload(WorkloadKind::Deployment, "bad", "evil"),
                workload(WorkloadKind::Pod, "pod", "evil"),
            ]
        };
        for (modes, steps) in [
            (vec!["Audit"], vec![]),
            (vec!["Deny"], vec![]),
            (vec!["ScaleToZero"], vec!["ScaleToZero bad"]),
            (vec!["Delete"], vec!["Delete bad", "Delete pod"]),
            (vec!["Audit", "ScaleToZero"], vec!["ScaleToZero bad"]),
        ] {
            let lists = modes.iter().map(|mode| list(mode, json!({"enforcement": mode}))).collect();
            let plan = plan(&observed(lists, bad()));
            assert_eq!(described(&plan), steps, "{modes:?}");
            assert_eq!((plan.violations.len(), plan.statuses.len()), (2, modes.len()));
        }
    }

    #[test]
    fn ip_02_nobody_judges_where_no_list_is() {
        let plan = plan(&observed(Vec::new(), vec![workload(WorkloadKind::Pod, "pod", "evil")]));
        assert_eq!(plan, Plan::default());
    }

    #[test]
    fn ip_07_a_list_that_cannot_be_understood_suspends_all() {
        let odd = json!({"images": [{"name": "a", "tags": [], "versions": ["x y"]}]});
        let lists = vec![list("odd", odd), list("good", json!({}))];
        let plan = plan(&observed(lists, vec![workload(WorkloadKind::Pod, "pod", "evil")]));
        assert_eq!((described(&plan).len(), plan.violations.len(), enforced(&plan)), (0, 1, "InvalidRules"));
    }

    /// Beyond 5.
    #[test]
    fn ip_07_deletions_of_the_last_minute_count_for_the_cap() {
        let pods =
            (0..5).map(|number| workload(WorkloadKind::Pod, &format!("pod-{number}"), "evil")).collect();
        let mut observed = observed(vec![list("a", json!({"maxDeletionsPerMinute": 3}))], pods);
        observed.known.deletions =
            vec![NOW - SignedDuration::from_secs(20), NOW - SignedDuration::from_secs(70)];
        let plan = plan(&observed);
        assert_eq!(described(&plan), ["Delete pod-0", "Delete pod-1"]);
        assert_eq!(enforced(&plan), "DeletionCapReached");
        assert_eq!(plan.again, Some(Duration::from_secs(40)));
    }

    #[test]
    fn what_was_told_of_is_not_told_again_and_keeps_its_time() {
        let mut observed =
            observed(vec![list("a", json!({}))], vec![workload(WorkloadKind::Pod, "pod", "evil")]);
        let first = plan(&observed);
        assert_eq!(first.found, first.violations);
        observed.known.violations = first.violations.clone();
        observed.now = NOW + SignedDuration::from_hours(1);
        let second = plan(&observed);
        assert_eq!((second.found.len(), &second.violations), (0, &first.violations));
    }

    #[test]
    fn a_mirror_pod_is_reported_only() {
        let mut pod = workload(WorkloadKind::Pod, "static", "evil");
        pod.is_mirror = true;
        let plan = plan(&observed(vec![list("a", json!({}))], vec![pod]));
        assert_eq!((described(&plan).len(), plan.violations.len()), (0, 1));
    }

    /// IP-14.
    #[test]
    fn ip_14_the_polices_own_pods_are_never_judged() {
        let mut own = workload(WorkloadKind::Deployment, "police", "police:1");
        own.account = Some("police".to_owned());
        let mut observed = observed(
            vec![list("a", json!({"enforceInSystemNamespace": true}))],
            vec![own, workload(WorkloadKind::Deployment, "bad", "evil")],
        );
        observed.namespace = "police".to_owned();
        assert_eq!(described(&plan(&observed)), ["Delete bad"]);
    }
}
