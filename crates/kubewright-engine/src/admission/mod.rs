//! Admission: what the cluster adds to a write, and what it has against one that the kind itself allows.
//!
//! Two phases, as in `k8s.io/apiserver/pkg/admission`: [`mutate`] comes before the kind prepares and validates the
//! object, [`validate`] after it and right before the commit. Deletions change no object: [`admit_deletion`] is both
//! phases in one. Each phase asks the plugins in Kubernetes' order.
//!
//! Most of them look at an object and decide at once: these stand behind a trait, in `plugins`. The others stand apart, each in
//! its place: NamespaceAutoProvision and ResourceQuota write objects, policies and webhooks (`dynamic`) are configured by
//! users, remember rounds and wait for answers, and AlwaysDeny comes after all of these.

mod always_deny;
mod dynamic;
mod escalation;
mod expressions;
#[cfg(test)]
mod fake;
mod matching;
mod namespace_auto_provision;
mod objects;
mod plugins;
pub(crate) mod pod_certificates;
mod policies;
mod refusal;
mod reinvocation;
mod resource_quota;
mod signing_requests;
mod webhooks;

use kubewright_kinds::{PluginSet, Role, Summary};
use kubewright_meta::{ApiError, object};
use kubewright_schema::fields::Managed;
use kubewright_store::Snapshot;
use kubewright_world::World;
use serde_json::Value;

pub use dynamic::Options;
use dynamic::{Rounds, adopt, warn};
pub use objects::{Edit, Objects};
use policies::Policies;
pub(crate) use policies::type_checking;

use crate::request::{Call, WriteOptions, body};
use webhooks::Webhooks;

pub use kubewright_kinds::{Operation, Plugin, PluginError, Plugins};

/// What admission keeps between requests: which plugins are on, compiled configurations, and connections to webhooks.
pub struct Admission {
    on: PluginSet,
    webhooks: Webhooks,
    policies: Policies,
}

impl Admission {
    /// With these plugins, and nothing configured yet; time is the world's.
    #[must_use]
    pub fn new(plugins: &Plugins, world: &World) -> Self {
        Self { on: plugins.on(), webhooks: Webhooks::new(world.clock), policies: Policies::new() }
    }

    /// The webhooks that are configured.
    #[must_use]
    pub fn webhooks(&self) -> &Webhooks {
        &self.webhooks
    }

    /// Whether there are policies, whose expressions are evaluated for writes.
    #[must_use]
    pub fn has_policies(&self, snapshot: &Snapshot<Summary>) -> bool {
        self.policies.any(snapshot)
    }
}

/// A write that wants to be admitted. The new object is not part of it: [`mutate`] may change it.
#[derive(Clone, Copy)]
pub struct Review<'a> {
    /// The objects of the cluster.
    pub objects: &'a dyn Objects,
    /// The object and who asks. Its name is empty for a creation.
    pub call: Call<'a>,
    /// What is done.
    pub operation: Operation,
    /// The subresource that is written; empty for the object itself.
    pub subresource: &'a str,
    /// The current object, where there is one.
    pub old: Option<&'a Value>,
    /// Nothing will be kept.
    pub dry_run: bool,
    /// How it is done, as the request said.
    pub options: Options<'a>,
    /// It is one of many that a request deletes: none is named on the URL.
    pub collection: bool,
}

impl<'a> Review<'a> {
    /// Whether a plugin is on, and has something to do with the kind.
    fn asks(&self, plugin: Plugin) -> bool {
        self.plugins().has(plugin)
    }

    /// The plugins that are on, and have something to do with the kind.
    fn plugins(&self) -> PluginSet {
        self.call.kind.plugins.and(self.objects.admission().on)
    }

    /// Whether it is about a pod or a part of one.
    fn is_of_pod(&self) -> bool {
        self.call.kind.behaviour.role == Role::Pod
    }

    /// Whether something is created or changed.
    fn is_write(&self) -> bool {
        matches!(self.operation, Operation::Create | Operation::Update)
    }

    /// Whether an object is created or changed, not a part of one.
    fn is_of_whole(&self) -> bool {
        self.is_write() && self.subresource.is_empty()
    }

    /// Whether an object is created.
    fn is_of_new(&self) -> bool {
        self.operation == Operation::Create && self.subresource.is_empty()
    }

    /// Of something new: an object (the empty subresource), or the body of a subresource, such as a Binding.
    #[must_use]
    pub fn of_new(
        objects: &'a dyn Objects,
        call: Call<'a>,
        subresource: &'a str,
        options: &'a WriteOptions,
    ) -> Self {
        Self {
            objects,
            call,
            operation: Operation::Create,
            subresource,
            old: None,
            dry_run: options.dry_run,
            options: Options::Write(options),
            collection: false,
        }
    }
}

/// Lets every plugin add to a new or changed object (decoded and defaulted, as the client sent it) or refuse it.
/// Warnings for the client are added to `warnings`. Where a webhook or a policy has changed the object, all are asked
/// once more, webhooks and policies only if they want to be. What they have made of it in the end is what is asked about:
/// whether its writer may grant it.
///
/// # Errors
/// The first refusal.
pub async fn mutate(
    review: &Review<'_>,
    object: &mut Value,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    let mut rounds = Rounds::default();
    let before = dynamic::may_change(review).then(|| object["metadata"].get("managedFields").cloned());
    loop {
        if review.asks(Plugin::NamespaceAutoProvision) {
            namespace_auto_provision::admit(review, object).await?;
        }
        plugins::mutate(review, object)?;
        dynamic::mutate(review, Some(object), &mut rounds, warnings).await?;
        always_deny::admit(review, object)?;
        if !rounds.one_more() {
            break;
        }
    }
    if let Some(owners) = before.filter(|_| rounds.have_changed()) {
        mend(object, owners, warnings);
    }
    settle(review, object)
}

/// Makes good what webhooks and policies may have broken of metadata, with a warning: who owns which fields (`owners`: as it
/// was before), and owners that are named twice (`k8s.io/apiserver/pkg/endpoints/handlers`: `fieldmanager/admission.go`,
/// `dedupOwnerReferencesAndAddWarning`).
fn mend(object: &mut Value, owners: Option<Value>, warnings: &mut Vec<String>) {
    if let Err(why) = Managed::decode(object["metadata"].get("managedFields")) {
        object::set_meta(object, "managedFields", owners);
        warn(
            warnings,
            &format!(
                ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: {why}"
            ),
        );
    }
    if object["metadata"]["ownerReferences"].is_array()
        && let Some(warning) = body::single_owners(object, body::AFTER_ADMISSION)
    {
        warn(warnings, &warning);
    }
}

/// What kube-apiserver does in front of the storage of a kind, when nobody but the server changes the object any more: what
/// only the server may say is set, whoever has said something else, and nobody grants what they do not hold.
fn settle(review: &Review<'_>, object: &mut Value) -> Result<(), ApiError> {
    signing_requests::complete(review, object);
    escalation::admit(review, object)
}

/// Asks every plugin about an object as it will be committed. Warnings for the client are added to `warnings`.
///
/// # Errors
/// The first refusal.
pub async fn validate(
    review: &Review<'_>,
    object: &Value,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    plugins::validate(review, object, warnings)?;
    dynamic::validate(review, Some(object), warnings).await?;
    if review.asks(Plugin::ResourceQuota) {
        resource_quota::charge(review, object).await?;
    }
    Ok(())
}

/// Asks about a connection with these options. Warnings for the client are added to `warnings`.
///
/// # Errors
/// The first refusal. 500 when the options are changed: what is done is what the client asked for, and nobody is to admit
/// something else. (kube-apiserver connects with the changed ones.)
pub async fn admit_connection(
    review: &Review<'_>,
    options: &mut Value,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    let asked_for = options.clone();
    dynamic::mutate(review, Some(options), &mut Rounds::default(), warnings).await?;
    if *options != asked_for {
        let why =
            "the options of the connection were changed by admission, which this API server does not support";
        return Err(ApiError::internal(why));
    }
    always_deny::admit(review, options)?;
    dynamic::validate(review, Some(options), warnings).await
}

/// Asks every plugin about a deletion of `review.old`. Warnings for the client are added to `warnings`.
///
/// # Errors
/// The first refusal.
pub async fn admit_deletion(review: &Review<'_>, warnings: &mut Vec<String>) -> Result<(), ApiError> {
    plugins::mutate(review, &mut Value::Null)?;
    dynamic::mutate(review, None, &mut Rounds::default(), warnings).await?;
    always_deny::admit(review, &Value::Null)?;
    plugins::validate(review, &Value::Null, warnings)?;
    dynamic::validate(review, None, warnings).await
}
