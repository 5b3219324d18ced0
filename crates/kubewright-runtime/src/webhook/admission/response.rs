//! What a webhook answers.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use json_patch::Patch;
use kube::core::{
    Status,
    response::{StatusCause, StatusDetails},
};
use serde_json::{Value, json};

use super::FieldError;
use crate::{Error, Object};

/// The answer of a [`Validator`](super::Validator): allowed, with warnings perhaps, or denied.
pub type ValidationResult = Result<Warnings, Denied>;

/// Warnings to the client of a request that is allowed: kubectl prints each as `Warning: ...`. Short lines: the API server
/// cuts them at 256 characters where there are many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warnings(Vec<String>);

impl Warnings {
    /// Nothing to say.
    #[must_use]
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// These and one more.
    #[must_use]
    pub fn and(mut self, warning: impl Into<String>) -> Self {
        self.0.push(warning.into());
        self
    }
}

impl<T: Into<String>> FromIterator<T> for Warnings {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Self {
        Self(texts.into_iter().map(Into::into).collect())
    }
}

/// A refusal: the Status that the client gets, its message after `admission webhook "..." denied the request: `.
#[derive(Clone, Debug, PartialEq)]
pub struct Denied {
    status: Box<Status>,
    warnings: Warnings,
}

impl Denied {
    /// Not allowed: 403 Forbidden (controller-runtime's `admission.Denied`).
    pub fn forbidden(message: impl AsRef<str>) -> Self {
        Self::status(Status::failure(message.as_ref(), "Forbidden").with_code(403))
    }

    /// Not allowed for a reason of another code: 400 to 599 (`admission.Errored`).
    pub fn with_code(code: u16, message: impl AsRef<str>) -> Self {
        Self::status(Status::failure(message.as_ref(), "").with_code(code.clamp(400, 599)))
    }

    /// The object is wrong in these fields: 422 Invalid, as the API server itself says it (`apierrors.NewInvalid`).
    #[must_use]
    pub fn invalid<K: Object>(object: &K, errors: &[FieldError]) -> Self {
        let name = object.meta().name.clone().unwrap_or_default();
        let (group, kind) = (K::group(&()).into_owned(), K::kind(&()).into_owned());
        let mut messages: Vec<String> = Vec::new();
        for error in errors.iter().map(ToString::to_string) {
            if !messages.contains(&error) {
                messages.push(error);
            }
        }
        let summary = match messages.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let qualified = if group.is_empty() { kind.clone() } else { format!("{kind}.{group}") };
        let message = format!("{qualified} {name:?} is invalid: {summary}");
        let causes = errors.iter().map(|error| StatusCause {
            reason: error.reason().to_owned(),
            message: error.body(),
            field: error.field().to_owned(),
        });
        let causes = causes.collect();
        let details = StatusDetails { name, group, kind, causes, uid: String::new(), retry_after_seconds: 0 };
        Self::status(Status::failure(&message, "Invalid").with_code(422).with_details(details))
    }

    /// With this Status.
    #[must_use]
    pub fn status(status: Status) -> Self {
        Self { status: Box::new(status), warnings: Warnings::none() }
    }

    /// The client is warned as well.
    #[must_use]
    pub fn warning(mut self, warning: impl Into<String>) -> Self {
        self.warnings = self.warnings.and(warning);
        self
    }
}

/// What the API server said to a request of the handler, or 500: it is not the client's mistake.
impl From<Error> for Denied {
    fn from(error: Error) -> Self {
        let status = error.status().cloned();
        Self::status(
            status.unwrap_or_else(|| Status::failure(&error.to_string(), "InternalError").with_code(500)),
        )
    }
}

impl From<kube::Error> for Denied {
    fn from(error: kube::Error) -> Self {
        Error::from(error).into()
    }
}

/// The answer to a [`Request`](super::Request) (`k8s.io/api/admission/v1`, `AdmissionResponse`).
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    result: ValidationResult,
    patch: Patch,
    audit: BTreeMap<String, String>,
}

impl Response {
    /// Yes.
    #[must_use]
    pub fn allowed() -> Self {
        Self::from(Ok(Warnings::none()))
    }

    /// No.
    #[must_use]
    pub fn denied(denied: Denied) -> Self {
        Self::from(Err(denied))
    }

    /// And the object is to be changed so. The API server refuses it of a webhook that only validates.
    #[must_use]
    pub fn patch(mut self, patch: Patch) -> Self {
        self.patch = patch;
        self
    }

    /// And the client is warned.
    #[must_use]
    pub fn warning(mut self, warning: impl Into<String>) -> Self {
        match &mut self.result {
            Ok(warnings) => warnings.0.push(warning.into()),
            Err(denied) => denied.warnings.0.push(warning.into()),
        }
        self
    }

    /// And the audit log notes this; the API server puts the webhook's name before `key`.
    #[must_use]
    pub fn audit(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.audit.insert(key.into(), value.into());
        self
    }

    /// Whether it is a yes.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.result.is_ok()
    }

    /// The review that answers the question `uid`.
    pub(crate) fn review(&self, uid: &str) -> Result<Value, serde_json::Error> {
        let mut response = json!({"uid": uid, "allowed": self.is_allowed()});
        let warnings = match &self.result {
            Ok(warnings) => {
                response["status"] = json!({"code": 200});
                warnings
            }
            Err(denied) => {
                response["status"] = kubewright_objects::to_value(&*denied.status)?;
                &denied.warnings
            }
        };
        if !warnings.0.is_empty() {
            response["warnings"] = json!(warnings.0);
        }
        if self.is_allowed() && !self.patch.0.is_empty() {
            response["patchType"] = json!("JSONPatch");
            response["patch"] = json!(STANDARD.encode(serde_json::to_vec(&self.patch)?));
        }
        if !self.audit.is_empty() {
            response["auditAnnotations"] = json!(self.audit);
        }
        Ok(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
    }
}

impl From<ValidationResult> for Response {
    fn from(result: ValidationResult) -> Self {
        Self { result, patch: Patch(Vec::new()), audit: BTreeMap::new() }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
    use kube::api::ObjectMeta;

    use super::*;

    fn review(response: &Response) -> Value {
        response.review("u").expect("a response is JSON")["response"].take()
    }

    #[test]
    fn a_refusal_for_fields_is_the_status_that_kubernetes_gives() {
        let object = Deployment {
            metadata: ObjectMeta { name: Some("web".into()), ..Default::default() },
            ..Default::default()
        };
        let errors = [
            FieldError::required("spec.a", ""),
            FieldError::invalid("spec.b", 1, "no"),
            FieldError::required("spec.a", ""),
        ];
        let denied = Denied::invalid(&object, &errors).warning("careful");
        let causes = review(&Response::denied(denied));
        assert_eq!(
            causes["status"]["message"],
            r#"Deployment.apps "web" is invalid: [spec.a: Required value, spec.b: Invalid value: 1: no]"#
        );
        assert_eq!(
            (&causes["status"]["code"], &causes["status"]["reason"]),
            (&json!(422), &json!("Invalid"))
        );
        assert_eq!(
            causes["status"]["details"]["causes"][1],
            json!({"reason": "FieldValueInvalid", "message": "Invalid value: 1: no", "field": "spec.b"})
        );
        assert_eq!((&causes["allowed"], &causes["warnings"]), (&json!(false), &json!(["careful"])));

        let one = Denied::invalid(&ConfigMap::default(), &errors[..1]);
        assert_eq!(one.status.message, r#"ConfigMap "" is invalid: spec.a: Required value"#);
    }

    #[test]
    fn a_patch_goes_out_only_with_a_yes() {
        let patch: Patch =
            kubewright_objects::from_value(json!([{"op": "remove", "path": "/a"}])).expect("a patch");
        let yes = review(&Response::allowed().patch(patch.clone()).audit("k", "v"));
        assert_eq!(yes["patchType"], "JSONPatch");
        assert_eq!(
            STANDARD.decode(yes["patch"].as_str().expect("text")).expect("base64"),
            br#"[{"op":"remove","path":"/a"}]"#
        );
        assert_eq!(yes["auditAnnotations"], json!({"k": "v"}));
        let no = review(&Response::denied(Denied::forbidden("no")).patch(patch));
        assert_eq!(no["patch"], Value::Null);
        assert_eq!(
            no["status"],
            json!({"status": "Failure", "code": 403, "message": "no", "reason": "Forbidden"})
        );
    }

    #[test]
    fn what_the_server_said_to_a_handler_is_said_to_the_client() {
        let refused = kube::Error::Api(Status::failure("gone", "NotFound").with_code(404).boxed());
        assert_eq!(Denied::from(refused).status.code, 404);
        let own = Denied::from(Error::new("no luck"));
        assert_eq!((own.status.code, &*own.status.message), (500, "no luck"));
    }
}
