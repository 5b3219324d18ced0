//! What became of a write.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{Cached, Differences};

/// What came of a write of what is desired, with the object as it is now: the answer of [`Context::apply`](crate::Context::apply),
/// [`ensure`](crate::Context::ensure), [`status`](crate::Context::status) and all that write nothing when nothing would change. The object is without its managed fields, as in the cache.
///
/// ```
/// # use k8s_openapi::api::core::v1::Secret;
/// # use kubewright_runtime::{Context, Error, Written};
/// # async fn example(ctx: &Context, wanted: &Secret) -> Result<(), Error> {
/// match ctx.apply(wanted).await? {
///     Written::Created(_) => println!("it was not there"),
///     Written::Updated { changed, .. } => println!("{changed}"), // metadata.labels.app: "other" -> "web"
///     Written::Unchanged(_) => {}                                // it is as it was
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub enum Written<K> {
    /// The object was not there and was created.
    Created(Arc<K>),
    /// The object differed and was changed.
    Updated {
        /// As it is now.
        object: Arc<K>,
        /// What changed, for a log or an event; empty where nobody knows what it was before, as the kind is not cached whole.
        changed: String,
    },
    /// The object was as it is wanted.
    Unchanged(Arc<K>),
}

impl<K> Written<K> {
    /// The object as it is now.
    #[must_use]
    pub fn object(&self) -> &Arc<K> {
        match self {
            Self::Created(object) | Self::Updated { object, .. } | Self::Unchanged(object) => object,
        }
    }

    /// The object as it is now.
    #[must_use]
    pub fn into_object(self) -> Arc<K> {
        match self {
            Self::Created(object) | Self::Updated { object, .. } | Self::Unchanged(object) => object,
        }
    }

    /// Whether something was written.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        !matches!(self, Self::Unchanged(_))
    }
}

/// What of the metadata each write changes, or no write.
const NOT_TOLD: [&str; 4] = ["creationTimestamp", "generation", "managedFields", "resourceVersion"];

/// What differs between two states of an object (its JSON), but for its status, in words; or of this part of it.
pub(crate) fn changes<K: Cached>(
    kind: &K::DynamicType,
    before: Value,
    now: Value,
    part: Option<&str>,
) -> String {
    let told = |object| {
        let Value::Object(mut fields) = object else { return Value::Null };
        match part {
            Some(part) => fields.retain(|field, _| field == part),
            None => drop(fields.remove("status")),
        }
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|field, _| !NOT_TOLD.contains(&field.as_str()));
        }
        if K::group(kind).is_empty() && K::kind(kind) == "Secret" {
            fields.get_mut("data").and_then(Value::as_object_mut).into_iter().for_each(hide);
        }
        Value::Object(fields)
    };
    Differences::default().between("", &told(before), &told(now)).join("; ")
}

/// Leaves of each value of a Secret its length: what is told of a change is for people who may not read it.
fn hide(data: &mut Map<String, Value>) {
    for value in data.values_mut() {
        let length = value.as_str().map_or(0, str::len);
        *value = format!("{length} characters").into();
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_changed_is_told_without_what_each_write_changes() {
        let before = json!({"metadata": {"resourceVersion": "1"}, "data": {"a": "1", "b": "2"}});
        let now = json!({"metadata": {"resourceVersion": "2", "labels": {"x": "y"}}, "data": {"a": "3"}});
        let told = changes::<ConfigMap>(&(), before, now.clone(), None);
        assert_eq!(
            told,
            r#"data.a: "1" -> "3"; data.b: "2" -> (none); metadata.labels: (none) -> {"x":"y"}"#
        );
        assert_eq!(changes::<ConfigMap>(&(), now.clone(), now, None), "");
    }

    #[test]
    fn what_a_secret_says_is_not_told() {
        let (before, now) = (json!({"data": {"a": "b2xk"}}), json!({"data": {"a": "bmV3ZXI="}}));
        let told = changes::<Secret>(&(), before, now, None);
        assert_eq!(told, r#"data.a: "4 characters" -> "8 characters""#);
    }
}
