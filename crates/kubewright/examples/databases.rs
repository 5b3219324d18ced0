//! Each Database is of a Plan. What a Database leaves out, a webhook takes from its Plan; what the Plan does not allow, another refuses. Both read
//! the Plans from the cache.
#![expect(unreachable_pub, reason = "the derive of KubeSchema repeats each struct inside a function")]

use std::sync::Arc;

use kube::{CustomResource, KubeSchema};
use kubewright::{
    Key,
    command::Operator,
    webhook::{
        Defaulter, Denied, FieldError, Request, ValidationResult, Validator, Warnings, Webhook, Webhooks,
    },
};
use serde::{Deserialize, Serialize};

/// What a plan offers.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Plan")]
#[serde(rename_all = "camelCase")]
pub struct PlanSpec {
    /// The size of a database that does not say it.
    pub default_gigabytes: u32,
    /// The size of the largest database.
    pub most_gigabytes: u32,
}

/// What a database is to be.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Database", namespaced)]
pub struct DatabaseSpec {
    /// The name of its Plan.
    pub plan: String,
    /// Its size.
    pub gigabytes: Option<u32>,
}

/// Asks the Plan of a Database.
struct Plans;

fn plan_of(request: &Request, database: &Database) -> Result<Arc<Plan>, Denied> {
    let name = &database.spec.plan;
    let missing = || Denied::invalid(database, &[FieldError::not_found("spec.plan", name.as_str())]);
    request.context()?.get::<Plan>(&Key::cluster_scoped(name)).ok_or_else(missing)
}

impl Defaulter<Database> for Plans {
    async fn apply_defaults(&self, request: &Request, mut database: Database) -> Result<Database, Denied> {
        let plan = plan_of(request, &database)?;
        database.spec.gigabytes.get_or_insert(plan.spec.default_gigabytes);
        Ok(database)
    }
}

impl Validator<Database> for Plans {
    async fn validate_create(&self, request: &Request, database: &Database) -> ValidationResult {
        let (plan, size) = (plan_of(request, database)?, database.spec.gigabytes.unwrap_or_default());
        if size <= plan.spec.most_gigabytes {
            return Ok(Warnings::none());
        }
        let most = format!("at most {} in the plan {}", plan.spec.most_gigabytes, database.spec.plan);
        Err(Denied::invalid(database, &[FieldError::invalid("spec.gigabytes", size, most)]))
    }

    async fn validate_update(&self, request: &Request, old: &Database, new: &Database) -> ValidationResult {
        // What is there stays, also where its plan has become smaller.
        if old.spec.gigabytes == new.spec.gigabytes && old.spec.plan == new.spec.plan {
            return Ok(Warnings::none());
        }
        self.validate_create(request, new).await
    }
}

/// The operator.
pub fn operator() -> Operator {
    let webhooks = Webhooks::new("database")
        .add(Webhook::defaulting::<Database>(Plans).reads::<Plan>())
        .add(Webhook::validating::<Database>(Plans).reads::<Plan>());
    Operator::new("database", "0.1.0").definition::<Plan>().definition::<Database>().webhooks(webhooks)
}

#[tokio::main]
async fn main() -> std::process::ExitCode {
    operator().main().await
}
