//! Which workloads use images that no list allows, and which of them answers for it: a pure function.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    image::Image,
    rules::{Reason, Rules},
    workload::{Use, Workload, WorkloadKind},
};

/// A use of an image that no list allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offence<'a> {
    /// The workload that answers for it.
    pub culprit: &'a Workload,
    /// The use.
    pub of: &'a Use,
    /// Why it is not allowed.
    pub reason: Reason,
}

/// Who made whom, among workloads.
struct Family<'a>(BTreeMap<&'a str, &'a Workload>);

impl<'a> Family<'a> {
    fn new(workloads: &'a [Workload]) -> Self {
        Self(workloads.iter().map(|workload| (workload.uid.as_str(), workload)).collect())
    }

    /// The workload that controls this one, if it is judged too.
    fn owner(&self, workload: &Workload) -> Option<&'a Workload> {
        self.0.get(workload.owner.as_deref()?).copied()
    }

    /// The workload at the top, and all between it and this one.
    fn ancestors(&self, workload: &'a Workload) -> impl Iterator<Item = &'a Workload> {
        // Owners are older than what they own, but uids are only words: a circle must not be walked for ever.
        std::iter::successors(self.owner(workload), |owner| self.owner(owner)).take(WorkloadKind::ALL.len())
    }
}

/// The uses of images that no list in `rules` allows, in the order of `workloads`.
///
/// A workload that another judged one controls answers only for what that one did not tell it to use: a Deployment answers
/// for its pods, once, and deleting one of them would only start a fight with the ReplicaSet. What somebody added to a pod that
/// runs (`kubectl debug`) is the pod's own; a ReplicaSet that still runs what its Deployment does not say any more answers for
/// itself. What is over, or has no replicas, and belongs to another is history; what belongs to one that is gone, or on its way out,
/// is the garbage collector's.
#[must_use]
pub fn offences<'a>(workloads: &'a [Workload], rules: &[&Rules]) -> Vec<Offence<'a>> {
    let family = Family::new(workloads);
    let (mut all, mut known) = (Vec::new(), BTreeSet::new());
    for workload in workloads {
        let owner = family.owner(workload);
        let is_orphan = owner.is_none() && workload.owner_is_judged;
        if is_orphan || owner.is_some() && (workload.is_over || workload.rests) {
            continue;
        }
        for of in &workload.uses {
            if owner.is_some_and(|owner| refers_to(owner, of)) {
                continue;
            }
            let Err(reason) = judge(&of.image, rules) else { continue };
            let answers_itself = of.ephemeral || workload.kind != WorkloadKind::Pod;
            let culprit =
                if answers_itself { workload } else { family.ancestors(workload).last().unwrap_or(workload) };
            // Each of a Deployment's pods may say the same of it.
            if known.insert((&culprit.uid, &of.container, &of.image)) {
                all.push(Offence { culprit, of, reason });
            }
        }
    }
    all
}

/// Whether the owner's template says so.
fn refers_to(owner: &Workload, of: &Use) -> bool {
    !of.ephemeral && owner.uses.contains(of)
}

/// Whether any list allows the image.
///
/// # Errors
/// How close it came.
pub fn judge(image: &str, rules: &[&Rules]) -> Result<(), Reason> {
    let image = Image::read(image);
    let mut closest = Reason::Unreadable;
    for rules in rules {
        match rules.judge(&image) {
            Ok(()) => return Ok(()),
            Err(reason) => closest = closest.max(reason),
        }
    }
    Err(closest)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::rules::tests::{allowed, spec};

    pub(crate) fn workload(kind: WorkloadKind, name: &str, image: &str) -> Workload {
        Workload {
            kind,
            name: name.to_owned(),
            uid: format!("uid-{name}"),
            created: None,
            owner: None,
            owner_is_judged: false,
            uses: vec![Use { container: "main".to_owned(), image: image.to_owned(), ephemeral: false }],
            rests: false,
            is_over: false,
            is_mirror: false,
            account: None,
            exemption: None,
        }
    }

    pub(crate) fn owned(mut workload: Workload, owner: &str) -> Workload {
        workload.owner = Some(format!("uid-{owner}"));
        workload.owner_is_judged = true;
        workload
    }

    fn described(workloads: &[Workload]) -> Vec<String> {
        let rules = Rules::compile(&spec(vec![allowed("nginx", &["latest"])])).expect("rules");
        let describe = |offence: &Offence<'_>| {
            format!("{} {} {}", offence.culprit.kind.as_str(), offence.culprit.name, offence.of.image)
        };
        offences(workloads, &[&rules]).iter().map(describe).collect()
    }

    fn family(deployment: &str, set: &str, pod: &str) -> Vec<Workload> {
        vec![
            workload(WorkloadKind::Deployment, "web", deployment),
            owned(workload(WorkloadKind::ReplicaSet, "web-1", set), "web"),
            owned(workload(WorkloadKind::Pod, "web-1-a", pod), "web-1"),
            owned(workload(WorkloadKind::Pod, "web-1-b", pod), "web-1"),
        ]
    }

    /// Beyond 4: a pod made by a judged owner is charged to the top owner once.
    #[test]
    fn ip_05_the_top_owner_answers_once() {
        assert_eq!(described(&family("nginx", "nginx", "nginx")), [""; 0]);
        assert_eq!(described(&family("evil", "evil", "evil")), ["Deployment web evil"]);
        assert_eq!(
            described(&family("nginx", "nginx", "evil")),
            ["Deployment web evil"],
            "what a webhook put in"
        );
    }

    #[test]
    fn a_replica_set_that_still_runs_what_its_deployment_does_not_say_answers_for_itself() {
        let mut all = family("nginx", "evil", "evil");
        assert_eq!(described(&all), ["ReplicaSet web-1 evil"]);
        all[1].rests = true;
        all.truncate(2);
        assert_eq!(described(&all), [""; 0], "a revision of the past");
    }

    #[test]
    fn what_was_added_to_a_pod_is_the_pods_own() {
        let mut all = family("nginx", "nginx", "nginx");
        all[2].uses.push(Use { container: "debug".to_owned(), image: "evil".to_owned(), ephemeral: true });
        assert_eq!(described(&all), ["Pod web-1-a evil"]);
    }

    #[test]
    fn whose_owner_nobody_judges_answers_for_itself() {
        let mut pod = owned(workload(WorkloadKind::Pod, "a", "evil"), "somebody");
        assert_eq!(described(&[pod.clone()]), [""; 0], "its owner is gone, and it will be");
        pod.owner_is_judged = false;
        assert_eq!(described(&[pod]), ["Pod a evil"]);
    }

    #[test]
    fn a_finished_job_of_a_cron_job_is_history_and_one_of_nobody_is_not() {
        let cron = workload(WorkloadKind::CronJob, "nightly", "nginx");
        let mut job = owned(workload(WorkloadKind::Job, "nightly-1", "evil"), "nightly");
        assert_eq!(described(&[cron.clone(), job.clone()]), ["Job nightly-1 evil"]);
        job.is_over = true;
        assert_eq!(described(&[cron, job.clone()]), [""; 0]);
        (job.owner, job.owner_is_judged) = (None, false);
        assert_eq!(described(&[job]), ["Job nightly-1 evil"]);
    }

    #[test]
    fn owners_in_a_circle_end() {
        let a = owned(workload(WorkloadKind::Pod, "a", "evil"), "b");
        let b = owned(workload(WorkloadKind::Pod, "b", "evil2"), "a");
        assert_eq!(described(&[a, b]).len(), 2);
    }
}
