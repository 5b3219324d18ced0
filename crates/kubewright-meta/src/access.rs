//! What a program has read or written of objects, as it is noted for people.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Access: a request for objects, or a look into a cache of them, that a program has made once or several times with the same result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Access {
    /// What was done, in the words of RBAC.
    pub verb: String,
    /// Group, plural and subresource, as `apps/deployments/status` or `/pods`.
    pub resource: String,
    /// Namespace and name, as `default/web` or `/node-1`; `default/` and nothing where several objects are meant.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// Whether a cache was asked, and no server.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cached: bool,
    /// How often.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub times: u32,
    /// What came of it.
    #[serde(flatten)]
    pub found: Found,
}

/// Result of an [`Access`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Found {
    /// Nothing that is noted: it was done.
    #[default]
    Done,
    /// The object, in this `resourceVersion`: that which it has since a write.
    Version(String),
    /// So many objects.
    Count(u64),
    /// That the object is not there.
    Absent,
    /// The server refused it with this status.
    Refused(u16),
    /// No answer that could be read.
    Unanswered,
}

impl Access {
    /// One access that has not been made yet.
    #[must_use]
    pub fn new(verb: &str, resource: String, key: String) -> Self {
        Self { verb: verb.to_owned(), resource, key, times: 1, ..Self::default() }
    }

    /// Whether it is the other one once more: the same with the same result.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let Self { verb, resource, key, cached, times: _, found } = self;
        (verb, resource, key, cached, found)
            == (&other.verb, &other.resource, &other.key, &other.cached, &other.found)
    }

    /// Whether it changes objects: what is no `get`, `list` or `watch`.
    #[must_use]
    pub fn is_write(&self) -> bool {
        !matches!(&*self.verb, "get" | "list" | "watch")
    }
}

impl fmt::Display for Access {
    /// `patch apps/deployments default/web: now at 230`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource.trim_start_matches('/'))?;
        if !self.key.is_empty() {
            write!(f, " {}", self.key.trim_start_matches('/'))?;
        }
        if self.cached {
            f.write_str(" in the cache")?;
        }
        match &self.found {
            Found::Done => {}
            Found::Version(version) if self.is_write() => write!(f, ": now at {version}")?,
            Found::Version(version) => write!(f, ": at {version}")?,
            Found::Count(1) => f.write_str(": 1 object")?,
            Found::Count(count) => write!(f, ": {count} objects")?,
            Found::Absent => f.write_str(": not there")?,
            Found::Refused(code) => write!(f, ": refused with {code}")?,
            Found::Unanswered => f.write_str(": no answer")?,
        }
        if self.times > 1 { write!(f, " ({} times)", self.times) } else { Ok(()) }
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn once() -> u32 {
    1
}

fn is_once(times: &u32) -> bool {
    *times == 1
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn an_access_is_read_as_it_was_written() {
        let pod = |found| Access { found, ..Access::new("get", "/pods".into(), "default/a".into()) };
        for (found, written) in [
            (Found::Done, json!({"done": null})),
            (Found::Version("7".into()), json!({"version": "7"})),
            (Found::Count(2), json!({"count": 2})),
            (Found::Absent, json!({"absent": null})),
            (Found::Refused(409), json!({"refused": 409})),
            (Found::Unanswered, json!({"unanswered": null})),
        ] {
            let access = pod(found);
            let mut wanted = json!({"verb": "get", "resource": "/pods", "key": "default/a"});
            wanted.as_object_mut().expect("an object").extend(written.as_object().expect("one").clone());
            assert_eq!(to_value(&access).expect("JSON"), wanted);
            assert_eq!(from_value::<Access>(wanted).expect("an access"), access);
        }
    }

    #[test]
    fn the_same_access_once_more_has_the_same_result() {
        let pod = |found| Access { found, ..Access::new("get", "/pods".into(), "default/a".into()) };
        let often = Access { times: 7, ..pod(Found::Absent) };
        assert!(pod(Found::Absent).is_same(&often));
        assert!(!pod(Found::Absent).is_same(&pod(Found::Done)));
        assert!(!pod(Found::Absent).is_same(&Access { cached: true, ..pod(Found::Absent) }));
    }

    #[test]
    fn an_access_is_a_line_for_people() {
        let mut access = Access::new("get", "apps/deployments".into(), "default/web".into());
        (access.cached, access.found, access.times) = (true, Found::Version("7".into()), 2);
        assert_eq!(access.to_string(), "get apps/deployments default/web in the cache: at 7 (2 times)");
        let mut access = Access::new("update", "/nodes/status".into(), "/a".into());
        access.found = Found::Version("8".into());
        assert_eq!(access.to_string(), "update nodes/status a: now at 8");
        let access = Access { found: Found::Count(1), ..Access::new("list", "/pods".into(), String::new()) };
        assert_eq!(access.to_string(), "list pods: 1 object");
    }
}
