//! What an operator shows of itself with its sample.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::kubectl::{Inside, eventually, wait};

/// How long nothing has to happen.
const QUIET: Duration = Duration::from_secs(5);
/// What operators make, and what is made of it.
pub(super) const ALL: &str = "deployments,replicasets,pods,jobs,services,poddisruptionbudgets";

/// What is to be seen.
pub(crate) enum Proof {
    /// So many objects of these resources belong to the sample, and come back when one of each is deleted.
    Heals(&'static [(&'static str, usize)]),
    /// One object of this resource belongs to the sample, after an annotation perhaps, and is not made again; the condition says
    /// so.
    Once { child: &'static str, prompt: Option<&'static str>, says: &'static str },
    /// A Deployment that the sample does not allow is deleted, each time.
    Judges,
    /// A condition of the sample says how it is.
    Says(&'static str),
}

/// What was seen, for people.
pub(crate) struct Seen {
    pub(crate) made: String,
    pub(crate) deleted: String,
    pub(crate) gone: String,
    pub(crate) refused: usize,
}

impl Proof {
    /// Applies the sample, has it done what is promised, and deletes it.
    ///
    /// # Errors
    /// When something else happens, or nothing.
    pub(crate) fn show(&self, inside: &Inside<'_>, sample: &str) -> Result<Seen> {
        let applied = inside.run(&["apply", "--validate=strict", "-f", sample, "-o", "json"])?;
        let applied: Value = serde_json::from_str(&applied)?;
        let it = Sample { inside, file: sample, uid: text(&applied, "/metadata/uid")? };
        let (made, deleted) = match self {
            Self::Heals(children) => it.heals(children)?,
            Self::Once { child, prompt, says } => it.happens_once(child, *prompt, says)?,
            Self::Judges => it.judges()?,
            Self::Says(condition) => {
                (it.condition(condition)?, "(it makes nothing in Kubernetes)".to_owned())
            }
        };
        inside.run(&["delete", "--timeout=90s", "-f", sample])?;
        eventually("nothing is left", || Ok(inside.all(ALL)?.is_empty().then_some(())))?;
        Ok(Seen { made, deleted, gone: "nothing is left".to_owned(), refused: 0 })
    }
}

struct Sample<'a> {
    inside: &'a Inside<'a>,
    file: &'a str,
    uid: String,
}

impl Sample<'_> {
    fn heals(&self, children: &[(&str, usize)]) -> Result<(String, String)> {
        let mut made = Vec::new();
        for (resource, number) in children {
            let uids = self.owned(resource, *number, None)?;
            made.push(format!("{number} {resource}"));
            let first = uids.first().context("there is one")?;
            self.inside.run(&["delete", resource, &self.name_of(resource, first)?])?;
            self.owned(resource, *number, Some(first))?;
        }
        Ok((made.join(", "), "one of each is deleted, and is back".to_owned()))
    }

    fn happens_once(&self, child: &str, prompt: Option<&str>, says: &str) -> Result<(String, String)> {
        if let Some(annotation) = prompt {
            self.condition(says)?;
            self.inside.run(&["annotate", "-f", self.file, annotation])?;
        }
        let uids = self.owned(child, 1, None)?;
        let first = uids.first().context("there is one")?;
        self.inside.run(&["delete", child, &self.name_of(child, first)?, "--timeout=60s"])?;
        wait(QUIET);
        let left = self.inside.all(child)?;
        if !left.is_empty() {
            bail!("{child} were made again: {}", left.len());
        }
        Ok((format!("1 {child}"), format!("it is not made a second time; {}", self.condition(says)?)))
    }

    fn judges(&self) -> Result<(String, String)> {
        let enforced = self.condition("Enforced")?;
        self.inside.run(&["create", "deployment", "allowed", "--image=nginx:1.14.2"])?;
        for _ in 0..2 {
            self.inside.run(&["create", "deployment", "other", "--image=nginx:1.15.7"])?;
            eventually("the other image is gone", || {
                let left = self.inside.run(&["get", "deployments", "-o", "name"])?;
                Ok((!left.contains("other")).then_some(()))
            })?;
        }
        wait(QUIET);
        let left = self.inside.run(&["get", "deployments", "-o", "name"])?;
        if left.trim() != "deployment.apps/allowed" {
            bail!("what is left is {left}");
        }
        self.inside.run(&["delete", "deployment", "allowed"])?;
        let told = "(a Deployment with another image is deleted, and again when it comes back; one with an allowed image stays)";
        Ok((enforced, told.to_owned()))
    }

    /// The uids of the objects of a resource that belong to the sample, once there are so many, `but` not among them.
    fn owned(&self, resource: &str, number: usize, but: Option<&String>) -> Result<BTreeSet<String>> {
        eventually(&format!("{number} {resource} are the sample's"), || {
            let all = self.inside.all(resource)?;
            let is_owned = |object: &&Value| {
                let owners = object["metadata"]["ownerReferences"].as_array();
                owners.is_some_and(|owners| owners.iter().any(|owner| owner["uid"] == *self.uid))
            };
            let uids = all.iter().filter(is_owned).map(|object| text(object, "/metadata/uid"));
            let uids: BTreeSet<String> = uids.collect::<Result<_>>()?;
            Ok((uids.len() == number && but.is_none_or(|but| !uids.contains(but))).then_some(uids))
        })
    }

    fn name_of(&self, resource: &str, uid: &str) -> Result<String> {
        let all = self.inside.all(resource)?;
        let found = all.iter().find(|object| object["metadata"]["uid"] == uid);
        text(found.context("it is gone")?, "/metadata/name")
    }

    /// What a condition of the sample says, once it says something.
    fn condition(&self, type_: &str) -> Result<String> {
        eventually(&format!("it has the condition {type_}"), || {
            let object: Value =
                serde_json::from_str(&self.inside.run(&["get", "-f", self.file, "-o", "json"])?)?;
            let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let found = conditions.iter().find(|condition| condition["type"] == type_);
            let said = |field: &str| found.and_then(|found| found[field].as_str()).unwrap_or_default();
            Ok(found.is_some().then(|| format!("`{type_}` is {}: {}", said("status"), said("reason"))))
        })
    }
}

pub(super) fn text(object: &Value, pointer: &str) -> Result<String> {
    let found = object.pointer(pointer).and_then(Value::as_str);
    found.map(str::to_owned).with_context(|| format!("an object without {pointer}"))
}
