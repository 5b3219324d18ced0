//! Objects in the versions that managers wrote them in.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::compare::Difference;
use super::set::Set;
use super::shape::Shape;
use crate::kinds::rules::convert;
use crate::kinds::{Kind, Kinds};
use crate::registry::encode::set_type;

/// The versions of a resource, seen from one of them.
#[derive(Clone, Copy)]
pub struct Versions<'a> {
    /// All kinds.
    pub kinds: &'a Kinds,
    /// The version that is written.
    pub kind: &'a Arc<Kind>,
}

impl Versions<'_> {
    /// The kind in that version; `None` when there is no such version (any more).
    #[must_use]
    pub fn kind(&self, api_version: &str) -> Option<Arc<Kind>> {
        if api_version == self.kind.api_version() {
            return Some(Arc::clone(self.kind));
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = self.kinds.get(group, version, &self.kind.plural)?;
        (kind.collection == self.kind.collection).then(|| Arc::clone(kind))
    }

    /// An object of the written version in another one.
    #[must_use]
    pub fn convert(&self, from: &Kind, to: &Kind, object: &Value) -> Value {
        let mut object = object.clone();
        if from.version == to.version && from.group == to.group {
            return object;
        }
        if to.custom.is_none() {
            convert::to_storage(&from.group, &from.version, &from.plural, &mut object);
            convert::from_storage(&to.group, &to.version, &to.plural, &mut object);
        }
        set_type(to, &mut object);
        object
    }
}

/// What is different between two objects, in each version that somebody asks for.
pub(super) struct Differences<'a> {
    versions: Versions<'a>,
    old: &'a Value,
    new: &'a Value,
    ignored: Option<&'a Set>,
    found: BTreeMap<String, Option<Difference>>,
}

impl<'a> Differences<'a> {
    /// Between two objects of the written version. Differences in `ignored` fields do not count.
    #[must_use]
    pub(super) fn new(
        versions: Versions<'a>,
        old: &'a Value,
        new: &'a Value,
        ignored: Option<&'a Set>,
    ) -> Self {
        Self { versions, old, new, ignored, found: BTreeMap::new() }
    }

    /// In that version; `None` when there is no such version.
    ///
    /// # Errors
    /// As [`Difference::between`].
    pub(super) fn at(&mut self, api_version: &str) -> Result<Option<&Difference>, String> {
        if !self.found.contains_key(api_version) {
            let difference = self.compare(api_version)?;
            self.found.insert(api_version.to_owned(), difference);
        }
        Ok(self.found.get(api_version).and_then(Option::as_ref))
    }

    fn compare(&self, api_version: &str) -> Result<Option<Difference>, String> {
        let written = self.versions.kind;
        let Some(kind) = self.versions.kind(api_version) else { return Ok(None) };
        let is_written = Arc::ptr_eq(&kind, written);
        let difference = if is_written {
            Difference::between(Shape::of(&kind), self.old, self.new)?
        } else {
            let old = self.versions.convert(written, &kind, self.old);
            let new = self.versions.convert(written, &kind, self.new);
            Difference::between(Shape::of(&kind), &old, &new)?
        };
        // What the strategy of a custom resource leaves alone is said for its own version only.
        let ignored = self.ignored.filter(|_| is_written || kind.custom.is_none());
        Ok(Some(match ignored {
            Some(ignored) => difference.without(ignored),
            None => difference,
        }))
    }
}
