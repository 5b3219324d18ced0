//! Webhooks: what an API server asks an operator before it stores an object (admission), between two versions of a kind
//! (conversion), and about who calls it (authentication).
//!
//! - A [`Defaulter`] fills in what users leave out, a [`Validator`] refuses what must not be, a [`Handler`] does anything.
//! - A [`Conversion`] leads from every version of a kind to every other by way of one, the hub, with `From` or `TryFrom`.
//! - An [`Authenticator`] says who has a bearer token.
//! - [`Webhooks`] is all of that; a [`Server`] serves it over HTTPS, with certificates that it sees to, and tells the
//!   cluster of it. Paths and metrics are controller-runtime's, so that manifests of those who come from there work.
//!
//! ```no_run
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kubewright_runtime::{
//!     CancellationToken, Manager, World,
//!     webhook::{Denied, FieldError, Request, Server, Validator, ValidationResult, Warnings, Webhook, Webhooks},
//! };
//!
//! struct NotEmpty;
//!
//! impl Validator<ConfigMap> for NotEmpty {
//!     async fn validate_create(&self, _: &Request, map: &ConfigMap) -> ValidationResult {
//!         match map.data.as_ref().is_some_and(|data| !data.is_empty()) {
//!             true => Ok(Warnings::none()),
//!             false => Err(Denied::invalid(map, &[FieldError::required("data", "an empty map is no use")])),
//!         }
//!     }
//! }
//!
//! # async fn example(client: kube::Client) -> Result<(), kubewright_runtime::Error> {
//! let webhooks = Webhooks::new("my-operator").add(Webhook::validating::<ConfigMap>(NotEmpty));
//! let mut manager = Manager::new(client, World::real());
//! manager.serve(Server::new(webhooks));
//! manager.run(CancellationToken::new()).await
//! # }
//! ```
//!
//! An operator as a program declares them by [`Operator::webhooks`](crate::command::Operator::webhooks), which sees to the rest.
//!
//! What is decided for the author:
//!
//! - A handler never sees an object that is none of its kind: such a request is refused with 400.
//! - A handler that panics, or takes longer than the API server waits, is an HTTP 500: the webhook's [`FailurePolicy`]
//!   decides then. Both are counted ([`Metrics`]).
//! - The patch of a defaulter has what it changed, and nothing else.
//! - A handler reads the cluster by [`Request::context`]: from the manager's caches, of the kinds that its webhook [reads](Webhook::reads).
//! - Only `admission.k8s.io/v1` and `apiextensions.k8s.io/v1` are spoken; every API server since v1.16 does.
//! - Bodies have a limit ([`MAX_ADMISSION_BODY`], [`MAX_CONVERSION_BODY`]).

mod admission;
mod authentication;
mod certificates;
mod context;
mod conversion;
mod declaration;
mod listener;
mod manifests;
mod metrics;
mod registration;
mod rights;
mod server;
mod service;
mod webhooks;

#[cfg(feature = "command")]
pub(crate) use self::rights::rights;
pub use self::{
    admission::{
        Defaulter, Denied, FieldError, Handler, Operation, Request, Response, ValidationResult, Validator,
        Warnings,
    },
    authentication::{Authentication, Authenticator, TokenRequest},
    certificates::{Certificates, Lifetimes},
    context::WebhookContext,
    conversion::Conversion,
    declaration::{FailurePolicy, Webhook},
    manifests::{Manifests, Reach, Trust},
    metrics::{Counts, LATENCY_BUCKETS, Metrics, WebhookCounts},
    registration::Registration,
    server::{Listening, Server},
    service::{MAX_ADMISSION_BODY, MAX_CONVERSION_BODY, MAX_TOKEN_BODY, Service},
    webhooks::Webhooks,
};

/// What [`ValidationResult`] was called.
#[deprecated(since = "0.1.0", note = "is called `ValidationResult`")]
pub type Verdict = ValidationResult;
