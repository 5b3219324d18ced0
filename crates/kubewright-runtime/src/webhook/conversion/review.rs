//! The API server's question for objects in another version (`apiextensions.k8s.io/v1`, `ConversionReview`).

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{DynConversion, called};

/// The API of reviews that is spoken here.
const API: &str = "apiextensions.k8s.io/v1";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    #[serde(default)]
    api_version: String,
    request: Option<Request>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    uid: String,
    #[serde(rename = "desiredAPIVersion")]
    desired: String,
    objects: Vec<Value>,
}

/// The review that answers `review`. Objects that cannot be converted are told in it: all of them, or the first few.
///
/// # Errors
/// What a caller is told whose body is no review.
pub(crate) fn answer(conversions: &[Arc<dyn DynConversion>], review: &[u8]) -> Result<Value, String> {
    let review: Review = serde_json::from_slice(review)
        .map_err(|error| format!("the body is no ConversionReview: {error}"))?;
    if review.api_version != API {
        return Err(format!(
            "the body is no ConversionReview of {API} but of {:?}: set conversionReviewVersions of the definition to [\"v1\"]",
            review.api_version
        ));
    }
    let request = review.request.ok_or("the ConversionReview has no request")?;
    let (mut converted, mut failures) = (Vec::with_capacity(request.objects.len()), Vec::new());
    for object in &request.objects {
        match convert(conversions, object, &request.desired) {
            Ok(object) => converted.push(object),
            Err(why) => failures.push(why),
        }
    }
    let mut response =
        json!({"uid": request.uid, "result": {"status": "Success"}, "convertedObjects": converted});
    if !failures.is_empty() {
        response["convertedObjects"] = json!([]);
        response["result"] = json!({"status": "Failure", "message": message(&failures)});
    }
    Ok(json!({"apiVersion": API, "kind": "ConversionReview", "response": response}))
}

fn convert(conversions: &[Arc<dyn DynConversion>], object: &Value, desired: &str) -> Result<Value, String> {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let kind = object["kind"].as_str().unwrap_or_default();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    match conversions.iter().find(|conversion| conversion.converts(group, kind)) {
        Some(conversion) => conversion.convert(object, desired),
        None => Err(format!("{} of {version}: no conversion of this kind is known", called(object))),
    }
}

/// The first few failures.
fn message(failures: &[String]) -> String {
    const MOST: usize = 5;
    let mut text = failures[..failures.len().min(MOST)].join("; ");
    if failures.len() > MOST {
        text.push_str(&format!("; and {} more", failures.len() - MOST));
    }
    text
}
