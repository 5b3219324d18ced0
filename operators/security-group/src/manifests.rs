//! What a cluster needs before the operator runs, and the sample.

use kube::api::DynamicObject;
use kubewright::{Error, command::Installation};

use crate::operator;

/// The namespace that the operator lives in.
pub const NAMESPACE: &str = "openstack-sg-controller-system";
/// The service account that the operator runs as.
pub const SERVICE_ACCOUNT: &str = "openstack-sg-controller";
/// The sample as a user applies it: the manifest of the first generation.
pub const SAMPLE: &str = include_str!("../config/samples/openstack_v1beta1_securitygroup.yaml");

/// The CRD, the namespace, the service account and its rights, in the order in which they are to be applied. (`security-group
/// manifests` prints these and the Deployment.)
///
/// # Errors
/// When one of them is no JSON object, which no input can bring about.
pub fn manifests() -> Result<Vec<DynamicObject>, Error> {
    let mut objects = operator().manifests(&Installation { crds_only: true, ..Installation::default() })?;
    objects.extend(operator().manifests(&Installation { rights_only: true, ..Installation::default() })?);
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clouds, SECRET, SecurityGroup, cloud::Internet, operator_in};

    /// SG-16: the namespace and the Secret are called as those of the write-up.
    #[test]
    fn sg_16_it_lives_where_the_first_generation_did() {
        let namespaces: Vec<_> = manifests()
            .expect("manifests")
            .into_iter()
            .filter(|object| object.types.as_ref().is_some_and(|types| types.kind == "Namespace"))
            .filter_map(|object| object.metadata.name)
            .collect();
        assert_eq!(namespaces, [NAMESPACE]);
        assert_eq!(SECRET, "openstack-sg-controller");
    }

    /// It reads Secrets one by one, and can neither list nor change them.
    #[test]
    fn the_operator_may_do_what_it_does_and_nothing_else() {
        let told = |operator: kubewright::command::Operator| -> Vec<String> {
            operator.rights().iter().map(|(resource, verbs)| format!("{resource} {verbs}")).collect()
        };
        let all = [
            "nodes list,watch",
            "secrets get",
            "events.k8s.io/events create,patch",
            "openstack.repl.info/securitygroups get,list,patch,watch",
            "openstack.repl.info/securitygroups/status patch",
        ];
        assert_eq!(told(operator()), all);
        let clouds = Clouds::new(std::sync::Arc::new(Internet), || Ok(None));
        assert_eq!(told(operator_in(clouds)), all);
    }

    /// SG-01, SG-11: the manifest of the write-up, with ports as strings.
    #[test]
    fn sg_11_the_sample_is_the_manifest_of_the_first_generation() {
        let sample: SecurityGroup = serde_saphyr::from_str(SAMPLE).expect("the sample is a SecurityGroup");
        assert_eq!(sample.spec.name, "sg-test");
        assert_eq!(
            sample.spec.rules[0].port_range_min.as_ref().and_then(crate::PortNumber::number),
            Some(8888)
        );
    }
}
