//! The table of the rules of built-in kinds.

use super::{
    Again, Generation, Rules, admission, apps, autoscaling, batch, certificates, config, coordination,
    events, flow, limits, namespaces, networking, nodes, pods, policy, rbac, reviews, services, storage,
};
use crate::schema::definition;

/// See [`Rules::built_in`].
pub(super) fn of(group: &str, version: &str, plural: &str) -> Rules {
    match (group, version, plural) {
        ("", "v1", plural) => core(plural),
        ("apps", "v1", "controllerrevisions") => apps::controller_revisions(),
        ("apps", "v1", "daemonsets") => apps::daemon_sets(),
        ("apps", "v1", "deployments") => apps::deployments(),
        ("apps", "v1", "replicasets") => apps::replica_sets(),
        ("apps", "v1", "statefulsets") => apps::stateful_sets(),
        ("events.k8s.io", "v1", "events") => events::rules(),
        ("authentication.k8s.io", "v1", "tokenreviews") => reviews::tokens(),
        ("authorization.k8s.io", "v1", "localsubjectaccessreviews") => reviews::access(true, true),
        ("authorization.k8s.io", "v1", "selfsubjectaccessreviews") => reviews::access(false, false),
        ("authorization.k8s.io", "v1", "subjectaccessreviews") => reviews::access(true, false),
        ("autoscaling", "v1", "horizontalpodautoscalers") => autoscaling::rules_v1(),
        ("autoscaling", "v2", "horizontalpodautoscalers") => autoscaling::rules(),
        ("batch", "v1", "cronjobs") => batch::cron_jobs(),
        ("batch", "v1", "jobs") => batch::jobs(),
        ("certificates.k8s.io", "v1", "certificatesigningrequests") => certificates::signing_requests(),
        ("coordination.k8s.io", "v1", "leases") => coordination::leases(),
        ("discovery.k8s.io", "v1", "endpointslices") => services::endpoint_slices(),
        ("flowcontrol.apiserver.k8s.io", "v1", "flowschemas") => flow::flow_schemas(),
        ("flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations") => flow::priority_levels(),
        ("networking.k8s.io", "v1", "ingressclasses") => networking::ingress_classes(),
        ("networking.k8s.io", "v1", "ingresses") => networking::ingresses(),
        ("networking.k8s.io", "v1", "ipaddresses") => networking::ip_addresses(),
        ("networking.k8s.io", "v1", "networkpolicies") => networking::policies(),
        ("networking.k8s.io", "v1", "servicecidrs") => networking::service_cidrs(),
        ("node.k8s.io", "v1", "runtimeclasses") => coordination::runtime_classes(),
        ("policy", "v1", "poddisruptionbudgets") => policy::budgets(),
        ("rbac.authorization.k8s.io", "v1", "clusterrolebindings") => rbac::cluster_role_bindings(),
        ("rbac.authorization.k8s.io", "v1", "clusterroles") => rbac::cluster_roles(),
        ("rbac.authorization.k8s.io", "v1", "rolebindings") => rbac::role_bindings(),
        ("rbac.authorization.k8s.io", "v1", "roles") => rbac::roles(),
        ("scheduling.k8s.io", "v1", "priorityclasses") => coordination::priority_classes(),
        ("storage.k8s.io", "v1", "csidrivers") => storage::drivers(),
        ("storage.k8s.io", "v1", "csinodes") => storage::nodes(),
        ("storage.k8s.io", "v1", "csistoragecapacities") => storage::capacities(),
        ("storage.k8s.io", "v1", "storageclasses") => storage::classes(),
        ("storage.k8s.io", "v1", "volumeattachments") => storage::attachments(),
        ("storage.k8s.io", "v1", "volumeattributesclasses") => storage::attributes_classes(),
        ("admissionregistration.k8s.io", "v1", plural) => admission_registration(plural),
        ("apiextensions.k8s.io", "v1", "customresourcedefinitions") => definitions(),
        _ => Rules::none(),
    }
}

fn core(plural: &str) -> Rules {
    match plural {
        "configmaps" => config::config_maps(),
        "endpoints" => services::endpoints(),
        "events" => events::core_rules(),
        "limitranges" => limits::limit_ranges(),
        "namespaces" => namespaces::rules(),
        "nodes" => nodes::rules(),
        "persistentvolumeclaims" => storage::claims::rules(),
        "persistentvolumes" => storage::volumes(),
        "pods" => pods::rules(),
        "podtemplates" => pods::template_rules(),
        "replicationcontrollers" => apps::replication_controllers(),
        "resourcequotas" => limits::quotas(),
        "secrets" => config::secrets(),
        "serviceaccounts" => coordination::service_accounts(),
        "services" => services::rules(),
        _ => Rules::none(),
    }
}

fn admission_registration(plural: &str) -> Rules {
    match plural {
        "mutatingadmissionpolicies" => admission::mutating_rules(),
        "mutatingadmissionpolicybindings" => admission::binding_rules(false),
        "mutatingwebhookconfigurations" => admission::mutating_webhooks(),
        "validatingadmissionpolicies" => admission::policies(),
        "validatingadmissionpolicybindings" => admission::binding_rules(true),
        "validatingwebhookconfigurations" => admission::validating_webhooks(),
        _ => Rules::none(),
    }
}

/// Definitions of custom resources: the engine asks `schema::definition` for the rest, which needs to know the others.
fn definitions() -> Rules {
    Rules {
        generation: Generation::Content,
        again: Again::Metadata,
        prepare_create: definition::begin,
        prepare_update: |definition, _| definition::store(definition),
        ..Rules::none()
    }
}
