//! All objects of a namespace, as text.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde_json::Value;

use crate::Cluster;

/// The collections of what is written besides the objects that a test is about.
const ASIDE: [&str; 3] = ["/events", "events.k8s.io/events", "coordination.k8s.io/leases"];

/// The objects of a namespace at one moment, sorted by kind and name. It is shown as YAML documents, without
/// `managedFields`.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot(Vec<Value>);

impl Cluster {
    /// The objects of a namespace, Events and Leases left out.
    ///
    /// ```no_run
    /// # async fn example(cluster: kubewright_testing::Cluster) {
    /// let before = cluster.snapshot("default").stable();
    /// // ... what should leave no trace ...
    /// assert_eq!(cluster.snapshot("default").stable().to_string(), before.to_string());
    /// # }
    /// ```
    #[must_use]
    pub fn snapshot(&self, namespace: &str) -> Snapshot {
        let snapshot = self.server().engine().store().snapshot();
        let prefix = format!("{namespace}/");
        let mut objects = Vec::new();
        for collection in snapshot.collections().filter(|collection| !ASIDE.contains(&&***collection)) {
            for entry in snapshot.range(collection, &prefix, None) {
                let mut object: Value = serde_json::from_slice(&entry.bytes).unwrap_or_default();
                if let Some(metadata) = object["metadata"].as_object_mut() {
                    metadata.remove("managedFields");
                }
                objects.push(object);
            }
        }
        objects.sort_by_cached_key(|object| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            (text(&object["kind"]), text(&object["metadata"]["name"]))
        });
        Snapshot(objects)
    }
}

impl Snapshot {
    /// The same without what differs from run to run: uids are `uid-1`, `uid-2` in the order in which they appear, times are
    /// `time`, and there are no resource versions.
    #[must_use]
    pub fn stable(mut self) -> Self {
        let mut uids = BTreeMap::new();
        for object in &mut self.0 {
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("resourceVersion");
            }
            stabilise(object, &mut uids);
        }
        self
    }
}

fn stabilise(value: &mut Value, uids: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if matches!(name.as_str(), "uid" | "controller-uid") => {
                        name_uid(text, uids);
                    }
                    other => stabilise(other, uids),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| stabilise(item, uids)),
        Value::String(text) if text.contains('T') && text.parse::<Timestamp>().is_ok() => {
            *text = "time".to_owned();
        }
        _ => {}
    }
}

fn name_uid(uid: &mut String, uids: &mut BTreeMap<String, String>) {
    let next = format!("uid-{}", uids.len() + 1);
    *uid = uids.entry(std::mem::take(uid)).or_insert(next).clone();
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for object in &self.0 {
            let text = serde_saphyr::to_string(object).map_err(|_| fmt::Error)?;
            write!(f, "---\n{}\n", text.trim_end())?;
        }
        Ok(())
    }
}
