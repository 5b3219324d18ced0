//! What happens around flow schemas: the condition `Dangling` of each says whether the priority level that it names is
//! there (`k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go`, `presyncFlowSchemaStatus`).

use std::sync::Arc;

use kubewright_identity::authn::User;
use kubewright_kinds::rules::flow::bootstrap::is_mandatory;
use kubewright_kinds::{Kind, Role, encode};
use kubewright_meta::object;
use kubewright_schema::patch::{Configuration, Patch};
use serde_json::{Value, json};

use super::{Call, Part, Registry, WriteOptions};

/// Who has written the condition, as field ownership tells it.
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";

impl Registry {
    /// After a commit of a flow schema: its condition is brought up to date.
    pub(super) async fn flow_schema_changed(&self, kind: &Arc<Kind>, name: &str) {
        let entry = self.snapshot().get(&kind.collection, name).cloned();
        if let Some(entry) = entry {
            self.tell_dangling(kind, &encode::value(kind, &entry)).await;
        }
    }

    /// After a commit of a priority level: so are those of the flow schemas that name it.
    pub(super) async fn priority_level_changed(&self, name: &str) {
        let kinds = self.kinds();
        let Some(schemas) = kinds.iter().find(|kind| kind.behaviour.role == Role::FlowSchema) else { return };
        let snapshot = self.snapshot();
        for entry in snapshot.range(&schemas.collection, "", None) {
            let schema = encode::value(schemas, entry);
            if level_of(&schema) == name {
                self.tell_dangling(schemas, &schema).await;
            }
        }
    }

    /// Writes the condition where it says something else.
    async fn tell_dangling(&self, kind: &Arc<Kind>, schema: &Value) {
        let level = level_of(schema);
        let mut wanted = condition(level, self.has_level(level));
        let told = schema["status"]["conditions"].as_array().into_iter().flatten();
        let mut told = told.filter(|told| told["type"] == wanted["type"]);
        let is_told = told.next().is_some_and(|told| {
            ["status", "reason", "message"].iter().all(|field| told[*field] == wanted[*field])
        });
        if is_told {
            return;
        }
        wanted["lastTransitionTime"] = object::time(self.world.clock.now());
        let value = json!({
            "apiVersion": kind.api_version(),
            "kind": kind.kind,
            "metadata": {"name": object::name(schema)},
            "status": {"conditions": [wanted]},
        });
        let user = User::new("system:apiserver", ["system:masters"]);
        let call = Call { kind, namespace: "", name: object::name(schema), user: &user };
        let options = WriteOptions { manager: MANAGER.to_owned(), force: true, ..WriteOptions::default() };
        let apply = Patch::Apply(Configuration { value, repeated: Vec::new() });
        // Deleted meanwhile: nobody asks any more.
        let _ = Box::pin(self.patch(call, Part::Status, apply, options)).await;
    }

    fn has_level(&self, name: &str) -> bool {
        let kinds = self.kinds();
        let levels = kinds.iter().find(|kind| kind.behaviour.role == Role::PriorityLevel);
        let is_stored = levels.is_some_and(|kind| self.snapshot().get(&kind.collection, name).is_some());
        is_stored || is_mandatory(name)
    }
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
