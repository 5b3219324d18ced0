//! Jobs and cron jobs.

use jiff::Timestamp;
use serde_json::Value;

use super::age::{age, ago, human};
use super::column::{NAME, boolean, integer, text as column};
use super::printer::Printer;
use super::value::{at, cells, condition, count, number, text, text_or};
use super::workloads::{containers, selector};

/// Prints jobs.
pub const JOBS: Printer = Printer::new(
    &[
        NAME,
        column("Status"),
        column("Completions"),
        column("Duration"),
        column("Age"),
        column("Containers").wide(),
        column("Images").wide(),
        column("Selector").wide(),
    ],
    |job, now| {
        let (names, images) = containers(job, "/spec/template/spec/containers");
        cells![
            text(job, "/metadata/name"),
            status(job),
            completions(job),
            duration(job, now),
            age(job, now),
            names,
            images,
            selector(job, "/spec/selector"),
        ]
    },
);

/// Prints cron jobs.
pub const CRON_JOBS: Printer = Printer::new(
    &[
        NAME,
        column("Schedule"),
        column("Timezone"),
        boolean("Suspend"),
        integer("Active"),
        column("Last Schedule"),
        column("Age"),
        column("Containers").wide(),
        column("Images").wide(),
        column("Selector").wide(),
    ],
    |job, now| {
        let (names, images) = containers(job, "/spec/jobTemplate/spec/template/spec/containers");
        let last = match text(job, "/status/lastScheduleTime") {
            "" => "<none>".to_owned(),
            time => ago(time, now),
        };
        let suspend = match at(job, "/spec/suspend").and_then(Value::as_bool) {
            None => "<unset>",
            Some(true) => "True",
            Some(false) => "False",
        };
        cells![
            text(job, "/metadata/name"),
            text(job, "/spec/schedule"),
            text_or(job, "/spec/timeZone", "<none>"),
            suspend,
            count(job, "/status/active"),
            last,
            age(job, now),
            names,
            images,
            selector(job, "/spec/jobTemplate/spec/selector"),
        ]
    },
);

fn status(job: &Value) -> &'static str {
    let deleted = !text(job, "/metadata/deletionTimestamp").is_empty();
    match () {
        () if condition(job, "Complete") => "Complete",
        () if condition(job, "Failed") => "Failed",
        () if deleted => "Terminating",
        () if condition(job, "Suspended") => "Suspended",
        () if condition(job, "FailureTarget") => "FailureTarget",
        () if condition(job, "SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn completions(job: &Value) -> String {
    let succeeded = number(job, "/status/succeeded");
    match (at(job, "/spec/completions"), number(job, "/spec/parallelism")) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

/// How long the job ran, or has been running.
fn duration(job: &Value, now: Timestamp) -> String {
    let Ok(start) = text(job, "/status/startTime").parse::<Timestamp>() else { return String::new() };
    let end = text(job, "/status/completionTime").parse::<Timestamp>().unwrap_or(now);
    human(end.duration_since(start))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_shows_how_far_it_is() {
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        let mut job = json!({
            "metadata": {"name": "a"},
            "spec": {"completions": 2, "selector": {"matchLabels": {"x": "y"}}},
            "status": {"succeeded": 1, "startTime": "2026-01-01T00:00:00Z"},
        });
        let row = (JOBS.cells)(&job, now);
        assert_eq!(row[..4], cells!["a", "Running", "1/2", "60s"]);
        job["status"] = json!({
            "succeeded": 2,
            "startTime": "2026-01-01T00:00:00Z",
            "completionTime": "2026-01-01T00:00:07Z",
            "conditions": [{"type": "Complete", "status": "True"}],
        });
        assert_eq!((JOBS.cells)(&job, now)[1..4], cells!["Complete", "2/2", "7s"]);
    }

    #[test]
    fn completions_without_a_number_are_one_of_the_parallel_pods() {
        assert_eq!(completions(&json!({"spec": {"parallelism": 3}})), "0/1 of 3");
        assert_eq!(completions(&json!({"spec": {"parallelism": 1}})), "0/1");
    }

    #[test]
    fn a_cron_job_shows_its_schedule() {
        let job = json!({"metadata": {"name": "a"}, "spec": {"schedule": "@yearly", "suspend": true}});
        let row = (CRON_JOBS.cells)(&job, Timestamp::UNIX_EPOCH);
        assert_eq!(row[..6], cells!["a", "@yearly", "<none>", "True", 0, "<none>"]);
        assert_eq!(row[9], "<none>");
    }
}
