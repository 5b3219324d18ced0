//! The scale subresource: one view (`autoscaling/v1 Scale`) of any kind that has replicas.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use http::StatusCode;
use kubewright_codec::json::type_name;
use kubewright_kinds::{
    BuiltIn, Conversions, Kind, Kinds, KnownVersions, ScalePaths, Subresource, encode, rules,
};
use kubewright_meta::rules::metadata::{self, NameRule};
use kubewright_meta::selector::LabelSelector;
use kubewright_meta::{ApiError, FieldError, object};
use kubewright_schema::fields::scale::{self, Place};
use kubewright_schema::fields::{self, Element, Managed, Write};
use kubewright_schema::patch::{Change, Configuration, Patch};
use kubewright_table as table;
use serde_json::{Map, Value, json};

use super::edit::write_view;
use super::preconditions::{check_version, precondition_failed};
use super::swap::View;
use super::{Written, ownership};
use crate::engine::Engine;
use crate::request::body::{of_patch, patched};
use crate::request::place::{check_name, place_in_namespace};
use crate::request::{Call, WriteOptions};

/// The scale of an object.
///
/// # Errors
/// As [`get`](fn@super::get); 500 for a custom object without the number that its scale is about.
pub async fn get_scale(
    engine: &Engine,
    call: Call<'_>,
    paths: &ScalePaths,
    version: &str,
) -> Result<Value, ApiError> {
    let object = encode::value(call.kind, &*super::read::get_stored(engine, call, version).await?);
    if call.kind.custom.is_some() && at(&object, &paths.spec_replicas).is_none() {
        let why = format!("the spec replicas field {:?} does not exist", paths.spec_replicas);
        return Err(ApiError::internal(&why));
    }
    Ok(scale_of(&object, paths))
}

/// Sets the wanted replicas from a Scale.
///
/// # Errors
/// 400 for a body that is no Scale, or one of another object; and as [`update`](fn@super::update).
pub async fn update_scale(
    engine: &Engine,
    call: Call<'_>,
    paths: &ScalePaths,
    scale: Value,
    options: WriteOptions,
) -> Result<Written, ApiError> {
    check_name(call, object::name(&scale))?;
    write_scale(engine, call, paths, &Step::Replace(scale), &options).await
}

/// Changes the wanted replicas by a patch of the Scale.
///
/// # Errors
/// As [`patch`](fn@super::patch).
pub async fn patch_scale(
    engine: &Engine,
    call: Call<'_>,
    paths: &ScalePaths,
    patch: Patch,
    options: WriteOptions,
) -> Result<Written, ApiError> {
    let mut warnings = Vec::new();
    let step = match patch {
        Patch::Change(change) => Step::Change(change),
        Patch::Apply(config) => {
            ownership::strict(&config, options.validation, &mut warnings)?;
            Step::Apply(config)
        }
    };
    let written = write_scale(engine, call, paths, &step, &options).await?;
    warnings.extend(written.warnings);
    Ok(Written { warnings, ..written })
}

async fn write_scale(
    engine: &Engine,
    call: Call<'_>,
    paths: &ScalePaths,
    step: &Step,
    options: &WriteOptions,
) -> Result<Written, ApiError> {
    let write = ScaleWrite { engine, call, paths, step, options, kinds: engine.kinds() };
    let written = write_view(engine, call, &write, options).await?;
    let object: Value = serde_json::from_slice(written.result.bytes()).unwrap_or_default();
    let scale = Bytes::from(scale_of(&object, paths).to_string());
    Ok(Written { result: scale.into(), ..written })
}

/// One write of a scale.
struct ScaleWrite<'a> {
    engine: &'a Engine,
    call: Call<'a>,
    paths: &'a ScalePaths,
    step: &'a Step,
    options: &'a WriteOptions,
    kinds: Arc<Kinds>,
}

impl ScaleWrite<'_> {
    fn place(&self, api_version: &str) -> Place {
        place(&self.kinds, self.call.kind, api_version)
    }

    /// What is wrong with a scale (`ValidateScale`).
    fn errors(&self, scale: &Value, replicas: i64) -> Result<Vec<FieldError>, ApiError> {
        let mut whole = scale.clone();
        object::set_meta(&mut whole, "name", Some(self.call.name.into()));
        place_in_namespace(self.call, &mut whole)?;
        let mut errors = metadata::validate(&whole, NameRule::Subdomain, true);
        errors.extend(metadata::validate_finalizers(&whole));
        rules::in_words_of(self.call.kind.kubernetes(), &mut errors);
        if replicas < 0 {
            let detail = "must be greater than or equal to 0";
            errors.push(FieldError::invalid("spec.replicas", replicas, detail));
        }
        Ok(errors)
    }
}

impl View for ScaleWrite<'_> {
    fn subresource(&self) -> &'static str {
        "scale"
    }

    /// The scale of an object, with the owners of what it shows.
    fn of(&self, object: &Value) -> Value {
        let owners = Managed::decode(object["metadata"].get("managedFields")).unwrap_or_default();
        let mut scale = scale_of(object, self.paths);
        let owners = scale::to_scale(&owners, |version| self.place(version));
        object::set_meta(&mut scale, "managedFields", owners.encode());
        scale
    }

    fn next(&self, current: &Value, warnings: &mut Vec<String>) -> Result<Value, ApiError> {
        let live = self.of(current);
        let now = object::time(self.engine.world().clock.now());
        let write = Write {
            versions: &KnownVersions {
                kinds: &self.kinds,
                kind: &SCALE,
                conversions: &Conversions::default(),
            },
            manager: &self.options.manager,
            subresource: "scale",
            now: now.as_str().unwrap_or_default(),
        };
        let mut next = match self.step {
            Step::Replace(scale) => scale.clone(),
            Step::Change(change) => {
                let mut next = patched(&SCALE, change, &live, self.options.validation, warnings)?;
                place_in_namespace(self.call, &mut next)?;
                check_name(self.call, object::name(&next))?;
                next
            }
            Step::Apply(config) => {
                let applied = write.apply(Some(&live), &config.value, self.options.force);
                return if self.call.kind.custom.is_some() {
                    refuse_applied(&live, applied)
                } else {
                    applied
                };
            }
        };
        self.step.replicas(&next)?;
        // A number that is zero is not there.
        let _ = SCALE.schema().decode(&mut next);
        write.update(Some(&live), &mut next);
        Ok(next)
    }

    /// Puts the number of a scale into its object, and who owns it.
    fn put(&self, scale: &Value, object: &mut Value) -> Result<(), ApiError> {
        let replaces = matches!(self.step, Step::Replace(_));
        check_preconditions(self.call, self.options.dry_run, replaces, (scale, object))?;
        let replicas = self.step.replicas(scale)?;
        // Of a custom object the number itself is checked, where it stands in the object.
        if self.call.kind.custom.is_none() {
            let errors = self.errors(scale, replicas)?;
            if !errors.is_empty() {
                return Err(ApiError::invalid_of("autoscaling", "Scale", self.call.name, &errors));
            }
        }
        let owners = Managed::decode(object["metadata"].get("managedFields")).unwrap_or_default();
        let scaling = Managed::decode(scale["metadata"].get("managedFields")).unwrap_or_default();
        let version = self.call.kind.api_version();
        let owners = scale::to_object(&owners, scaling, &version, |version| self.place(version));
        object::set_meta(object, "managedFields", owners.encode());
        set_at(object, &self.paths.spec_replicas, replicas.into());
        Ok(())
    }
}

/// The scale of a custom object cannot be applied: kube-apiserver converts it as if it were such an object itself
/// (`apiextensions-apiserver/pkg/apiserver/conversion/converter.go`, `ConvertToVersion`). What is wrong otherwise is told first, but for the
/// number that nobody owns yet.
fn refuse_applied(live: &Value, applied: Result<Value, ApiError>) -> Result<Value, ApiError> {
    let failed = |what: &str, of: &Value| {
        let about = fields::about(&**SCALE, of);
        ApiError::unexplained(format!(
            "{what} ({about}) to proper version: request to convert CR to an invalid group/version: {}",
            scale::SCALE
        ))
    };
    let is_of_scale = |error: &ApiError| error.code == StatusCode::BAD_REQUEST;
    if live["metadata"].get("managedFields").is_none() && !applied.as_ref().is_err_and(is_of_scale) {
        let nameless = Value::Null;
        return Err(failed(
            "failed to create manager for existing fields: failed to convert live object",
            &nameless,
        ));
    }
    Err(failed("failed to convert new object", &applied?))
}

/// How the next scale comes from the current one.
enum Step {
    /// The client sent it whole.
    Replace(Value),
    /// The client sent a change.
    Change(Change),
    /// The client sent what its manager wants it to be.
    Apply(Configuration),
}

impl Step {
    /// The number that the next scale asks for; 400 or 422 when it is none.
    fn replicas(&self, next: &Value) -> Result<i64, ApiError> {
        wanted(next).map_err(|why| match self {
            Self::Replace(_) => {
                ApiError::bad_request(format!("Scale in version \"v1\" cannot be handled as a Scale: {why}"))
            }
            Self::Change(_) | Self::Apply(_) => of_patch(next.to_string(), &why),
        })
    }
}

/// What a scale is to field ownership, and how it is shown.
static SCALE: LazyLock<Arc<Kind>> =
    LazyLock::new(|| shown_with(table::Columns::built_in(table::scaling::SCALES)));

/// The same of custom objects, which have columns of their own.
static CUSTOM_SCALE: LazyLock<Arc<Kind>> =
    LazyLock::new(|| shown_with(table::scaling::columns_of_custom_scales()));

fn shown_with(columns: table::Columns) -> Arc<Kind> {
    static DESCRIPTOR: BuiltIn = BuiltIn::namespaced("io.k8s.api.autoscaling.v1.Scale", "autoscaling/scales");
    let mut kind = Kind::built_in(&DESCRIPTOR);
    kind.columns = columns;
    Arc::new(kind)
}

/// What the scales of objects of `kind` are.
#[must_use]
pub fn scale_kind(kind: &Kind) -> &'static Arc<Kind> {
    if kind.custom.is_some() { &CUSTOM_SCALE } else { &SCALE }
}

/// Where a version of a kind has its replicas.
fn place(kinds: &Kinds, kind: &Kind, api_version: &str) -> Place {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let found = kinds.get(group, version, &kind.plural).filter(|other| other.collection == kind.collection);
    let Some(found) = found else { return Place::Unknown };
    match found.subresource("scale").and_then(paths) {
        Some(paths) => {
            let steps = paths.spec_replicas.split('.').filter(|part| !part.is_empty());
            Place::At(steps.map(Element::field).collect())
        }
        None => Place::Nowhere,
    }
}

/// The version and uid that a scale names must be those of its object.
fn check_preconditions(
    call: Call<'_>,
    dry_run: bool,
    replaces: bool,
    (scale, object): (&Value, &Value),
) -> Result<(), ApiError> {
    if !object::resource_version(scale).is_empty() {
        check_version(call, object, scale)?;
    }
    let uid = object::uid(scale);
    if !uid.is_empty() && uid != object::uid(object) {
        // Only a replacement is held against what is stored before it is made.
        if replaces || call.kind.custom.is_some() {
            return Err(precondition_failed(call, dry_run, "UID", uid, object::uid(object)));
        }
        return Err(other_object(call, uid, object::uid(object)));
    }
    Ok(())
}

/// 409: the object of the scale is another one; built-in kinds have words of their own
/// (`pkg/registry/apps/deployment/storage`, `scaleUpdatedObjectInfo`).
fn other_object(call: Call<'_>, given: &str, current: &str) -> ApiError {
    let why = format!("Precondition failed: UID in precondition: {given}, UID in object meta: {current}");
    let mut error = ApiError::conflict(call.kind, call.name, &why);
    let scale = format!("{}/scale", call.kind.plural);
    error.message = error.message.replacen(&call.kind.plural, &scale, 1);
    if let Some(details) = &mut error.details {
        details["kind"] = scale.into();
    }
    error
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
