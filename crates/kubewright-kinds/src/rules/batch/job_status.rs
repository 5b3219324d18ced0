//! What the status of a job may become (`validateJobStatus`, `ValidateJobStatusUpdate` in `pkg/apis/batch/validation` and
//! `getStatusValidationOptions` in `pkg/registry/batch/job`).
//!
//! Whoever manages a job writes its status, so a job that has ended stays ended, says why, and counts nothing down. Most
//! rules speak only when what they are about changes: a job that breaks one already can still be written.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kubewright_meta::FieldError;
use serde_json::Value;

use super::super::at::At;
use super::super::errors::{Errors, IMMUTABLE};
use super::super::printed;

/// Checks the status that is written against the one that was there.
pub(super) fn validate(new: &Value, old: &Value) -> Vec<FieldError> {
    Errors::of(|errors| {
        let change = Change { new: Job::of(new), old: Job::of(old) };
        check_numbers(&change.new, errors);
        check_end(&change, errors);
        check_indexes(&change, errors);
        check_pods(&change, errors);
        check_success(&change.new, errors);
        check_steps(&change, errors);
    })
}

/// A job, as far as its status depends on it.
struct Job<'a> {
    spec: At<'a>,
    status: At<'a>,
}

impl<'a> Job<'a> {
    fn of(object: &'a Value) -> Self {
        let root = At::root(object);
        Self { spec: root.get("spec"), status: root.get("status") }
    }

    fn has(&self, condition: &str, status: &str) -> bool {
        self.status
            .get("conditions")
            .items()
            .any(|one| one.get("type").text() == condition && one.get("status").text() == status)
    }

    fn is(&self, condition: &str) -> bool {
        self.has(condition, "True")
    }

    fn is_finished(&self) -> bool {
        self.is("Complete") || self.is("Failed")
    }

    fn is_indexed(&self) -> bool {
        self.spec.get("completionMode").text() == "Indexed"
    }

    fn count(&self, field: &str) -> i64 {
        self.status.get(field).number().unwrap_or(0)
    }

    /// An error about its conditions.
    fn contradiction(&self, errors: &mut Errors, detail: impl Into<String>) {
        errors.push(FieldError::omitted(self.status.get("conditions").path, detail));
    }
}

struct Change<'a> {
    new: Job<'a>,
    old: Job<'a>,
}

impl Change<'_> {
    /// Whether a condition begins or ceases to be true.
    fn of_condition(&self, condition: &str) -> bool {
        self.new.is(condition) != self.old.is(condition)
    }

    fn of_end(&self) -> bool {
        self.new.is_finished() != self.old.is_finished()
    }

    /// Whether a field of the status changes; a field that Go keeps as a plain value is the same when it is empty.
    fn of(&self, field: &str) -> bool {
        match field {
            "active" => self.new.count(field) != self.old.count(field),
            "completedIndexes" => self.new.status.get(field).text() != self.old.status.get(field).text(),
            _ => !self.new.status.get(field).same(&self.old.status.get(field)),
        }
    }
}

fn check_numbers(job: &Job<'_>, errors: &mut Errors) {
    for field in ["active", "succeeded", "failed", "ready", "terminating"] {
        errors.non_negative(&job.status.get(field));
    }
    // Pods are told once in both lists.
    let mut seen = BTreeSet::new();
    for list in ["succeeded", "failed"] {
        for uid in job.status.dig(&["uncountedTerminatedPods", list]).items() {
            if uid.text().is_empty() {
                errors.invalid_text(&uid, "must not be empty");
            } else if !seen.insert(uid.text()) {
                errors.duplicate(&uid);
            }
        }
    }
}

/// A job ends well or badly, not both; first it is decided, then its pods end, then it has ended.
fn check_end(change: &Change<'_>, errors: &mut Errors) {
    let (job, completed) = (&change.new, change.new.status.get("completionTime"));
    let complete_changes = change.of_condition("Complete");
    let time_changes = complete_changes || change.of("completionTime");
    if (complete_changes || change.of_condition("Failed")) && job.is("Complete") && job.is("Failed") {
        job.contradiction(errors, "cannot set Complete=True and Failed=true conditions");
    }
    let target_changes = complete_changes || change.of_condition("FailureTarget");
    if target_changes && job.is("Complete") && job.is("FailureTarget") {
        job.contradiction(errors, "cannot set Complete=True and FailureTarget=true conditions");
    }
    if time_changes && completed.is_set() && !job.is("Complete") {
        let detail = "cannot set completionTime when there is no Complete=True condition";
        errors.invalid_as(&completed, printed::time(&completed), detail);
    }
    if time_changes && !completed.is_set() && job.is("Complete") {
        errors.required(&completed, "completionTime is required for Complete jobs");
    }
    if change.of("startTime") || change.of("completionTime") {
        let start = job.status.get("startTime");
        let time = |at: &At<'_>| at.text().parse::<Timestamp>().ok();
        if time(&start).zip(time(&completed)).is_some_and(|(start, completed)| completed < start) {
            errors.invalid_as(&completed, printed::time(&completed), "must be equal to or after `startTime`");
        }
    }
    let failed_changes = change.of_condition("Failed") || change.of("failedIndexes");
    if failed_changes && job.is("Failed") && !job.is("FailureTarget") {
        job.contradiction(
            errors,
            "cannot set Failed=True condition without the FailureTarget=true condition",
        );
    }
    let success_changes = complete_changes || change.of_condition("SuccessCriteriaMet");
    if success_changes && job.is("Complete") && !job.is("SuccessCriteriaMet") {
        let detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
        job.contradiction(errors, detail);
    }
    check_rest(change, errors);
}

/// A job that has ended was started, and has no pods left to run or to count.
fn check_rest(change: &Change<'_>, errors: &mut Errors) {
    let job = &change.new;
    if !job.is_finished() {
        return;
    }
    if (change.of_end() || change.of("active")) && job.count("active") > 0 {
        errors.invalid(&job.status.get("active"), "active>0 is invalid for finished job");
    }
    let never_ran = job.spec.get("suspend").is_true() && job.spec.get("completions").number() == Some(0);
    let start = job.status.get("startTime");
    if (change.of_end() || change.of("startTime")) && !never_ran && !start.is_set() {
        errors.required(&start, "startTime is required for finished job");
    }
    let uncounted = job.status.get("uncountedTerminatedPods");
    let some = !uncounted.get("succeeded").is_empty() || !uncounted.get("failed").is_empty();
    if (change.of_end() || change.of("uncountedTerminatedPods")) && some {
        let list = |name: &str| uncounted.get(name).value.to_string();
        // Go prints its internal type here.
        let printed = format!(r#"{{"Succeeded":{},"Failed":{}}}"#, list("succeeded"), list("failed"));
        let error =
            FieldError::invalid(&uncounted.path, uncounted.value.clone(), "must be empty for finished job");
        errors.push(error.printed(printed));
    }
}

fn check_indexes(change: &Change<'_>, errors: &mut Errors) {
    let job = &change.new;
    let (completed, failed) = (job.status.get("completedIndexes"), job.status.get("failedIndexes"));
    let (completed_change, failed_change) = (change.of("completedIndexes"), change.of("failedIndexes"));
    let completions = job.spec.get("completions").number();
    let limited = job.spec.get("backoffLimitPerIndex").is_set();
    if let Some(completions) = completions {
        if completed_change && let Err(error) = check_format(completed.text(), completions) {
            errors.invalid_text(&completed, format!("error parsing completedIndexes: {error}"));
        }
        if failed_change
            && limited
            && let Err(error) = check_format(failed.text(), completions)
        {
            errors.invalid_text(&failed, format!("error parsing failedIndexes: {error}"));
        }
    }
    if completed_change && !completed.text().is_empty() && !job.is_indexed() {
        errors.invalid(&completed, "cannot set non-empty completedIndexes when non-indexed completion mode");
    }
    if failed_change && failed.is_set() && !limited {
        errors.invalid(&failed, "cannot set non-null failedIndexes when backoffLimitPerIndex is null");
    }
    if let Some(completions) = completions
        && (completed_change || failed_change)
        && failed.is_set()
        && let Some(index) = overlap(completed.text(), failed.text(), completions)
    {
        errors.invalid(&failed, format!("failedIndexes and completedIndexes overlap at index: {index}"));
    }
}

fn check_pods(change: &Change<'_>, errors: &mut Errors) {
    let job = &change.new;
    if (change.of_end() || change.of("terminating")) && job.count("terminating") > 0 && job.is_finished() {
        errors.invalid(&job.status.get("terminating"), "terminating>0 is invalid for finished job");
    }
    let ready = job.status.get("ready");
    if (change.of("ready") || change.of("active"))
        && ready.number().is_some_and(|ready| ready > job.count("active"))
    {
        errors.invalid(&ready, "cannot set more ready pods than active");
    }
}

/// What holds of the criteria of success, whatever changes.
fn check_success(job: &Job<'_>, errors: &mut Errors) {
    let met = job.is("SuccessCriteriaMet");
    for other in ["Failed", "FailureTarget"] {
        if met && job.is(other) {
            job.contradiction(
                errors,
                format!("cannot set SuccessCriteriaMet=True and {other}=true conditions"),
            );
        }
    }
    if job.spec.get("successPolicy").is_set() && !met && job.is("Complete") {
        let detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
        job.contradiction(errors, detail);
    }
}

/// What may not be taken back.
fn check_steps(change: &Change<'_>, errors: &mut Errors) {
    let Change { new, old } = change;
    for kind in ["Failed", "Complete", "FailureTarget"] {
        if old.is(kind) && !new.is(kind) {
            new.contradiction(errors, format!("cannot disable the terminal {kind}=True condition"));
        }
    }
    if new.count("failed") < old.count("failed") {
        errors.invalid_as(
            &new.status.get("failed"),
            new.count("failed"),
            "cannot decrease the failed counter",
        );
    }
    // An elastic indexed job may be scaled down below what has succeeded.
    let elastic =
        new.is_indexed() && new.spec.get("completions").number() == new.spec.get("parallelism").number();
    if !elastic && new.count("succeeded") < old.count("succeeded") {
        let at = new.status.get("succeeded");
        errors.invalid_as(&at, new.count("succeeded"), "cannot decrease the succeeded counter");
    }
    let (completed, before) = (new.status.get("completionTime"), old.status.get("completionTime"));
    if completed.is_set() && before.is_set() && !completed.same(&before) {
        errors.invalid_as(&completed, printed::time(&completed), IMMUTABLE);
    }
    let (start, before) = (new.status.get("startTime"), old.status.get("startTime"));
    let resumes = old.is("Suspended") && new.has("Suspended", "False");
    let suspended = new.spec.get("suspend").is_true();
    if before.is_set() && !start.same(&before) && !resumes && !suspended {
        errors.invalid_as(&start, printed::time(&start), "field is immutable for unsuspended job once set");
    }
    let (met, was_met) = (new.is("SuccessCriteriaMet"), old.is("SuccessCriteriaMet"));
    if was_met && !met {
        new.contradiction(errors, "cannot disable the SuccessCriteriaMet=True condition");
    }
    if old.is("Complete") && !was_met && met {
        let detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
        new.contradiction(errors, detail);
    }
}

/// Checks indexes as jobs write them: `1,3-5,7`, in increasing order and below the number of completions.
fn check_format(indexes: &str, completions: i64) -> Result<(), String> {
    let mut last = None;
    for interval in indexes.split(',').filter(|_| !indexes.is_empty()) {
        let (first, end) = parse_interval(interval, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        last = Some(end);
    }
    Ok(())
}

/// The first and the last index of an interval, such as `3` or `3-5`.
fn parse_interval(interval: &str, completions: i64) -> Result<(i64, i64), String> {
    let index = |text: &str| {
        let index: i64 =
            text.parse().map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
        if index >= completions { Err(format!("too large index: {text:?}")) } else { Ok(index) }
    };
    let mut limits = interval.split('-');
    let (first, last) = (limits.next().unwrap_or_default(), limits.next());
    if limits.next().is_some() {
        return Err(format!(
            "the fragment {interval:?} violates the requirement that an index interval can have at most two parts separated by '-'"
        ));
    }
    let first = index(first)?;
    let Some(last) = last else { return Ok((first, first)) };
    let last = index(last)?;
    if first >= last {
        return Err(format!("non-increasing order, previous: {first}, current: {last}"));
    }
    Ok((first, last))
}

/// The first index that both have; what is no interval is told of by [`check_format`].
fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    let intervals = |text: &str| {
        let parsed = text.split(',').filter_map(|interval| parse_interval(interval, completions).ok());
        parsed.collect::<Vec<_>>()
    };
    let (completed, failed) = (intervals(completed), intervals(failed));
    let (mut one, mut other) = (completed.iter().peekable(), failed.iter().peekable());
    while let (Some((first, last)), Some((other_first, other_last))) = (one.peek(), other.peek()) {
        if first <= other_last && other_first <= last {
            return Some(*first.max(other_first));
        }
        if first <= other_first {
            one.next();
        } else {
            other.next();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{check_format, overlap, validate};

    const EARLY: &str = "2026-01-02T03:04:05Z";
    const LATE: &str = "2026-01-02T03:05:05Z";

    fn job(status: &Value) -> Value {
        json!({"spec": {"completions": 5, "parallelism": 2, "completionMode": "NonIndexed"}, "status": status})
    }

    fn conditions(names: &[&str]) -> Value {
        names.iter().map(|name| json!({"type": name, "status": "True"})).collect()
    }

    /// What is said of a step from one status to another.
    fn said(old: &Value, new: &Value) -> Vec<String> {
        said_of(&job(old), &job(new))
    }

    fn said_of(old: &Value, new: &Value) -> Vec<String> {
        validate(new, old).iter().map(|error| format!("{}: {}", error.field, error.detail)).collect()
    }

    #[test]
    fn a_job_that_was_decided_and_started_may_end() {
        let started = json!({"startTime": EARLY, "active": 1});
        let complete = json!({
            "startTime": EARLY, "completionTime": LATE, "conditions": conditions(&["SuccessCriteriaMet", "Complete"]),
        });
        assert_eq!(said(&started, &complete), [] as [&str; 0]);
        let failed = json!({"startTime": EARLY, "conditions": conditions(&["FailureTarget", "Failed"])});
        assert_eq!(said(&started, &failed), [] as [&str; 0]);
    }

    #[test]
    fn a_job_does_not_end_without_a_reason_a_start_and_an_end_of_its_pods() {
        let complete =
            json!({"active": 1, "terminating": 1, "ready": 2, "conditions": conditions(&["Complete"])});
        assert_eq!(
            said(&json!({}), &complete),
            [
                "status.completionTime: completionTime is required for Complete jobs",
                "status.conditions: cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
                "status.active: active>0 is invalid for finished job",
                "status.startTime: startTime is required for finished job",
                "status.terminating: terminating>0 is invalid for finished job",
                "status.ready: cannot set more ready pods than active",
            ]
        );
        assert_eq!(said(&complete, &complete), [] as [&str; 0], "what is so already is let be");
        assert_eq!(
            said(&json!({}), &json!({"startTime": EARLY, "conditions": conditions(&["Failed"])})),
            ["status.conditions: cannot set Failed=True condition without the FailureTarget=true condition"]
        );
    }

    #[test]
    fn a_job_that_has_ended_stays_so() {
        let ended = json!({
            "startTime": EARLY, "completionTime": LATE, "conditions": conditions(&["SuccessCriteriaMet", "Complete"]),
        });
        assert_eq!(
            said(&ended, &json!({"startTime": LATE, "completionTime": EARLY})),
            [
                "status.completionTime: cannot set completionTime when there is no Complete=True condition",
                "status.completionTime: must be equal to or after `startTime`",
                "status.conditions: cannot disable the terminal Complete=True condition",
                "status.completionTime: field is immutable",
                "status.startTime: field is immutable for unsuspended job once set",
                "status.conditions: cannot disable the SuccessCriteriaMet=True condition",
            ]
        );
    }

    #[test]
    fn parts_of_a_second_count_and_are_not_shown() {
        let found = said(
            &json!({}),
            &json!({"startTime": "2024-01-01T00:00:00.5Z", "completionTime": "2024-01-01T00:00:00.25Z"}),
        );
        assert!(
            found.contains(&"status.completionTime: must be equal to or after `startTime`".to_owned()),
            "{found:?}"
        );
    }

    #[test]
    fn a_job_that_goes_on_after_a_pause_starts_again() {
        let suspended = |status: &str| json!([{"type": "Suspended", "status": status}]);
        let paused = json!({"startTime": EARLY, "conditions": suspended("True")});
        assert_eq!(
            said(&paused, &json!({"startTime": LATE, "conditions": suspended("False")})),
            [] as [&str; 0]
        );
        assert_eq!(said(&paused, &json!({"startTime": LATE})).len(), 1);
    }

    #[test]
    fn pods_are_not_uncounted_unless_an_elastic_job_shrinks() {
        let counted = json!({"succeeded": 2, "failed": 1});
        assert_eq!(
            said(&counted, &json!({})),
            [
                "status.failed: cannot decrease the failed counter",
                "status.succeeded: cannot decrease the succeeded counter",
            ]
        );
        let elastic = |succeeded: u32| {
            let mut job = job(&json!({"succeeded": succeeded}));
            job["spec"] = json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed"});
            job
        };
        assert_eq!(said_of(&elastic(3), &elastic(2)), [] as [&str; 0]);
    }

    #[test]
    fn indexes_are_ordered_intervals_below_the_completions() {
        for good in ["", "0", "0,2-4", "1-2,4"] {
            assert_eq!(check_format(good, 5), Ok(()), "{good}");
        }
        for (bad, wanted) in [
            ("a", "cannot convert string to integer for index: \"a\""),
            (
                "1-2-3",
                "the fragment \"1-2-3\" violates the requirement that an index interval can have at most two parts separated by '-'",
            ),
            ("5", "too large index: \"5\""),
            ("2-2", "non-increasing order, previous: 2, current: 2"),
            ("2,1", "non-increasing order, previous: 2, current: 1"),
        ] {
            assert_eq!(check_format(bad, 5), Err(wanted.to_owned()), "{bad}");
        }
        assert_eq!(overlap("0,2-4", "1,3", 5), Some(3));
        assert_eq!(overlap("0,2-3", "1,4", 5), None);
    }

    #[test]
    fn only_indexed_jobs_have_indexes() {
        assert_eq!(
            said(&json!({}), &json!({"completedIndexes": "0", "failedIndexes": "0"})),
            [
                "status.completedIndexes: cannot set non-empty completedIndexes when non-indexed completion mode",
                "status.failedIndexes: cannot set non-null failedIndexes when backoffLimitPerIndex is null",
                "status.failedIndexes: failedIndexes and completedIndexes overlap at index: 0",
            ]
        );
    }
}
