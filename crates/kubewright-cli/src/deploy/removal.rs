//! Removes what was deployed, and nothing else.

use anyhow::{Context, bail};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Preconditions},
    core::{ApiResource, GroupVersionKind},
};
use tokio::time::{Instant, sleep};

use super::{
    apply::{PAUSE, is_ours},
    plan::{Manifest, Plan, Role},
};
use crate::access::{
    Objects, refused,
    stored::{LostObjects, Pages, qualified, resource},
};

/// How many objects are named that hold a kind.
const NAMED: usize = 5;

/// What people keep in namespaces; the operator's own is not removed with any of it in.
const KEPT: [(&str, &str, &str); 8] = [
    ("", "v1", "Pod"),
    ("", "v1", "PersistentVolumeClaim"),
    ("", "v1", "Service"),
    ("apps", "v1", "DaemonSet"),
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "StatefulSet"),
    ("batch", "v1", "CronJob"),
    ("batch", "v1", "Job"),
];

/// How an installation is removed.
pub(super) struct Removal<'a> {
    pub(super) client: &'a Client,
    pub(super) deadline: Instant,
    /// Whether the operator's kinds stay, and so their objects.
    pub(super) keep_kinds: bool,
    /// Whether the objects of the operator's kinds may be lost.
    pub(super) lose_objects: bool,
}

/// An object that we installed.
struct Installed<'a> {
    manifest: &'a Manifest,
    api: Api<DynamicObject>,
    uid: Option<String>,
    object: DynamicObject,
}

impl Removal<'_> {
    /// Removes all of a plan that is in the cluster and that we installed, and says how much that was. The kinds go first,
    /// while the operator is there to let go of their objects; then nobody is sent to it any more; then the rest.
    ///
    /// # Errors
    /// When objects would be lost and that is not allowed, the cluster refuses, or something is not gone in time.
    pub(super) async fn run(
        &self,
        plan: &Plan,
        report: &mut (dyn FnMut(&str) + Send),
    ) -> anyhow::Result<usize> {
        let mut found = Vec::new();
        let mut objects = Objects::new(self.client);
        for manifest in
            plan.manifests().iter().filter(|manifest| !self.keep_kinds || manifest.role != Role::Kind)
        {
            // An object of a kind that the cluster does not have (any more) is not there either.
            let Ok(api) = objects.api(&manifest.object).await else { continue };
            let object = api.get_opt(&manifest.name).await;
            match object.map_err(|error| refused(&manifest.unread(), &error))? {
                Some(object) if is_ours(&object) => {
                    found.push(Installed { manifest, api, uid: object.uid(), object });
                }
                Some(_) => {
                    report(&format!(
                        "{} was not installed by kubewright deploy, and is left",
                        manifest.called()
                    ));
                }
                None => {}
            }
        }
        self.check_objects(&found).await?;
        let removed = found.len();
        for role in [Role::Kind, Role::Webhook, Role::Program, Role::Other, Role::Right, Role::Namespace] {
            let (now, later) =
                found.into_iter().partition(|found: &Installed<'_>| found.manifest.role == role);
            found = later;
            self.remove(now, report).await?;
        }
        Ok(removed)
    }

    /// Refuses to lose objects of the operator's kinds.
    async fn check_objects(&self, found: &[Installed<'_>]) -> anyhow::Result<()> {
        let mut lost = LostObjects::default();
        for found in found.iter().filter(|found| found.manifest.role == Role::Kind && !self.lose_objects) {
            lost.add(self.client, &found.object).await?;
        }
        lost.check("--yes removes them, --keep-crds keeps them and their kinds")
    }

    /// Removes some objects, and waits until they are gone.
    async fn remove(
        &self,
        found: Vec<Installed<'_>>,
        report: &mut (dyn FnMut(&str) + Send),
    ) -> anyhow::Result<()> {
        let mut going = Vec::new();
        for found in found.into_iter().rev() {
            if found.manifest.role == Role::Namespace
                && let Some(other) = self.others_in(&found.manifest.name).await?
            {
                report(&format!("{} is left: it has {other}", found.manifest.called()));
                continue;
            }
            let mut parameters = match found.manifest.role {
                Role::Program => DeleteParams::foreground(),
                _ => DeleteParams::background(),
            };
            parameters.preconditions = Some(Preconditions { uid: found.uid.clone(), resource_version: None });
            match found.api.delete(&found.manifest.name, &parameters).await {
                Ok(_) => going.push(found),
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => {
                    return Err(refused(&format!("{} cannot be removed", found.manifest.called()), &error));
                }
            }
        }
        for found in going {
            self.gone(&found).await?;
            report(&format!("{} removed", found.manifest.called()));
        }
        Ok(())
    }

    async fn gone(&self, found: &Installed<'_>) -> anyhow::Result<()> {
        loop {
            let there = found.api.get_opt(&found.manifest.name).await;
            match there.map_err(|error| refused(&found.manifest.unread(), &error))? {
                Some(object) if object.uid() == found.uid => {}
                _ => return Ok(()),
            }
            if Instant::now() >= self.deadline {
                bail!("{} is not gone in time{}", found.manifest.called(), self.held_by(found).await);
            }
            sleep(PAUSE).await;
        }
    }

    /// What keeps an object from going.
    async fn held_by(&self, found: &Installed<'_>) -> String {
        let kind = resource(&found.object).filter(|_| found.manifest.role == Role::Kind);
        let Some(kind) = kind else { return String::new() };
        let (mut pages, mut held) = (Pages::of(self.client, &kind), Vec::new());
        // What cannot be read cannot be told.
        while held.len() < NAMED
            && let Ok(Some(objects)) = pages.next().await
        {
            let waits = objects.iter().filter(|object| !object.finalizers().is_empty());
            held.extend(waits.map(|object| {
                format!("{} ({})", qualified(&found.manifest.name, object), object.finalizers().join(", "))
            }));
        }
        held.truncate(NAMED);
        match held.is_empty() {
            true => String::new(),
            false => {
                format!(": finalizers hold {}; the operator removes them when it is done", held.join(", "))
            }
        }
    }

    /// Something in a namespace that is not of the operator.
    async fn others_in(&self, namespace: &str) -> anyhow::Result<Option<String>> {
        for (group, version, kind) in KEPT {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
            let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &resource);
            let list = api.list(&ListParams::default()).await;
            let list = list.with_context(|| format!("cannot tell what is in namespace {namespace}"))?;
            let is_other = |object: &&DynamicObject| {
                object.owner_references().is_empty()
                    && !is_ours(object)
                    && object.metadata.deletion_timestamp.is_none()
            };
            if let Some(object) = list.items.iter().find(is_other) {
                return Ok(Some(format!(
                    "{}/{}, which kubewright deploy did not install",
                    kind.to_lowercase(),
                    object.name_any()
                )));
            }
        }
        Ok(None)
    }
}
