//! What has to hold of every operator, without a test saying so.
//!
//! Each check is a pure function of what was recorded ([`Evidence`]). A false alarm is worse than a miss: where it cannot be
//! told from outside whether something was wrong, a check says nothing, and its documentation tells what that is.

mod additions;
mod anew;
mod deletable;
mod evidence;
mod idle;
mod leaks;
mod observed;
mod rate;
mod retries;
mod rights;
mod status;
mod strangers;
mod undone;

use std::fmt;

pub(crate) use anew::differences as differences_anew;
pub(crate) use evidence::{Emptied, Evidence, Span, TEST, is_operator, is_work};
pub(crate) use rate::Rate;

/// What a check has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The check, in words.
    pub(crate) check: &'static str,
    /// What is wrong, for people.
    pub(crate) what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check, self.what)
    }
}

/// A check: its name, and what it finds.
pub(crate) type Check = (&'static str, fn(&Evidence) -> Option<String>);

/// What is looked at once the cluster has come to rest.
pub(crate) const SETTLED: &[Check] = &[
    ("rights and schemas are kept", rights::judge),
    ("no retry without end", retries::judge),
    ("the status is never ahead of what was done", status::judge),
    ("what others have made is left as it is", strangers::judge),
    ("what others add stays", additions::judge),
];

/// What is looked at once the operators have seen all of it a second time.
pub(crate) const AGAIN: &[Check] = &[("no write when nothing has changed", idle::judge)];

/// What is looked at when they do nothing new any more.
pub(crate) const SEEN: &[Check] =
    &[("nothing was missed", undone::judge), ("the status does not stay behind", observed::judge)];

/// What is looked at after some time at rest.
pub(crate) const RESTED: &[Check] = &[("no hot loop", rate::judge)];

/// What is looked at when all that the test has made was deleted.
pub(crate) const EMPTIED: &[Check] =
    &[("everything can be deleted", deletable::judge), ("no leak of children", leaks::judge)];

/// What is looked at when it was made again.
pub(crate) const ANEW: &[Check] = &[("the end is a function of what was asked for", anew::judge)];

/// The first that one of these checks finds.
pub(crate) fn judge(checks: &[Check], evidence: &Evidence) -> Option<Finding> {
    checks.iter().find_map(|(check, judge)| judge(evidence).map(|what| Finding { check, what }))
}
