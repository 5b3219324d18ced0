//! What is served below an object, and what is computed instead of stored.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use kubewright_engine::Engine;
use kubewright_engine::admission::{self, Review};
use kubewright_engine::request::{Call, WriteOptions, part_of, review_of};
use kubewright_engine::verbs::{self, Member, OwnedWrite, Part, Written, scale_paths};
use kubewright_identity::authn::{review, token};
use kubewright_identity::authz::{Rights, review as reviews};
use kubewright_kinds::built_in::core::pod::POD;
use kubewright_kinds::{BuiltIn, Kind, Role, Subresource, encode};
use kubewright_meta::{ApiError, object};
use serde_json::{Value, json};

use super::connect;
use super::dispatch::RequestInfo;
use super::respond::{self, ResponseBody};

pub(super) async fn answer(info: &RequestInfo<'_>, name: &str) -> Result<Response<ResponseBody>, ApiError> {
    let call = info.call;
    let Some(subresource) = call.kind.subresource(name) else {
        return Err(ApiError::not_found(call.kind, call.name));
    };
    // The handler of custom objects asks for the verb itself (`serveStatus` and `serveScale` of `customresource_handler.go`).
    if call.kind.custom.is_some() && !matches!(info.verb, "get" | "update" | "patch") {
        return Err(ApiError::verb_not_supported(call.kind, info.verb));
    }
    // What is warned of is told with a refusal, too.
    let mut warnings = Vec::new();
    let answered = match subresource {
        Subresource::Status => part(info, Part::Status).await,
        Subresource::Approval => part(info, Part::Member(Member::Approval)).await,
        Subresource::Finalize => part(info, Part::Member(Member::Finalizers)).await,
        Subresource::EphemeralContainers => {
            let mut response = part(info, Part::Member(Member::EphemeralContainers)).await?;
            // `kubectl debug` waits for the container to run.
            respond::warn(&mut response, connect::of_simulated(info).as_slice());
            Ok(response)
        }
        Subresource::Resize => part(info, Part::Member(Member::Containers)).await,
        Subresource::Scale | Subresource::CustomScale(_) => scale(info, subresource, &mut warnings).await,
        Subresource::Binding => bind(info, subresource, &mut warnings).await,
        Subresource::Eviction => evict(info, subresource, &mut warnings).await,
        Subresource::Token => issue_token(info, subresource, &mut warnings).await,
        Subresource::Log
        | Subresource::Exec
        | Subresource::Attach
        | Subresource::PortForward
        | Subresource::Proxy(_) => connect::answer(info, subresource).await,
    };
    answered.map_err(|error| error.with_warnings(warnings))
}

/// Whether a subresource of a built-in kind has a route for a verb, which is asked before anything of a request is looked at.
///
/// # Errors
/// 404 for one that there is not, 405 for a verb that it does not have.
pub(super) fn check_route(kind: &Kind, name: &str, verb: &str, method: &Method) -> Result<(), ApiError> {
    let subresource = kind.subresource(name).ok_or_else(ApiError::no_such_resource)?;
    // `ProxyMethods` of `pkg/registry/core/pod/rest`: OPTIONS is a method, and no verb.
    let asks_behind = matches!(subresource, Subresource::Proxy(_)) && *method == Method::OPTIONS;
    if subresource.verbs().contains(&verb) || asks_behind {
        Ok(())
    } else {
        Err(ApiError::method_not_allowed())
    }
}

/// A subresource that is a part of the object: it is read whole and written in part.
async fn part(info: &RequestInfo<'_>, part: Part) -> Result<Response<ResponseBody>, ApiError> {
    let (engine, call) = (info.server.engine(), info.call);
    match info.verb {
        "get" => {
            let entry = verbs::get_stored(engine, call, info.query.text("resourceVersion")).await?;
            info.found(&entry)
        }
        "update" => {
            let options = WriteOptions::read(info.query, info.headers, "UpdateOptions")?;
            info.written(verbs::update(engine, call, part, info.decoded()?, options).await?)
        }
        "patch" => {
            let (patch, options) = info.patch()?;
            info.written(verbs::patch(engine, call, part, patch, options).await?)
        }
        _ => Err(ApiError::method_not_allowed()),
    }
}

async fn scale(
    info: &RequestInfo<'_>,
    subresource: &Subresource,
    warnings: &mut Vec<String>,
) -> Result<Response<ResponseBody>, ApiError> {
    let (engine, call) = (info.server.engine(), info.call);
    let paths = scale_paths(subresource).ok_or_else(ApiError::no_such_resource)?;
    let written = match info.verb {
        "get" => {
            let version = info.query.text("resourceVersion");
            let scale = Bytes::from(verbs::get_scale(engine, call, &paths, version).await?.to_string());
            Written { code: StatusCode::OK, result: scale.into(), warnings: Vec::new() }
        }
        "update" => {
            let options = WriteOptions::read(info.query, info.headers, "UpdateOptions")?;
            let decoded = info.decoded_of(subresource)?;
            let scale = part_of(call, subresource, decoded, options.validation, warnings)?;
            let mut written = verbs::update_scale(engine, call, &paths, scale, options).await?;
            written.warnings.append(warnings);
            written
        }
        "patch" => {
            let (patch, options) = info.patch()?;
            verbs::patch_scale(engine, call, &paths, patch, options).await?
        }
        _ => return Err(ApiError::method_not_allowed()),
    };
    info.written_as(verbs::scale_kind(call.kind), written)
}

async fn bind(
    info: &RequestInfo<'_>,
    subresource: &Subresource,
    warnings: &mut Vec<String>,
) -> Result<Response<ResponseBody>, ApiError> {
    let options = WriteOptions::read(info.query, info.headers, "CreateOptions")?;
    let decoded = info.decoded_of(subresource)?;
    let binding = part_of(info.call, subresource, decoded, options.validation, warnings)?;
    let engine = info.server.engine();
    let review = Review::of_new(engine.as_ref(), info.call, "binding", &options);
    verbs::bind(engine, info.call, &review, binding, warnings).await?;
    Ok(created(info, warnings))
}

/// Binds the pod that a Binding names, and no URL does.
async fn bind_named(
    info: &RequestInfo<'_>,
    warnings: &mut Vec<String>,
) -> Result<Response<ResponseBody>, ApiError> {
    let (engine, call) = (info.server.engine(), info.call);
    let kinds = engine.kinds();
    let pods = kinds.find(&POD).ok_or_else(ApiError::no_such_resource)?;
    let options = WriteOptions::read(info.query, info.headers, "CreateOptions")?;
    let binding = part_of(call, &Subresource::Binding, info.decoded()?, options.validation, warnings)?;
    let name = object::name(&binding).to_owned();
    object::check_key(&name)?;
    let review = Review::of_new(engine.as_ref(), call, "", &options);
    verbs::bind(engine, Call { kind: pods, name: &name, ..call }, &review, binding, warnings).await?;
    Ok(created(info, warnings))
}

/// Deletes a pod on request (`k8s.io/kubernetes/pkg/registry/core/pod/storage/eviction.go`).
async fn evict(
    info: &RequestInfo<'_>,
    subresource: &Subresource,
    warnings: &mut Vec<String>,
) -> Result<Response<ResponseBody>, ApiError> {
    let create = WriteOptions::read(info.query, info.headers, "CreateOptions")?;
    let decoded = info.decoded_of(subresource)?;
    let eviction = part_of(info.call, subresource, decoded, create.validation, warnings)?;
    verbs::evict(info.server.engine(), info.call, eviction, &create, warnings).await?;
    Ok(created(info, warnings))
}

async fn issue_token(
    info: &RequestInfo<'_>,
    subresource: &Subresource,
    warnings: &mut Vec<String>,
) -> Result<Response<ResponseBody>, ApiError> {
    let (engine, call) = (info.server.engine(), info.call);
    let options = WriteOptions::read(info.query, info.headers, "CreateOptions")?;
    let decoded = info.decoded_of(subresource)?;
    let mut request = part_of(call, subresource, decoded, options.validation, warnings)?;
    own_token_request(engine, call, &options, &mut request);
    let review = Review::of_new(engine.as_ref(), call, "token", &options);
    admission::mutate(&review, &mut request, warnings).await?;
    token::match_account(&request, call.namespace, call.name)?;
    let account = encode::value(call.kind, &*engine.entry(call)?);
    let snapshot = engine.snapshot();
    let lookup = |collection: &str, key: &str| snapshot.get(collection, key).map(|entry| entry.bytes.clone());
    let mut issued = info.server.authenticator().issue_token(&account, &request, &lookup, warnings)?;
    object::copy_meta(&mut issued, &request, "managedFields");
    admission::validate(&review, &undone(&issued, &request), warnings).await?;
    let token = Written {
        code: StatusCode::CREATED,
        result: Bytes::from(issued.to_string()).into(),
        warnings: std::mem::take(warnings),
    };
    info.written_as(&TOKEN_REQUEST, token)
}

/// Gives the fields of a request for a token, with what it is by default, to who asks.
fn own_token_request(engine: &Engine, call: Call<'_>, options: &WriteOptions, request: &mut Value) {
    let mut whole = request.clone();
    if whole["spec"]["expirationSeconds"].is_null() {
        whole["spec"]["expirationSeconds"] = json!(3600);
    }
    let call = Call { kind: &TOKEN_REQUEST, ..call };
    OwnedWrite { engine, call, subresource: "token", options, live: None }.own(&mut whole);
    object::copy_meta(request, &whole, "managedFields");
}

/// What an answer of the subresource `token` is.
static TOKEN_REQUEST: LazyLock<Arc<Kind>> = LazyLock::new(|| {
    static DESCRIPTOR: BuiltIn = BuiltIn::namespaced(
        "io.k8s.api.authentication.v1.TokenRequest",
        "authentication.k8s.io/tokenrequests",
    );
    Arc::new(Kind::built_in(&DESCRIPTOR))
});

/// An issued token as validating admission sees it: all that was left out of the request is filled in, and there is no token
/// yet (`k8s.io/kubernetes/pkg/registry/core/serviceaccount/storage/token.go`).
fn undone(issued: &Value, request: &Value) -> Value {
    let mut seen = issued.clone();
    seen["status"] = json!({"token": "", "expirationTimestamp": null});
    // A life that is too long is cut afterwards.
    if let Some(seconds) = request["spec"].get("expirationSeconds").filter(|seconds| !seconds.is_null()) {
        seen["spec"]["expirationSeconds"] = seconds.clone();
    }
    seen
}

/// A kind that is only created: the answer is computed, nothing is stored.
pub(super) async fn answer_review(info: &RequestInfo<'_>) -> Result<Response<ResponseBody>, ApiError> {
    if info.verb != "create" || !info.call.name.is_empty() {
        return Err(ApiError::method_not_allowed());
    }
    let call = info.call;
    if call.kind.behaviour.role == Role::Binding {
        let mut warnings = Vec::new();
        return bind_named(info, &mut warnings).await.map_err(|error| error.with_warnings(warnings));
    }
    let options = WriteOptions::read(info.query, info.headers, "CreateOptions")?;
    let mut warnings = Vec::new();
    let answer = match review_of(call.kind, info.decoded()?, options.validation, &mut warnings) {
        Ok(body) => answer_to(info, body, &options).await,
        Err(error) => Err(error),
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return Err(error.with_warnings(warnings)),
    };
    info.written(Written { code: StatusCode::CREATED, result: Bytes::from(answer).into(), warnings })
}

/// The answer to a review, as JSON.
async fn answer_to(
    info: &RequestInfo<'_>,
    mut body: Value,
    options: &WriteOptions,
) -> Result<String, ApiError> {
    let (server, call) = (info.server, info.call);
    OwnedWrite { engine: server.engine(), call, subresource: "", options, live: None }.own(&mut body);
    let snapshot = server.engine().snapshot();
    let lookup = |collection: &str, key: &str| snapshot.get(collection, key).map(|entry| entry.bytes.clone());
    Ok(match call.kind.behaviour.role {
        Role::TokenReview => {
            let review::Question { token, audiences } = review::Question::read(&body)?;
            let authenticator = server.authenticator();
            let found = authenticator.authenticate_token(token.reveal(), &audiences, &lookup);
            verbs::label_used(server.engine(), authenticator.used_secrets()).await;
            let found = authenticator.or_ask(found, token.reveal(), &audiences).await;
            review::answer(&body, &found)?
        }
        Role::SelfSubjectReview => review::review_self(call.user, server.engine().world().clock.now())?,
        Role::AccessReview(asks) => {
            let version = call.kind.kubernetes();
            let handle =
                |rights: &Rights| reviews::handle(rights, version, call.user, asks, call.namespace, &body);
            server.engine().authorizer().resolve(&snapshot, handle).await?.to_string()
        }
        _ => return Err(ApiError::no_such_resource()),
    })
}

/// The answer to what was done and leaves no object.
fn created(info: &RequestInfo<'_>, warnings: &[String]) -> Response<ResponseBody> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201
    });
    let mut response = respond::json(StatusCode::CREATED, status.to_string().into(), info.wanted.encoding);
    respond::warn(&mut response, warnings);
    response
}
