//! The kind `Pod` of `v1`.

use kubewright_table as table;

use crate::rules::{self, Rules, warnings};
use crate::selector::{Called, Field, Fields};
use crate::{Behaviour, BuiltIn, Counted, LeftAlone, Plugin, Proxied, Role, Subresource};

/// All that is known of it.
pub static POD: BuiltIn = BuiltIn {
    short_names: &["po"],
    categories: &["all"],
    subresources: &[
        Subresource::Attach,
        Subresource::Binding,
        Subresource::EphemeralContainers,
        Subresource::Eviction,
        Subresource::Exec,
        Subresource::Log,
        Subresource::PortForward,
        Subresource::Proxy(Proxied::Pod),
        Subresource::Resize,
        Subresource::Status,
    ],
    columns: table::pods::PODS,
    rules: Rules { warn: warnings::pods::of_pod, ..rules::pods::rules() },
    behaviour: Behaviour {
        role: Role::Pod,
        metadata_of_status_writes: &["annotations", "finalizers", "labels"],
        deletion_answers_object: true,
        ..Behaviour::BUILT_IN
    },
    left_alone: LeftAlone {
        status: &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]],
        ..LeftAlone::BUILT_IN
    },
    fields: Fields::of(&[
        Field { called: Called::Also("spec.host"), ..Field::of("spec.nodeName") },
        Field::of("spec.restartPolicy"),
        Field::of("spec.schedulerName"),
        Field::of("spec.serviceAccountName"),
        Field { default: "false", ..Field::of("spec.hostNetwork") },
        Field::of("status.phase"),
        Field { paths: Some(&["status.podIPs[0].ip"]), ..Field::of("status.podIP") },
        Field { paths: Some(&[]), ..Field::of("status.podIPs") },
        Field::of("status.nominatedNodeName"),
    ]),
    counted: Counted::Pods,
    plugins: &[
        Plugin::LimitPodHardAntiAffinityTopology,
        Plugin::LimitRanger,
        Plugin::ServiceAccount,
        Plugin::AlwaysPullImages,
        Plugin::PodSecurity,
        Plugin::Priority,
        Plugin::DefaultTolerationSeconds,
        Plugin::ExtendedResourceToleration,
        Plugin::RuntimeClass,
        Plugin::PodTopologyLabels,
        Plugin::PodResizeValidator,
    ],
    ..BuiltIn::namespaced("io.k8s.api.core.v1.Pod", "/pods")
};
