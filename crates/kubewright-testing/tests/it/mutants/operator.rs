//! A small operator with room for bugs. Each `Page` has a ConfigMap with its text, one for each language, and an entry in a ledger: a ConfigMap in
//! another namespace, where no owner reference reaches, which a finalizer guards.
#![expect(unreachable_pub, reason = "the derive of KubeSchema repeats each struct inside a function")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, PostParams};
use kube::core::ObjectMeta;
use kube::{Api, CustomResource, KubeSchema, ResourceExt};
use kubewright::command::Operator;
use kubewright::rbac::Verb;
use kubewright::{Context, Controller, Desired, Error, Guarded, Key, Outcome, Reconciler, owner};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::bug::Bug;

/// Where the ledger is.
pub(crate) const LEDGER: &str = "ledger";
const FINALIZER: &str = "press.example/ledger";

/// What a user asks for.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(group = "press.example", version = "v1", kind = "Page", namespaced, status = "PageStatus")]
pub struct PageSpec {
    /// What is to be printed.
    pub text: String,
    /// What stands below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub footer: Option<String>,
    /// Into which languages it is translated.
    #[serde(default)]
    pub languages: Vec<String>,
}

/// What the operator last saw.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PageStatus {
    /// Whether it is printed.
    #[serde(default)]
    pub ready: bool,
    /// For which generation that was found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How often it was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<i64>,
}

struct Press {
    bug: Option<Bug>,
    /// The entries that were made since the start.
    remembered: Mutex<BTreeSet<Key>>,
}

/// The operator, with a bug or without.
pub(crate) fn operator(bug: Option<Bug>) -> Operator {
    Operator::new("press", "1.0").definition::<Page>().controller(move || controller(bug))
}

fn controller(bug: Option<Bug>) -> Controller {
    let press = Press { bug, remembered: Mutex::default() };
    let writes = [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete];
    let controller = Controller::new("press", press)
        .for_kind::<Page>()
        .writes::<Page>([Verb::Patch])
        .writes_status::<Page>()
        .writes::<ConfigMap>(writes);
    match bug {
        Some(Bug::MissedDelete) => controller.reads::<ConfigMap>(),
        _ => controller.applies::<ConfigMap>(),
    }
}

impl Reconciler for Press {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(page) = ctx.get::<Page>(key) else { return Ok(Outcome::Done) };
        if self.has(Bug::LateFinalizer) && page.metadata.deletion_timestamp.is_none() {
            self.enter(ctx, key).await?;
        }
        if ctx.guard(&*page, FINALIZER, || self.strike(ctx, key)).await? == Guarded::Cleaned {
            return Ok(Outcome::Done);
        }
        if self.has(Bug::StatusFirst) {
            self.report(ctx, &page, true).await?;
        }
        self.enter(ctx, key).await?;
        let printed = match self.print(ctx, &page).await {
            Err(_) if self.has(Bug::SwallowedError) => false,
            printed => printed?,
        };
        self.report(ctx, &page, printed).await?;
        Ok(Outcome::Done)
    }
}

impl Press {
    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, BTreeSet<Key>> {
        self.remembered.lock().expect("nobody panics with it")
    }

    /// Makes the entry in the ledger.
    async fn enter(&self, ctx: &Context, page: &Key) -> Result<(), Error> {
        let entry = entry(page);
        if ctx.get::<ConfigMap>(&entry).is_none() {
            let metadata =
                ObjectMeta { name: Some(entry.name), namespace: entry.namespace, ..ObjectMeta::default() };
            ctx.create(&ConfigMap { metadata, ..ConfigMap::default() }).await?;
            self.remembered().insert(page.clone());
        }
        Ok(())
    }

    /// Takes the entry out of the ledger.
    async fn strike(&self, ctx: &Context, page: &Key) -> Result<(), Error> {
        if self.has(Bug::ForgetsOnRestart) && !self.remembered().contains(page) {
            return Ok(());
        }
        if self.has(Bug::CleanupOnce) {
            let ledger: Api<ConfigMap> = Api::namespaced(ctx.client().clone(), LEDGER);
            ledger.delete(&entry(page).name, &DeleteParams::default()).await?;
            return Ok(());
        }
        ctx.delete::<ConfigMap>(&entry(page), DeleteParams::default()).await?;
        Ok(())
    }

    /// Makes the ConfigMaps what they are to be; whether they are the page's.
    async fn print(&self, ctx: &Context, page: &Page) -> Result<bool, Error> {
        let wanted = self.wanted(page);
        if self.has(Bug::StaleRead) {
            return self.print_past_the_cache(ctx, page, wanted).await;
        }
        if self.has(Bug::CreateUnchecked) {
            ctx.create(&wanted).await?;
            return Ok(true);
        }
        let found = ctx.get::<ConfigMap>(&Key::of(&wanted));
        let is_own = found.as_ref().is_none_or(|found| owner::is_controlled_by(&**found, page));
        if !is_own && !self.has(Bug::MissingOwner) && !self.has(Bug::AdoptsStrangers) {
            return Ok(false);
        }
        if let Some(update) = found.as_ref().and_then(|found| self.update(found, &wanted)) {
            return self.persist(|| async { ctx.update(&update).await.map(drop) }).await;
        }
        if self.has(Bug::ForgetsKey) && found.is_some() {
            let patch = json!({"data": wanted.data});
            return self
                .persist(|| async {
                    ctx.patch::<ConfigMap>(&Key::of(&wanted), patch.clone()).await.map(drop)
                })
                .await;
        }
        self.persist(|| self.apply(ctx, page, &wanted)).await
    }

    /// What is to take the place of the ConfigMap, where the operator does not leave that to the server.
    fn update(&self, found: &ConfigMap, wanted: &ConfigMap) -> Option<ConfigMap> {
        let text = |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get("text").cloned());
        let owners = &wanted.metadata.owner_references;
        match self.bug? {
            Bug::WritesTheSame => Some(found.clone()),
            Bug::RetryWithoutEnd => (text(found) != text(wanted)).then(|| {
                let mut update = found.clone();
                update.data.get_or_insert_default().extend(wanted.data.clone().unwrap_or_default());
                update
            }),
            Bug::LostUpdate => (text(found) != text(wanted)).then(|| wanted.clone()),
            Bug::FightsInjector => (found.metadata.owner_references != *owners).then(|| {
                let mut update = found.clone();
                update.metadata.owner_references.clone_from(owners);
                update
            }),
            _ => None,
        }
    }

    async fn apply(&self, ctx: &Context, page: &Page, wanted: &ConfigMap) -> Result<(), Error> {
        let translations = self.translations(page);
        if matches!(self.bug, Some(Bug::MissingOwner | Bug::MissedDelete | Bug::ForgetsChild)) {
            for child in std::iter::once(wanted).chain(&translations) {
                ctx.apply(child).await?;
            }
            return Ok(());
        }
        let desired = Desired::new().with(wanted.clone()).with_all(translations);
        ctx.apply_all(page, desired).await.map(drop)
    }

    fn wanted(&self, page: &Page) -> ConfigMap {
        let text = [("text".to_owned(), page.spec.text.clone())];
        let footer = page.spec.footer.iter().map(|footer| ("footer".to_owned(), footer.clone()));
        self.map(page, format!("{}-page", page.name_any()), text.into_iter().chain(footer).collect())
    }

    fn translations(&self, page: &Page) -> Vec<ConfigMap> {
        let map = |language: &String| {
            self.map(page, format!("{}-in-{language}", page.name_any()), BTreeMap::default())
        };
        page.spec.languages.iter().map(map).collect()
    }

    fn map(&self, page: &Page, name: String, data: BTreeMap<String, String>) -> ConfigMap {
        let owner = (!self.has(Bug::MissingOwner)).then(|| vec![owner::controller_reference(page)]);
        let metadata = ObjectMeta {
            name: Some(name),
            namespace: page.namespace(),
            owner_references: owner,
            ..ObjectMeta::default()
        };
        ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
    }

    async fn print_past_the_cache(
        &self,
        ctx: &Context,
        page: &Page,
        mut wanted: ConfigMap,
    ) -> Result<bool, Error> {
        let own = ctx.owned_by::<ConfigMap>(&page.uid().unwrap_or_default());
        let maps: Api<ConfigMap> =
            Api::namespaced(ctx.client().clone(), &page.namespace().unwrap_or_default());
        match own.first() {
            None => {
                wanted.metadata.generate_name = wanted.metadata.name.take().map(|name| name + "-");
                maps.create(&PostParams::default(), &wanted).await?;
            }
            Some(found) => {
                let text = wanted.data.unwrap_or_default().remove("text").unwrap_or_default();
                if found.data.as_ref().is_none_or(|data| data.get("text") != Some(&text)) {
                    let patch = json!({"data": {"text": text}});
                    ctx.patch::<ConfigMap>(&Key::of(&**found), patch).await?;
                }
            }
        }
        Ok(true)
    }

    /// Writes; once, and whoever called is called again if that fails.
    async fn persist<F>(&self, write: impl Fn() -> F + Send) -> Result<bool, Error>
    where
        F: Future<Output = Result<(), Error>> + Send,
    {
        loop {
            match write().await {
                Err(_) if self.has(Bug::RetryWithoutEnd) => {}
                written => return written.map(|()| true),
            }
        }
    }

    /// Writes the status if it is another than the one there is.
    async fn report(&self, ctx: &Context, page: &Page, ready: bool) -> Result<(), Error> {
        let before = page.status.clone().unwrap_or_default();
        let passes = self.has(Bug::HotLoop).then(|| before.passes.unwrap_or(0) + 1);
        let seen = before.observed_generation.filter(|_| self.has(Bug::StaleGeneration));
        let status = PageStatus { ready, observed_generation: seen.or(page.metadata.generation), passes };
        if status != before {
            ctx.patch_status::<Page>(&Key::of(page), json!({ "status": status })).await?;
        }
        Ok(())
    }
}

fn entry(page: &Key) -> Key {
    let namespace = page.namespace.as_deref().unwrap_or_default();
    Key::namespaced(LEDGER, format!("{namespace}.{}", page.name))
}

/// A page of a user.
pub(crate) fn page(name: &str, text: &str) -> Page {
    Page::new(name, PageSpec { text: text.to_owned(), ..PageSpec::default() })
}
