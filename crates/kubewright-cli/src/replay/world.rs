//! What others wrote, written again: as the changes that they made, so that what the operator has made otherwise stays so.

use std::{collections::BTreeMap, time::Duration};

use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use kubewright_recording::{Did, Write};
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use crate::play::object::{self, Uids};

/// How often an object is created whose kind or namespace is not there yet, and how long until it is tried again.
const TRIES: u32 = 30;
const PAUSE: Duration = Duration::from_millis(100);
/// Kinds whose status the server finds out by itself.
const OWN_STATUS: [&str; 2] =
    ["apiextensions.k8s.io/customresourcedefinitions", "apiregistration.k8s.io/apiservices"];

/// Plays what others did.
pub(super) struct Others {
    client: Client,
    uids: Uids,
    /// What could not be written: by what was said, the first object and how many.
    pub(super) refused: BTreeMap<String, (String, usize)>,
    pub(super) played: usize,
}

impl Others {
    /// In a world in which these uids are those of the recording.
    pub(super) fn new(client: &Client, uids: Uids) -> Self {
        Self { client: client.clone(), uids, refused: BTreeMap::new(), played: 0 }
    }

    /// Takes note of which uid an object has here.
    pub(super) fn learn(&mut self, then: &Value, now: &Value) {
        let uid = |object: &Value| object["metadata"]["uid"].as_str().map(str::to_owned);
        if let Some((then, now)) = uid(then).zip(uid(now)) {
            self.uids.insert(then, now);
        }
    }

    /// Does what a write did; `before` is the object as it was recorded before it.
    ///
    /// # Errors
    /// When the server does not answer. What it refuses is kept in [`Self::refused`].
    pub(super) async fn play(&mut self, write: &Write, before: Option<&Value>) -> anyhow::Result<()> {
        let after: Value = serde_json::from_str(write.object.get())?;
        let Some(api) = self.api(write, &after) else {
            self.refuse(write, "the object does not say its kind");
            return Ok(());
        };
        match self.try_play(&api, write, before, &after).await {
            Ok(()) => self.played += 1,
            Err(kube::Error::Api(status)) => self.refuse(write, &reason(status.code, &status.reason)),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    async fn try_play(
        &mut self,
        api: &Api<DynamicObject>,
        write: &Write,
        before: Option<&Value>,
        after: &Value,
    ) -> kube::Result<()> {
        let name = write.key.rsplit('/').next().unwrap_or_default();
        match (write.did, before) {
            (Did::Delete, _) => {
                let deleted = api.delete(name, &DeleteParams::default().grace_period(0)).await.map(drop);
                deleted.or_else(|error| if is(&error, 404) { Ok(()) } else { Err(error) })
            }
            (_, None) => self.create(api, write, after).await,
            (_, Some(before)) => self.change(api, name, write, before, after).await,
        }
    }

    async fn create(&mut self, api: &Api<DynamicObject>, write: &Write, after: &Value) -> kube::Result<()> {
        let (wanted, _) = object::written(after, &self.uids);
        let wanted: DynamicObject =
            kubewright_objects::from_value(wanted).map_err(kube::Error::SerdeError)?;
        let mut tries = 0;
        let created = loop {
            tries += 1;
            match api.create(&PostParams::default(), &wanted).await {
                Err(error) if is(&error, 404) && tries < TRIES => sleep(PAUSE).await,
                created => break created?,
            }
        };
        let created = serde_json::to_value(&created).map_err(kube::Error::SerdeError)?;
        self.learn(after, &created);
        let name = created["metadata"]["name"].as_str().unwrap_or_default();
        put_status(api, name, write, &Value::Null, after).await
    }

    async fn change(
        &mut self,
        api: &Api<DynamicObject>,
        name: &str,
        write: &Write,
        before: &Value,
        after: &Value,
    ) -> kube::Result<()> {
        if let Some(node) = object::node_to_bind(&write.collection, before, after) {
            let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node}});
            let bound = api.create_subresource("binding", name, &PostParams::default(), &binding).await;
            let _: Value = bound?;
        } else {
            let ((old, _), (new, _)) =
                (object::written(before, &self.uids), object::written(after, &self.uids));
            if let Some(change) = change(&old, &new) {
                api.patch(name, &PatchParams::default(), &Patch::Merge(&change)).await?;
            }
        }
        put_status(api, name, write, before, after).await?;
        let is_deleted = |object: &Value| !object["metadata"]["deletionTimestamp"].is_null();
        if is_deleted(after) && !is_deleted(before) {
            api.delete(name, &DeleteParams::default()).await?;
        }
        Ok(())
    }

    fn api(&self, write: &Write, object: &Value) -> Option<Api<DynamicObject>> {
        let (api_version, kind) = (object["apiVersion"].as_str()?, object["kind"].as_str()?);
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let plural = write.collection.rsplit('/').next().unwrap_or_default();
        let [group, version, kind, plural] = [group, version, kind, plural].map(str::to_owned);
        let resource = ApiResource { group, version, api_version: api_version.to_owned(), kind, plural };
        Some(match write.key.split_once('/') {
            Some((namespace, _)) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        })
    }

    fn refuse(&mut self, write: &Write, why: &str) {
        let collection = write.collection.trim_start_matches('/');
        let kept =
            self.refused.entry(format!("{collection}: {why}")).or_insert_with(|| (write.key.clone(), 0));
        kept.1 += 1;
    }
}

/// Writes what changed of a status, where the kind has one of its own; else it was written with the object.
async fn put_status(
    api: &Api<DynamicObject>,
    name: &str,
    write: &Write,
    before: &Value,
    after: &Value,
) -> kube::Result<()> {
    let status =
        |object: &Value| json!({"status": object.get("status").cloned().unwrap_or_else(|| json!({}))});
    if OWN_STATUS.contains(&write.collection.as_str()) {
        return Ok(());
    }
    let Some(change) = change(&status(before), &status(after)) else { return Ok(()) };
    match api.patch_status(name, &PatchParams::default(), &Patch::Merge(&change)).await {
        // There is no such subresource: the status is a field as any other.
        Err(error) if is(&error, 404) || is(&error, 405) => {
            api.patch(name, &PatchParams::default(), &Patch::Merge(&change)).await.map(drop)
        }
        patched => patched.map(drop),
    }
}

fn is(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}

fn reason(code: u16, reason: &str) -> String {
    match code {
        404 => "not there".to_owned(),
        _ if reason.is_empty() => format!("refused with {code}"),
        _ => format!("refused with {code} {reason}"),
    }
}

/// The merge patch (RFC 7396) that makes one object into the other; none where they are the same.
fn change(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let (Some(old), Some(new)) = (before.as_object(), after.as_object()) else { return Some(after.clone()) };
    let gone = old.keys().filter(|name| !new.contains_key(*name)).map(|name| (name.clone(), Value::Null));
    let changed = new.iter().filter_map(|(name, value)| {
        let change = match old.get(name) {
            Some(before) => change(before, value)?,
            None => value.clone(),
        };
        Some((name.clone(), change))
    });
    Some(Value::Object(gone.chain(changed).collect::<Map<_, _>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_what_differs_and_removes_what_is_gone() {
        let before = json!({"a": 1, "b": {"c": 2, "d": [1]}, "e": 3});
        let after = json!({"a": 1, "b": {"c": 4, "d": [1, 2]}, "f": 5});
        assert_eq!(change(&before, &after), Some(json!({"b": {"c": 4, "d": [1, 2]}, "e": null, "f": 5})));
        assert_eq!(change(&before, &before), None);
    }
}
