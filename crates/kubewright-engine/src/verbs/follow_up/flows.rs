//! What happens around flow schemas: the condition `Dangling` of each says whether the priority level that it names is
//! there (`k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go`, `presyncFlowSchemaStatus`).

use std::sync::Arc;

use kubewright_kinds::rules::flow::bootstrap::is_mandatory;
use kubewright_kinds::{Kind, Role, encode};
use kubewright_meta::object;
use kubewright_schema::patch::{Configuration, Patch};
use serde_json::{Value, json};

use crate::engine::{Engine, SERVER};
use crate::request::{Call, WriteOptions};
use crate::verbs::{Part, patch};

/// Who has written the condition, as field ownership tells it.
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";

/// After a commit of a flow schema: its condition is brought up to date.
pub(super) async fn schema_changed(engine: &Engine, kind: &Arc<Kind>, name: &str) {
    let entry = engine.snapshot().get(&kind.collection, name).cloned();
    if let Some(entry) = entry {
        set_dangling_condition(engine, kind, &encode::value(kind, &entry)).await;
    }
}

/// After a commit of a priority level: so are those of the flow schemas that name it.
pub(super) async fn level_changed(engine: &Engine, name: &str) {
    let kinds = engine.kinds();
    let Some(schemas) = kinds.iter().find(|kind| kind.behaviour.role == Role::FlowSchema) else { return };
    let snapshot = engine.snapshot();
    for entry in snapshot.range(&schemas.collection, "", None) {
        let schema = encode::value(schemas, entry);
        if level_of(&schema) == name {
            set_dangling_condition(engine, schemas, &schema).await;
        }
    }
}

/// Writes the condition where it says something else.
async fn set_dangling_condition(engine: &Engine, kind: &Arc<Kind>, schema: &Value) {
    let level = level_of(schema);
    let mut wanted = condition(level, has_level(engine, level));
    let told = schema["status"]["conditions"].as_array().into_iter().flatten();
    let mut told = told.filter(|told| told["type"] == wanted["type"]);
    let is_told = told.next().is_some_and(|told| {
        ["status", "reason", "message"].iter().all(|field| told[*field] == wanted[*field])
    });
    if is_told {
        return;
    }
    wanted["lastTransitionTime"] = object::time(engine.world().clock.now());
    let value = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": {"name": object::name(schema)},
        "status": {"conditions": [wanted]},
    });
    let call = Call { kind, namespace: "", name: object::name(schema), user: &SERVER };
    let options = WriteOptions { manager: MANAGER.to_owned(), force: true, ..WriteOptions::default() };
    let apply = Patch::Apply(Configuration { value, repeated: Vec::new() });
    // Deleted meanwhile: nobody asks any more.
    let _ = Box::pin(patch(engine, call, Part::Status, apply, options)).await;
}

fn has_level(engine: &Engine, name: &str) -> bool {
    let kinds = engine.kinds();
    let levels = kinds.iter().find(|kind| kind.behaviour.role == Role::PriorityLevel);
    let is_stored = levels.is_some_and(|kind| engine.snapshot().get(&kind.collection, name).is_some());
    is_stored || is_mandatory(name)
}

fn level_of(schema: &Value) -> &str {
    schema["spec"]["priorityLevelConfiguration"]["name"].as_str().unwrap_or_default()
}

/// The condition of a schema of this level, but for its time.
fn condition(level: &str, is_there: bool) -> Value {
    let (status, reason, rest) = match is_there {
        true => ("False", "Found", "and it exists"),
        false => ("True", "NotFound", "but there is no such object"),
    };
    let message =
        format!("This FlowSchema references the PriorityLevelConfiguration object named {level:?} {rest}");
    json!({"type": "Dangling", "status": status, "reason": reason, "message": message})
}
