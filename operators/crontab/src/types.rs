//! The kind CronTab.
#![expect(unreachable_pub, reason = "the derive of KubeSchema repeats each struct inside a function")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::grammar;

/// What a user asks for: a schedule, and what runs whenever it is due.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "alpha.ianlewis.org",
    version = "v1",
    kind = "CronTab",
    plural = "crontabs",
    singular = "crontab",
    shortname = "ct",
    category = "cron",
    namespaced,
    status = "CronTabStatus",
    derive = "PartialEq",
    doc = "A CronTab makes a Job whenever its schedule is due.",
    validation = Rule::new("size(self.metadata.name) <= 52").message(
        "metadata.name has more than 52 characters: a Job is called so with the time of its run behind it"
    ),
    printcolumn(name = "Schedule", type_ = "string", json_path = ".spec.schedule"),
    printcolumn(name = "Suspend", type_ = "boolean", json_path = ".spec.suspend"),
    printcolumn(name = "Active", type_ = "integer", json_path = ".status.running"),
    printcolumn(name = "Last", type_ = "date", json_path = ".status.lastScheduleTime"),
    printcolumn(name = "Next", type_ = "string", json_path = ".status.nextScheduleTime"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Zone", type_ = "string", json_path = ".spec.timeZone", priority = 1),
    printcolumn(name = "Succeeded", type_ = "date", json_path = ".status.lastSuccessfulTime", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct CronTabSpec {
    /// Five fields (minute, hour, day of the month, month, day of the week), or `@hourly`, `@daily`, `@weekly`, `@monthly`,
    /// `@yearly`, `@every 90m`.
    #[schemars(length(max = 200))]
    #[x_kube(validation = Rule::new("!self.contains('TZ')").message(grammar::NO_ZONE))]
    #[x_kube(validation = Rule::new(grammar::rule()).message(grammar::EXPLANATION))]
    pub schedule: String,
    /// What runs: a pod's spec, or a template of Jobs (`spec: {template: ...}`, as in a CronJob).
    #[schemars(schema_with = "job_template")]
    pub job_template: Value,
    /// The time zone (`Asia/Tokyo`) whose clocks `schedule` speaks of; UTC if not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// What to do when it is due and a Job of an earlier run is not finished.
    #[serde(default)]
    pub concurrency_policy: ConcurrencyPolicy,
    /// How many seconds late a run may still begin; however late, if not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub starting_deadline_seconds: Option<i64>,
    /// While true nothing runs.
    #[serde(default)]
    pub suspend: bool,
    /// How many Jobs that succeeded are kept.
    #[serde(default = "three")]
    #[schemars(range(min = 0))]
    pub successful_jobs_history_limit: i32,
    /// How many Jobs that failed are kept.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub failed_jobs_history_limit: i32,
}

/// What to do when a run is due and an earlier one goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConcurrencyPolicy {
    /// Run both.
    #[default]
    Allow,
    /// Wait until the earlier one is over.
    Forbid,
    /// End the earlier one.
    Replace,
}

/// What became of the runs.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CronTabStatus {
    /// The `metadata.generation` of the CronTab that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the last run was to begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Time>,
    /// When the next one is to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_schedule_time: Option<Time>,
    /// When a run last succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_successful_time: Option<Time>,
    /// The Jobs that are not finished.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub active: Vec<ActiveJob>,
    /// How many these are.
    #[serde(default)]
    pub running: i32,
    /// The schedule and zone by which times are told here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub armed_schedule: Option<String>,
    /// From when on runs count: those before it were begun, missed, or of another schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub armed_since: Option<Time>,
    /// The last value of the annotation `alpha.ianlewis.org/run-now` that was followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run_request: Option<String>,
    /// `Scheduled` and `Blocked`, each at most once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// A Job that is not finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActiveJob {
    /// Its name.
    pub name: String,
    /// Which Job of that name it is.
    pub uid: String,
}

fn three() -> i32 {
    3
}

fn one() -> i32 {
    1
}

/// Both shapes; of each what tells them apart, the rest is looked at when it is used.
fn job_template(_: &mut SchemaGenerator) -> Schema {
    let any = json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {
            "containers": {"type": "array", "items": any, "minItems": 1},
            "restartPolicy": {"type": "string"},
            "spec": any,
        },
        "x-kubernetes-validations": [
            {
                "rule": "has(self.containers) != has(self.spec)",
                "message": "is either a pod's spec (containers: ...) or a template of Jobs (spec: {template: ...})",
            },
            {
                "rule": "!has(self.containers) || has(self.restartPolicy) && self.restartPolicy in ['Never', 'OnFailure']",
                "message": "restartPolicy of what runs in a Job is Never or OnFailure",
            },
        ],
    })
}

#[cfg(test)]
mod tests {
    use kube::CustomResourceExt;
    use serde_json::json;

    use super::*;

    fn version() -> Value {
        let crd = kubewright::object::to_value(&CronTab::crd()).expect("a CRD is JSON");
        assert_eq!(crd["metadata"]["name"], "crontabs.alpha.ianlewis.org");
        crd["spec"]["versions"][0].clone()
    }

    /// Beyond 6.
    #[test]
    fn the_columns_say_when_it_ran_and_when_it_will() {
        let version = version();
        let columns = version["additionalPrinterColumns"].as_array().expect("columns");
        let shown = columns.iter().filter(|column| column["priority"] != json!(1));
        let names: Vec<&str> = shown.map(|column| column["name"].as_str().expect("a name")).collect();
        assert_eq!(names, ["Schedule", "Suspend", "Active", "Last", "Next", "Age"]);
    }

    /// CT-16: and what is neither is refused by the API server.
    #[test]
    fn ct_16_a_job_template_has_one_of_two_shapes() {
        let version = version();
        let template =
            &version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["jobTemplate"];
        assert_eq!(template["x-kubernetes-preserve-unknown-fields"], true);
        assert_eq!(template["x-kubernetes-validations"].as_array().map(Vec::len), Some(2));
    }
}
