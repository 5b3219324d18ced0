//! The table of what a control plane does by itself, and the selection of a part of it.

use std::sync::Arc;

use kube::Client;
use kubewright_identity::authn::ServiceAccounts;
use kubewright_runtime::{Controller, Manager};
use kubewright_serve::authority::Authority;
use kubewright_spec::Version;
use tokio::sync::watch;

use crate::{
    bootstrap_tokens, certificates, cluster_roles, cronjob, daemonset, deployment, disruption,
    endpoint_mirror, endpoint_slices, endpoints, ephemeral_volumes, expansion, garbage_collector,
    horizontal_autoscaler, job, legacy_tokens, namespace, node_lifecycle, node_ttl, pod_gc, protection,
    quota, replicaset, resource_claims, root_ca, service_account, service_account_tokens, service_cidrs,
    statefulset, storage_migration, taint_eviction, ttl_after_finished, volumes,
};

/// What the controllers are told about the control plane that they are part of.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The certificates by which pods know the API server, in PEM.
    pub ca: String,
    /// How many simulated nodes there are from the start; with 0 nobody plays scheduler and kubelet but for nodes made
    /// later that say that they are fake (`kwok.x-k8s.io/node`): else pods stay as their clients leave them.
    pub nodes: usize,
    /// Whether all nodes are simulated that do not say that they are something else, or only those that say that they are fake.
    pub all_nodes: bool,
    /// What signs the tokens of service accounts.
    pub accounts: Arc<ServiceAccounts>,
    /// The authority whose client certificates the API server trusts. None: what is signed is good for nobody.
    pub authority: Option<Arc<Authority>>,
    /// The version of Kubernetes that they are those of.
    pub kubernetes: Version,
    /// Tells that the cluster is as it was when it started, where it can be made so: up to which revision what there is is of before.
    pub resets: Option<watch::Receiver<u64>>,
}

/// Who a controller is to the API server: its rights are those of Kubernetes' bootstrap roles for this user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user name.
    pub user: &'static str,
    /// The groups.
    pub groups: &'static [&'static str],
    /// The program that it is a part of in a real cluster: the manager of the fields that it writes.
    pub program: &'static str,
}

impl Identity {
    const fn service_account(user: &'static str) -> Self {
        Self {
            user,
            groups: &["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"],
            program: CONTROLLER_MANAGER,
        }
    }
}

/// One entry of the table: it can be started alone, or left out.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// Kubernetes' name for it (`cmd/kube-controller-manager/names`).
    pub name: &'static str,
    /// Shorter names that it also goes by.
    pub aliases: &'static [&'static str],
    /// Who it is to the API server.
    pub identity: Identity,
    /// Whether `*` stands for it too.
    pub by_default: bool,
    build: fn(&Setup) -> Vec<Controller>,
}

impl Builtin {
    /// Whether it is one of kube-controller-manager's, and not the scheduler or the simulated nodes.
    #[must_use]
    pub fn is_of_controller_manager(&self) -> bool {
        self.identity.program == CONTROLLER_MANAGER
    }

    /// Adds it to a manager, whose caches it reads. What it writes it writes by `writer`, which acts as [`Builtin::identity`].
    pub fn add_to(&self, manager: &mut Manager, setup: &Setup, writer: &Client) {
        for controller in self.controllers(setup) {
            manager.add(controller.never_paused().acting_as(writer.clone()));
        }
    }

    /// Its controllers, to be added to a manager whose client has the rights of [`Builtin::identity`].
    #[must_use]
    pub fn controllers(&self, setup: &Setup) -> Vec<Controller> {
        let controllers = (self.build)(setup).into_iter();
        // The scheduler alone has gone on to the newer form of events.
        let core = self.name != SCHEDULER;
        controllers.map(|controller| if core { controller.core_events() } else { controller }).collect()
    }

    /// The kind that it is about (group, version and plural), where not all versions of Kubernetes serve it: where nobody does,
    /// it has nothing to do.
    #[must_use]
    pub fn subject(&self) -> Option<(&'static str, &'static str, &'static str)> {
        SUBJECTS.iter().find(|(name, _)| *name == self.name).map(|(_, subject)| *subject)
    }

    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

/// The kinds of controllers that are not in all versions of Kubernetes.
static SUBJECTS: &[(&str, (&str, &str, &str))] = &[
    ("podcertificaterequest-cleaner-controller", ("certificates.k8s.io", "v1", "podcertificaterequests")),
    (
        "kube-apiserver-serving-clustertrustbundle-publisher-controller",
        ("certificates.k8s.io", "v1", "clustertrustbundles"),
    ),
    ("storage-version-migrator-controller", ("storagemigration.k8s.io", "v1", "storageversionmigrations")),
];

const SCHEDULER: &str = "scheduler";
const CONTROLLER_MANAGER: &str = "kube-controller-manager";

/// All of them.
#[must_use]
pub fn all() -> &'static [Builtin] {
    TABLE
}

static TABLE: &[Builtin] = &[
    Builtin {
        name: "namespace-controller",
        aliases: &["namespace"],
        identity: Identity::service_account("system:serviceaccount:kube-system:namespace-controller"),
        by_default: true,
        build: |_| vec![namespace::controller()],
    },
    Builtin {
        name: "serviceaccount-controller",
        aliases: &["serviceaccount"],
        identity: Identity::service_account("system:serviceaccount:kube-system:service-account-controller"),
        by_default: true,
        build: |_| vec![service_account::controller()],
    },
    Builtin {
        name: "serviceaccount-token-controller",
        aliases: &["serviceaccount-token"],
        // As in kube-controller-manager, where it makes what the others need to log in.
        identity: Identity {
            user: "system:kube-controller-manager",
            groups: &["system:authenticated"],
            program: CONTROLLER_MANAGER,
        },
        by_default: true,
        build: |setup| service_account_tokens::controllers(&setup.ca, &setup.accounts),
    },
    Builtin {
        name: "legacy-serviceaccount-token-cleaner-controller",
        aliases: &["legacy-service-account-token-cleaner"],
        identity: Identity::service_account(
            "system:serviceaccount:kube-system:legacy-service-account-token-cleaner",
        ),
        by_default: true,
        build: |_| vec![legacy_tokens::controller()],
    },
    Builtin {
        name: "token-cleaner-controller",
        aliases: &["tokencleaner"],
        identity: Identity::service_account("system:serviceaccount:kube-system:token-cleaner"),
        by_default: false,
        build: |_| vec![bootstrap_tokens::cleaner()],
    },
    Builtin {
        name: "bootstrap-signer-controller",
        aliases: &["bootstrapsigner"],
        identity: Identity::service_account("system:serviceaccount:kube-system:bootstrap-signer"),
        by_default: false,
        build: |_| vec![bootstrap_tokens::signer()],
    },
    Builtin {
        name: "certificatesigningrequest-approving-controller",
        aliases: &["csrapproving"],
        identity: Identity::service_account("system:serviceaccount:kube-system:certificate-controller"),
        by_default: true,
        build: |_| vec![certificates::approver()],
    },
    Builtin {
        name: "certificatesigningrequest-signing-controller",
        aliases: &["csrsigning"],
        identity: Identity::service_account("system:serviceaccount:kube-system:certificate-controller"),
        by_default: true,
        build: |setup| vec![certificates::signer(setup.authority.as_ref())],
    },
    Builtin {
        name: "certificatesigningrequest-cleaner-controller",
        aliases: &["csrcleaner"],
        identity: Identity::service_account("system:serviceaccount:kube-system:certificate-controller"),
        by_default: true,
        build: |_| vec![certificates::cleaner()],
    },
    Builtin {
        name: "podcertificaterequest-cleaner-controller",
        aliases: &[],
        identity: Identity::service_account("system:serviceaccount:kube-system:podcertificaterequestcleaner"),
        by_default: true,
        build: |_| vec![certificates::pod_request_cleaner()],
    },
    Builtin {
        name: "kube-apiserver-serving-clustertrustbundle-publisher-controller",
        aliases: &[],
        identity: Identity::service_account(
            "system:serviceaccount:kube-system:kube-apiserver-serving-clustertrustbundle-publisher",
        ),
        by_default: true,
        build: |setup| vec![certificates::trust_bundle_publisher(&setup.ca)],
    },
    Builtin {
        name: "storage-version-migrator-controller",
        aliases: &["svm"],
        identity: Identity::service_account(
            "system:serviceaccount:kube-system:storage-version-migrator-controller",
        ),
        by_default: true,
        build: |_| vec![storage_migration::controller()],
    },
    Builtin {
        name: "root-ca-certificate-publisher-controller",
        aliases: &["root-ca-cert-publisher"],
        identity: Identity::service_account("system:serviceaccount:kube-system:root-ca-cert-publisher"),
        by_default: true,
        build: |setup| vec![root_ca::controller(&setup.ca)],
    },
    Builtin {
        name: "garbage-collector-controller",
        aliases: &["garbagecollector"],
        identity: Identity::service_account("system:serviceaccount:kube-system:generic-garbage-collector"),
        by_default: true,
        build: |_| vec![garbage_collector::controller()],
    },
    Builtin {
        name: "job-controller",
        aliases: &["job"],
        identity: Identity::service_account("system:serviceaccount:kube-system:job-controller"),
        by_default: true,
        build: |setup| vec![job::controller(setup.kubernetes), job::orphans()],
    },
    Builtin {
        name: "cronjob-controller",
        aliases: &["cronjob"],
        identity: Identity::service_account("system:serviceaccount:kube-system:cronjob-controller"),
        by_default: true,
        build: |_| vec![cronjob::controller()],
    },
    Builtin {
        name: "ttl-after-finished-controller",
        aliases: &["ttl-after-finished"],
        identity: Identity::service_account(
            "system:serviceaccount:kube-system:ttl-after-finished-controller",
        ),
        by_default: true,
        build: |_| vec![ttl_after_finished::controller()],
    },
    Builtin {
        name: "deployment-controller",
        aliases: &["deployment"],
        identity: Identity::service_account("system:serviceaccount:kube-system:deployment-controller"),
        by_default: true,
        build: |_| vec![deployment::controller()],
    },
    Builtin {
        name: "replicaset-controller",
        aliases: &["replicaset"],
        identity: Identity::service_account("system:serviceaccount:kube-system:replicaset-controller"),
        by_default: true,
        build: |_| vec![replicaset::controller()],
    },
    Builtin {
        name: "replicationcontroller-controller",
        aliases: &["replicationcontroller"],
        identity: Identity::service_account("system:serviceaccount:kube-system:replication-controller"),
        by_default: true,
        build: |_| vec![replicaset::replication_controller()],
    },
    Builtin {
        name: "statefulset-controller",
        aliases: &["statefulset"],
        identity: Identity::service_account("system:serviceaccount:kube-system:statefulset-controller"),
        by_default: true,
        build: |_| vec![statefulset::controller()],
    },
    Builtin {
        name: "daemonset-controller",
        aliases: &["daemonset"],
        identity: Identity::service_account("system:serviceaccount:kube-system:daemon-set-controller"),
        by_default: true,
        build: |_| daemonset::controllers(),
    },
    Builtin {
        name: "endpoints-controller",
        aliases: &["endpoint"],
        identity: Identity::service_account("system:serviceaccount:kube-system:endpoint-controller"),
        by_default: true,
        build: |_| vec![endpoints::controller()],
    },
    Builtin {
        name: "endpointslice-controller",
        aliases: &["endpointslice"],
        identity: Identity::service_account("system:serviceaccount:kube-system:endpointslice-controller"),
        by_default: true,
        build: |_| vec![endpoint_slices::controller()],
    },
    Builtin {
        name: "endpointslice-mirroring-controller",
        aliases: &["endpointslicemirroring"],
        identity: Identity::service_account(
            "system:serviceaccount:kube-system:endpointslicemirroring-controller",
        ),
        by_default: true,
        build: |_| vec![endpoint_mirror::controller()],
    },
    Builtin {
        name: "resourcequota-controller",
        aliases: &["resourcequota"],
        identity: Identity::service_account("system:serviceaccount:kube-system:resourcequota-controller"),
        by_default: true,
        build: |_| vec![quota::controller()],
    },
    Builtin {
        name: "horizontal-pod-autoscaler-controller",
        aliases: &["horizontalpodautoscaling"],
        identity: Identity::service_account("system:serviceaccount:kube-system:horizontal-pod-autoscaler"),
        by_default: true,
        build: |setup| vec![horizontal_autoscaler::controller(setup.kubernetes)],
    },
    Builtin {
        name: "disruption-controller",
        aliases: &["disruption"],
        identity: Identity::service_account("system:serviceaccount:kube-system:disruption-controller"),
        by_default: true,
        build: |_| vec![disruption::controller(), disruption::stale_conditions()],
    },
    Builtin {
        name: "clusterrole-aggregation-controller",
        aliases: &["clusterrole-aggregation"],
        identity: Identity::service_account(
            "system:serviceaccount:kube-system:clusterrole-aggregation-controller",
        ),
        by_default: true,
        build: |_| vec![cluster_roles::controller()],
    },
    Builtin {
        name: "persistentvolume-binder-controller",
        aliases: &["persistentvolume-binder"],
        identity: Identity::service_account("system:serviceaccount:kube-system:persistent-volume-binder"),
        by_default: true,
        build: |_| volumes::controllers(),
    },
    Builtin {
        name: "persistentvolume-expander-controller",
        aliases: &["persistentvolume-expander"],
        identity: Identity::service_account("system:serviceaccount:kube-system:expand-controller"),
        by_default: true,
        build: |_| vec![expansion::controller()],
    },
    Builtin {
        name: "ephemeral-volume-controller",
        aliases: &["ephemeral-volume"],
        identity: Identity::service_account("system:serviceaccount:kube-system:ephemeral-volume-controller"),
        by_default: true,
        build: |_| vec![ephemeral_volumes::controller()],
    },
    Builtin {
        name: "resourceclaim-controller",
        aliases: &["resource-claim-controller"],
        identity: Identity::service_account("system:serviceaccount:kube-system:resource-claim-controller"),
        by_default: true,
        build: |_| resource_claims::controllers(),
    },
    Builtin {
        name: "persistentvolumeclaim-protection-controller",
        aliases: &["pvc-protection"],
        identity: Identity::service_account("system:serviceaccount:kube-system:pvc-protection-controller"),
        by_default: true,
        build: |setup| vec![protection::claims(setup.kubernetes)],
    },
    Builtin {
        name: "persistentvolume-protection-controller",
        aliases: &["pv-protection"],
        identity: Identity::service_account("system:serviceaccount:kube-system:pv-protection-controller"),
        by_default: true,
        build: |_| vec![protection::volumes()],
    },
    Builtin {
        name: "volumeattributesclass-protection-controller",
        aliases: &["vac-protection"],
        identity: Identity::service_account(
            "system:serviceaccount:kube-system:volumeattributesclass-protection-controller",
        ),
        by_default: true,
        build: |_| protection::attributes_classes(),
    },
    Builtin {
        name: "service-cidr-controller",
        aliases: &[],
        identity: Identity::service_account("system:serviceaccount:kube-system:service-cidrs-controller"),
        by_default: true,
        build: |_| vec![service_cidrs::controller()],
    },
    Builtin {
        name: "node-lifecycle-controller",
        aliases: &["nodelifecycle"],
        identity: Identity::service_account("system:serviceaccount:kube-system:node-controller"),
        by_default: true,
        build: |_| vec![node_lifecycle::controller()],
    },
    Builtin {
        name: "taint-eviction-controller",
        aliases: &["taint-eviction"],
        // As in kube-controller-manager, where it was a part of the one before.
        identity: Identity::service_account("system:serviceaccount:kube-system:node-controller"),
        by_default: true,
        build: |_| vec![taint_eviction::controller()],
    },
    Builtin {
        name: "pod-garbage-collector-controller",
        aliases: &["podgc"],
        identity: Identity::service_account("system:serviceaccount:kube-system:pod-garbage-collector"),
        by_default: true,
        build: |_| vec![pod_gc::controller()],
    },
    Builtin {
        name: "ttl-controller",
        aliases: &["ttl"],
        identity: Identity::service_account("system:serviceaccount:kube-system:ttl-controller"),
        by_default: true,
        build: |_| vec![node_ttl::controller()],
    },
    Builtin {
        name: SCHEDULER,
        aliases: &["kube-scheduler"],
        identity: Identity {
            user: "system:kube-scheduler",
            groups: &["system:authenticated"],
            program: "kube-scheduler",
        },
        by_default: true,
        build: |setup| vec![kubewright_node::scheduler(setup.nodes)],
    },
    Builtin {
        name: "simulated-nodes",
        aliases: &["nodes"],
        // No cluster has this user: each kubelet is one of its own there.
        identity: Identity {
            user: "system:simulated-nodes",
            groups: &["system:masters", "system:authenticated"],
            program: "kubelet",
        },
        by_default: true,
        build: |setup| match setup.all_nodes {
            true => kubewright_node::simulated_nodes(setup.nodes, setup.resets.clone()),
            false => kubewright_node::fake_nodes(setup.nodes, setup.resets.clone()),
        },
    },
];

/// A name of `--controllers` that nobody goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownController {
    /// The name.
    pub name: String,
    /// The names that there are. They stand here and are not looked up: who tells an error is not to need all controllers for it.
    pub known: Vec<&'static str>,
}

impl std::fmt::Display for UnknownController {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "there is no controller {:?}; known are: * (all), {}", self.name, self.known.join(", "))
    }
}

impl std::error::Error for UnknownController {}

/// The controllers that a list like `*,-deployment` names: `*` stands for all that run by default, `-` before a name leaves it out, and
/// what comes first counts (`IsControllerEnabled` in `staging/src/k8s.io/controller-manager`). An empty list names none.
///
/// # Errors
/// [`UnknownController`] for a name that is not in the table, with the names that are.
pub fn select(list: &str) -> Result<Vec<&'static Builtin>, UnknownController> {
    let names: Vec<_> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let unknown = |name: &&&str| {
        let name = name.strip_prefix('-').unwrap_or(name);
        name != "*" && !TABLE.iter().any(|builtin| builtin.is_called(name))
    };
    if let Some(name) = names.iter().find(unknown) {
        let known = TABLE.iter().map(|builtin| builtin.name).collect();
        return Err(UnknownController { name: (*name).to_owned(), known });
    }
    Ok(TABLE.iter().filter(|builtin| is_selected(builtin, &names)).collect())
}

fn is_selected(builtin: &Builtin, names: &[&str]) -> bool {
    let named = names.iter().find_map(|name| match name.strip_prefix('-') {
        Some(name) => builtin.is_called(name).then_some(false),
        None => builtin.is_called(name).then_some(true),
    });
    named.unwrap_or_else(|| builtin.by_default && names.contains(&"*"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names(list: &str) -> Vec<&str> {
        select(list).expect("known names").into_iter().map(|builtin| builtin.name).collect()
    }

    #[test]
    fn a_star_selects_all_and_a_dash_leaves_out() {
        let by_default = TABLE.iter().filter(|builtin| builtin.by_default).count();
        assert_eq!(names("*").len(), by_default);
        let most = names(" * , -deployment, -garbage-collector-controller");
        assert_eq!(most.len(), by_default - 2);
        assert!(!most.contains(&"deployment-controller") && !most.contains(&"garbage-collector-controller"));
    }

    #[test]
    fn without_a_star_only_what_is_named_is_selected() {
        assert_eq!(names("replicaset,scheduler"), ["replicaset-controller", "scheduler"]);
        assert_eq!(names("-deployment"), Vec::<&str>::new());
        assert_eq!(names(""), Vec::<&str>::new());
    }

    #[test]
    fn what_is_off_by_default_has_to_be_named() {
        let with = names("*,bootstrapsigner,tokencleaner");
        let off = ["token-cleaner-controller", "bootstrap-signer-controller"];
        assert!(off.iter().all(|name| with.contains(name) && !names("*").contains(name)));
        assert_eq!(with.len(), names("*").len() + 2);
    }

    #[test]
    fn what_comes_first_counts() {
        assert_eq!(names("namespace,-namespace"), ["namespace-controller"]);
        assert_eq!(names("-namespace,namespace"), Vec::<&str>::new());
    }

    #[test]
    fn an_unknown_name_is_told_with_the_known_ones() {
        let error = select("*,-deploymnt").expect_err("a typo");
        assert_eq!(error.name, "-deploymnt");
        assert!(
            error.to_string().contains("deployment-controller") && error.to_string().contains("deploymnt")
        );
    }

    #[test]
    fn no_two_entries_share_a_name() {
        let names: Vec<_> = TABLE.iter().flat_map(|b| b.aliases.iter().chain([&b.name])).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }

    #[test]
    fn each_can_be_built_alone() {
        let key = kubewright_identity::authn::TokenKey::generate().expect("a key");
        let accounts = Arc::new(ServiceAccounts::new(key));
        let setup = Setup {
            ca: "PEM".into(),
            nodes: 1,
            all_nodes: true,
            accounts,
            authority: None,
            kubernetes: Version::DEFAULT,
            resets: None,
        };
        for builtin in all() {
            assert!(!builtin.controllers(&setup).is_empty(), "{}", builtin.name);
        }
    }
}
