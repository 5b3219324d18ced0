//! Reads past the cache, and writes of parts of objects that write nothing when nothing differs.

mod write;

use std::sync::Arc;

use serde_json::{Map, Value, json};

pub use self::write::StatusWrite;
use crate::{Context, Error, Key, Object, Written, object::fields_of};

impl Context {
    /// The object named `key`, from the API server: for what must not be late even by the time that a watch takes, such as
    /// before something is destroyed. The kind need not be declared. It costs a request each time, and the right to `get`.
    ///
    /// # Errors
    /// What the server refuses; that the object is not there is `None`.
    pub async fn live<K: Object>(&self, key: &Key) -> Result<Option<K>, Error> {
        self.expect_here(key)?;
        Ok(self.endpoint::<K>(key.namespace.as_deref()).get(&key.name).await?)
    }

    /// Makes the stored status be that of `object`: what it leaves out is taken away. When the cached object has it
    /// already, nothing is written; otherwise what differs is, which the server refuses when the cache is behind.
    ///
    /// # Errors
    /// What the server refuses, [`Error::is_conflict`] among it; an object that is not in the cache.
    ///
    /// # Panics
    /// As [`Context::get`].
    pub async fn ensure_status<K: Object>(&self, object: &K) -> Result<Written<K>, Error> {
        self.expect_whole::<K>(&(), "a status")?;
        let key = Key::of(object);
        let Some(current) = self.get::<K>(&key) else {
            return Err(Error::new(format!("{} {key} is not there: it has no status", K::kind(&()))));
        };
        let status = |object: &K| fields_of(object, |field| field == "status");
        let (before, after) = (status(&current)?, status(object)?);
        let Some(difference) = difference(&before["status"], &after["status"]) else {
            return Ok(Written::Unchanged(current));
        };
        let changed = difference.to_string();
        let version = &current.meta().resource_version;
        let patch = json!({"metadata": {"resourceVersion": version}, "status": difference});
        let object = Arc::new(self.patch_status::<K>(&key, patch).await?);
        Ok(Written::Updated { object, changed })
    }
}

/// The JSON merge patch (RFC 7386) that makes `before` into `after`, if they differ.
pub(crate) fn difference(before: &Value, after: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return (before != after).then(|| after.clone());
    };
    let gone = old.keys().filter(|field| !new.contains_key(*field)).map(|field| (field.clone(), Value::Null));
    let changed = new.iter().filter_map(|(field, new)| {
        Some((field.clone(), difference(old.get(field).unwrap_or(&Value::Null), new)?))
    });
    let patch: Map<String, Value> = gone.chain(changed).collect();
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_what_changed_and_what_went() {
        let before = json!({"a": 1, "b": {"c": 1, "d": [1]}, "e": 1});
        assert_eq!(difference(&before, &before.clone()), None);
        let after = json!({"a": 1, "b": {"c": 2, "d": [1]}, "f": {}});
        assert_eq!(difference(&before, &after), Some(json!({"b": {"c": 2}, "e": null, "f": {}})));
        assert_eq!(difference(&Value::Null, &json!({"a": 1})), Some(json!({"a": 1})));
        assert_eq!(difference(&json!({"a": 1}), &Value::Null), Some(Value::Null));
    }
}
