//! The pod of an installed operator, as its author shapes it.

use k8s_openapi::{
    api::core::v1::{Container, PodSpec, PodTemplateSpec},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde_json::Value;

use crate::Error;

/// What [`Operator::pod`](crate::command::Operator::pod) shapes: the pod template of the operator's Deployment, its own container
/// apart from others.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PodShape {
    /// The labels and annotations of the pods.
    pub metadata: ObjectMeta,
    /// The pod. Its `containers` are those that run beside the operator's: none at first.
    pub spec: PodSpec,
    /// The container of the operator.
    pub container: Container,
}

/// A function that shapes the pod.
pub(in crate::command) type Shape = Box<dyn Fn(&mut PodShape) + Send + Sync>;

/// What of our template an author may change as well as add to.
const FREE: [(&str, &[&str]); 4] = [
    ("/spec", &["terminationGracePeriodSeconds"]),
    ("/spec/containers/0", &["resources"]),
    ("/spec/containers/0/livenessProbe", &["initialDelaySeconds", "periodSeconds"]),
    ("/spec/containers/0/readinessProbe", &["initialDelaySeconds", "periodSeconds"]),
];

/// The template after all shapes, which has all of ours but what is [free](FREE).
pub(super) fn shaped(ours: PodTemplateSpec, shapes: &[Shape]) -> Result<PodTemplateSpec, Error> {
    if shapes.is_empty() {
        return Ok(ours);
    }
    let refused = |why: String| Error::Misconfigured(format!("pod: {why}"));
    let mut fixed = kubewright_objects::to_value(&ours)?;
    for (pointer, keys) in FREE {
        if let Some(Value::Object(map)) = fixed.pointer_mut(pointer) {
            map.retain(|key, _| !keys.contains(&key.as_str()));
        }
    }
    let mut spec = ours.spec.unwrap_or_default();
    let container = spec.containers.drain(..).next().unwrap_or_default();
    let mut shape = PodShape { metadata: ours.metadata.unwrap_or_default(), spec, container };
    shapes.iter().for_each(|change| change(&mut shape));
    let PodShape { metadata, mut spec, container } = shape;
    spec.containers.insert(0, container);
    if let Some(twice) = duplicate(&spec) {
        return Err(refused(twice));
    }
    let template = PodTemplateSpec { metadata: Some(metadata), spec: Some(spec) };
    let is = kubewright_objects::to_value(&template)?;
    match lost(&fixed, &is, "") {
        None => Ok(template),
        Some(what) => Err(refused(what)),
    }
}

/// A name that two of a list have.
fn duplicate(spec: &PodSpec) -> Option<String> {
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let own = spec.containers.first();
    let variables = own.into_iter().flat_map(|own| own.env.iter().flatten()).map(|entry| &entry.name);
    let volumes = spec.volumes.iter().flatten().map(|volume| &volume.name);
    twice(containers.map(|container| &container.name))
        .map(|name| format!("two containers are called {name:?}"))
        .or_else(|| twice(variables).map(|name| format!("the variable {name} is set twice")))
        .or_else(|| twice(volumes).map(|name| format!("two volumes are called {name:?}")))
}

fn twice<'a>(names: impl Iterator<Item = &'a String>) -> Option<&'a String> {
    let mut seen = std::collections::BTreeSet::new();
    names.into_iter().find(|name| !seen.insert(*name))
}

/// What of `ours` is not there: keys of maps keep their values, lists keep their items, and the first container stays the first.
fn lost(ours: &Value, is: &Value, path: &str) -> Option<String> {
    match (ours, is) {
        (Value::Object(ours), Value::Object(is)) => ours.iter().find_map(|(key, value)| {
            let path = format!("{path}.{key}");
            lost(value, is.get(key).unwrap_or(&Value::Null), &path)
        }),
        (Value::Array(ours), Value::Array(is)) if path == ".spec.containers" => {
            lost(ours.first()?, is.first()?, ".spec.containers[operator]")
        }
        // What the author adds comes after ours: the first is the command `run`.
        (Value::Array(ours), Value::Array(is)) if path == ".spec.containers[operator].args" => {
            let args = || Value::from(ours.clone());
            (!is.starts_with(ours))
                .then(|| format!("spec.containers[operator].args has to begin with {}", args()))
        }
        (Value::Array(ours), Value::Array(is)) => ours
            .iter()
            .find(|item| !is.iter().any(|other| lost(item, other, path).is_none()))
            .map(|item| format!("{} has to keep {item}", path.trim_start_matches('.'))),
        (ours, is) if ours == is => None,
        (ours, is) => {
            let path = path.trim_start_matches('.');
            Some(format!("{path} has to stay {ours}, which the operator counts on: it is {is}"))
        }
    }
}
