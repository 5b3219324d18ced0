//! Whether a conversion loses something.

use std::fmt::Display;

use serde_json::Value;

use super::{Conversion, write};
use crate::Object;

impl<H: Object> Conversion<H> {
    /// Converts each sample of the hub to every version and back, and says what was lost or changed. For property tests, whose
    /// samples are many.
    ///
    /// # Errors
    /// The first sample that is not the same, with the difference.
    pub fn check_round_trips(&self, samples: impl IntoIterator<Item = H>) -> Result<(), String> {
        let versions: Vec<&str> = self.spokes.keys().map(String::as_str).collect();
        samples.into_iter().try_for_each(|sample| self.round(&write(&sample)?, &versions))
    }

    /// The same for samples of a spoke: what it can hold, the hub must hold.
    ///
    /// # Errors
    /// As [`Self::check_round_trips`].
    pub fn check_spoke_round_trips<S>(&self, samples: impl IntoIterator<Item = S>) -> Result<(), String>
    where
        S: Object + TryFrom<H, Error: Display>,
    {
        let hub = H::api_version(&());
        samples.into_iter().try_for_each(|sample| self.round(&write(&sample)?, &[&hub]))
    }

    /// [`Self::check_round_trips`], for a test.
    ///
    /// # Panics
    /// When a sample is not the same.
    #[track_caller]
    pub fn assert_round_trips(&self, samples: impl IntoIterator<Item = H>) {
        if let Err(why) = self.check_round_trips(samples) {
            panic!("{why}");
        }
    }

    /// [`Self::check_spoke_round_trips`], for a test.
    ///
    /// # Panics
    /// When a sample is not the same.
    #[track_caller]
    pub fn assert_spoke_round_trips<S>(&self, samples: impl IntoIterator<Item = S>)
    where
        S: Object + TryFrom<H, Error: Display>,
    {
        if let Err(why) = self.check_spoke_round_trips(samples) {
            panic!("{why}");
        }
    }

    fn round(&self, sample: &Value, versions: &[&str]) -> Result<(), String> {
        let home = sample["apiVersion"].as_str().unwrap_or_default();
        for version in versions {
            let there = self.convert_object(sample, version)?;
            let mut back = self.convert_object(&there, home)?;
            // On the way from a spoke to the hub nothing is kept: that is for what a spoke lacks.
            if let Some(annotation) = &self.keep {
                super::keep::take(&mut back["metadata"], annotation);
            }
            if back != *sample {
                return Err(format!(
                    "{} is not the same after {home} -> {version} -> {home}: {}\n  before: {sample}\n  as {version}: {there}\n  after: {back}",
                    super::called(sample),
                    difference(sample, &back),
                ));
            }
        }
        Ok(())
    }
}

/// Which paths differ.
fn difference(before: &Value, after: &Value) -> String {
    let patch = json_patch::diff(before, after);
    let operations: Vec<String> = patch.0.iter().map(ToString::to_string).collect();
    operations.join(", ")
}
