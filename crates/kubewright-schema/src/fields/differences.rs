//! What is different between objects, in the versions that managers wrote them in.

use std::collections::BTreeMap;

use serde_json::Value;

use super::check::check;
use super::compare::Difference;
use super::shape::Shape;
use super::versions::Versions;

/// Why two objects could not be compared, and at what that failed: what structured-merge-diff says (`merge/update.go`).
#[derive(Debug, thiserror::Error)]
#[error("failed to {doing}: {why}")]
pub(super) struct NotCompared {
    doing: &'static str,
    pub(super) why: String,
}

impl NotCompared {
    fn at(doing: &'static str) -> impl FnOnce(String) -> Self {
        move |why| Self { doing, why }
    }
}

/// What is different between two objects, in each version that somebody asks for.
pub(super) struct Differences<'a> {
    versions: &'a dyn Versions,
    old: &'a Value,
    new: &'a Value,
    subresource: &'a str,
    found: BTreeMap<String, Option<Difference>>,
}

impl<'a> Differences<'a> {
    /// Between two objects of the written version. `subresource`: what is written to, empty for the object itself. Differences in fields
    /// that such a write leaves alone do not count.
    #[must_use]
    pub(super) fn new(
        versions: &'a dyn Versions,
        old: &'a Value,
        new: &'a Value,
        subresource: &'a str,
    ) -> Self {
        Self { versions, old, new, subresource, found: BTreeMap::new() }
    }

    /// In that version; `None` when there is no such version.
    ///
    /// # Errors
    /// As [`Difference::between`], and why an object does not fit the version.
    pub(super) fn at(&mut self, api_version: &str) -> Result<Option<&Difference>, NotCompared> {
        if !self.found.contains_key(api_version) {
            let difference = self.compare(api_version)?;
            self.found.insert(api_version.to_owned(), difference);
        }
        Ok(self.found.get(api_version).and_then(Option::as_ref))
    }

    fn compare(&self, api_version: &str) -> Result<Option<Difference>, NotCompared> {
        let not_compared = NotCompared::at("compare objects");
        let written = self.versions.written();
        let Some(version) = self.versions.get(api_version) else { return Ok(None) };
        let is_written = api_version == written.api_version();
        let difference = if is_written {
            Difference::between(Shape::of(version), self.old, self.new).map_err(not_compared)?
        } else {
            let old = self.versions.convert(written, version, self.old);
            let new = self.versions.convert(written, version, self.new);
            // Custom objects are converted without a look at the schema, which they may not fit; nor may their lists have items twice
            // (`versionConverter.Convert`), which they may where nothing is converted.
            // The old object was found to fit when its entries were reconciled.
            if let Some(why) = check(Shape::of(version), &new).filter(|_| version.is_custom()) {
                return Err(NotCompared::at("convert new object")(why));
            }
            Difference::between(Shape::of(version), &old, &new).map_err(not_compared)?
        };
        // What the strategy of a custom resource leaves alone is said for its own version only, but that of a status for each version
        // that has one (`apiextensions-apiserver/pkg/apiserver`, `getStatusResetFields`).
        let by = match version.is_custom() && self.subresource == "status" {
            true => Some(version),
            false => Some(written).filter(|_| is_written || !version.is_custom()),
        };
        Ok(Some(match by.and_then(|by| by.left_alone(self.subresource)) {
            Some(ignored) => difference.without(ignored),
            None => difference,
        }))
    }
}
