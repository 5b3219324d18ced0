//! How many replicas a metric asks for: pure arithmetic (`pkg/controller/podautoscaler/replica_calculator.go`,
//! `metrics/utilization.go`). All amounts are in thousandths.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kubewright_spec::Version;

use super::requests::{self, name};
use super::samples::{Sample, Samples};
use crate::pod;

/// How long after its start a pod may use much processor time because it starts.
const CPU_INITIALIZATION: SignedDuration = SignedDuration::from_mins(5);
/// How long after its start a pod that became unready has not been ready before.
const INITIAL_READINESS: SignedDuration = SignedDuration::from_secs(30);

/// By which share of the target usage may differ from it before anything is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tolerances {
    pub(super) down: f64,
    pub(super) up: f64,
}

impl Tolerances {
    fn holds(self, ratio: f64) -> bool {
        1.0 - self.down <= ratio && ratio <= 1.0 + self.up
    }
}

/// What is scaled, as it is now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene<'a> {
    /// The pods that the scale's selector matches.
    pub(super) pods: &'a [Arc<Pod>],
    /// `spec.replicas` of the scale.
    pub(super) spec_replicas: i32,
    /// `status.replicas` of the scale.
    pub(super) status_replicas: i32,
    pub(super) tolerances: Tolerances,
    pub(super) now: Timestamp,
    /// The version in whose words failures are told.
    pub(super) kubernetes: Version,
}

/// What a resource's utilization asks for, and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Utilization {
    pub(super) replicas: i32,
    /// In percent of what is requested.
    pub(super) percent: i32,
    /// On average.
    pub(super) usage: i64,
}

/// What a usage asks for, and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) replicas: i32,
    pub(super) usage: i64,
}

impl Scene<'_> {
    /// For a resource of which each pod, or one container of it, is to use so many percent of its request
    /// (`GetResourceReplicas`).
    ///
    /// # Errors
    /// Why it cannot be said.
    pub(super) fn for_utilization(
        &self,
        samples: Samples,
        (resource, container): (&str, Option<&str>),
        target: i32,
    ) -> Result<Utilization, String> {
        let measured = self.measured(samples, resource == "cpu")?;
        let requests = requests::of_pods(self.pods, container, resource)?;
        let (ratio, percent, usage) = utilization(&measured.samples, &requests, target)?;
        let most = i64::from(target.max(100));
        let full = |pod: &str| {
            let request = requests.get(pod).copied().unwrap_or_default();
            narrowed(i128::from(request) * i128::from(most) / 100)
        };
        let again = |samples: &Samples| Ok(utilization(samples, &requests, target)?.0);
        Ok(Utilization { replicas: self.decide(measured, ratio, full, again)?, percent, usage })
    }

    /// For a metric that is to have this value on average over the pods (`calcPlainMetricReplicas`).
    ///
    /// # Errors
    /// Why it cannot be said.
    pub(super) fn for_average(&self, samples: Samples, is_cpu: bool, target: i64) -> Result<Usage, String> {
        let measured = self.measured(samples, is_cpu)?;
        let (ratio, usage) = average(&measured.samples, target);
        let again = |samples: &Samples| Ok(average(samples, target).0);
        Ok(Usage { replicas: self.decide(measured, ratio, |_| target, again)?, usage })
    }

    /// For one value that is to be the target (`getUsageRatioReplicaCount`).
    ///
    /// # Errors
    /// When there are no pods.
    pub(super) fn for_value(&self, usage: i64, target: i64) -> Result<Usage, String> {
        let ratio = usage as f64 / target as f64;
        if self.spec_replicas == 0 {
            return Ok(Usage { replicas: ratio.ceil() as i32, usage });
        }
        if self.tolerances.holds(ratio) {
            return Ok(Usage { replicas: self.spec_replicas, usage });
        }
        if self.pods.is_empty() {
            return Err(format!("unable to calculate ready pods: {NO_PODS}"));
        }
        let ready = self.pods.iter().filter(|one| pod::phase(one) == "Running" && pod::is_ready(one)).count();
        Ok(Usage { replicas: (ratio * ready as f64).ceil() as i32, usage })
    }

    /// For one value that is to be the target when it is divided by the replicas (`GetObjectPerPodMetricReplicas`,
    /// `GetExternalPerPodMetricReplicas`).
    pub(super) fn for_value_per_pod(&self, usage: i64, target: i64) -> Usage {
        let (total, replicas) = (usage as f64, f64::from(self.status_replicas));
        let within = self.tolerances.holds(total / (target as f64 * replicas));
        Usage {
            replicas: if within { self.status_replicas } else { (total / target as f64).ceil() as i32 },
            usage: if usage == i64::MAX { usage } else { (total / replicas).ceil() as i64 },
        }
    }

    /// Sorts the pods, and leaves out what was measured of those that do not count.
    fn measured(&self, mut samples: Samples, is_cpu: bool) -> Result<Measured, String> {
        if self.pods.is_empty() {
            return Err(NO_PODS.into());
        }
        let mut groups = Groups::default();
        for pod in self.pods {
            groups.add(pod, samples.get(name(pod)), is_cpu, self.now);
        }
        samples.retain(|pod, _| !groups.ignored.contains(pod) && !groups.unready.contains(pod));
        if samples.is_empty() {
            return Err("did not receive metrics for targeted pods (pods might be unready)".into());
        }
        Ok(Measured { samples, groups })
    }

    /// The replicas for a usage that is `ratio` of its target. Pods of which nothing is known count against the change:
    /// as if they used `full` when it goes down, and nothing when it goes up.
    fn decide(
        &self,
        measured: Measured,
        ratio: f64,
        full: impl Fn(&str) -> i64,
        again: impl Fn(&Samples) -> Result<f64, String>,
    ) -> Result<i32, String> {
        let Measured { mut samples, groups } = measured;
        let up_with_unready = !groups.unready.is_empty() && ratio > 1.0;
        if !up_with_unready && groups.missing.is_empty() {
            let stay = self.tolerances.holds(ratio);
            return Ok(if stay { self.spec_replicas } else { (ratio * groups.ready as f64).ceil() as i32 });
        }
        if ratio < 1.0 {
            let all = groups.missing.iter().map(|pod| (pod.clone(), Sample::assumed(full(pod))));
            samples.extend(all);
        } else if ratio > 1.0 {
            samples.extend(groups.missing.iter().map(|pod| (pod.clone(), Sample::assumed(0))));
        }
        if up_with_unready {
            samples.extend(groups.unready.iter().map(|pod| (pod.clone(), Sample::assumed(0))));
        }
        let new = again(&samples)?;
        let turned = (ratio < 1.0 && new > 1.0) || (ratio > 1.0 && new < 1.0);
        if self.tolerances.holds(new) || turned {
            return Ok(self.spec_replicas);
        }
        let replicas = (new * samples.len() as f64).ceil() as i32;
        let against =
            (new < 1.0 && replicas > self.spec_replicas) || (new > 1.0 && replicas < self.spec_replicas);
        Ok(if against { self.spec_replicas } else { replicas })
    }
}

const NO_PODS: &str = "no pods returned by selector while calculating replica count";

/// What was measured of the pods that count, and how the others are.
struct Measured {
    samples: Samples,
    groups: Groups,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Groups {
    ready: usize,
    unready: BTreeSet<String>,
    missing: BTreeSet<String>,
    ignored: BTreeSet<String>,
}

impl Groups {
    /// Sorts a pod (`groupPods`).
    fn add(&mut self, pod: &Pod, sample: Option<&Sample>, is_cpu: bool, now: Timestamp) {
        let group = match sample {
            _ if pod.metadata.deletion_timestamp.is_some() || pod::phase(pod) == "Failed" => {
                &mut self.ignored
            }
            _ if pod::phase(pod) == "Pending" => &mut self.unready,
            None => &mut self.missing,
            Some(sample) if is_cpu && is_starting(pod, sample, now) => &mut self.unready,
            Some(_) => {
                self.ready += 1;
                return;
            }
        };
        group.insert(name(pod).to_owned());
    }
}

/// Whether what a pod uses of the processor says nothing about its work: it has not been ready yet, or it was measured
/// before.
fn is_starting(pod: &Pod, sample: &Sample, now: Timestamp) -> bool {
    let started = pod.status.as_ref().and_then(|status| status.start_time.as_ref());
    let (Some(ready), Some(started)) = (pod::condition(pod, "Ready"), started) else { return true };
    let unready = ready.status == "False";
    let changed = ready.last_transition_time.as_ref().map_or(Timestamp::MIN, |time| time.0);
    if now.duration_since(started.0) < CPU_INITIALIZATION {
        unready || sample.at.unwrap_or(Timestamp::MIN).duration_since(changed) < sample.window
    } else {
        unready && changed.duration_since(started.0) < INITIAL_READINESS
    }
}

/// What part of the target the utilization is, the utilization in percent, and the usage on average
/// (`GetResourceUtilizationRatio`).
fn utilization(
    samples: &Samples,
    requests: &BTreeMap<String, i64>,
    target: i32,
) -> Result<(f64, i32, i64), String> {
    let known = samples.iter().filter_map(|(pod, sample)| Some((sample.value, *requests.get(pod)?)));
    let (mut used, mut requested, mut count) = (0_i128, 0_i128, 0_i128);
    for (value, request) in known {
        used += i128::from(value);
        requested += i128::from(request);
        count += 1;
    }
    if requested == 0 {
        return Err("no metrics returned matched known pods".into());
    }
    let percent = i32::try_from(used * 100 / requested).unwrap_or(i32::MAX);
    Ok((f64::from(percent) / f64::from(target), percent, narrowed(used / count)))
}

/// What part of the target the average is, and the average (`GetMetricUsageRatio`). There is a sample at least.
fn average(samples: &Samples, target: i64) -> (f64, i64) {
    let total: i128 = samples.values().map(|sample| i128::from(sample.value)).sum();
    let average = narrowed(total / i128::try_from(samples.len().max(1)).unwrap_or(1));
    (average as f64 / target as f64, average)
}

fn narrowed(amount: i128) -> i64 {
    i64::try_from(amount).unwrap_or(if amount < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
#[path = "calculator_tests.rs"]
mod tests;
