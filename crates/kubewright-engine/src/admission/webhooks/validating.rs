//! Validating webhooks are asked all at once (`.../webhook/validating/dispatcher.go`).

use futures::future::join_all;
use kubewright_meta::ApiError;
use serde_json::Value;
use tokio::time::Instant;

use super::super::matching::Attributes;
use super::super::{Review, warn};
use super::answer::{Answer, denial};
use super::fail_open::FailOpen;
use super::hook::{Hook, Refusal};

/// Asks every validating webhook that wants to know.
///
/// # Errors
/// The refusal that came first.
pub(crate) async fn validate(
    review: &Review<'_>,
    object: Option<&Value>,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    let snapshot = review.objects.snapshot();
    let webhooks = review.objects.admission().webhooks();
    let hooks = webhooks.validating(&snapshot);
    let attributes = Attributes::of(review, object);
    if hooks.is_empty() || attributes.is_exempt_from_webhooks() {
        return Ok(());
    }
    let mut wanted = Vec::new();
    for hook in &hooks {
        if let Some(matched) = hook.wants(&attributes)? {
            wanted.push((hook, matched));
        }
    }
    let (snapshot, attributes) = (&snapshot, &attributes);
    let asked = wanted.iter().map(|(hook, matched)| async move {
        let answer = hook.ask(webhooks.client(), snapshot, attributes, matched, false).await;
        (Instant::now(), answer)
    });
    let answers = join_all(asked).await;
    let mut first: Option<(Instant, ApiError)> = None;
    for ((hook, _), (at, answer)) in wanted.iter().zip(answers) {
        if let Err(error) = judge(hook, answer, &webhooks.fail_open, warnings)
            && first.as_ref().is_none_or(|(earliest, _)| at < *earliest)
        {
            first = Some((at, error));
        }
    }
    first.map_or(Ok(()), |(_, error)| Err(error))
}

fn judge(
    hook: &Hook,
    answer: Result<Answer, Refusal>,
    fail_open: &FailOpen,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    match answer {
        Ok(answer) => {
            answer.warnings.iter().for_each(|warning| warn(warnings, warning));
            if answer.allowed { Ok(()) } else { Err(denial(&hook.name, answer.status.as_ref())) }
        }
        Err(Refusal::NotAsked(why)) if hook.ignores_failures => {
            fail_open.passed_over(&hook.name, "validating", &why);
            Ok(())
        }
        Err(Refusal::NotAsked(why)) => Err(hook.not_asked(&why)),
        Err(Refusal::Denied(error)) => Err(error),
    }
}
