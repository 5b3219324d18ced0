//! A moment of a recording, as a person says it.

use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};

use crate::{Record, Span};

/// Moment of a recording: a revision, a time, or so long before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// This `resourceVersion`.
    Revision(u64),
    /// This time.
    Time(Timestamp),
    /// So long before the last record.
    BeforeEnd(SignedDuration),
}

/// Error of a text that is no moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no moment: say a resourceVersion (230), a time (2026-01-31T12:00:00Z), or \"15 minutes before the end\""
)]
pub struct BadAt(String);

impl FromStr for At {
    type Err = BadAt;

    fn from_str(text: &str) -> Result<Self, BadAt> {
        let bad = || BadAt(text.to_owned());
        let trimmed = text.trim();
        if let Some(before) =
            ["before the end", "before end"].iter().find_map(|end| trimmed.strip_suffix(end))
        {
            let before: SignedDuration = before.trim().parse().map_err(|_| bad())?;
            return if before.is_negative() { Err(bad()) } else { Ok(Self::BeforeEnd(before)) };
        }
        if trimmed.bytes().all(|byte| byte.is_ascii_digit()) {
            return trimmed.parse().map(Self::Revision).map_err(|_| bad());
        }
        trimmed.parse().map(Self::Time).map_err(|_| bad())
    }
}

impl At {
    /// What is there at that moment of a recording that ends at `end`; of an empty one everything.
    #[must_use]
    pub fn limit(self, end: Option<Timestamp>) -> Limit {
        match (self, end) {
            (Self::Revision(revision), _) => Limit::Revision(revision),
            (Self::Time(time), _) => Limit::Time(time),
            (Self::BeforeEnd(before), Some(end)) => {
                Limit::Time(end.checked_sub(before).unwrap_or(Timestamp::MIN))
            }
            (Self::BeforeEnd(_), None) => Limit::Nothing,
        }
    }
}

/// Which records of a recording count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// All.
    Nothing,
    /// Writes that made this revision or one before it.
    Revision(u64),
    /// What was at this time or before it.
    Time(Timestamp),
}

impl Limit {
    /// Whether a record counts. Where the limit is a revision, what has none does not.
    #[must_use]
    pub fn includes(self, record: &Record) -> bool {
        match self {
            Self::Nothing => true,
            Self::Revision(most) => record.revision().is_some_and(|revision| revision <= most),
            Self::Time(latest) => record.time() <= latest,
        }
    }

    /// Whether a record of a block with these may count.
    #[must_use]
    pub fn may_include(self, span: &Span) -> bool {
        match self {
            Self::Nothing => true,
            Self::Revision(most) => span.revisions.is_some_and(|(least, _)| least <= most),
            Self::Time(latest) => span.times.is_some_and(|(first, _)| first <= latest),
        }
    }
}
