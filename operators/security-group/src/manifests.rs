//! The sample. What installs the operator is [`operator`](crate::operator)'s to say; here it is held to what is promised.

/// The sample as a user applies it: the manifest of the first generation.
pub const SAMPLE: &str = include_str!("../config/samples/openstack_v1beta1_securitygroup.yaml");

#[cfg(test)]
mod tests {
    use kubewright::command::Installation;

    use super::*;
    use crate::{Clouds, SECRET, SecurityGroup, cloud::Internet, operator, operator_in};

    /// SG-16: the namespace and the Secret are called as those of the write-up.
    #[test]
    fn sg_16_it_lives_where_the_first_generation_did() {
        assert_eq!(operator().home(&Installation::default()), "openstack-sg-controller-system");
        assert_eq!(operator().name(), "openstack-sg-controller");
        assert_eq!(SECRET, "openstack-sg-controller");
    }

    /// It reads Secrets one by one, and can neither list nor change them.
    #[test]
    fn the_operator_may_do_what_it_does_and_nothing_else() {
        let describe = |operator: kubewright::command::Operator| -> Vec<String> {
            operator.rights().iter().map(|(resource, verbs)| format!("{resource} {verbs}")).collect()
        };
        let all = [
            "nodes list,watch",
            "secrets get",
            "events.k8s.io/events create,patch",
            "openstack.repl.info/securitygroups get,list,patch,watch",
            "openstack.repl.info/securitygroups/status patch",
        ];
        assert_eq!(describe(operator()), all);
        let clouds = Clouds::new(std::sync::Arc::new(Internet), || Ok(None));
        assert_eq!(describe(operator_in(clouds)), all);
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

    /// `kubectl get openstack`.
    #[test]
    fn its_kinds_are_listed_by_their_category() {
        let operator = operator();
        assert!(!operator.definitions().is_empty());
        for definition in operator.definitions() {
            assert_eq!(definition.spec.names.categories, Some(vec!["openstack".to_owned()]));
        }
    }
}
