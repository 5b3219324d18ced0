//! What a reconcile reads and writes, noted while it goes on where somebody wants to know.

use std::{mem, sync::Arc};

use kubewright_meta::access::{Access, Found};
use parking_lot::Mutex;
use serde::{Deserialize, de::IgnoredAny};

use crate::{
    Key,
    rbac::{Right, Verb},
};

/// How many different accesses are kept of a reconcile.
const KEPT: usize = 100;

tokio::task_local! {
    /// That of the reconcile that is under way in this task.
    static CURRENT: Option<Accesses>;
}

/// The accesses of a reconcile; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accesses(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    accesses: Vec<Access>,
    left_out: u64,
}

impl Accesses {
    /// Notes what `work` does in its own task here, if this is given. What it does in tasks that it spawns is not noted.
    pub(crate) async fn note<F: Future>(here: Option<Self>, work: F) -> F::Output {
        CURRENT.scope(here, work).await
    }

    /// Takes those that are noted, in their order, and how many others there were.
    pub(crate) fn take(&self) -> (Vec<Access>, u64) {
        let Kept { accesses, left_out } = mem::take(&mut *self.0.lock());
        (accesses, left_out)
    }

    fn add(&self, access: Access) {
        let kept = &mut *self.0.lock();
        if let Some(known) = kept.accesses.iter_mut().find(|known| known.is_same(&access)) {
            known.times = known.times.saturating_add(1);
        } else if kept.accesses.len() < KEPT {
            kept.accesses.push(access);
        } else {
            kept.left_out += 1;
        }
    }
}

/// Notes an access of the reconcile that is under way in this task; `access` is made only if there is one that is noted.
fn note(access: impl FnOnce() -> Access) {
    // Outside of a reconcile there is none.
    let _ = CURRENT.try_with(|current| {
        if let Some(current) = current {
            current.add(access());
        }
    });
}

/// Whether what is done in this task is noted.
pub(crate) fn is_noted() -> bool {
    CURRENT.try_with(Option::is_some).unwrap_or_default()
}

/// Notes that an object was looked for in a cache, and found in this version.
pub(crate) fn looked_up(group: &str, plural: &str, key: &Key, version: Option<&str>) {
    note(|| {
        let key = format!("{}/{}", key.namespace.as_deref().unwrap_or_default(), key.name);
        cached(
            "get",
            group,
            plural,
            key,
            version.map_or(Found::Absent, |version| Found::Version(version.to_owned())),
        )
    });
}

/// Notes that so many objects of a namespace, or of all, were taken from a cache.
pub(crate) fn listed(group: &str, plural: &str, namespace: Option<&str>, count: usize) {
    note(|| {
        let key = namespace.map(|namespace| format!("{namespace}/")).unwrap_or_default();
        cached("list", group, plural, key, Found::Count(count as u64))
    });
}

fn cached(verb: &str, group: &str, plural: &str, key: String, found: Found) -> Access {
    let mut access = Access::new(verb, format!("{group}/{plural}"), key);
    (access.cached, access.found) = (true, found);
    access
}

/// Notes a request for objects and what was answered.
pub(crate) fn requested(right: Right, answer: Result<&str, &kube::Error>) {
    note(|| {
        let (answered, found) = match answer {
            Ok(text) => answered(text),
            Err(kube::Error::Api(status)) if status.code == 404 && right.verb == Verb::Get => {
                (Meta::default(), Found::Absent)
            }
            Err(kube::Error::Api(status)) => (Meta::default(), Found::Refused(status.code)),
            Err(_) => (Meta::default(), Found::Unanswered),
        };
        let Right { group, resource, verb, namespace, name } = right;
        let name = name.or(answered.name);
        let key = match (namespace, name) {
            (None, None) => String::new(),
            (namespace, name) => format!("{}/{}", namespace.unwrap_or_default(), name.unwrap_or_default()),
        };
        let mut access = Access::new(verb.as_str(), format!("{group}/{resource}"), key);
        access.found = found;
        access
    });
}

/// What an answer says of the object that it has, or of several.
#[derive(Default, Deserialize)]
struct Answer {
    #[serde(default)]
    metadata: Meta,
    items: Option<Vec<IgnoredAny>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    name: Option<String>,
    resource_version: Option<String>,
}

fn answered(text: &str) -> (Meta, Found) {
    let Answer { mut metadata, items } = serde_json::from_str(text).unwrap_or_default();
    let found = match (items, metadata.resource_version.take()) {
        (Some(items), _) => Found::Count(items.len() as u64),
        (None, Some(version)) if !version.is_empty() => Found::Version(version),
        (None, _) => Found::Done,
    };
    (metadata, found)
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn asked(method: &Method, uri: &str, answer: &str) {
        let right = Right::of(method, &uri.parse().expect("a path")).expect("a request for objects");
        requested(right, Ok(answer));
    }

    /// What `work` does, as `verb resource key`, with how often and what came of it.
    async fn noted(work: impl Future<Output = ()>) -> (Vec<(String, u32, Found)>, u64) {
        let accesses = Accesses::default();
        Accesses::note(Some(accesses.clone()), work).await;
        let (all, left_out) = accesses.take();
        let shown = |one: Access| {
            let from = if one.cached { " cached" } else { "" };
            (format!("{} {} {}{from}", one.verb, one.resource, one.key), one.times, one.found)
        };
        (all.into_iter().map(shown).collect(), left_out)
    }

    #[tokio::test]
    async fn what_is_read_and_written_is_noted_in_its_order_and_once() {
        let pods = "/api/v1/namespaces/default/pods";
        let (all, left_out) = noted(async {
            looked_up("apps", "deployments", &Key::namespaced("default", "web"), Some("7"));
            looked_up("", "nodes", &Key::cluster_scoped("n"), None);
            looked_up("apps", "deployments", &Key::namespaced("default", "web"), Some("7"));
            listed("", "pods", None, 3);
            asked(&Method::GET, pods, r#"{"metadata": {"resourceVersion": "9"}, "items": [{}, {}]}"#);
            asked(&Method::POST, pods, r#"{"metadata": {"name": "web-x", "resourceVersion": "10"}}"#);
            asked(&Method::POST, &format!("{pods}/web-x/eviction"), r#"{"kind": "Status"}"#);
            looked_up("apps", "deployments", &Key::namespaced("default", "web"), Some("8"));
        })
        .await;
        let one = |what: &str, found| (what.to_owned(), 1, found);
        assert_eq!(left_out, 0);
        assert_eq!(
            all,
            [
                ("get apps/deployments default/web cached".to_owned(), 2, Found::Version("7".into())),
                one("get /nodes /n cached", Found::Absent),
                one("list /pods  cached", Found::Count(3)),
                one("list /pods default/", Found::Count(2)),
                one("create /pods default/web-x", Found::Version("10".into())),
                one("create /pods/eviction default/web-x", Found::Done),
                one("get apps/deployments default/web cached", Found::Version("8".into())),
            ]
        );
    }

    #[tokio::test]
    async fn what_is_too_much_is_counted_and_nothing_is_noted_where_nobody_wants_to_know() {
        let many = || {
            for number in 0..KEPT + 5 {
                listed("", "pods", None, number);
            }
        };
        let (all, left_out) = noted(async { many() }).await;
        assert_eq!((all.len(), left_out), (KEPT, 5));
        many();
        Accesses::note(None, async { many() }).await;
    }
}
