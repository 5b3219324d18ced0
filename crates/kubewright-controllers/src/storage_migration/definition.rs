//! What the definition of a custom resource says of a migration: that it runs, and in the end which versions are stored
//! (`migrationrunner.go`).

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition as Definition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kubewright_runtime::{Context, Error};
use serde_json::{Value, json};

use super::name_of;
use crate::newer_kinds::StorageVersionMigration as Migration;

/// The manager of the fields that are written.
const MANAGER: &str = "migration-runner-controller";
const CONDITION: &str = "StorageMigrating";
/// How often a write is tried when somebody else is faster.
const TRIES: usize = 5;

/// Says that a migration runs, if there is a definition.
pub(super) async fn begin(ctx: &Context, migration: &Migration) -> Result<(), Error> {
    let message = format!("Migration {} is running", migration.metadata.name.as_deref().unwrap_or_default());
    write(ctx, migration, |definition, now| {
        json!({"conditions": [condition(definition, "True", "MigrationRunning", &message, now)]})
    })
    .await
}

/// Says how a migration ended. When the definition is the one that it began with, nothing is stored in other versions any more.
pub(super) async fn end(ctx: &Context, migration: &Migration, success: bool) -> Result<(), Error> {
    write(ctx, migration, |definition, now| ended(definition, success, now)).await
}

async fn write(
    ctx: &Context,
    migration: &Migration,
    status: impl Fn(&Definition, &Time) -> Value,
) -> Result<(), Error> {
    let definitions = Api::<Definition>::all(ctx.client().clone());
    let name = name_of(&migration.spec.resource);
    let mut tries = 0;
    loop {
        tries += 1;
        // The caller's name may be none of an object.
        let Some(definition) = definitions.get_opt(&name).await? else { return Ok(()) };
        let now = Time(ctx.world().clock.now());
        let applied = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": name, "resourceVersion": definition.metadata.resource_version},
            "status": status(&definition, &now),
        });
        let params = PatchParams::apply(MANAGER).force();
        match definitions.patch_status(&name, &params, &Patch::Apply(&applied)).await.map_err(Error::from) {
            Err(error) if error.is_conflict() && tries < TRIES => {}
            written => return written.map(drop),
        }
    }
}

fn condition(definition: &Definition, status: &str, reason: &str, message: &str, now: &Time) -> Value {
    json!({
        "type": CONDITION,
        "status": status,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
        "observedGeneration": definition.metadata.generation,
    })
}

/// The status that a migration leaves behind.
fn ended(definition: &Definition, success: bool, now: &Time) -> Value {
    let conditions = json!(definition.status.as_ref().and_then(|status| status.conditions.as_ref()));
    let mut conditions = conditions.as_array().into_iter().flatten();
    let began = conditions.find(|condition| condition["type"] == CONDITION);
    let is_same = began.is_some_and(|began| {
        began["observedGeneration"].as_i64().unwrap_or_default()
            == definition.metadata.generation.unwrap_or_default()
    });
    let (reason, message) = match (success, is_same) {
        (true, true) => {
            ("MigrationSucceeded", "The migration has succeeded and the stored versions have been updated")
        }
        (true, false) => (
            "MigrationSucceeded",
            "The migration has succeeded but the stored versions have not been updated due to a generation mismatch",
        ),
        (false, _) => ("MigrationFailed", "The migration has failed"),
    };
    let mut status = json!({"conditions": [condition(definition, "False", reason, message, now)]});
    let stored = definition.spec.versions.iter().find(|version| version.storage);
    if let Some(stored) = stored.filter(|_| is_same) {
        status["storedVersions"] = json!([stored.name]);
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(observed: i64) -> Definition {
        kubewright_objects::from_value(json!({
            "metadata": {"name": "things.g.io", "generation": 2},
            "spec": {
                "group": "g.io", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
                "versions": [
                    {"name": "v1", "served": true, "storage": false},
                    {"name": "v2", "served": true, "storage": true},
                ],
            },
            "status": {"conditions": [
                {"type": "StorageMigrating", "status": "True", "observedGeneration": observed},
            ]},
        }))
        .expect("a definition")
    }

    #[test]
    fn the_stored_versions_are_trimmed_where_the_definition_is_the_same() {
        let now = Time(kubewright_world::SIMULATION_START);
        let status = ended(&definition(2), true, &now);
        assert_eq!(status["storedVersions"], json!(["v2"]));
        assert_eq!(status["conditions"][0]["status"], "False");
        let status = ended(&definition(1), true, &now);
        assert_eq!(status.get("storedVersions"), None);
        assert!(status["conditions"][0]["message"].as_str().is_some_and(|said| said.contains("mismatch")));
    }
}
