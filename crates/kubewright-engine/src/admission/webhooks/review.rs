//! What a webhook is sent: an AdmissionReview (`k8s.io/apiserver/pkg/admission/plugin/webhook/request`).

use std::borrow::Cow;

use bytes::Bytes;
use kubewright_kinds::Kind;
use kubewright_meta::ApiError;
use serde::Serialize;
use serde_json::Value;

use super::super::matching::{Attributes, Gvk};

/// A version of AdmissionReview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReviewVersion {
    V1,
    V1Beta1,
}

impl ReviewVersion {
    /// The first of `admissionReviewVersions` that is known.
    pub(super) fn first_known(versions: &Value) -> Option<Self> {
        let mut versions = versions.as_array().into_iter().flatten().filter_map(Value::as_str);
        versions.find_map(|version| match version {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V1Beta1 => "v1beta1",
        }
    }

    pub(super) fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    kind: &'static str,
    api_version: &'static str,
    request: Request<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    uid: &'a str,
    kind: Gvk,
    resource: Gvr<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    sub_resource: &'a str,
    request_kind: Gvk,
    request_resource: Gvr<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    request_sub_resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    operation: &'static str,
    user_info: Value,
    object: Option<Cow<'a, Value>>,
    old_object: Option<Cow<'a, Value>>,
    dry_run: bool,
    options: Value,
}

#[derive(Serialize)]
struct Gvr<'a> {
    group: &'a str,
    version: &'a str,
    resource: &'a str,
}

impl<'a> Gvr<'a> {
    fn of(kind: &'a Kind) -> Self {
        Self { group: &kind.group, version: &kind.version, resource: &kind.plural }
    }
}

/// The objects of a request, in the version that a webhook is asked in.
pub(super) struct Objects<'a> {
    new: Option<Cow<'a, Value>>,
    old: Option<Cow<'a, Value>>,
}

impl<'a> Objects<'a> {
    /// # Errors
    /// 500 when they cannot be converted.
    pub(super) async fn of(attributes: &Attributes<'a>, matched: &Kind) -> Result<Self, ApiError> {
        let mut objects = Self { new: None, old: None };
        if let Some(object) = attributes.object {
            objects.new = Some(attributes.as_matched(object, matched).await?);
        }
        if let Some(old) = attributes.review.old {
            objects.old = Some(attributes.as_matched(old, matched).await?);
        }
        Ok(objects)
    }
}

/// The body of a call: the request, with its objects in the version of `matched`.
pub(super) fn request(
    version: ReviewVersion,
    uid: &str,
    attributes: &Attributes<'_>,
    matched: &Kind,
    objects: Objects<'_>,
) -> Bytes {
    let review = attributes.review;
    let kind = review.call.kind;
    let request = Request {
        uid,
        kind: attributes.gvk(matched),
        resource: Gvr::of(matched),
        sub_resource: review.subresource,
        request_kind: attributes.gvk(kind),
        request_resource: Gvr::of(kind),
        request_sub_resource: review.subresource,
        name: attributes.name,
        namespace: attributes.namespace,
        operation: attributes.operation(),
        user_info: review.call.user.to_info(),
        object: objects.new,
        old_object: objects.old,
        dry_run: review.dry_run,
        options: review.options.to_value(review.operation),
    };
    let review = Review { kind: "AdmissionReview", api_version: version.api_version(), request };
    serde_json::to_vec(&review).unwrap_or_default().into()
}
