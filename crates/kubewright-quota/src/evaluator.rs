//! What knows how to count objects of a resource.

use jiff::Timestamp;
use kubewright_meta::quantity::Quantity;
use serde_json::Value;

use super::scope::Requirement;
use super::{claims, devices, pods, services};
use kubewright_kinds::{BuiltIn, Counted, Kind, Operation};
use kubewright_meta::resources::Resources;

/// Counts the objects of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evaluator {
    /// Pods, and what they ask for and are limited to.
    Pods,
    /// Services, their node ports and load balancers.
    Services,
    /// Claims to volumes, and the storage they ask for.
    Claims,
    /// Claims of devices, and how many devices of each class.
    Devices,
    /// Any other objects, by their number.
    Objects {
        /// `count/` and the resource.
        name: String,
        /// The older name.
        alias: Option<String>,
    },
}

impl Evaluator {
    /// The one for a kind.
    pub fn of_kind(kind: &Kind) -> Self {
        Self::new(kind.counted, &kind.group, &kind.plural)
    }

    /// The one for a resource, whether it is served or not.
    pub fn of(group: &str, plural: &str) -> Self {
        let known = BuiltIn::all().find(|kind| kind.group == group && kind.plural == plural);
        Self::new(known.map_or(Counted::Objects, |kind| kind.counted), group, plural)
    }

    fn new(counted: Counted, group: &str, plural: &str) -> Self {
        let name = || match group {
            "" => format!("count/{plural}"),
            group => format!("count/{plural}.{group}"),
        };
        match counted {
            Counted::Pods => Self::Pods,
            Counted::Services => Self::Services,
            Counted::Claims => Self::Claims,
            Counted::Devices => Self::Devices,
            Counted::Objects | Counted::Uncharged => Self::Objects { name: name(), alias: None },
            Counted::Aliased => Self::Objects { name: name(), alias: Some(plural.to_owned()) },
        }
    }

    /// Whether a write may change what is used.
    pub fn handles(
        &self,
        operation: Operation,
        subresource: &str,
        next: &Value,
        old: Option<&Value>,
    ) -> bool {
        let creates = operation == Operation::Create;
        let changes = operation == Operation::Update;
        match (self, subresource, old) {
            (Self::Pods, "", Some(old)) if changes => pods::has_deadline(next) != pods::has_deadline(old),
            (Self::Pods, "resize", _) => changes,
            (Self::Services | Self::Claims | Self::Devices, "", _) => creates || changes,
            (Self::Claims, "status", Some(old)) => claims::is_charged_by_status(next, old),
            (_, "", _) => creates,
            _ => false,
        }
    }

    /// Whether it counts what a quota calls so.
    pub(crate) fn matches_name(&self, resource: &str) -> bool {
        match self {
            Self::Pods => pods::matches_name(resource),
            Self::Services => services::matches_name(resource),
            Self::Claims => claims::matches_name(resource),
            Self::Devices => devices::matches_name(resource),
            Self::Objects { name, alias } => resource == name || Some(resource) == alias.as_deref(),
        }
    }

    /// Whether an object is in all these scopes. Where scopes mean nothing, an object is in none.
    pub(crate) fn is_in_scopes(&self, scopes: &[Requirement], object: &Value) -> bool {
        scopes.iter().all(|scope| match self {
            Self::Pods => pods::is_in_scope(scope, object),
            Self::Claims => claims::is_in_scope(scope, object),
            Self::Services | Self::Devices | Self::Objects { .. } => false,
        })
    }

    /// What an object uses.
    pub fn usage(&self, object: &Value, now: Timestamp) -> Resources {
        match self {
            Self::Pods => pods::usage(object, now),
            Self::Services => services::usage(object),
            Self::Claims => claims::usage(object),
            Self::Devices => devices::usage(object),
            Self::Objects { name, alias } => {
                let mut usage = Resources::default();
                for name in [Some(name.as_str()), alias.as_deref()].into_iter().flatten() {
                    usage.set(name, Quantity::count(1));
                }
                usage
            }
        }
    }

    /// That an object says what is limited.
    ///
    /// # Errors
    /// What it does not say.
    pub(crate) fn check_constraints(&self, object: &Value, limited: &[&str]) -> Result<(), String> {
        match self {
            Self::Pods => pods::check_constraints(object, limited),
            _ => Ok(()),
        }
    }
}
