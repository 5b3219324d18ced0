//! The cluster that a recording is played into.

use std::{collections::BTreeSet, time::Duration};

use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use kubewright_recording::{Did, Write};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::object::{self, Uids};

/// How often something is tried that others write at the same time, or whose kind is not served yet.
const TRIES: u32 = 5;
/// How long until it is tried again.
const PAUSE: Duration = Duration::from_millis(100);
/// Kinds whose status the server finds out by itself.
const OWN_STATUS: [&str; 2] =
    ["apiextensions.k8s.io/customresourcedefinitions", "apiregistration.k8s.io/apiservices"];

/// Refusal of a write.
pub(super) enum Refusal {
    /// The server does not want it.
    Refused {
        /// The status; 0 where it was not sent.
        code: u16,
        why: String,
    },
    /// The server does not answer.
    Unreachable(kube::Error),
}

impl From<kube::Error> for Refusal {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) if status.code != 401 => {
                Self::Refused { code: status.code, why: status.message.clone() }
            }
            other => Self::Unreachable(other),
        }
    }
}

fn not_sent(why: &str) -> Refusal {
    Refusal::Refused { code: 0, why: why.to_owned() }
}

fn has_code(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}

/// A cluster, and what is known of what was played into it.
pub(super) struct Target {
    client: Client,
    uids: Uids,
    /// The objects that are being deleted.
    deleting: BTreeSet<(String, String)>,
    /// Collections without a status of their own.
    without_status: BTreeSet<String>,
    /// Collections of which it was said that owners are left out.
    lost_owners: BTreeSet<String>,
    notes: Vec<String>,
}

impl Target {
    pub(super) fn new(client: &Client) -> Self {
        Self {
            client: client.clone(),
            uids: Uids::new(),
            deleting: BTreeSet::new(),
            without_status: BTreeSet::new(),
            lost_owners: BTreeSet::new(),
            notes: Vec::new(),
        }
    }

    /// What there is to say that was not said.
    pub(super) fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Writes what was recorded.
    ///
    /// # Errors
    /// [`Refusal`].
    pub(super) async fn play(&mut self, write: &Write) -> Result<(), Refusal> {
        let recorded: Value =
            serde_json::from_str(write.object.get()).map_err(|_| not_sent("the object is no JSON"))?;
        let api = self.api(write, &recorded)?;
        let place = (write.collection.clone(), write.key.clone());
        if write.did == Did::Delete {
            self.deleting.remove(&place);
            return delete(&api, name(write)).await;
        }
        let is_deleted = !recorded["metadata"]["deletionTimestamp"].is_null();
        let current = self.put(&api, write, &recorded).await?;
        self.put_status(&api, write, &recorded, current).await?;
        if is_deleted && self.deleting.insert(place) {
            let asked = api.delete(name(write), &DeleteParams::default()).await;
            asked.map(drop).or_else(|error| if has_code(&error, 404) { Ok(()) } else { Err(error) })?;
        }
        Ok(())
    }

    fn api(&self, write: &Write, recorded: &Value) -> Result<Api<DynamicObject>, Refusal> {
        let (Some(api_version), Some(kind)) = (recorded["apiVersion"].as_str(), recorded["kind"].as_str())
        else {
            return Err(not_sent("the object does not say its kind"));
        };
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let plural = write.collection.rsplit('/').next().unwrap_or_default();
        let [group, version, kind, plural] = [group, version, kind, plural].map(str::to_owned);
        let resource = ApiResource { group, version, api_version: api_version.to_owned(), kind, plural };
        Ok(match write.key.split_once('/') {
            Some((namespace, _)) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        })
    }

    /// Has an object be as it was, but for its status; gives what the server has.
    async fn put(
        &mut self,
        api: &Api<DynamicObject>,
        write: &Write,
        recorded: &Value,
    ) -> Result<DynamicObject, Refusal> {
        let (wanted, lost) = object::written(recorded, &self.uids);
        if lost > 0 {
            self.lose_owners(write);
        }
        let mut tries = 0;
        loop {
            tries += 1;
            match self.put_once(api, write, &wanted).await {
                Ok(current) => {
                    let old = recorded["metadata"]["uid"].as_str().zip(current.uid());
                    old.and_then(|(old, new)| self.uids.insert(old.to_owned(), new));
                    return Ok(current);
                }
                Err(error) if tries == TRIES => return Err(error.into()),
                Err(error) if has_code(&error, 404) => {
                    if !self.make_namespace(write, &error).await? {
                        sleep(PAUSE).await;
                    }
                }
                Err(error) if has_code(&error, 409) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn put_once(
        &mut self,
        api: &Api<DynamicObject>,
        write: &Write,
        wanted: &Value,
    ) -> kube::Result<DynamicObject> {
        let name = name(write);
        let params = PostParams::default();
        let as_object = |value: &Value| {
            kubewright_objects::from_value::<DynamicObject>(value.clone()).map_err(kube::Error::SerdeError)
        };
        let Some(mut current) = api.get_opt(name).await? else {
            return api.create(&params, &as_object(wanted)?).await;
        };
        let mut as_value = serde_json::to_value(&current).map_err(kube::Error::SerdeError)?;
        if let Some(node) = object::node_to_bind(&write.collection, &as_value, wanted) {
            let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node}});
            let _: Value = api.create_subresource("binding", name, &params, &binding).await?;
            current = api.get(name).await?;
            as_value = serde_json::to_value(&current).map_err(kube::Error::SerdeError)?;
        }
        if object::is_as_written(&as_value, wanted) {
            return Ok(current);
        }
        let mut wanted = as_object(wanted)?;
        wanted.metadata.resource_version = current.resource_version();
        api.replace(name, &params, &wanted).await
    }

    async fn put_status(
        &mut self,
        api: &Api<DynamicObject>,
        write: &Write,
        recorded: &Value,
        current: DynamicObject,
    ) -> Result<(), Refusal> {
        let status = &recorded["status"];
        let collection = &write.collection;
        let is_set = status.as_object().is_some_and(|fields| !fields.is_empty());
        if !is_set || OWN_STATUS.contains(&collection.as_str()) || self.without_status.contains(collection) {
            return Ok(());
        }
        if current.data.get("status") == Some(status) {
            return Ok(());
        }
        let mut wanted = current;
        wanted.data["status"] = status.clone();
        // Nobody else's change is to be in the way of what was.
        wanted.metadata.resource_version = None;
        wanted.metadata.managed_fields = None;
        let name = name(write);
        let mut tries = 0;
        loop {
            tries += 1;
            let found = api.get_opt(name).await?;
            let Some(found) = found else { return Ok(()) };
            wanted.metadata.resource_version = found.resource_version();
            match api.replace_status(name, &PostParams::default(), &wanted).await {
                Ok(_) => return Ok(()),
                Err(error) if has_code(&error, 409) && tries < TRIES => {}
                Err(error) if has_code(&error, 404) || has_code(&error, 405) => {
                    self.without_status.insert(collection.clone());
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Makes the namespace of an object, where that is what is missing.
    async fn make_namespace(&mut self, write: &Write, error: &kube::Error) -> Result<bool, Refusal> {
        let Some((namespace, _)) = write.key.split_once('/') else { return Ok(false) };
        let is_it = matches!(error, kube::Error::Api(status) if status.message.starts_with("namespaces "));
        if !is_it {
            return Ok(false);
        }
        let [group, version, api_version] = ["", "v1", "v1"].map(str::to_owned);
        let [kind, plural] = ["Namespace", "namespaces"].map(str::to_owned);
        let resource = ApiResource { group, version, api_version, kind, plural };
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        api.create(&PostParams::default(), &DynamicObject::new(namespace, &resource)).await?;
        self.notes.push(format!("the namespace {namespace} is made: it is not in the recording"));
        Ok(true)
    }

    fn lose_owners(&mut self, write: &Write) {
        if self.lost_owners.insert(write.collection.clone()) {
            let collection = write.collection.trim_start_matches('/');
            self.notes.push(format!(
                "{collection} {}: an owner is not in the recording, and the reference to it is left out, here and in further \
                 {collection}",
                write.key
            ));
        }
    }
}

/// `web` of `default/web`.
fn name(write: &Write) -> &str {
    write.key.rsplit('/').next().unwrap_or_default()
}

/// Removes an object, finalizers or not: it was gone.
async fn delete(api: &Api<DynamicObject>, name: &str) -> Result<(), Refusal> {
    let at_once = DeleteParams::default().grace_period(0);
    let left = match api.delete(name, &at_once).await {
        Ok(answer) => answer.left(),
        Err(error) if has_code(&error, 404) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if left.is_some_and(|left| !left.finalizers().is_empty()) {
        let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        let patched = api.patch(name, &PatchParams::default(), &none).await;
        patched.map(drop).or_else(|error| if has_code(&error, 404) { Ok(()) } else { Err(error) })?;
    }
    Ok(())
}
