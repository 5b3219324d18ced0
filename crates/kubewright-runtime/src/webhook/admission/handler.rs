//! What an operator's author writes: what to fill in, what to refuse.

use std::sync::Arc;

use futures::future::BoxFuture;
use kubewright_meta::carry::carry;
use serde_json::Value;

use super::{Denied, Operation, Request, Response, ValidationResult, Warnings};
use crate::Object;

/// Fills in what users leave out (controller-runtime's `admission.Defaulter`).
///
/// It is called for creations and updates, several times perhaps for one request, and with objects that have their
/// defaults already: an object that it returned once must come back as it is. What it has changed is sent as a JSON Patch
/// that touches nothing else: fields that `K` does not know stay, and so do those that serde has filled in.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_runtime::webhook::{Defaulter, Denied, Request};
///
/// struct Team;
///
/// impl Defaulter<ConfigMap> for Team {
///     async fn apply_defaults(&self, request: &Request, mut map: ConfigMap) -> Result<ConfigMap, Denied> {
///         let labels = map.metadata.labels.get_or_insert_default();
///         labels.entry("creator".into()).or_insert_with(|| request.user().replace(':', "."));
///         Ok(map)
///     }
/// }
/// ```
pub trait Defaulter<K: Object>: Send + Sync + 'static {
    /// The object as it should be.
    ///
    /// # Errors
    /// A refusal of the request.
    fn apply_defaults(&self, request: &Request, object: K) -> impl Future<Output = Result<K, Denied>> + Send;
}

/// Refuses what must not be, and warns of what should not (controller-runtime's `admission.Validator`).
///
/// Each of the three says yes unless it is written. Which of them are asked is in the webhook's declaration: creations and
/// updates by default, as controller-gen's scaffolds have it; deletions on
/// [request](crate::webhook::Webhook::operations).
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_runtime::webhook::{Denied, FieldError, Request, Validator, ValidationResult, Warnings};
///
/// struct Frozen;
///
/// impl Validator<ConfigMap> for Frozen {
///     async fn validate_update(&self, _: &Request, old: &ConfigMap, new: &ConfigMap) -> ValidationResult {
///         if old.data != new.data {
///             let error = FieldError::forbidden("data", "is decided at creation");
///             return Err(Denied::invalid(new, &[error]));
///         }
///         Ok(Warnings::none().and("nothing can be changed here but labels"))
///     }
/// }
/// ```
pub trait Validator<K: Object>: Send + Sync + 'static {
    /// Whether this object may be created.
    ///
    /// # Errors
    /// A refusal.
    fn validate_create(
        &self,
        _request: &Request,
        _object: &K,
    ) -> impl Future<Output = ValidationResult> + Send {
        async { Ok(Warnings::none()) }
    }

    /// Whether an object may become another.
    ///
    /// # Errors
    /// A refusal.
    fn validate_update(
        &self,
        _request: &Request,
        _old: &K,
        _new: &K,
    ) -> impl Future<Output = ValidationResult> + Send {
        async { Ok(Warnings::none()) }
    }

    /// Whether this object may be deleted.
    ///
    /// # Errors
    /// A refusal.
    fn validate_delete(
        &self,
        _request: &Request,
        _object: &K,
    ) -> impl Future<Output = ValidationResult> + Send {
        async { Ok(Warnings::none()) }
    }
}

/// Answers anything: for several kinds at once, subresources, and connections (controller-runtime's `admission.Handler`).
pub trait Handler: Send + Sync + 'static {
    /// The answer to a request.
    fn handle(&self, request: &Request) -> impl Future<Output = Response> + Send;
}

/// A [`Handler`] whose type is forgotten.
pub(crate) trait DynHandler: Send + Sync {
    fn handle<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Response>;
}

impl<H: Handler> DynHandler for H {
    fn handle<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Response> {
        Box::pin(Handler::handle(self, request))
    }
}

/// The handler of a defaulter.
pub(crate) struct Defaulting<K, D> {
    pub(crate) defaulter: Arc<D>,
    pub(crate) kind: std::marker::PhantomData<fn() -> K>,
}

impl<K: Object, D: Defaulter<K>> Defaulting<K, D> {
    async fn respond(&self, request: &Request) -> Result<Response, Denied> {
        let Some(given) = request.object.as_ref().filter(|_| request.operation != Operation::Delete) else {
            return Ok(Response::allowed());
        };
        let object: K = decode(Some(given), "object")?;
        let before = encode(&object)?;
        let after = encode(&self.defaulter.apply_defaults(request, object).await?)?;
        let wanted = carry(given, &before, &after);
        Ok(Response::allowed().patch(json_patch::diff(given, &wanted)))
    }
}

impl<K: Object, D: Defaulter<K>> Handler for Defaulting<K, D> {
    async fn handle(&self, request: &Request) -> Response {
        self.respond(request).await.unwrap_or_else(Response::denied)
    }
}

/// The handler of a validator.
pub(crate) struct Validating<K, V> {
    pub(crate) validator: Arc<V>,
    pub(crate) kind: std::marker::PhantomData<fn() -> K>,
}

impl<K: Object, V: Validator<K>> Handler for Validating<K, V> {
    async fn handle(&self, request: &Request) -> Response {
        let result = async {
            match request.operation {
                Operation::Create => {
                    let object = decode::<K>(request.object.as_ref(), "object")?;
                    self.validator.validate_create(request, &object).await
                }
                Operation::Update => {
                    let new = decode::<K>(request.object.as_ref(), "object")?;
                    let old = decode::<K>(request.old_object.as_ref(), "old object")?;
                    self.validator.validate_update(request, &old, &new).await
                }
                Operation::Delete => {
                    let object = decode::<K>(request.old_object.as_ref(), "old object")?;
                    self.validator.validate_delete(request, &object).await
                }
                Operation::Connect => Ok(Warnings::none()),
            }
        };
        result.await.into()
    }
}

/// The typed form of an object; 400 for what is none, which the handler then does not see.
fn decode<K: Object>(object: Option<&Value>, which: &str) -> Result<K, Denied> {
    let wrong = |why: &dyn std::fmt::Display| {
        Denied::with_code(400, format!("the {which} of the request is no {}: {why}", K::kind(&())))
    };
    let object = object.ok_or_else(|| wrong(&"there is none"))?;
    // Custom resources of kube do not look at their kind, and a wrong rule would lead them anywhere.
    let expected = (&*K::api_version(&()), &*K::kind(&()));
    let found = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let found = (found("apiVersion"), found("kind"));
    if found != expected {
        return Err(wrong(&format_args!("it is {}, kind {:?}", found.0, found.1)));
    }
    kubewright_objects::from_value::<K>(object).map_err(|error| wrong(&error))
}

fn encode<K: Object>(object: &K) -> Result<Value, Denied> {
    let object = kubewright_objects::to_value(object);
    object.map_err(|error| Denied::with_code(500, format!("the object cannot be written as JSON: {error}")))
}
