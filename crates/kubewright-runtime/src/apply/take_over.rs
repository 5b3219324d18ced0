//! Field managers that a controller replaces: what they own becomes its own before it applies.
//!
//! Without that, two would own each field from then on: what the controller leaves out is the predecessor's still, and stays.
//! (`UpgradeManagedFieldsPatch` in `k8s.io/client-go/util/csaupgrade/upgrade.go`.)

use kube::api::Patch;
use serde_json::{Map, Value, json};

use crate::{
    Cached, Context, Error, Key,
    cache::{Applier, Intent},
    endpoint::{Action, WriteOptions},
};

/// Gives the applier what its predecessors own of an object, by a change of its managed fields and of nothing else.
pub(super) async fn take_over<K: Cached>(
    context: &Context,
    kind: &K::DynamicType,
    key: &Key,
    applier: &Applier,
) -> Result<(), Error> {
    let object = stored::<K>(context, kind, key).await?;
    let entries = object["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(entries) = taken_over(entries, context.predecessors(), applier) else { return Ok(()) };
    set_managed_fields::<K>(context, kind, key, applier, &object, &entries).await?;
    tracing::debug!(controller = %context.controller(), kind = %K::kind(kind), %key, "took over managed fields");
    Ok(())
}

/// An object as it is stored, with its managed fields: what is cached has none.
pub(super) async fn stored<K: Cached>(
    context: &Context,
    kind: &K::DynamicType,
    key: &Key,
) -> Result<Value, Error> {
    let text = context.endpoint_of::<K>(kind, key.namespace.as_deref()).read(&key.name).await?;
    Ok(serde_json::from_str(&text)?)
}

/// Makes these the managed fields of an object that was read so, and changes nothing else of it.
pub(super) async fn set_managed_fields<K: Cached>(
    context: &Context,
    kind: &K::DynamicType,
    key: &Key,
    applier: &Applier,
    object: &Value,
    entries: &[Value],
) -> Result<(), Error> {
    // The version says that nobody has written since: the server answers a conflict then.
    let patch = kubewright_objects::from_value(json!([
        {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": object["metadata"]["resourceVersion"]},
    ]))?;
    let (action, nothing) = (Action::Patch(Patch::Json(patch)), json!({}));
    let options = WriteOptions { field_owner: Some(applier.manager.to_string()), ..WriteOptions::default() };
    context.send_write::<K>(kind, key, None, &options, action, Intent::Fields(&nothing)).await?;
    Ok(())
}

/// Whether an entry of managed fields is of the part of the object that is applied.
pub(super) fn is_of_part(entry: &Value, applier: &Applier) -> bool {
    entry["subresource"].as_str().filter(|part| !part.is_empty()) == applier.subresource
}

/// Whether it is what the applier has applied.
pub(super) fn is_own(entry: &Value, applier: &Applier) -> bool {
    is_of_part(entry, applier) && entry["manager"] == *applier.manager && entry["operation"] == "Apply"
}

/// The managed fields when the applier owns all that it and its predecessors own of this part of the object; none where no predecessor
/// owns anything. What a predecessor owns in another version of the kind is nobody's then: its fields may not be there in this one.
fn taken_over(entries: &[Value], predecessors: &[String], applier: &Applier) -> Option<Vec<Value>> {
    let is_own = |entry: &Value| is_own(entry, applier);
    let is_predecessors = |entry: &Value| {
        let manager = entry["manager"].as_str().unwrap_or_default();
        is_of_part(entry, applier) && !is_own(entry) && predecessors.iter().any(|name| name == manager)
    };
    let theirs = || entries.iter().filter(|entry| is_predecessors(entry));
    let latest = theirs().max_by_key(|entry| entry["time"].as_str())?;
    let mut own = entries.iter().find(|entry| is_own(entry)).unwrap_or(latest).clone();
    own["manager"] = (*applier.manager).into();
    own["operation"] = "Apply".into();
    let version = own["apiVersion"].clone();
    for entry in theirs().filter(|entry| entry["apiVersion"] == version) {
        unite(&mut own["fieldsV1"], &entry["fieldsV1"]);
    }
    let others = entries.iter().filter(|entry| !is_own(entry) && !is_predecessors(entry)).cloned();
    Some(others.chain([own]).collect())
}

/// Adds the fields of another set to this one; both are `FieldsV1`.
pub(super) fn unite(fields: &mut Value, others: &Value) {
    let Some(others) = others.as_object() else { return };
    if !fields.is_object() {
        *fields = Map::new().into();
    }
    for (field, below) in others {
        unite(&mut fields[field], below);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web() -> Applier {
        Applier { manager: "web".into(), subresource: None, is_replaced: false }
    }

    fn entry(manager: &str, operation: &str, version: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": version, "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    fn taken(entries: &[Value]) -> Option<Vec<Value>> {
        taken_over(entries, &["manager".to_owned(), "web".to_owned()], &web())
    }

    #[test]
    fn what_predecessors_own_becomes_what_the_controller_applied() {
        let kubectl = entry("kubectl", "Update", "v1", &json!({"f:data": {"f:z": {}}}));
        let mut status = entry("manager", "Update", "v1", &json!({"f:status": {}}));
        status["subresource"] = "status".into();
        let old = entry("manager", "Update", "v1", &json!({"f:data": {".": {}, "f:a": {}}}));
        let own = entry("web", "Apply", "v1", &json!({"f:data": {"f:b": {}}}));
        let both = entry("web", "Apply", "v1", &json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}}));
        let alone = entry("web", "Apply", "v1", &json!({"f:data": {".": {}, "f:a": {}}}));
        assert_eq!(
            taken(&[old.clone(), kubectl.clone(), own.clone(), status.clone()]),
            Some(vec![kubectl.clone(), status.clone(), both])
        );
        assert_eq!(taken(std::slice::from_ref(&old)), Some(vec![alone.clone()]), "it applied nothing yet");
        let itself = entry("web", "Update", "v1", &json!({"f:data": {".": {}, "f:a": {}}}));
        assert_eq!(taken(&[itself]), Some(vec![alone]), "it wrote without an apply before");
        assert_eq!(taken(&[kubectl, own, status]), None, "nobody to take over from");
    }

    #[test]
    fn fields_of_another_version_of_the_kind_are_not_taken() {
        let old = entry("manager", "Update", "v1beta1", &json!({"f:data": {"f:a": {}}}));
        let own = entry("web", "Apply", "v1", &json!({"f:data": {"f:b": {}}}));
        assert_eq!(taken(&[old, own.clone()]), Some(vec![own]));
    }
}
