//! How much the caches hold.

use std::sync::Arc;

use super::Scope;
use crate::object::Kept;

/// Usage of a cache by one kind. Made by [`Cache::usage`](crate::Cache::usage).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The kind, as `<plural>.<group>`.
    pub resource: String,
    /// Which of its objects are watched, in words.
    pub scope: String,
    /// How many objects there are.
    pub objects: usize,
    /// Of which order the memory is that they take: an estimate from some of them. For those that are kept as text it is near; for
    /// those that are values of their type it is the length of their JSON and the size of the type, too low by what the lists
    /// and maps in them take besides: by two fifths for a ConfigMap with an owner and a value (1.5 KB).
    pub bytes: usize,
}

/// How many objects are looked at.
const SAMPLE: usize = 64;

impl Usage {
    /// What these objects of a resource take, which are those of a scope.
    pub(super) fn of(resource: String, scope: &Scope, objects: &[Arc<dyn Kept>]) -> Self {
        let step = objects.len().div_ceil(SAMPLE).max(1);
        let sample: Vec<_> = objects.iter().step_by(step).map(|object| object.footprint()).collect();
        let bytes = sample.iter().sum::<usize>() * objects.len() / sample.len().max(1);
        Self { resource, scope: scope.to_string(), objects: objects.len(), bytes }
    }
}
