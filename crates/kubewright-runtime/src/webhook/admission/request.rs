//! What an API server asks.

use k8s_openapi::api::authentication::v1::UserInfo;
use kube::core::{GroupVersionKind, GroupVersionResource};
use serde::Deserialize;
use serde_json::Value;

use super::Denied;
use crate::webhook::WebhookContext;

/// Operation of an admission request: what somebody wants to do to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// A new object.
    Create,
    /// A change, of the object or of a subresource.
    Update,
    /// A deletion.
    Delete,
    /// A connection to a subresource (`exec`, `proxy`).
    Connect,
}

impl Operation {
    /// As rules spell it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// The request of an `admission.k8s.io/v1` `AdmissionReview` (`k8s.io/api/admission/v1`, `AdmissionRequest`): what
/// somebody asked of the API server, and what an [answer](super::Response) decides on.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// The name of this question.
    pub uid: String,
    /// The kind of the objects, in the version that the webhook's rule names.
    pub kind: GroupVersionKind,
    /// The resource, in the version that the webhook's rule names.
    pub resource: GroupVersionResource,
    /// The subresource (`status`, `scale`); empty for the object itself.
    #[serde(default)]
    pub sub_resource: String,
    /// The kind that the client has used, where it is another version of it.
    pub request_kind: Option<GroupVersionKind>,
    /// The resource that the client has used.
    pub request_resource: Option<GroupVersionResource>,
    /// The subresource that the client has used.
    #[serde(default)]
    pub request_sub_resource: String,
    /// The name of the object; empty when the server will make one (`generateName`).
    #[serde(default)]
    pub name: String,
    /// The namespace; empty for objects of the cluster.
    #[serde(default)]
    pub namespace: String,
    /// What is wanted.
    pub operation: Operation,
    /// Who wants it.
    #[serde(default)]
    pub user_info: UserInfo,
    /// The object as it would be; `None` for a deletion.
    pub object: Option<Value>,
    /// The object as it is; `None` for a creation.
    pub old_object: Option<Value>,
    /// Whether nothing will come of it: a handler must have no effects outside of its answer.
    #[serde(default)]
    pub dry_run: bool,
    /// The options of the request (`meta.k8s.io/v1` `CreateOptions` and so on).
    pub options: Option<Value>,
    #[serde(skip)]
    pub(in crate::webhook) context: Option<WebhookContext>,
}

impl Request {
    /// The name of who wants it; empty if nobody says.
    #[must_use]
    pub fn user(&self) -> &str {
        self.user_info.username.as_deref().unwrap_or_default()
    }

    /// What the handler works with: the caches of the kinds that the webhook [reads](crate::webhook::Webhook::reads), the client, the clock.
    ///
    /// # Errors
    /// Where the webhook is served by nobody who has a client, as when a test calls the [`Service`](crate::webhook::Service) alone: a refusal with 500.
    pub fn context(&self) -> Result<&WebhookContext, Denied> {
        let missing = "the webhook is not served by a manager, so that it cannot read the cluster: hand its server to Manager::serve";
        self.context.as_ref().ok_or_else(|| Denied::with_code(500, missing))
    }

    /// Whether the caller is in `group`.
    #[must_use]
    pub fn is_by_group(&self, group: &str) -> bool {
        self.user_info.groups.iter().flatten().any(|one| one == group)
    }
}
