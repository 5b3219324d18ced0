//! Admission: what the cluster adds to a write, and what it has against one that the kind itself allows.
//!
//! Two phases, as in `k8s.io/apiserver/pkg/admission`: [`mutate`] comes before the kind prepares and validates the
//! object, [`validate`] after it and right before the commit. Deletions change no object: [`admit_deletion`] is both
//! phases in one. Each phase asks the built-in plugins in Kubernetes' order.

mod affinity;
mod built_in;
mod certificates;
mod classes;
mod deny;
mod dynamic;
mod expressions;
mod external_ips;
mod images;
mod limit_ranger;
mod matching;
mod namespace;
mod nodes;
mod owners;
mod pod_resize;
mod pod_security;
mod policies;
mod priority;
mod provision;
mod quota;
mod rbac;
mod refusal;
mod reinvocation;
mod runtime_class;
mod service_account;
mod stored;
mod tolerations;
mod volumes;
mod webhooks;

use kubewright_meta::{ApiError, object};
use kubewright_schema::fields::Managed;
use serde_json::Value;

pub use dynamic::Dynamic;
pub use dynamic::Options;
use dynamic::{Rounds, adopt, warn};
pub(crate) use policies::type_checking;

use crate::registry::{Call, Registry, WriteOptions, body};
pub use kubewright_kinds::{Operation, Plugin, PluginError, Plugins};

/// A write that wants to be admitted. The new object is not part of it: [`mutate`] may change it.
#[derive(Clone, Copy)]
pub struct Review<'a> {
    /// The objects of the cluster.
    pub registry: &'a Registry,
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
        self.call.kind.plugins.has(plugin) && self.registry.settings().admission.has(plugin)
    }

    /// Of something new: an object (the empty subresource), or the body of a subresource, such as a Binding.
    #[must_use]
    pub fn of_new(
        registry: &'a Registry,
        call: Call<'a>,
        subresource: &'a str,
        options: &'a WriteOptions,
    ) -> Self {
        Self {
            registry,
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
            provision::admit(review, object).await?;
        }
        built_in::mutate(review, object)?;
        dynamic::mutate(review, Some(object), &mut rounds, warnings).await?;
        deny::admit(review, object)?;
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
    certificates::complete(review, object);
    rbac::admit(review, object)
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
    built_in::validate(review, object, warnings)?;
    dynamic::validate(review, Some(object), warnings).await?;
    if review.asks(Plugin::ResourceQuota) {
        quota::charge(review, object).await?;
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
    deny::admit(review, options)?;
    dynamic::validate(review, Some(options), warnings).await
}

/// Asks every plugin about a deletion of `review.old`. Warnings for the client are added to `warnings`.
///
/// # Errors
/// The first refusal.
pub async fn admit_deletion(review: &Review<'_>, warnings: &mut Vec<String>) -> Result<(), ApiError> {
    if review.asks(Plugin::NamespaceLifecycle) {
        namespace::admit(review, &Value::Null)?;
    }
    dynamic::mutate(review, None, &mut Rounds::default(), warnings).await?;
    deny::admit(review, &Value::Null)?;
    if review.asks(Plugin::NamespaceExists) {
        namespace::exists(review)?;
    }
    dynamic::validate(review, None, warnings).await
}
