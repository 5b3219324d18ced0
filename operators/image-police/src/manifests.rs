//! What a cluster needs before the operator runs, and the sample.

use kube::api::DynamicObject;
use kubewright::{Error, command::Installation};

use crate::operator;

/// The namespace that the operator lives in.
pub const NAMESPACE: &str = "image-police-system";
/// The service account that the operator runs as.
pub const SERVICE_ACCOUNT: &str = "image-police";
/// The sample as a user applies it.
pub const SAMPLE: &str = include_str!("../config/samples/police_v1beta1_whitelist.yaml");

/// The CRDs, the namespace, the service account and its rights, in the order in which they are to be applied.
///
/// # Errors
/// When one of them is no JSON object, which no input can bring about.
pub fn manifests() -> Result<Vec<DynamicObject>, Error> {
    let mut objects = operator().manifests(&Installation { crds_only: true, ..Installation::default() })?;
    objects.extend(operator().manifests(&Installation { rights_only: true, ..Installation::default() })?);
    Ok(objects)
}
