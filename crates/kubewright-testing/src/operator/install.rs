//! What `<operator> manifests | kubectl apply -f -` does, for an operator that runs in the test.

use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kubewright_cluster::User;
use kubewright_runtime::command::{Installation, Operator};

use crate::Cluster;

/// Who installs operators: neither the test nor the operator.
pub(crate) const INSTALLER: &str = "kubewright:installer";

/// Creates what has to be there before the operator runs.
pub(super) async fn install(cluster: &Cluster, operator: &Operator, installation: &Installation) {
    let name = operator.name();
    let objects = operator.prerequisites(installation);
    for object in objects.unwrap_or_else(|error| panic!("the operator {name}: {error}")) {
        create(cluster, name, &object).await;
    }
}

async fn create(cluster: &Cluster, operator: &str, object: &DynamicObject) {
    let (name, types) =
        (object.metadata.name.as_deref().unwrap_or_default(), object.types.clone().unwrap_or_default());
    let kind = GroupVersionKind::try_from(&types)
        .unwrap_or_else(|error| panic!("the operator {operator}: {name}: {error}"));
    let kind = ApiResource::from_gvk(&kind);
    let client = match cluster.is_real() {
        true => cluster.client(),
        false => cluster.client_as(User::new(INSTALLER, ["system:masters"])),
    };
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &kind),
        None => Api::all_with(client, &kind),
    };
    let installed = match cluster.is_real() {
        // It may be there from the last time.
        true => api.patch(name, &PatchParams::apply("kubewright-test").force(), &Patch::Apply(object)).await,
        false => api.create(&PostParams::default(), object).await,
    };
    if let Err(error) = installed {
        panic!("the operator {operator} cannot be installed: {} {name}: {error}", types.kind);
    }
}
