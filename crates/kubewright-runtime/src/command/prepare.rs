//! What `<operator> manifests | kubectl apply` does, for an operator that runs elsewhere than in a Deployment.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
    runtime::wait::{Condition, await_condition, conditions::is_crd_established},
};

use kubewright_objects::{ByText, convert};

use super::{Installation, Operator};
use crate::{Error, error::describe};

/// Whose the fields are of what was installed (`managedFields`).
const FIELD_MANAGER: &str = "kubewright-install";

/// How long an API server may take until it serves a kind that it has taken the definition of. It takes moments.
const PATIENCE: Duration = Duration::from_secs(60);

impl Operator {
    /// Brings [what has to be there before it runs](Operator::prerequisites) into a cluster, by a client that may do so:
    /// applied on the server, and by force, so that what an earlier version installed becomes what this one installs. When it
    /// returns, the API server serves the operator's kinds.
    ///
    /// # Errors
    /// As [`Operator::prerequisites`]; and when the API server refuses an object, or does not come to serve a kind.
    pub async fn prepare(&self, client: &Client, installation: &Installation) -> Result<(), Error> {
        for object in &self.prerequisites(installation)? {
            apply(client, object).await?;
        }
        Ok(())
    }
}

async fn apply(client: &Client, object: &DynamicObject) -> Result<(), Error> {
    let (name, types) = (object.name_any(), object.types.clone().unwrap_or_default());
    let kind = GroupVersionKind::try_from(&types).map_err(|error| Error::new(format!("{name}: {error}")))?;
    let kind = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = match object.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    };
    let applied = api.patch(&name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(object)).await;
    let failed =
        |why: &str| Error::new(format!("{} {name} cannot be installed: {why}", kind.kind.to_lowercase()));
    let applied = applied.map_err(|error| failed(&describe(&error)))?;
    if kind.kind != "CustomResourceDefinition" {
        return Ok(());
    }
    let definition: CustomResourceDefinition =
        convert(&applied).map_err(|error| failed(&error.to_string()))?;
    if is_crd_established().matches_object(Some(&definition)) {
        return Ok(());
    }
    let is_served = |definition: Option<&ByText<CustomResourceDefinition>>| {
        is_crd_established().matches_object(definition.map(|ByText(definition)| definition))
    };
    let served = await_condition(Api::all(client.clone()), &name, is_served);
    match tokio::time::timeout(PATIENCE, served).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(failed(&error.to_string())),
        Err(_) => Err(failed("the API server does not come to serve its kind")),
    }
}
