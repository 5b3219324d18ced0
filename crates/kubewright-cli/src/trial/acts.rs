//! What is done to the cluster in a step.

use std::collections::BTreeSet;

use anyhow::Context;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use kubewright_cluster::journal::{Journal, Written};
use kubewright_trial::{
    change::Change,
    plan::Act,
    state::{ADDITION, OWNER},
    story::{LEASES, ObjectId},
};
use serde_json::{Value, json};

use crate::{
    access::{Access, Objects, Others, object, refused},
    stand::webhooks::{self, Webhooks},
};

/// How often a change is tried again that conflicts with what the operator writes.
const TRIES: usize = 20;
/// The name of the trial's quotas.
const QUOTA: &str = "trial-full";

/// What became of an act.
pub(super) enum Acted {
    Done,
    /// The API server does not take it: it cannot be asked for.
    Refused(String),
}

/// Who acts: a user of the cluster with the samples.
pub(super) struct Actor<'a> {
    objects: Objects,
    samples: &'a [DynamicObject],
    journal: &'a Journal,
    /// Whether who is refused as a webhook does not answer tries again.
    waits_for_webhooks: bool,
    /// How often the samples were touched.
    touches: u64,
}

impl<'a> Actor<'a> {
    pub(super) fn new(access: &Access, samples: &'a [DynamicObject], journal: &'a Journal) -> Self {
        let objects = Objects::new(&access.client);
        Self { objects, samples, journal, waits_for_webhooks: true, touches: 0 }
    }

    /// The names of the samples.
    ///
    /// # Errors
    /// When the cluster has no such kind.
    pub(super) async fn ids(&mut self) -> anyhow::Result<Vec<ObjectId>> {
        let mut ids = Vec::new();
        for sample in self.samples {
            let api = self.objects.api(sample).await?;
            let namespace = namespace(&api);
            let url = api.resource_url().trim_matches('/').to_owned();
            let parts: Vec<&str> = url.split('/').collect();
            let (group, plural) = match parts.as_slice() {
                ["api", .., plural] => ("", *plural),
                ["apis", group, .., plural] => (*group, *plural),
                _ => ("", ""),
            };
            let name = sample.name_any();
            let key = namespace.map_or(name.clone(), |namespace| format!("{namespace}/{name}"));
            ids.push(ObjectId::new(format!("{group}/{plural}"), key));
        }
        Ok(ids)
    }

    /// Does it.
    ///
    /// # Errors
    /// When the control plane cannot be asked.
    pub(super) async fn act(&mut self, act: &Act) -> anyhow::Result<Acted> {
        match act {
            Act::Create(change) => self.create(change.as_ref(), false).await,
            Act::Change(change) => self.change(change.as_ref()).await,
            Act::Touch => self.touch().await,
            Act::DeleteSamples => self.delete_samples().await,
            Act::DeleteObject(id) => self.delete(id).await,
            Act::ChangeObject(id, field, value) => {
                let patch = json!([{"op": "add", "path": field, "value": value}]);
                let patch = kubewright_objects::from_value(patch).context("a patch")?;
                self.patch(id, &Patch::Json::<()>(patch)).await
            }
            Act::Extend(id) => self.extend(id).await,
            Act::Occupy(_, stranger) => {
                let stranger = object(stranger.clone())?;
                self.make(&stranger).await
            }
            // What is done to the program, and takes its time, is the stage's.
            Act::Restart | Act::RestartInThePast(_) | Act::Relist(_) | Act::LoseNode(..) | Act::Wait => {
                Ok(Acted::Done)
            }
        }
    }

    /// Does what was refused before: samples that were made then are left.
    ///
    /// # Errors
    /// When the control plane cannot be asked.
    pub(super) async fn act_again(&mut self, act: &Act) -> anyhow::Result<Acted> {
        match act {
            Act::Create(change) => self.create(change.as_ref(), true).await,
            act => self.act(act).await,
        }
    }

    /// Applies the objects that lead the API server to the program's webhooks; without `is_reached` they lead where nobody is, and who
    /// is refused does not wait for them.
    ///
    /// # Errors
    /// When the control plane refuses.
    pub(super) async fn lead_webhooks(
        &mut self,
        needed: &[DynamicObject],
        webhooks: &Webhooks,
        is_reached: bool,
    ) -> anyhow::Result<()> {
        for object in needed.iter().filter(|object| webhooks::has_some(std::slice::from_ref(object))) {
            let led = if is_reached { webhooks.lead(object)? } else { webhooks.lead_nowhere(object)? };
            self.objects.apply(&led, Others::TakenOver).await?;
        }
        self.waits_for_webhooks = is_reached;
        Ok(())
    }

    /// Deletes the Leases that a user holds who was killed: whoever comes after would wait until they expire, in the machine's time.
    pub(super) async fn release_leases(&mut self, user: &str) -> anyhow::Result<()> {
        let is_theirs =
            |one: &Written| *one.collection == *LEASES && one.by.as_ref().is_some_and(|by| by.user == user);
        let held: BTreeSet<String> =
            self.journal.written(is_theirs).iter().map(|one| one.key.to_string()).collect();
        for key in held {
            self.delete(&ObjectId::new(LEASES, key)).await?;
        }
        Ok(())
    }

    /// Lets no object of a resource (`<group>/<plural>`) be created in the namespaces of the samples.
    ///
    /// # Errors
    /// When the control plane refuses.
    pub(super) async fn fill_quotas(&mut self, resource: &str) -> anyhow::Result<()> {
        let (group, plural) = resource.split_once('/').unwrap_or(("", resource));
        let counted =
            if group.is_empty() { format!("count/{plural}") } else { format!("count/{plural}.{group}") };
        for namespace in self.namespaces() {
            let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota",
                "metadata": {"name": QUOTA, "namespace": namespace}, "spec": {"hard": {&counted: "0"}}});
            self.make(&object(quota)?).await?;
        }
        Ok(())
    }

    /// Removes the quotas.
    ///
    /// # Errors
    /// When the control plane refuses.
    pub(super) async fn empty_quotas(&mut self) -> anyhow::Result<()> {
        for namespace in self.namespaces() {
            self.delete(&ObjectId::new("/resourcequotas", format!("{namespace}/{QUOTA}"))).await?;
        }
        Ok(())
    }

    fn namespaces(&self) -> BTreeSet<String> {
        let named = self.samples.iter().map(|sample| sample.metadata.namespace.clone());
        named.map(|namespace| namespace.unwrap_or_else(|| "default".to_owned())).collect()
    }

    async fn make(&mut self, object: &DynamicObject) -> anyhow::Result<Acted> {
        let api = self.objects.api(object).await?;
        acted(self.asked(async || api.create(&PostParams::default(), object).await).await)
    }

    /// The answer to a request; where a webhook does not answer, as that of a program that starts, the one of a later try.
    async fn asked<T>(&self, ask: impl AsyncFn() -> kube::Result<T>) -> kube::Result<T> {
        let is_unreached = |error: &kube::Error| {
            let kube::Error::Api(status) = error else { return false };
            self.waits_for_webhooks && webhooks::is_unreached(&status.message)
        };
        webhooks::answered(ask, is_unreached).await
    }

    async fn create(&mut self, change: Option<&Change>, is_again: bool) -> anyhow::Result<Acted> {
        for (number, sample) in self.samples.iter().enumerate() {
            if is_again && self.objects.api(sample).await?.get_opt(&sample.name_any()).await?.is_some() {
                continue;
            }
            if let Acted::Refused(why) = self.make(&changed(number, sample, change)?).await? {
                return Ok(Acted::Refused(format!("{}: {why}", crate::access::called(sample))));
            }
        }
        Ok(Acted::Done)
    }

    /// Makes the samples what their files say, with a change or without.
    async fn change(&mut self, change: Option<&Change>) -> anyhow::Result<Acted> {
        for (number, sample) in self.samples.iter().enumerate() {
            let wanted = changed(number, sample, change)?;
            let api = self.objects.api(sample).await?;
            let mut tries = 0;
            loop {
                let name = sample.name_any();
                let mut now = match self.asked(async || api.get(&name).await).await {
                    Ok(now) => now,
                    answer => return acted(answer),
                };
                let status = now.data.get("status").cloned();
                now.data = wanted.data.clone();
                if let (Some(fields), Some(status)) = (now.data.as_object_mut(), status) {
                    fields.insert("status".to_owned(), status);
                }
                let replace = async || api.replace(&name, &PostParams::default(), &now).await;
                match self.asked(replace).await {
                    Err(kube::Error::Api(status)) if status.code == 409 && tries < TRIES => tries += 1,
                    answer => match acted(answer)? {
                        Acted::Done => break,
                        Acted::Refused(why) => return Ok(Acted::Refused(why)),
                    },
                }
            }
        }
        Ok(Acted::Done)
    }

    async fn touch(&mut self) -> anyhow::Result<Acted> {
        // Another value each time, so that each is a change.
        self.touches += 1;
        let looked_at = self.touches.to_string();
        for sample in self.samples {
            let api = self.objects.api(sample).await?;
            let patch = json!({"metadata": {"annotations": {"trial.kubewright.dev/looked-at": looked_at}}});
            let (name, patch) = (sample.name_any(), Patch::Merge(patch));
            let answer = self.asked(async || api.patch(&name, &PatchParams::default(), &patch).await).await;
            if let refused @ Acted::Refused(_) = acted(answer)? {
                return Ok(refused);
            }
        }
        Ok(Acted::Done)
    }

    async fn delete_samples(&mut self) -> anyhow::Result<Acted> {
        for sample in self.samples {
            let api = self.objects.api(sample).await?;
            let (name, how) = (sample.name_any(), DeleteParams::background());
            match self.asked(async || api.delete(&name, &how).await).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(kube::Error::Api(status)) => return Ok(Acted::Refused(status.message)),
                Err(error) => return Err(refused("a sample cannot be deleted", &error)),
            }
        }
        Ok(Acted::Done)
    }

    /// Where an object is that somebody has written.
    async fn place(&mut self, id: &ObjectId) -> anyhow::Result<Option<(Api<DynamicObject>, DynamicObject)>> {
        let written = self.journal.written(|one| *one.collection == *id.collection && *one.key == *id.key);
        let Some(last) = written.last() else { return Ok(None) };
        let found: Value = serde_json::from_slice(&last.bytes).context("an object of the journal")?;
        let found = object(found)?;
        Ok(Some((self.objects.api(&found).await?, found)))
    }

    async fn delete(&mut self, id: &ObjectId) -> anyhow::Result<Acted> {
        let Some((api, object)) = self.place(id).await? else {
            return Ok(Acted::Refused(format!("{id} is not there")));
        };
        match api.delete(&object.name_any(), &DeleteParams::background()).await {
            Ok(_) => Ok(Acted::Done),
            Err(kube::Error::Api(status)) => Ok(Acted::Refused(status.message)),
            Err(error) => Err(refused("an object cannot be deleted", &error)),
        }
    }

    async fn patch(
        &mut self,
        id: &ObjectId,
        patch: &Patch<impl serde::Serialize + std::fmt::Debug>,
    ) -> anyhow::Result<Acted> {
        let Some((api, object)) = self.place(id).await? else {
            return Ok(Acted::Refused(format!("{id} is not there")));
        };
        acted(api.patch(&object.name_any(), &PatchParams::default(), patch).await)
    }

    async fn extend(&mut self, id: &ObjectId) -> anyhow::Result<Acted> {
        let Some((api, found)) = self.place(id).await? else {
            return Ok(Acted::Refused(format!("{id} is not there")));
        };
        let mut metadata = json!({"labels": {ADDITION: "theirs"}, "annotations": {ADDITION: "theirs"}});
        if let Some(namespace) = namespace(&api) {
            let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": OWNER, "namespace": namespace}});
            let owner = object(owner)?;
            let owner = self.objects.api(&owner).await?.create(&PostParams::default(), &owner).await;
            let owner = owner.map_err(|error| refused("an owner", &error))?;
            let now = api.get(&found.name_any()).await.map_err(|error| refused("an object", &error))?;
            let mut owners: Vec<Value> = now
                .owner_references()
                .iter()
                .map(serde_json::to_value)
                .collect::<Result<_, _>>()
                .context("owner references")?;
            owners.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "name": OWNER, "uid": owner.uid()}));
            metadata["ownerReferences"] = owners.into();
        }
        let patch = Patch::Merge(json!({"metadata": metadata}));
        acted(api.patch(&found.name_any(), &PatchParams::default(), &patch).await)
    }
}

/// The namespace that an API is of.
fn namespace(api: &Api<DynamicObject>) -> Option<String> {
    let (_, rest) = api.resource_url().split_once("/namespaces/")?;
    rest.split_once('/').map(|(namespace, _)| namespace.to_owned())
}

/// The sample of a number with what a change sets of it.
fn changed(number: usize, sample: &DynamicObject, change: Option<&Change>) -> anyhow::Result<DynamicObject> {
    let Some(change) = change else { return Ok(sample.clone()) };
    let value = serde_json::to_value(sample).context("a sample")?;
    object(change.of(number, &value))
}

fn acted<T>(answer: kube::Result<T>) -> anyhow::Result<Acted> {
    match answer {
        Ok(_) => Ok(Acted::Done),
        Err(kube::Error::Api(status)) => Ok(Acted::Refused(status.message)),
        Err(error) => Err(refused("the control plane", &error)),
    }
}
