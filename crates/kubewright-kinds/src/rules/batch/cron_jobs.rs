//! Cron jobs.

use kubewright_meta::FieldError;
use kubewright_schedule::{Schedule, zone};
use serde_json::Value;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::{Generation, Rules, fill, printed, text};
use super::jobs;

pub(crate) const fn rules() -> Rules {
    Rules {
        default,
        pod_spec: &["spec", "jobTemplate", "spec", "template", "spec"],
        prepare_create: |object| fill::set(object, "status", serde_json::json!({})),
        generation: Generation::Content,
        status_change_again: false,
        validate: |object| {
            Errors::of(|errors| {
                let object = At::root(object);
                check(&object.get("spec"), None, errors);
                // The controller adds eleven characters to the names of jobs.
                let name = object.dig(&["metadata", "name"]);
                if name.text().len() > 52 {
                    errors.invalid_text(&name, text::too_long(52));
                }
            })
        },
        validate_update: |new, old| {
            let old = At::root(old).get("spec");
            Errors::of(|errors| check(&At::root(new).get("spec"), Some(&old), errors))
        },
        ..Rules::none()
    }
}

/// Defaults. The job's own (parallelism and so on) are left to the jobs that are made.
fn default(object: &mut Value) {
    fill::object(object, "status");
    let Some(spec) = fill::object(object, "spec") else { return };
    fill::blank(spec, "concurrencyPolicy", "Allow");
    fill::absent(spec, "suspend", false);
    fill::absent(spec, "successfulJobsHistoryLimit", 3);
    fill::absent(spec, "failedJobsHistoryLimit", 1);
    let Some(template) = fill::object(spec, "jobTemplate") else { return };
    fill::object(template, "metadata");
    if let Some(job) = fill::object(template, "spec") {
        super::super::pods::default_template(job, "template");
        super::failure::default(job);
    }
}

fn check(spec: &At<'_>, old: Option<&At<'_>>, errors: &mut Errors) {
    let (schedule, zone) = (spec.get("schedule"), spec.get("timeZone"));
    if errors.need(&schedule) {
        check_schedule(&schedule, &zone, old, errors);
    }
    errors.non_negative(&spec.get("startingDeadlineSeconds"));
    if old.is_none_or(|old| old.get("timeZone").value != zone.value) {
        check_zone(&zone, errors);
    }
    errors.need_one_of(&spec.get("concurrencyPolicy"), &["Allow", "Forbid", "Replace"]);
    check_template(&spec.get("jobTemplate"), errors);
    errors.non_negative(&spec.get("successfulJobsHistoryLimit"));
    errors.non_negative(&spec.get("failedJobsHistoryLimit"));
}

fn check_template(template: &At<'_>, errors: &mut Errors) {
    let job = template.get("spec");
    jobs::check_spec(&job, errors);
    let selector = job.get("selector");
    if selector.is_set() {
        let error = FieldError::invalid(&selector.path, Value::Null, "`selector` will be auto-generated");
        errors.push(error.printed(printed::selector(selector.value)));
    }
    if job.get("manualSelector").is_true() {
        let error = FieldError::not_supported(format!("{}.manualSelector", job.path), true, ["nil", "false"]);
        errors.push(error);
    }
}

fn check_schedule(at: &At<'_>, zone: &At<'_>, old: Option<&At<'_>>, errors: &mut Errors) {
    if let Err(why) = Schedule::parse(at.text()) {
        errors.invalid(at, why.to_string());
    }
    // A zone inside the schedule is only tolerated where it was before.
    let tolerated = old.is_some_and(|old| old.get("schedule").text().contains("TZ"));
    if !at.text().contains("TZ") {
        return;
    }
    if !tolerated {
        errors.invalid(at, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    } else if zone.is_set() {
        errors.invalid(at, "cannot use both timeZone field and TZ or CRON_TZ in schedule");
    }
}

fn check_zone(at: &At<'_>, errors: &mut Errors) {
    if !at.is_set() {
        return;
    }
    let name = at.text();
    if name.is_empty() {
        errors.invalid_text(at, "timeZone must be nil or non-empty string");
        return;
    }
    let good = |part: &str| {
        !matches!(part, "" | "." | "..")
            && !part.starts_with('-')
            && part.len() <= 14
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'+'))
    };
    let unknown = format!("unknown time zone {name}");
    if !name.split('/').all(good) {
        errors.invalid(at, unknown);
        return;
    }
    if name.eq_ignore_ascii_case("local") {
        errors.invalid(
            at,
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        );
    }
    // Go knows `Local` as the zone of the machine.
    if name != "Local" && zone(name).is_none() {
        errors.invalid(at, unknown);
    }
}
