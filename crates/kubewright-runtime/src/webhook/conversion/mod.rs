//! One kind in several versions: every version is converted by way of one, the hub.

mod keep;
mod partial;
mod review;
mod round_trip;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt::Display};

use serde_json::Value;

pub(crate) use self::review::answer;
use crate::Object;

/// Where conversions are served, as by controller-runtime.
pub(crate) const PATH: &str = "/convert";

/// Conversion of a kind between its versions: each spoke into the hub and back, by [`TryFrom`] (or `From`) of their Rust
/// types. The hub is the version that can hold everything, usually the newest.
///
/// ```
/// use kube::CustomResource;
/// use kubewright_runtime::webhook::Conversion;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(CustomResource, Clone, Debug, Deserialize, Serialize)]
/// # #[kube(group = "example.com", version = "v1", kind = "Job", root = "JobV1", schema = "disabled", namespaced)]
/// # struct V1 { schedule: String }
/// # #[derive(CustomResource, Clone, Debug, Deserialize, Serialize)]
/// # #[kube(group = "example.com", version = "v2", kind = "Job", root = "JobV2", schema = "disabled", namespaced)]
/// # struct V2 { every: String }
/// impl From<JobV1> for JobV2 {
///     fn from(old: JobV1) -> Self {
///         Self { metadata: old.metadata, spec: V2 { every: old.spec.schedule } }
///     }
/// }
/// impl From<JobV2> for JobV1 {
///     fn from(new: JobV2) -> Self {
///         Self { metadata: new.metadata, spec: V1 { schedule: new.spec.every } }
///     }
/// }
///
/// let conversion = Conversion::hub::<JobV2>().spoke::<JobV1>();
/// // In a test: nothing may be lost on the way to a version and back.
/// conversion.assert_round_trips([JobV2::new("nightly", V2 { every: "day".into() })]);
/// ```
///
/// **Metadata** stays as it is but for labels and annotations, the two parts that the API server takes from a conversion
/// (`k8s.io/apiextensions-apiserver/pkg/apiserver/conversion`, `restoreObjectMeta`). A conversion that leaves metadata
/// empty keeps all of it; one that changes the name, namespace or uid is an error.
///
/// **Objects that are not all there** come from server-side apply, which converts what is left of an object when fields are
/// taken away. Where something is missing that a Rust type has to have, it is empty (`""`, `0`), as in Go: a `TryFrom`
/// should accept that. What has no content at all is not shown to it.
///
/// **Fields that a spoke cannot hold** are lost when somebody reads the object in that version and writes it back, unless
/// they are [kept](Self::keeping).
pub struct Conversion<H = ()> {
    spokes: BTreeMap<String, Spoke<H>>,
    keep: Option<String>,
    mistakes: Vec<String>,
}

/// Functions between a spoke's JSON and the hub's type.
struct Spoke<H> {
    to_hub: ToHub<H>,
    from_hub: FromHub<H>,
}

type ToHub<H> = Box<dyn Fn(&Value) -> Result<H, String> + Send + Sync>;
type FromHub<H> = Box<dyn Fn(H) -> Result<Value, String> + Send + Sync>;

impl Conversion {
    /// A conversion by way of `H`, with no other version yet.
    #[must_use]
    pub fn hub<H: Object>() -> Conversion<H> {
        Conversion { spokes: BTreeMap::new(), keep: None, mistakes: Vec::new() }
    }
}

impl<H: Object> Conversion<H> {
    /// And the version `S`.
    #[must_use]
    pub fn spoke<S>(mut self) -> Self
    where
        S: Object + TryFrom<H, Error: Display>,
        H: TryFrom<S, Error: Display>,
    {
        let (version, kind) = (S::api_version(&()).into_owned(), S::kind(&()));
        if (S::group(&()), &kind) != (H::group(&()), &H::kind(&())) {
            let hub = (H::kind(&()), H::group(&()));
            self.mistakes.push(format!("{kind} in {version} is no version of {}.{}", hub.0, hub.1));
        }
        let spoke = Spoke {
            to_hub: Box::new(|value| H::try_from(read::<S>(value)?).map_err(|error| error.to_string())),
            from_hub: Box::new(|hub| {
                let spoke = S::try_from(hub).map_err(|error| error.to_string())?;
                write(&spoke)
            }),
        };
        if version == H::api_version(&()) || self.spokes.insert(version.clone(), spoke).is_some() {
            self.mistakes.push(format!("{kind} has the version {version} twice"));
        }
        self
    }

    /// Keeps what a spoke cannot hold of the hub in this annotation of the spoke (such as `example.com/conversion-data`),
    /// and puts it back on the way to the hub. What was changed in the spoke meanwhile is changed in the hub.
    ///
    /// The annotation is there only on objects that would lose something, holds their content in JSON, and is taken away
    /// on the hub. Writes to the `status` subresource cannot change annotations: a status that only the hub can hold is
    /// kept only while the hub is the version that is stored.
    #[must_use]
    pub fn keeping(mut self, annotation: &str) -> Self {
        self.keep = Some(annotation.to_owned());
        self
    }

    /// The object in another version.
    ///
    /// # Errors
    /// Why there is none, with the object's name.
    fn convert_object(&self, object: &Value, desired: &str) -> Result<Value, String> {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        if version == desired {
            return Ok(object.clone());
        }
        self.convert_to(object.clone(), desired).map_err(|why| {
            format!("{} cannot be converted from {version} to {desired}: {why}", called(object))
        })
    }

    fn convert_to(&self, mut object: Value, desired: &str) -> Result<Value, String> {
        let annotation = self.keep.as_deref();
        let kept = annotation.and_then(|annotation| keep::take(&mut object["metadata"], annotation));
        let metadata = object["metadata"].clone();
        if keep::is_bare(&object) {
            // Of what has no content nothing can be converted.
            object["apiVersion"] = desired.into();
            return self.known(desired).map(|()| object);
        }
        let hub = match (object["apiVersion"].as_str().unwrap_or_default(), kept) {
            (version, _) if version == H::api_version(&()) => object,
            (version, kept) => {
                let spoke = self.spokes.get(version).ok_or("its version is not known")?;
                let hub = write(&(spoke.to_hub)(&object)?)?;
                match kept {
                    Some(kept) => keep::restored(hub, &kept, spoke)?,
                    None => hub,
                }
            }
        };
        if desired == H::api_version(&()) {
            return named(hub, metadata);
        }
        let spoke = self.spokes.get(desired).ok_or("that version is not known")?;
        let converted = (spoke.from_hub)(read::<H>(&hub)?)?;
        let lost = annotation.map(|_| keep::lost(&converted, &hub, spoke)).transpose()?.flatten();
        let mut converted = named(converted, metadata)?;
        if let (Some(annotation), Some(lost)) = (annotation, lost) {
            converted["metadata"]["annotations"][annotation] = lost.into();
        }
        Ok(converted)
    }
}

impl<H: Object> Conversion<H> {
    fn known(&self, version: &str) -> Result<(), String> {
        let known = version == H::api_version(&()) || self.spokes.contains_key(version);
        if known { Ok(()) } else { Err("that version is not known".to_owned()) }
    }
}

/// `converted` with the metadata that the object had.
fn named(mut converted: Value, metadata: Value) -> Result<Value, String> {
    let found = converted["metadata"].take();
    converted["metadata"] = keep::metadata(metadata, &found)?;
    Ok(converted)
}

/// A conversion whose hub is forgotten.
pub(crate) trait DynConversion: Send + Sync {
    fn convert(&self, object: &Value, desired: &str) -> Result<Value, String>;

    /// The name of the CustomResourceDefinition.
    fn definition(&self) -> String;

    /// Group and kind.
    fn converts(&self, group: &str, kind: &str) -> bool;

    fn mistakes(&self) -> Vec<String>;
}

impl<H: Object> DynConversion for Conversion<H> {
    fn convert(&self, object: &Value, desired: &str) -> Result<Value, String> {
        self.convert_object(object, desired)
    }

    fn definition(&self) -> String {
        format!("{}.{}", H::plural(&()), H::group(&()))
    }

    fn converts(&self, group: &str, kind: &str) -> bool {
        (group, kind) == (&*H::group(&()), &*H::kind(&()))
    }

    fn mistakes(&self) -> Vec<String> {
        let alone = self.spokes.is_empty().then(|| format!("{} has a hub and no spoke", self.definition()));
        let bad_key = self.keep.as_ref().filter(|key| key.split('/').count() != 2);
        let bad_key = bad_key.map(|key| format!("{key:?} is no annotation: write example.com/name"));
        let mistakes = self.mistakes.iter().cloned().chain(alone).chain(bad_key);
        mistakes.map(|mistake| format!("conversion: {mistake}")).collect()
    }
}

impl<H: Object> std::fmt::Debug for Conversion<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let spokes: Vec<_> = self.spokes.keys().collect();
        f.debug_struct("Conversion").field("hub", &H::api_version(&())).field("spokes", &spokes).finish()
    }
}

/// An object in its type. Server-side apply asks for what is left of objects: what is missing is empty then.
fn read<K: Object>(object: &Value) -> Result<K, String> {
    kubewright_objects::from_value::<K>(object).or_else(|error| {
        partial::read(object)
            .map_err(|_| format!("it is no {} of {}: {error}", K::kind(&()), K::api_version(&())))
    })
}

/// The JSON of an object, with its kind.
fn write<K: Object>(object: &K) -> Result<Value, String> {
    let mut value = kubewright_objects::to_value(object).map_err(|error| error.to_string())?;
    value["apiVersion"] = K::api_version(&()).as_ref().into();
    value["kind"] = K::kind(&()).as_ref().into();
    Ok(value)
}

/// `Job "default/nightly"`.
fn called(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or("object");
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{kind} \"{namespace}/{name}\""),
        None => format!("{kind} {name:?}"),
    }
}
