//! What an At says and what it is told.
#![expect(unreachable_pub, reason = "the derive of KubeSchema repeats each struct inside a function")]

use k8s_openapi::{
    api::core::v1::ResourceRequirements,
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};
use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a user asks for: a command, and when it is to run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AtSpec {
    /// When: `2026-07-14T10:12:00Z`, or with an offset, `2026-07-14T19:12:00+09:00`. With `timeZone`, what the clocks
    /// there show: `2026-07-14T19:12:00`.
    #[schemars(regex(pattern = r"^\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d"))]
    pub schedule: String,
    /// What: split into words as a shell does it, with quotes and backslashes, but run without one. May be empty where
    /// the image, or `template`, has a command of its own.
    pub command: String,
    /// The time zone (`Asia/Seoul`) whose clocks `schedule` speaks of. A time that they skip is the one as much later; of
    /// a time that they show twice it is the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// Further arguments of the command, each of them taken as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Hands `command` to `sh -c` as a whole; `args` are its `$1`, `$2` and so on.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shell: bool,
    /// The image that has the command; `busybox` if not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// What the command's container may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// The service account of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Whatever else there is to say of the pod: a pod template. The command runs in its first container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub template: Option<Value>,
    /// How often a command that fails is started again. 0, the default, is never: then it runs once, whatever it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub backoff_limit: Option<i32>,
    /// How long the pod may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub active_deadline_seconds: Option<i64>,
    /// How much too late the command may still be started; however late, if not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub starting_deadline_seconds: Option<i64>,
    /// What to do when the schedule is in the past already when it is first seen: `RunNow` (the default) or `Skip`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub if_past: IfPast,
    /// What to do when the pod is deleted before its command ended: `Report` (the default) or `Rerun`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub if_lost: IfLost,
    /// While true nothing is started.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,
    /// How long after its end the At is deleted, its pod with it; never, if not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ttl_seconds_after_finished: Option<i64>,
}

/// What to do about a schedule that is in the past when it is first seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum IfPast {
    /// Run the command at once.
    #[default]
    RunNow,
    /// Do not run it.
    Skip,
}

/// What to do about a pod that was deleted before its command ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum IfLost {
    /// Say so.
    #[default]
    Report,
    /// Run the command again.
    Rerun,
}

/// How far an At is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Phase {
    /// The command was not started yet.
    #[default]
    Pending,
    /// It was started.
    Running,
    /// It ended, or was lost.
    Done,
    /// It was not started in time, and will not be.
    Missed,
}

/// What became of the command.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AtStatus {
    /// `PENDING`, then `RUNNING`, then `DONE`; or `MISSED`.
    #[serde(default)]
    pub phase: Phase,
    /// The `metadata.generation` of the At that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the command is to start, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_time: Option<Time>,
    /// The pod that runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_name: Option<String>,
    /// Which pod of that name it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<String>,
    /// How many pods were lost and replaced (`spec.ifLost: Rerun`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub lost_pods: i32,
    /// When the pod was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When the command ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// What the command ended with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The last lines that it wrote, where there is a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// `Accepted`, `Conflict` and `Succeeded`, each at most once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// An object that is looked at when it is used.
fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn phases_are_written_as_the_book_writes_them() {
        let written = [Phase::Pending, Phase::Running, Phase::Done, Phase::Missed].map(|phase| json!(phase));
        assert_eq!(written, ["PENDING", "RUNNING", "DONE", "MISSED"].map(|phase| json!(phase)));
    }
}
