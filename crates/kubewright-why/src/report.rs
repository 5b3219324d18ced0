//! What is found: a tree of objects with causes.

use serde::Serialize;

use crate::cause::Cause;
use crate::object::Id;
use crate::picture::Unread;

/// Why an object is as it is.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Whether nothing was found.
    pub healthy: bool,
    /// The objects that own it, the nearest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<Id>,
    /// The object, what was found of it, and below it what it made.
    pub object: Node,
    /// What could not be read, so that causes may be missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<Unread>,
}

/// An object in the tree.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Which object.
    #[serde(flatten)]
    pub id: Id,
    /// In a word or two how it is: `0/2 ready`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// How many others beside it have the same causes and are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub alike: usize,
    /// The causes at this object.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// What it made or needs, where something was found there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Node>,
}

/// A cause that was found, with its evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Which one.
    pub cause: Cause,
    /// What is the matter, in a line.
    pub message: String,
    /// What shows it: conditions, events, fields, each in a line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// What to do next.
    pub next: String,
}

impl Finding {
    /// A cause at an object.
    pub(crate) fn new(cause: Cause, message: impl Into<String>, next: impl Into<String>) -> Self {
        Self { cause, message: message.into(), evidence: Vec::new(), next: next.into() }
    }

    /// With a line that shows it, unless that is empty or there.
    pub(crate) fn evidence(mut self, line: impl Into<String>) -> Self {
        let line = line.into();
        if !line.is_empty() && !self.evidence.contains(&line) {
            self.evidence.push(line);
        }
        self
    }

    pub(crate) fn all(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        for line in lines {
            self = self.evidence(line);
        }
        self
    }
}

impl Node {
    /// All causes in this tree, those of the object itself first.
    #[must_use]
    pub fn causes(&self) -> Vec<Cause> {
        let own = self.findings.iter().map(|finding| finding.cause);
        own.chain(self.children.iter().flat_map(Self::causes)).collect()
    }

    /// Whether something was found, here or below.
    #[must_use]
    pub fn has_findings(&self) -> bool {
        !self.findings.is_empty() || self.children.iter().any(Self::has_findings)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}
