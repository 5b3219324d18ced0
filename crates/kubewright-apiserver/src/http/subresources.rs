//! What is served below an object, and what is computed instead of stored.

use http::{Response, StatusCode};
use serde_json::Value;

use super::dispatch::Asked;
use super::negotiate::media_type;
use super::respond::{self, ResponseBody};
use crate::authn::review::review_self;
use crate::authz::review as reviews;
use crate::error::ApiError;
use crate::kinds::Subresource;
use crate::registry::{
    Call, DeleteOptions, Member, Part, WriteOptions, Written, encode, object, scale_paths,
};

pub(super) async fn answer(asked: &Asked<'_>, name: &str) -> Result<Response<ResponseBody>, ApiError> {
    let call = asked.call;
    let Some(subresource) = call.kind.subresource(name) else {
        return Err(match &call.kind.custom {
            Some(_) if matches!(name, "status" | "scale") => ApiError::not_found(call.kind, call.name),
            Some(_) => ApiError::no_such_path(),
            None => ApiError::no_such_resource(),
        });
    };
    match subresource {
        Subresource::Status => part(asked, Part::Status).await,
        Subresource::Approval => part(asked, Part::Member(Member::Approval)).await,
        Subresource::Finalize => part(asked, Part::Member(Member::Finalizers)).await,
        Subresource::EphemeralContainers => part(asked, Part::Member(Member::EphemeralContainers)).await,
        Subresource::Resize => part(asked, Part::Member(Member::Containers)).await,
        Subresource::Scale | Subresource::CustomScale(_) => scale(asked, subresource).await,
        Subresource::Binding => bind(asked, subresource).await,
        Subresource::Eviction => evict(asked, subresource).await,
        Subresource::Token => issue_token(asked, subresource),
    }
}

/// A subresource that is a part of the object: it is read whole and written in part.
async fn part(asked: &Asked<'_>, part: Part) -> Result<Response<ResponseBody>, ApiError> {
    let (registry, call) = (asked.server.registry(), asked.call);
    match asked.verb {
        "get" => {
            let bytes = registry.get(call, asked.query.text("resourceVersion"))?;
            asked.written(Written { code: StatusCode::OK, bytes, warnings: Vec::new() })
        }
        "update" => {
            let options = WriteOptions::read(asked.query, "UpdateOptions")?;
            asked.written(registry.update(call, part, asked.decoded()?, options).await?)
        }
        "patch" => {
            let options = WriteOptions::of_patch(asked.query, media_type(asked.headers))?;
            asked.written(registry.patch(call, part, asked.patch()?, options).await?)
        }
        _ => Err(ApiError::method_not_allowed()),
    }
}

async fn scale(asked: &Asked<'_>, subresource: &Subresource) -> Result<Response<ResponseBody>, ApiError> {
    let (registry, call) = (asked.server.registry(), asked.call);
    let paths = scale_paths(subresource).ok_or_else(ApiError::no_such_resource)?;
    let written = match asked.verb {
        "get" => {
            let bytes = registry.get_scale(call, &paths)?.to_string().into();
            Written { code: StatusCode::OK, bytes, warnings: Vec::new() }
        }
        "update" => {
            let options = WriteOptions::read(asked.query, "UpdateOptions")?;
            registry.update_scale(call, &paths, asked.decoded_of(subresource)?, options).await?
        }
        "patch" => {
            let options = WriteOptions::of_patch(asked.query, media_type(asked.headers))?;
            registry.patch_scale(call, &paths, &asked.patch()?, options).await?
        }
        _ => return Err(ApiError::method_not_allowed()),
    };
    Ok(respond::json(written.code, written.bytes, asked.wanted.encoding))
}

async fn bind(asked: &Asked<'_>, subresource: &Subresource) -> Result<Response<ResponseBody>, ApiError> {
    only_create(asked)?;
    bind_pod(asked, asked.call, &asked.decoded_of(subresource)?.value).await
}

async fn bind_pod(
    asked: &Asked<'_>,
    call: Call<'_>,
    binding: &Value,
) -> Result<Response<ResponseBody>, ApiError> {
    let dry_run = WriteOptions::read(asked.query, "CreateOptions")?.dry_run;
    let written = asked.server.registry().bind(call, binding, dry_run).await?;
    Ok(respond::json(written.code, written.bytes, asked.wanted.encoding))
}

/// Deletes a pod on request (`k8s.io/kubernetes/pkg/registry/core/pod/storage/eviction.go`).
async fn evict(asked: &Asked<'_>, subresource: &Subresource) -> Result<Response<ResponseBody>, ApiError> {
    only_create(asked)?;
    let eviction = asked.decoded_of(subresource)?.value;
    let dry_run = WriteOptions::read(asked.query, "CreateOptions")?.dry_run;
    let mut options = DeleteOptions::read(asked.query, Some(&eviction["deleteOptions"]))?;
    options.dry_run |= dry_run;
    asked.server.registry().delete(asked.call, &options).await?;
    created(asked)
}

fn issue_token(asked: &Asked<'_>, subresource: &Subresource) -> Result<Response<ResponseBody>, ApiError> {
    only_create(asked)?;
    let registry = asked.server.registry();
    let account = encode::value(asked.call.kind, &*registry.entry(asked.call)?);
    let request = asked.decoded_of(subresource)?.value;
    let snapshot = registry.snapshot();
    let lookup = |collection: &str, key: &str| snapshot.get(collection, key).map(|entry| entry.bytes.clone());
    let bytes = asked.server.authenticator().issue_token(&account, &request, &lookup)?;
    Ok(respond::json(StatusCode::CREATED, bytes.to_string().into(), asked.wanted.encoding))
}

/// A kind that is only created: the answer is computed, nothing is stored.
pub(super) async fn review(asked: &Asked<'_>) -> Result<Response<ResponseBody>, ApiError> {
    if asked.verb != "create" || !asked.call.name.is_empty() {
        return Err(ApiError::method_not_allowed());
    }
    let (server, call) = (asked.server, asked.call);
    let body = asked.decoded()?.value;
    if call.kind.group.is_empty() {
        let kinds = server.registry().kinds();
        let pods = kinds.get("", "v1", "pods").ok_or_else(ApiError::no_such_resource)?;
        return bind_pod(asked, Call { kind: pods, name: object::name(&body), ..call }, &body).await;
    }
    let snapshot = server.registry().snapshot();
    let lookup = |collection: &str, key: &str| snapshot.get(collection, key).map(|entry| entry.bytes.clone());
    let answer = match call.kind.plural.as_str() {
        "tokenreviews" => server.authenticator().review_token(&body, &lookup)?,
        "selfsubjectreviews" => review_self(call.user, server.registry().world().clock.now()),
        plural => {
            let rbac = server.registry().authorizer().rbac(&snapshot);
            reviews::handle(&rbac, call.user, plural, call.namespace, &body)?
        }
    };
    Ok(respond::json(StatusCode::CREATED, answer.to_string().into(), asked.wanted.encoding))
}

fn only_create(asked: &Asked<'_>) -> Result<(), ApiError> {
    if asked.verb == "create" { Ok(()) } else { Err(ApiError::method_not_allowed()) }
}

/// The answer to what was done and leaves no object.
fn created(asked: &Asked<'_>) -> Result<Response<ResponseBody>, ApiError> {
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201
    });
    Ok(respond::json(StatusCode::CREATED, status.to_string().into(), asked.wanted.encoding))
}
