//! One webhook, and asking it.

use std::sync::Arc;
use std::time::Duration;

use kubewright_identity::webhook::{Client, Failure, Target};
use kubewright_kinds::expressions::Compiler;
use kubewright_kinds::{Kind, Summary};
use kubewright_meta::ApiError;
use kubewright_store::Snapshot;
use serde_json::Value;

use super::super::expressions::{Conditions, Scope};
use super::super::matching::{Attributes, Constraints};
use super::answer::{self, Answer};
use super::review::{self, Objects, ReviewVersion};

/// How long a webhook may take that does not say.
const TIMEOUT: u64 = 10;

/// A webhook of a configuration.
pub(super) struct Hook {
    /// Tells it apart from all others.
    pub(super) id: String,
    pub(super) name: String,
    /// `failurePolicy: Ignore`.
    pub(super) ignores_failures: bool,
    /// `reinvocationPolicy: IfNeeded`.
    pub(super) is_reinvoked: bool,
    constraints: Constraints,
    conditions: Conditions,
    target: Result<Target, String>,
    timeout: Duration,
    /// `sideEffects: None` or `NoneOnDryRun`.
    takes_dry_runs: bool,
    version: Option<ReviewVersion>,
}

/// Why a webhook has not let a request pass.
pub(super) enum Refusal {
    /// It could not be asked; its failure policy says what that means.
    NotAsked(String),
    /// It said no, or the request cannot go on whatever the policy.
    Denied(ApiError),
}

/// That the objects of a request cannot be had in the version of the webhook: the dispatcher of mutating ones says it twice
/// (`.../webhook/mutating/dispatcher.go`, `VersionedAttribute`).
fn unconverted(error: &ApiError, mutating: bool) -> ApiError {
    match mutating {
        true => ApiError::internal(&ApiError::internal(&error.message).message),
        false => ApiError::internal(&error.message),
    }
}

impl Hook {
    pub(super) fn read(configuration: &str, index: usize, hook: &Value) -> Self {
        let name = hook["name"].as_str().unwrap_or_default().to_owned();
        let ignores_failures = hook["failurePolicy"] == "Ignore";
        let compiler = Compiler::without_variables();
        Self {
            id: format!("{configuration}/{name}/{index}"),
            name,
            ignores_failures,
            is_reinvoked: hook["reinvocationPolicy"] == "IfNeeded",
            constraints: Constraints::of_webhook(hook),
            conditions: Conditions::read(&hook["matchConditions"], &compiler, false, ignores_failures),
            target: Target::read(&hook["clientConfig"]),
            timeout: Duration::from_secs(hook["timeoutSeconds"].as_u64().unwrap_or(TIMEOUT)),
            takes_dry_runs: matches!(hook["sideEffects"].as_str(), Some("None" | "NoneOnDryRun")),
            version: ReviewVersion::first_known(&hook["admissionReviewVersions"]),
        }
    }

    /// The version of the resource in which it wants to see the request; `None` when it does not.
    ///
    /// # Errors
    /// When that cannot be decided.
    pub(super) fn wants(&self, attributes: &Attributes<'_>) -> Result<Option<Arc<Kind>>, ApiError> {
        let Some(matched) = self.constraints.matches(attributes)? else { return Ok(None) };
        if !self.conditions.is_empty() {
            let scope = Scope::of(attributes, &matched, false)?;
            let kind = attributes.review.call.kind;
            let forbid = |why: String| ApiError::forbidden(&kind.group, &kind.plural, attributes.name, &why);
            if !self.conditions.hold(&scope, None, &[]).map_err(forbid)? {
                return Ok(None);
            }
        }
        Ok(Some(matched))
    }

    /// Asks it about a request, whose objects it sees in the version of `matched`.
    ///
    /// # Errors
    /// See [`Refusal`]. A denial is one.
    pub(super) async fn ask(
        &self,
        client: &Client,
        services: &Snapshot<Summary>,
        attributes: &Attributes<'_>,
        matched: &Kind,
        mutating: bool,
    ) -> Result<Answer, Refusal> {
        if attributes.review.dry_run && !self.takes_dry_runs {
            let why = format!("admission webhook {:?} does not support dry run", self.name);
            return Err(Refusal::Denied(ApiError::bad_request(why)));
        }
        let version = self.version.ok_or_else(|| {
            let why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)";
            Refusal::NotAsked(format!("could not create admission objects: {why}"))
        })?;
        let no_client = |why: &str| Refusal::NotAsked(format!("could not get REST client: {why}"));
        let target = self.target.as_ref().map_err(|why| no_client(why))?;
        let uid = attributes.review.objects.world().dice.uid();
        let objects = Objects::of(attributes, matched).await;
        let objects = objects.map_err(|error| Refusal::Denied(unconverted(&error, mutating)))?;
        let request = review::request(version, &uid, attributes, matched, objects);
        let not_called = |why: &str| Refusal::NotAsked(format!("failed to call webhook: {why}"));
        let bytes = client.post(target, services, request, self.timeout).await;
        let bytes = bytes.map_err(|failure| match failure {
            Failure::Setup(why) => no_client(&why),
            Failure::Call(why) | Failure::Later(why) => not_called(&why),
        })?;
        let review = answer::decode(version, &bytes).map_err(|why| not_called(&why))?;
        let answer = answer::verify(version, &uid, review, mutating);
        answer.map_err(|why| Refusal::NotAsked(format!("received invalid webhook response: {why}")))
    }

    /// The answer of the API server where the webhook could not be asked.
    pub(super) fn not_asked(&self, why: &str) -> ApiError {
        ApiError::internal(&format!("failed calling webhook {:?}: {why}", self.name))
    }
}
