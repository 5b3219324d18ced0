//! The scale subresource: one view (`autoscaling/v1 Scale`) of any kind that has replicas.

use serde_json::{Map, Value, json};

use super::body::of_patch;
use super::update::modified;
use super::{Call, Part, Registry, WriteOptions, Written, create, encode, object};
use crate::error::ApiError;
use crate::field::FieldError;
use crate::http::body::Decoded;
use crate::kinds::{Kind, ScalePaths, Subresource};
use crate::patch::{Patch, type_name};
use crate::selector::LabelSelector;

impl Registry {
    /// The scale of an object.
    ///
    /// # Errors
    /// 404 when there is no such object; 500 for a custom object without the number that its scale is about.
    pub fn get_scale(&self, call: Call<'_>, paths: &ScalePaths) -> Result<Value, ApiError> {
        let object = encode::value(call.kind, &*self.entry(call)?);
        if call.kind.custom.is_some() && at(&object, &paths.spec_replicas).is_none() {
            let why = format!("the spec replicas field {:?} does not exist", paths.spec_replicas);
            return Err(ApiError::internal(&why));
        }
        Ok(scale_of(&object, paths))
    }

    /// Sets the wanted replicas from a Scale.
    ///
    /// # Errors
    /// 400 for a body that is no Scale, or one of another object; and as [`Registry::update`].
    pub async fn update_scale(
        &self,
        call: Call<'_>,
        paths: &ScalePaths,
        decoded: Decoded,
        options: WriteOptions,
    ) -> Result<Written, ApiError> {
        let mut scale = decoded.value;
        check_type(&scale)?;
        let replicas = wanted(&scale).map_err(|why| {
            ApiError::bad_request(format!("Scale in version \"v1\" cannot be handled as a Scale: {why}"))
        })?;
        create::place(call, &mut scale)?;
        self.set_scale(call, paths, &scale, replicas, options).await
    }

    /// Changes the wanted replicas by a patch of the Scale.
    ///
    /// # Errors
    /// As [`Registry::patch`].
    pub async fn patch_scale(
        &self,
        call: Call<'_>,
        paths: &ScalePaths,
        patch: &Patch,
        options: WriteOptions,
    ) -> Result<Written, ApiError> {
        loop {
            let current = scale_of(&encode::value(call.kind, &*self.entry(call)?), paths);
            let mut next = patch.apply(&current)?;
            let replicas = wanted(&next).map_err(|why| of_patch(&next, &why))?;
            let conditional = object::resource_version(&next) != object::resource_version(&current);
            if !conditional {
                object::copy_meta(&mut next, &current, "resourceVersion");
            }
            match self.set_scale(call, paths, &next, replicas, options).await {
                Err(error) if error.reason == "Conflict" && !conditional => {}
                outcome => return outcome,
            }
        }
    }

    async fn set_scale(
        &self,
        call: Call<'_>,
        paths: &ScalePaths,
        scale: &Value,
        replicas: i64,
        options: WriteOptions,
    ) -> Result<Written, ApiError> {
        // Of a custom object the number itself is checked, where it stands in the object.
        if replicas < 0 && call.kind.custom.is_none() {
            let error = FieldError::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
            return Err(ApiError::invalid_of("autoscaling", "Scale", call.name, &[error]));
        }
        let given = object::resource_version(scale);
        let edit = |object: &mut Value| {
            if !given.is_empty() && given != object::resource_version(object) {
                return Err(modified(call));
            }
            set_at(object, &paths.spec_replicas, replicas.into());
            Ok(())
        };
        let written = self.edit(call, Part::Main, options.dry_run, &edit).await?;
        let object: Value = serde_json::from_slice(&written.bytes).unwrap_or_default();
        Ok(Written { bytes: scale_of(&object, paths).to_string().into(), ..written })
    }
}

/// What is wrong with the numbers of a custom object's scale
/// (`apiextensions-apiserver/pkg/registry/customresource/validator.go`, `ValidateScaleSpec` and `ValidateScaleStatus`).
pub(super) fn errors(kind: &Kind, object: &Value) -> Vec<FieldError> {
    let Some(Subresource::CustomScale(paths)) = kind.subresource("scale") else { return Vec::new() };
    let numbers = [&paths.spec_replicas, &paths.status_replicas];
    let wrong = numbers.into_iter().filter_map(|path| {
        let number = at(object, path)?.as_i64()?;
        let why = match number {
            ..0 => "should be a non-negative integer".to_owned(),
            _ if number > i64::from(i32::MAX) => format!("should be less than or equal to {}", i32::MAX),
            _ => return None,
        };
        Some(FieldError::invalid(path, number, why))
    });
    wrong.collect()
}

/// Where `kind`'s scale finds its numbers, when it has a scale.
#[must_use]
pub fn paths(subresource: &Subresource) -> Option<ScalePaths> {
    match subresource {
        Subresource::CustomScale(paths) => Some(paths.clone()),
        Subresource::Scale => Some(ScalePaths {
            spec_replicas: ".spec.replicas".to_owned(),
            status_replicas: ".status.replicas".to_owned(),
            label_selector: None,
        }),
        _ => None,
    }
}

/// 400 for a body that says to be something else.
fn check_type(scale: &Value) -> Result<(), ApiError> {
    let kind = scale["kind"].as_str().unwrap_or_default();
    let version = scale["apiVersion"].as_str().unwrap_or_default();
    let version = version.split_once('/').map_or(version, |(_, version)| version);
    if matches!(kind, "" | "Scale") {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a Scale: converting ({version}.{kind}) to (autoscaling.Scale): unknown conversion"
    )))
}

/// The number that a Scale asks for.
fn wanted(scale: &Value) -> Result<i64, String> {
    match &scale["spec"]["replicas"] {
        Value::Null => Ok(0),
        value => value.as_i64().filter(|number| i32::try_from(*number).is_ok()).ok_or_else(|| {
            let what = match value {
                Value::Number(number) => format!("number {number}"),
                other => type_name(other).to_owned(),
            };
            format!(
                "json: cannot unmarshal {what} into Go struct field ScaleSpec.spec.replicas of type int32"
            )
        }),
    }
}

fn scale_of(value: &Value, paths: &ScalePaths) -> Value {
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = value["metadata"].get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let mut spec = Map::new();
    if let Some(replicas) =
        at(value, &paths.spec_replicas).and_then(Value::as_i64).filter(|replicas| *replicas != 0)
    {
        spec.insert("replicas".into(), replicas.into());
    }
    let mut status =
        json!({"replicas": at(value, &paths.status_replicas).and_then(Value::as_i64).unwrap_or(0)});
    let selector = match &paths.label_selector {
        Some(path) => at(value, path).and_then(Value::as_str).unwrap_or_default().to_owned(),
        None => selector_text(&value["spec"]["selector"]),
    };
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status})
}

/// A selector as text: of labels alone (replication controllers) or of the newer form.
fn selector_text(selector: &Value) -> String {
    let is_new = selector.get("matchLabels").is_some() || selector.get("matchExpressions").is_some();
    let selector = if is_new { selector.clone() } else { json!({"matchLabels": selector}) };
    LabelSelector::from_object(&selector).map(|selector| selector.to_string()).unwrap_or_default()
}

/// The member at a path such as `.spec.replicas`.
fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').filter(|part| !part.is_empty()).try_fold(value, |value, part| value.get(part))
}

fn set_at(value: &mut Value, path: &str, new: Value) {
    let mut parts: Vec<&str> = path.split('.').filter(|part| !part.is_empty()).collect();
    let Some(last) = parts.pop() else { return };
    let mut place = value;
    for part in parts {
        place = object::as_map(place).entry(part).or_insert_with(|| Value::Object(Map::new()));
    }
    object::as_map(place).insert(last.to_owned(), new);
}
