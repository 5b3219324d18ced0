//! How well declared rights fit what was done.

use std::fmt;

use super::{Missing, Rights};

/// Report of missing and unused rights, by [`Observed::report`](super::Observed::report). It prints as what is to be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What requests were refused for.
    pub missing: Vec<Missing>,
    /// What the author declared and nothing used.
    pub unused: Rights,
    pub(super) declared: Rights,
}

impl Report {
    /// Whether nothing is missing and nothing was in vain.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.missing.is_empty() && self.unused.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_clean() {
            return f.write_str("the rights that are declared are those that were used");
        }
        if !self.missing.is_empty() {
            f.write_str("these rights are missing:")?;
            for missing in &self.missing {
                write!(f, "\n  {missing}: {}", missing.remedy(&self.declared))?;
            }
        }
        if !self.unused.is_empty() {
            let line = if self.missing.is_empty() { "" } else { "\n" };
            write!(f, "{line}these declared rights were never used:")?;
            for (resource, verbs) in self.unused.iter() {
                write!(f, "\n  {resource} {verbs}")?;
            }
        }
        Ok(())
    }
}
