//! Bodies of subresources that have a kind of their own: a Binding, an Eviction, a Scale, a TokenRequest.

use kubewright_codec::body::Decoded;
use kubewright_codec::json::type_name;
use kubewright_kinds::Subresource;
use kubewright_meta::ApiError;
use kubewright_schema::{Encoding, Schema};
use kubewright_spec::Version;
use serde_json::Value;

use super::body::complain;
use super::place::place;
use super::said;
use super::type_of_body::{self, Mismatch, Wanted};
use super::{Call, FieldValidation};

/// What is said of a body that is no Scale, for the scale of a custom resource.
const NO_SCALE: &str = r#"no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111""#;

/// What an eviction may say to be, too.
const OLDER_EVICTIONS: &str = "policy/v1beta1";

/// The body of a request for a subresource of the object that `call` names: typed, pruned, in the right namespace.
/// Warnings are added to `warnings`.
///
/// # Errors
/// 400 for a body of another kind, of wrong types, of another namespace, or not valid under [`FieldValidation::Strict`].
pub fn part_of(
    call: Call<'_>,
    subresource: &Subresource,
    decoded: Decoded,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Value, ApiError> {
    let Decoded { mut value, origin } = decoded;
    let Some((group, version, kind)) = subresource.body_kind() else { return Ok(value) };
    let wanted = Wanted::of_most(group, version, kind);
    check_is_object(&value, kind)?;
    if let Some(mismatch) = mismatch(&value, &wanted) {
        return Err(match subresource {
            Subresource::CustomScale(_) => ApiError::bad_request(NO_SCALE),
            _ => said::refuse(&wanted, &mismatch, (&value, &origin), validation, warnings),
        });
    }
    let is_older = value["apiVersion"] == OLDER_EVICTIONS;
    let said = if is_older { "v1beta1" } else { version };
    let wrong = |why: String| said::cannot_be_handled(kind, said, kind, &why);
    let unknown = match schema(call.kind.kubernetes(), subresource) {
        Some(schema) => {
            let unknown = schema.decode(&mut value).map_err(wrong)?;
            schema.leave_out(&mut value, Encoding::Json);
            unknown
        }
        None => Vec::new(),
    };
    complain(&origin, &unknown, false, validation, warnings).map_err(wrong)?;
    value["kind"] = kind.into();
    value["apiVersion"] = if group.is_empty() { version.into() } else { format!("{group}/{version}").into() };
    // Each subresource has its own words for a wrong name.
    place(Call { name: "", ..call }, &mut value)?;
    Ok(value)
}

/// The body of a subresource that somebody has changed since it was read: typed and pruned.
///
/// # Errors
/// Why it is none any more.
pub(crate) fn retype(
    kubernetes: Version,
    subresource: &Subresource,
    value: &mut Value,
) -> Result<(), String> {
    schema(kubernetes, subresource).map_or(Ok(()), |schema| schema.decode(value).map(drop))
}

/// 400 for a body that cannot say what it is.
fn check_is_object(value: &Value, wanted: &str) -> Result<(), ApiError> {
    if value.is_object() {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {wanted}): couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value",
        type_name(value)
    )))
}

/// What else a body says to be.
fn mismatch(value: &Value, wanted: &Wanted<'_>) -> Option<Mismatch> {
    let text = |field: &str| value[field].as_str().unwrap_or_default();
    // The only one that is taken in two versions (`EvictionREST.AcceptsGroupVersion`).
    let older = wanted.kind == "Eviction" && matches!(text("kind"), "" | "Eviction");
    if older && text("apiVersion") == OLDER_EVICTIONS {
        return None;
    }
    type_of_body::check_as(wanted, value).err()
}

fn schema(version: Version, subresource: &Subresource) -> Option<Schema> {
    let name = match subresource {
        Subresource::Binding => "io.k8s.api.core.v1.Binding",
        Subresource::Eviction => "io.k8s.api.policy.v1.Eviction",
        Subresource::Scale | Subresource::CustomScale(_) => "io.k8s.api.autoscaling.v1.Scale",
        Subresource::Token => "io.k8s.api.authentication.v1.TokenRequest",
        _ => return None,
    };
    Some(Schema::of_version(version, name))
}
