//! An operator to be tested: each Secret has a ConfigMap of its name with a copy of its keys.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::ObjectMeta;
use kubewright::command::Operator;
use kubewright::rbac::Verb;
use kubewright::{Context, Controller, Error, EventType, Key, Outcome, Reconciler, Written};

/// How often a copy notes that it was looked at.
pub(crate) const AGAIN: Duration = Duration::from_hours(1);

struct Copier;

impl Reconciler for Copier {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(secret) = ctx.get::<Secret>(key) else { return Ok(Outcome::Done) };
        let data = secret.data.iter().flatten().map(|(key, _)| (key.clone(), "copied".to_owned())).collect();
        let copy = ConfigMap {
            metadata: ObjectMeta {
                name: Some(key.name.clone()),
                namespace: key.namespace.clone(),
                ..ObjectMeta::default()
            },
            data: Some(data),
            ..ConfigMap::default()
        };
        if secret.data.iter().flatten().any(|(key, _)| key == "panic") {
            panic!("there is a key that nobody expected");
        }
        if let Written::Created(_) = ctx.apply(&copy).owned_by(&*secret).await? {
            ctx.event(&*secret, EventType::Normal, "Copied", "Copied its keys");
        }
        Ok(Outcome::RequeueAfter(AGAIN))
    }
}

fn controller() -> Controller {
    Controller::new("copier", Copier).for_kind::<Secret>().owns::<ConfigMap>().writes::<ConfigMap>([
        Verb::Create,
        Verb::Patch,
        Verb::Delete,
    ])
}

pub(crate) fn operator() -> Operator {
    Operator::new("copier", "1.0").controller(controller)
}

/// The same without a right that it needs.
pub(crate) fn without_rights() -> Operator {
    Operator::new("copier", "1.0")
        .controller(|| Controller::new("copier", Copier).for_kind::<Secret>().owns::<ConfigMap>())
}

/// Asks for each Secret again and again, without a pause.
struct Restless;

impl Reconciler for Restless {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        ctx.live::<Secret>(key).await?;
        Ok(Outcome::RequeueAfter(Duration::from_millis(1)))
    }
}

/// Never comes to rest.
pub(crate) fn restless() -> Operator {
    let controller = || Controller::new("restless", Restless).for_kind::<Secret>();
    Operator::new("restless", "1.0")
        .controller(move || controller().may(|rights| rights.live_reads::<Secret>()))
}

/// A Secret with these keys.
pub(crate) fn secret(name: &str, keys: &[&str]) -> Secret {
    let data = keys.iter().map(|key| ((*key).to_owned(), "x".to_owned())).collect();
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    Secret { metadata, string_data: Some(data), ..Secret::default() }
}
