//! The Deployment that a WhiteList is meant to have.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment},
        core::v1::{Container, PodSecurityContext, PodSpec, PodTemplateSpec, ResourceRequirements},
    },
    apimachinery::pkg::{
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};
use kube::ResourceExt;
use kubewright::owner;

use crate::WhiteList;

const SUFFIX: &str = "-deployment";
/// The Deployment's name is also a label value, which has at most 63 bytes (`apimachinery/pkg/api/validate/content`).
const LABEL_VALUE_MAX: usize = 63;

/// The name of the Deployment of the WhiteList `name`: `<name>-deployment`. A name that is too long for a label value
/// is cut and gets a hash of the whole, so that two long names with the same beginning stay apart.
#[must_use]
pub fn deployment_name(name: &str) -> String {
    if name.len() + SUFFIX.len() <= LABEL_VALUE_MAX {
        return format!("{name}{SUFFIX}");
    }
    let hash = format!("-{:016x}", fnv_1a(name.as_bytes()));
    let room = LABEL_VALUE_MAX - SUFFIX.len() - hash.len();
    // Names are ASCII; a dash or dot must not meet the hash's dash.
    let cut: String = name.chars().take(room).collect();
    format!("{}{hash}{SUFFIX}", cut.trim_end_matches(['-', '.']))
}

/// FNV-1a with 64 bits: the same on every machine and in every version, which the standard library's hasher is not.
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The Deployment that `whitelist` is meant to have, controlled by it.
#[must_use]
pub fn deployment(whitelist: &WhiteList) -> Deployment {
    let name = deployment_name(&whitelist.name_any());
    Deployment {
        metadata: ObjectMeta {
            namespace: whitelist.namespace(),
            owner_references: Some(vec![owner::controller_reference(whitelist)]),
            name: Some(name.clone()),
            ..ObjectMeta::default()
        },
        spec: Some(spec(name)),
        status: None,
    }
}

/// What of that is the operator's where it enforces its own fields alone: what it applies, and nothing that others may set.
#[must_use]
pub fn own_fields(whitelist: &WhiteList) -> Deployment {
    let name = deployment_name(&whitelist.name_any());
    let labels = BTreeMap::from([("deployment".to_owned(), name.clone())]);
    let container =
        Container { name: "nginx".to_owned(), image: Some("nginx".to_owned()), ..Container::default() };
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(labels.clone()), ..ObjectMeta::default() }),
        spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
    };
    Deployment {
        metadata: ObjectMeta { name: Some(name), namespace: whitelist.namespace(), ..ObjectMeta::default() },
        spec: Some(DeploymentSpec {
            selector: LabelSelector { match_labels: Some(labels), match_expressions: None },
            template,
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}

/// The whole spec, nothing left to the server's defaults (`pkg/apis/{apps,core}/v1/defaults.go`): so what is found can
/// be compared as a whole, and a field that somebody added is a difference too.
fn spec(name: String) -> DeploymentSpec {
    let labels = BTreeMap::from([("deployment".to_owned(), name)]);
    let quarter = || Some(IntOrString::String("25%".to_owned()));
    DeploymentSpec {
        replicas: Some(1),
        selector: LabelSelector { match_labels: Some(labels.clone()), match_expressions: None },
        template: PodTemplateSpec {
            metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
            spec: Some(pod_spec()),
        },
        strategy: Some(DeploymentStrategy {
            type_: Some("RollingUpdate".to_owned()),
            rolling_update: Some(RollingUpdateDeployment {
                max_surge: quarter(),
                max_unavailable: quarter(),
            }),
        }),
        revision_history_limit: Some(10),
        progress_deadline_seconds: Some(600),
        ..DeploymentSpec::default()
    }
}

fn pod_spec() -> PodSpec {
    PodSpec {
        containers: vec![Container {
            name: "nginx".to_owned(),
            image: Some("nginx".to_owned()),
            image_pull_policy: Some("Always".to_owned()),
            resources: Some(ResourceRequirements::default()),
            termination_message_path: Some("/dev/termination-log".to_owned()),
            termination_message_policy: Some("File".to_owned()),
            ..Container::default()
        }],
        dns_policy: Some("ClusterFirst".to_owned()),
        restart_policy: Some("Always".to_owned()),
        scheduler_name: Some("default-scheduler".to_owned()),
        security_context: Some(PodSecurityContext::default()),
        termination_grace_period_seconds: Some(30),
        ..PodSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_short_name_gets_the_suffix() {
        assert_eq!(deployment_name("whitelist-sample"), "whitelist-sample-deployment");
        assert_eq!(deployment_name(&"a".repeat(52)), format!("{}-deployment", "a".repeat(52)));
    }

    /// WL-13, Beyond 6.
    #[test]
    fn wl_13_long_names_are_hashed_to_fit_and_stay_apart() {
        let (one, two) = (format!("{}1", "a".repeat(60)), format!("{}2", "a".repeat(60)));
        assert_eq!(deployment_name(&one).len(), 63);
        assert_ne!(deployment_name(&one), deployment_name(&two));
        assert_eq!(
            deployment_name(&"a".repeat(53)),
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-4683339a801e3878-deployment"
        );
    }

    proptest! {
        /// Every name that a WhiteList may have gives a name that a Deployment and a label value may have.
        #[test]
        fn wl_13_every_name_gives_a_valid_name(name in "[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?){0,4}") {
            let name = deployment_name(&name);
            prop_assert!(name.len() <= 63);
            for part in name.split('.') {
                prop_assert!(!part.is_empty() && !part.starts_with('-') && !part.ends_with('-'), "{}", name);
            }
        }
    }
}
