//! The validation of how a definition converts between its versions (`validateCustomResourceConversion`, and
//! `k8s.io/apiserver/pkg/util/webhook/validation.go`).

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubewright_meta::FieldError;
use kubewright_schema::names::label_1035;
use serde_json::Value;

use super::path::Path;
use super::{flag, list, one_of, part, text, texts};
use crate::rules::admission::{webhook_path, webhook_url};

/// What is wrong with `spec.conversion`; `old` is the definition that it replaces.
pub(super) fn validate(spec: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let Some(conversion) = part(spec, "conversion") else { return };
    let root = Path::root("spec");
    let path = root.child("conversion");
    let strategy = text(conversion, "strategy");
    if strategy != "None" && flag(spec, "preserveUnknownFields") {
        let detail = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid(path.child("strategy"), strategy, detail));
    }
    one_of(strategy, &["None", "Webhook"], &path.child("strategy"), errors);
    let webhook = part(conversion, "webhook");
    let client = webhook.and_then(|webhook| part(webhook, "clientConfig"));
    let reviews = webhook.map(|webhook| texts(webhook, "conversionReviewVersions")).unwrap_or_default();
    let (client_path, reviews_path) =
        (path.child("webhookClientConfig"), path.child("conversionReviewVersions"));
    if strategy != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        if client.is_some() {
            errors.push(FieldError::forbidden(client_path, detail));
        }
        if !reviews.is_empty() {
            errors.push(FieldError::forbidden(reviews_path, detail));
        }
        return;
    }
    match client {
        None => {
            errors.push(FieldError::required(client_path, "required when strategy is set to Webhook"));
        }
        Some(client) => client_config(client, may_have_a_bad_bundle(old), &client_path, errors),
    }
    review_versions(&reviews, old.is_none_or(knows_a_review), &reviews_path, errors);
}

fn client_config(client: &Value, bad_bundle: bool, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match (part(client, "url").and_then(Value::as_str), part(client, "service")) {
        (Some(address), None) => {
            errors.extend(webhook_url::errors(&path.child("url").to_string(), address));
        }
        (None, Some(one)) => service(one, &path.child("service"), errors),
        _ => errors.push(FieldError::required(*path, "exactly one of url or service is required")),
    }
    let bundle = text(client, "caBundle");
    if !bad_bundle && !bundle.is_empty() && !is_bundle(bundle) {
        let detail = "unable to load root certificates: unable to parse bytes as PEM block";
        errors.push(FieldError::invalid(path.child("caBundle"), bundle, detail));
    }
}

/// A definition that is not established yet may wait for its bundle, and a bundle that was bad may stay so.
fn may_have_a_bad_bundle(old: Option<&Value>) -> bool {
    let Some(old) = old else { return true };
    let established = list(&old["status"], "conditions")
        .any(|condition| text(condition, "type") == "Established" && text(condition, "status") == "True");
    let bundle = text(&old["spec"]["conversion"]["webhook"]["clientConfig"], "caBundle");
    !established || (!bundle.is_empty() && !is_bundle(bundle))
}

/// Whether Base64 text is PEM with a certificate in it.
fn is_bundle(text: &str) -> bool {
    let Ok(bytes) = STANDARD.decode(text) else { return false };
    pem::parse_many(bytes).is_ok_and(|blocks| blocks.iter().any(|block| block.tag() == "CERTIFICATE"))
}

fn service(service: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    // kube-apiserver hands over name and namespace in each other's place.
    for (field, told) in [("namespace", "name"), ("name", "namespace")] {
        if text(service, field).is_empty() {
            errors.push(FieldError::required(path.child(told), ""));
        }
    }
    if let Some(port) = part(service, "port")
        && !port.as_i64().is_some_and(|port| (1..=65535).contains(&port))
    {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(path.child("port"), port.clone(), detail));
    }
    errors.extend(webhook_path::errors(&path.child("path").to_string(), text(service, "path")));
}

fn review_versions(versions: &[String], needs_known: bool, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if versions.is_empty() {
        errors.push(FieldError::required(*path, ""));
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, version) in versions.iter().enumerate() {
        let at = path.index(index);
        if !seen.insert(version) {
            errors.push(FieldError::invalid(at, version.as_str(), "duplicate version"));
        } else if let Some(why) = label_1035(version) {
            errors.push(FieldError::invalid(at, version.as_str(), why));
        }
    }
    if needs_known && !versions.iter().any(is_known) {
        let detail = "must include at least one of v1, v1beta1";
        errors.push(FieldError::invalid(*path, versions.to_vec(), detail));
    }
}

/// Whether a definition names a review that this server knows; one that does not may go on like that.
fn knows_a_review(definition: &Value) -> bool {
    let webhook = &definition["spec"]["conversion"]["webhook"];
    let versions = texts(webhook, "conversionReviewVersions");
    versions.is_empty() || versions.iter().any(is_known)
}

fn is_known(version: &String) -> bool {
    version == "v1" || version == "v1beta1"
}
