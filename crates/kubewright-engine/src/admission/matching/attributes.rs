//! A request as admission sees it (`k8s.io/apiserver/pkg/admission`, `Attributes`).

use std::borrow::Cow;
use std::sync::Arc;

use kubewright_kinds::built_in::core::namespace::NAMESPACE;
use kubewright_kinds::{Kind, Role, Subresource, encode};
use kubewright_meta::selector::LabelSelector;
use kubewright_meta::{ApiError, object};
use kubewright_spec::has_feature;
use serde::Serialize;
use serde_json::Value;

use super::super::{Objects, Operation, Review};

/// Group, version and kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(in crate::admission) struct Gvk {
    pub group: String,
    pub version: String,
    pub kind: String,
}

/// A request as admission sees it.
#[derive(Clone, Copy)]
pub(crate) struct Attributes<'a> {
    pub review: &'a Review<'a>,
    /// The name on the URL or, of a creation, in the object. Empty when it is still to be generated, and for each object
    /// of a collection that is deleted.
    pub name: &'a str,
    /// The namespace on the URL; of a namespace, its own name.
    pub namespace: &'a str,
    /// The new object; absent when one is deleted.
    pub object: Option<&'a Value>,
}

impl<'a> Attributes<'a> {
    pub(crate) fn of(review: &'a Review<'a>, object: Option<&'a Value>) -> Self {
        let call = review.call;
        let name = if review.collection {
            ""
        } else if call.name.is_empty() {
            object.map_or("", object::name)
        } else {
            call.name
        };
        let is_namespace = call.kind.behaviour.role == Role::Namespace;
        let namespace = if is_namespace { name } else { call.namespace };
        Self { review, name, namespace, object }
    }

    /// The kind of the request's object in the version of `kind`, which may be that of a subresource.
    pub(crate) fn gvk(&self, kind: &Kind) -> Gvk {
        let body = kind.subresource(self.review.subresource).and_then(Subresource::body_kind);
        let (group, version, kind) = body.unwrap_or((&kind.group, &kind.version, &kind.kind));
        Gvk { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }

    /// The verb of the request, as `operations` of rules spell it.
    pub(crate) fn operation(&self) -> &'static str {
        match self.review.operation {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }

    /// Whether it is about a configuration of admission itself, which no policy ever sees, or a review, which asks who somebody
    /// is and what they may do (`pkg/kubeapiserver/admission/exclusion`).
    pub(in crate::admission) fn is_exempt_from_policies(&self) -> bool {
        let role = self.review.call.kind.behaviour.role;
        role.configures_admission() || role.is_review()
    }

    /// The same of webhooks, which up to v1.36 see reviews.
    pub(in crate::admission) fn is_exempt_from_webhooks(&self) -> bool {
        let kind = self.review.call.kind;
        let role = kind.behaviour.role;
        let sees_reviews = || !has_feature(kind.kubernetes(), "ExcludeAdmissionWebhookVirtualResources");
        role.configures_admission() || (role.is_review() && !sees_reviews())
    }

    /// Whether it is about a namespace itself.
    pub(in crate::admission) fn is_namespace(&self) -> bool {
        self.review.call.kind.behaviour.role == Role::Namespace
    }

    /// Whether a selector names the namespace that it is about or happens in.
    ///
    /// # Errors
    /// 404.
    pub(super) fn has_namespace(&self, selector: &LabelSelector) -> Result<bool, ApiError> {
        let review = self.review;
        if self.is_namespace()
            && review.subresource.is_empty()
            && review.operation != Operation::Delete
            && let Some(namespace) = self.object
        {
            return Ok(has_labels(selector, namespace));
        }
        let kind = namespaces(review.objects)?;
        match review.objects.snapshot().get(&kind.collection, self.namespace) {
            Some(entry) => Ok(selector.matches_by(|key| entry.tag.label(key))),
            None => Err(ApiError::not_found(&kind, self.namespace)),
        }
    }

    /// The namespace that the request happens in, as an object; `None` for what lives in none.
    ///
    /// # Errors
    /// 404.
    pub(crate) fn namespace_object(&self) -> Result<Option<Value>, ApiError> {
        if self.namespace.is_empty() || self.is_namespace() {
            return Ok(None);
        }
        let kind = namespaces(self.review.objects)?;
        match self.review.objects.snapshot().get(&kind.collection, self.namespace) {
            Some(entry) => Ok(Some(encode::value(&kind, entry))),
            None => Err(ApiError::not_found(&kind, self.namespace)),
        }
    }

    /// An object of the request in the version of `matched`, by a webhook if that is who converts the kind.
    ///
    /// # Errors
    /// 500 when the webhook does not convert it.
    pub(in crate::admission) async fn as_matched<'v>(
        &self,
        object: &'v Value,
        matched: &Kind,
    ) -> Result<Cow<'v, Value>, ApiError> {
        match self.in_version(object, matched) {
            Cow::Borrowed(same) => Ok(Cow::Borrowed(same)),
            Cow::Owned(renamed) => {
                let converted = self.review.objects.in_version(matched, object).await?;
                Ok(Cow::Owned(converted.unwrap_or(renamed)))
            }
        }
    }

    /// An object of the request in the version of `matched`; of a kind that a webhook converts, only its type is that
    /// version's.
    pub(crate) fn in_version<'v>(&self, object: &'v Value, matched: &Kind) -> Cow<'v, Value> {
        let kind = self.review.call.kind;
        if kind.version == matched.version && kind.group == matched.group
            || self.gvk(kind) == self.gvk(matched)
        {
            return self.as_json(object);
        }
        Cow::Owned(converted(self.as_json(object).into_owned(), kind, matched))
    }

    /// An object of the request as JSON writes it; the bodies of subresources are written as they came.
    fn as_json<'v>(&self, object: &'v Value) -> Cow<'v, Value> {
        let kind = self.review.call.kind;
        let part = kind.subresource(self.review.subresource).and_then(Subresource::body_kind);
        if part.is_some() { Cow::Borrowed(object) } else { kind.schema().as_json(object) }
    }

    /// The name that refusals give the object (`k8s.io/apiserver/pkg/admission/errors.go`, `extractResourceName`).
    fn name_in_refusals(&self) -> &'a str {
        if !self.name.is_empty() {
            return self.name;
        }
        let generated = self.object.map_or("", |object| object::meta_text(object, "generateName"));
        if generated.is_empty() { "Unknown" } else { generated }
    }

    /// 403 on the object.
    pub(crate) fn forbidden(&self, why: &str) -> ApiError {
        let kind = self.review.call.kind;
        ApiError::forbidden(&kind.group, &kind.plural, self.name_in_refusals(), why)
    }
}

/// Whether a selector names an object.
pub(super) fn has_labels(selector: &LabelSelector, object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    selector.matches_by(|key| labels.get(key).and_then(Value::as_str))
}

/// An object of one version as one of another version of the same resource: a custom one by renaming alone.
pub(crate) fn converted(mut object: Value, from: &Kind, to: &Kind) -> Value {
    if from.custom.is_some() {
        // The kind that it says stays, be it another one.
        object["apiVersion"] = to.api_version().into();
        return object;
    }
    from.to_storage(&mut object);
    to.to_served(&mut object);
    encode::set_type(to, &mut object);
    object
}

fn namespaces(objects: &dyn Objects) -> Result<Arc<Kind>, ApiError> {
    let kinds = objects.kinds();
    kinds.find(&NAMESPACE).cloned().ok_or_else(ApiError::no_such_resource)
}
