//! What `<operator> manifests | kubectl apply -f -` does, for an operator that runs in the test.

use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use kubewright_runtime::command::{Installation, Operator};

use crate::Cluster;

/// The namespace that an operator lives in, unless it is told otherwise.
pub(super) fn namespace(operator: &str) -> String {
    format!("{operator}-system")
}

/// Creates what the operator's manifests say, but for its Deployment and its Service: it runs here.
pub(super) async fn install(cluster: &Cluster, operator: &Operator, namespaces: &[String]) {
    let installation = Installation { namespaces: namespaces.to_vec(), ..Installation::default() };
    let name = operator.name();
    let objects =
        operator.manifests(&installation).unwrap_or_else(|error| panic!("the operator {name}: {error}"));
    for object in objects {
        if !is_of_its_pods(&object, name) {
            create(cluster, name, &object).await;
        }
    }
}

/// Whether an object is of the pods in which the operator would run, if it did not run here.
fn is_of_its_pods(object: &DynamicObject, operator: &str) -> bool {
    let kind = object.types.as_ref().map(|types| types.kind.as_str());
    let name = object.metadata.name.as_deref().unwrap_or_default();
    object.metadata.namespace == Some(namespace(operator))
        && match kind {
            Some("Deployment") => name == operator,
            Some("Service") => name.strip_prefix(operator) == Some("-metrics"),
            _ => false,
        }
}

async fn create(cluster: &Cluster, operator: &str, object: &DynamicObject) {
    let (name, types) =
        (object.metadata.name.as_deref().unwrap_or_default(), object.types.clone().unwrap_or_default());
    let kind = GroupVersionKind::try_from(&types)
        .unwrap_or_else(|error| panic!("the operator {operator}: {name}: {error}"));
    let kind = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(cluster.client(), namespace, &kind),
        None => Api::all_with(cluster.client(), &kind),
    };
    if let Err(error) = api.create(&PostParams::default(), object).await {
        panic!("the operator {operator} cannot be installed: {} {name}: {error}", types.kind);
    }
}
