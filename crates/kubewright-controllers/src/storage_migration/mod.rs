//! Migrations to the storage version: each object of a resource is written once more, as it is, so that the API server stores it
//! in the version that it stores today (`pkg/controller/storageversionmigrator`).
//!
//! One migration of a resource runs at a time, the oldest first. In kube-controller-manager three controllers share the work, and
//! read what the garbage collector's cache knows; here one goes through it for a resource, and lists what there is.

mod definition;
mod rewrite;

use k8s_openapi::jiff::Timestamp;
use kubewright_runtime::conditions::{self, NewCondition, Status};
use kubewright_runtime::{Context, Controller, Error, Key, Outcome, Reconciler};

use self::rewrite::{Rewritten, rewrite};
use crate::discovery::{Catalog, Served};
use crate::newer_kinds::{GroupResource, StorageVersionMigration as Migration};

const NAME: &str = "storage-version-migrator-controller";
const RUNNING: &str = "Running";
const SUCCEEDED: &str = "Succeeded";
const FAILED: &str = "Failed";
/// What a resource has to be capable of.
const VERBS: [&str; 3] = ["update", "patch", "list"];
/// So long a resource may be missing: its definition may have come just now.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);
/// How soon it is looked for again.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_secs(5);

/// The controller. Its keys are resources, `things.example.com`.
pub(crate) fn controller() -> Controller {
    Controller::new(NAME, Migrator)
        .watches(|migration: &Migration| vec![Key::cluster_scoped(name_of(&migration.spec.resource))])
        .optional()
        .concurrency(5)
}

struct Migrator;

impl Reconciler for Migrator {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let all = ctx.list::<Migration>(None);
        let of_resource = all.iter().filter(|migration| name_of(&migration.spec.resource) == key.name);
        let mut left: Vec<Migration> =
            of_resource.map(AsRef::as_ref).filter(|one| phase(one) != Phase::Over).cloned().collect();
        left.sort_by_key(|one| {
            (phase(one), one.metadata.creation_timestamp.clone(), one.metadata.name.clone())
        });
        for mut migration in left {
            if phase(&migration) == Phase::Pending {
                definition::begin(ctx, &migration).await?;
                set(&mut migration, &running(None, ""), ctx);
                migration = ctx.update_status(&migration).await?;
            }
            if phase(&migration) == Phase::Running {
                migration = match run(ctx, migration).await? {
                    Step::Over(migration) => *migration,
                    Step::Waiting => return Ok(Outcome::RequeueAfter(LOOK_AGAIN)),
                };
            }
            finish(ctx, migration).await?;
        }
        Ok(Outcome::Done)
    }
}

/// What a run came to.
enum Step {
    /// It has succeeded or failed.
    Over(Box<Migration>),
    /// The resource may come.
    Waiting,
}

/// Runs a migration to its end.
async fn run(ctx: &Context, migration: Migration) -> Result<Step, Error> {
    let GroupResource { group, resource } = &migration.spec.resource;
    let catalog = Catalog::fetch(ctx.client()).await?;
    let Some(served) = catalog.of_plural(group, resource) else {
        if is_young(&migration, ctx.world().clock.now()) {
            return Ok(Step::Waiting);
        }
        return fail(ctx, migration, "resource does not exist in discovery").await;
    };
    if !served.supports(&VERBS) {
        let why = format!(
            "resource {:?} does not support discovery operations: [{}]",
            in_full(served),
            VERBS.join(" ")
        );
        return fail(ctx, migration, &why).await;
    }
    let mut migration = migration;
    if migration.status.resource_version.is_empty() {
        migration.status.resource_version = rewrite::newest_version(ctx, served).await?;
        migration = ctx.update_status(&migration).await?;
    }
    match rewrite(ctx, served, &migration.status.resource_version).await? {
        Rewritten::All { total } => {
            set(&mut migration, &running(Some((0, total)), ""), ctx);
            let done = NewCondition::new(SUCCEEDED, Status::True, "StorageVersionMigrationSucceeded");
            set(&mut migration, &done.message("Migration completed"), ctx);
        }
        Rewritten::Interrupted { left, total, error } => {
            let why = text_of(&error);
            if set(&mut migration, &running(Some((left, total)), &why), ctx) {
                ctx.update_status(&migration).await?;
            }
            return Err(error);
        }
        Rewritten::Refused { left, total, error } => {
            set(&mut migration, &running(Some((left, total)), ""), ctx);
            let why = format!(
                "{left}/{total} not yet migrated. migration encountered unhandled error: {}",
                text_of(&error)
            );
            return fail(ctx, migration, &why).await;
        }
    }
    Ok(Step::Over(Box::new(ctx.update_status(&migration).await?)))
}

async fn fail(ctx: &Context, mut migration: Migration, why: &str) -> Result<Step, Error> {
    let failed = NewCondition::new(FAILED, Status::True, "StorageVersionMigrationFailed");
    set(&mut migration, &failed.message(why), ctx);
    Ok(Step::Over(Box::new(ctx.update_status(&migration).await?)))
}

/// Says that a migration which has succeeded or failed runs no more.
async fn finish(ctx: &Context, mut migration: Migration) -> Result<(), Error> {
    definition::end(ctx, &migration, conditions::is_true(&migration.status.conditions, SUCCEEDED)).await?;
    let over = NewCondition::new(RUNNING, Status::False, "MigrationCompleted");
    set(&mut migration, &over.message("Migration completed"), ctx);
    ctx.update_status(&migration).await?;
    Ok(())
}

/// How far a migration is; what comes first is done first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// It has succeeded or failed, and says still that it runs.
    Ending,
    Running,
    Pending,
    Over,
}

fn phase(migration: &Migration) -> Phase {
    let is = |kind: &str| conditions::is_true(&migration.status.conditions, kind);
    match (is(RUNNING), is(SUCCEEDED) || is(FAILED)) {
        (true, true) => Phase::Ending,
        (true, false) => Phase::Running,
        (false, false) => Phase::Pending,
        (false, true) => Phase::Over,
    }
}

fn is_young(migration: &Migration, now: Timestamp) -> bool {
    let made = migration.metadata.creation_timestamp.as_ref();
    made.is_some_and(|made| {
        std::time::Duration::try_from(now.duration_since(made.0)).is_ok_and(|age| age < PATIENCE)
    })
}

/// That a migration runs: how many objects are left of how many, and what is in its way.
fn running(left: Option<(usize, usize)>, trouble: &str) -> NewCondition {
    let mut message = "The migration is running".to_owned();
    match left {
        None | Some((_, 0)) => {}
        Some((0, total)) => message.push_str(&format!(", {total} objects verified migrated")),
        Some((left, total)) => message.push_str(&format!(", {left}/{total} objects not yet migrated")),
    }
    if !trouble.is_empty() {
        message.push_str(&format!("; transient error: {trouble}"));
    }
    NewCondition::new(RUNNING, Status::True, "MigrationRunning").message(message)
}

fn set(migration: &mut Migration, condition: &NewCondition, ctx: &Context) -> bool {
    conditions::set(&mut migration.status.conditions, condition, ctx.world().clock.now())
}

fn name_of(GroupResource { group, resource }: &GroupResource) -> String {
    format!("{resource}.{group}")
}

/// As Go prints a resource in one of its versions.
fn in_full(served: &Served) -> String {
    let of = &served.resource;
    format!("{}/{}, Resource={}", of.group, of.version, of.plural)
}

/// An error as its status tells it.
fn text_of(error: &Error) -> String {
    error.status().map_or_else(|| error.to_string(), |status| status.message.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn migration(conditions: &[(&str, &str)]) -> Migration {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(kind, status)| {
                json!({
                    "type": kind, "status": status, "reason": "R", "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                })
            })
            .collect();
        kubewright_objects::from_value(json!({
            "metadata": {"name": "m", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"resource": {"group": "g.io", "resource": "things"}},
            "status": {"conditions": conditions},
        }))
        .expect("a migration")
    }

    #[test]
    fn what_runs_is_ended_before_another_begins() {
        assert_eq!(phase(&migration(&[])), Phase::Pending);
        assert_eq!(phase(&migration(&[("Running", "True")])), Phase::Running);
        assert_eq!(phase(&migration(&[("Running", "True"), ("Failed", "True")])), Phase::Ending);
        assert_eq!(phase(&migration(&[("Running", "False"), ("Succeeded", "True")])), Phase::Over);
        assert!(Phase::Ending < Phase::Running && Phase::Running < Phase::Pending);
    }

    #[test]
    fn a_running_migration_says_how_far_it_is() {
        let said = |condition: &NewCondition| {
            let mut conditions = Vec::new();
            conditions::set(&mut conditions, condition, Timestamp::UNIX_EPOCH);
            conditions.remove(0).message
        };
        assert_eq!(said(&running(None, "")), "The migration is running");
        assert_eq!(said(&running(Some((0, 0)), "")), "The migration is running");
        assert_eq!(said(&running(Some((0, 3)), "")), "The migration is running, 3 objects verified migrated");
        assert_eq!(
            said(&running(Some((2, 3)), "late")),
            "The migration is running, 2/3 objects not yet migrated; transient error: late"
        );
    }

    #[test]
    fn a_resource_may_come_for_a_minute() {
        let now = |text: &str| text.parse::<Timestamp>().expect("a time");
        assert!(is_young(&migration(&[]), now("2026-01-01T00:00:59Z")));
        assert!(!is_young(&migration(&[]), now("2026-01-01T00:01:00Z")));
    }
}
