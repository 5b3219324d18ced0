//! The body of an apply: the fields that are wanted, and no others.

use k8s_openapi::{ByteString, apimachinery::pkg::apis::meta::v1::OwnerReference};
use serde_json::{Value, json};

use crate::{Cached, Error, object::to_value};

/// What of the metadata is the server's to say: it refuses to be told who owns what, and what others changed since is for it to merge.
const SERVERS: [&str; 7] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
];

/// The fields that `desired` has, but for its status; of a part of it, those of the part alone.
pub(super) fn of<K: Cached>(
    kind: &K::DynamicType,
    desired: &K,
    part: Option<&str>,
    owners: Option<&[OwnerReference]>,
) -> Result<Value, Error> {
    let mut body = to_value(desired)?;
    let meta = desired.meta();
    if let Some(part) = part {
        body = json!({"metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid}, part: body[part].take()});
    } else if let Some(fields) = body.as_object_mut() {
        fields.remove("status");
    }
    body["apiVersion"] = K::api_version(kind).into();
    body["kind"] = K::kind(kind).into();
    if let Some(meta) = body["metadata"].as_object_mut() {
        meta.retain(|field, value| !SERVERS.contains(&field.as_str()) && !value.is_null());
    }
    if let (Some(owners), None) = (owners, part) {
        body["metadata"]["ownerReferences"] = to_value(owners)?;
    }
    if K::group(kind).is_empty() && K::kind(kind) == "Secret" {
        fold_string_data(&mut body)?;
    }
    Ok(body)
}

/// Makes a Secret's `stringData` what the server makes of it: entries of `data`, in place of those of the same key
/// (`Convert_v1_Secret_To_core_Secret` in `k8s.io/kubernetes/pkg/apis/core/v1/conversion.go`). Who applied it as it is would own what is
/// not stored, and a key that is not wanted any more would stay.
fn fold_string_data(secret: &mut Value) -> Result<(), Error> {
    let Some(Value::Object(texts)) = secret.as_object_mut().and_then(|secret| secret.remove("stringData"))
    else {
        return Ok(());
    };
    for (key, text) in texts {
        let bytes = ByteString(text.as_str().unwrap_or_default().as_bytes().to_vec());
        secret["data"][key] = to_value(&bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Pod, Secret};

    use super::*;

    #[test]
    fn what_is_the_servers_is_not_sent() {
        let pod: Pod = kubewright_objects::from_value(json!({
            "metadata": {
                "name": "a", "namespace": "b", "uid": "1", "resourceVersion": "7", "generation": 2,
                "managedFields": [{"manager": "x"}], "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"containers": [{"name": "c"}]},
            "status": {"phase": "Running"},
        }))
        .expect("a Pod");
        let metadata = json!({"name": "a", "namespace": "b", "uid": "1"});
        let (api_version, kind) = ("v1", "Pod");
        assert_eq!(
            of(&(), &pod, None, None).expect("a body"),
            json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {"containers": [{"name": "c"}]}})
        );
        assert_eq!(
            of(&(), &pod, Some("status"), Some(&[])).expect("a body"),
            json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "status": {"phase": "Running"}})
        );
    }

    #[test]
    fn string_data_is_sent_as_the_data_that_the_server_makes_of_it() {
        let secret: Secret = kubewright_objects::from_value(
            json!({"metadata": {"name": "a"}, "data": {"a": "b2xk", "b": "YmI="}, "stringData": {"a": "new"}}),
        )
        .expect("a Secret");
        let body = of(&(), &secret, None, None).expect("a body");
        assert_eq!((&body["data"], body.get("stringData")), (&json!({"a": "bmV3", "b": "YmI="}), None));
    }
}
