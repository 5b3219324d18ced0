//! Who holds the bootstrap roles, and the few roles within namespaces. Facts of Kubernetes v1.36
//! (`bootstrappolicy/policy.go`, `controller_policy.go` and `namespace_policy.go`).

use serde_json::{Value, json};

use super::controllers::CONTROLLERS;
use super::{EVENTS, GROUP, RuleFacts, named, object, on};

const SYSTEM: &str = "kube-system";
const PUBLIC: &str = "kube-public";

#[derive(Clone, Copy)]
enum Subject {
    User(&'static str),
    Group(&'static str),
    /// Of `kube-system`.
    Account(&'static str),
}
use Subject::{Account, Group, User};

/// Cluster roles and who holds them; the bindings have the roles' names. The nodes' role is held by nobody: on a real
/// cluster the node authorizer decides for them.
const HOLDERS: &[(&str, &[Subject])] = &[
    ("cluster-admin", &[Group("system:masters")]),
    ("system:monitoring", &[Group("system:monitoring")]),
    ("system:discovery", &[Group("system:authenticated")]),
    ("system:basic-user", &[Group("system:authenticated")]),
    ("system:public-info-viewer", &[Group("system:authenticated"), Group("system:unauthenticated")]),
    ("system:node-proxier", &[User("system:kube-proxy")]),
    ("system:kube-controller-manager", &[User("system:kube-controller-manager")]),
    ("system:kube-dns", &[Account("kube-dns")]),
    ("system:kube-scheduler", &[User("system:kube-scheduler")]),
    ("system:volume-scheduler", &[User("system:kube-scheduler")]),
    ("system:service-account-issuer-discovery", &[Group("system:serviceaccounts")]),
    ("system:node", &[]),
];

/// A role within a namespace, and who holds it.
struct LocalRole {
    namespace: &'static str,
    name: &'static str,
    rules: &'static [RuleFacts],
    binding: &'static str,
    holders: &'static [Subject],
}

const LEADER_LEASES: &[RuleFacts] = &[
    on("create get list update watch", "coordination.k8s.io", "leases"),
    on("create get list update watch", "coordination.k8s.io", "leasecandidates"),
];

const LOCAL_ROLES: &[LocalRole] = &[
    LocalRole {
        namespace: SYSTEM,
        name: "extension-apiserver-authentication-reader",
        rules: &[named("get list watch", "core", "configmaps", "extension-apiserver-authentication")],
        binding: "system::extension-apiserver-authentication-reader",
        holders: &[User("system:kube-controller-manager"), User("system:kube-scheduler")],
    },
    LocalRole {
        namespace: SYSTEM,
        name: "system::leader-locking-kube-controller-manager",
        rules: LEADER_LEASES,
        binding: "system::leader-locking-kube-controller-manager",
        holders: &[
            User("system:kube-controller-manager"),
            Account("kube-controller-manager"),
            Account("leader-election-controller"),
        ],
    },
    LocalRole {
        namespace: SYSTEM,
        name: "system::leader-locking-kube-scheduler",
        rules: LEADER_LEASES,
        binding: "system::leader-locking-kube-scheduler",
        holders: &[User("system:kube-scheduler"), Account("kube-scheduler")],
    },
    LocalRole {
        namespace: SYSTEM,
        name: "system:controller:bootstrap-signer",
        rules: &[on("get list watch", "core", "secrets")],
        binding: "system:controller:bootstrap-signer",
        holders: &[Account("bootstrap-signer")],
    },
    LocalRole {
        namespace: PUBLIC,
        name: "system:controller:bootstrap-signer",
        rules: &[
            on("get list watch", "core", "configmaps"),
            named("update", "core", "configmaps", "cluster-info"),
            EVENTS,
        ],
        binding: "system:controller:bootstrap-signer",
        holders: &[Account("bootstrap-signer")],
    },
    LocalRole {
        namespace: SYSTEM,
        name: "system:controller:cloud-provider",
        rules: &[on("create get list watch", "core", "configmaps")],
        binding: "system:controller:cloud-provider",
        holders: &[Account("cloud-provider")],
    },
    LocalRole {
        namespace: SYSTEM,
        name: "system:controller:token-cleaner",
        rules: &[on("delete get list watch", "core", "secrets"), EVENTS],
        binding: "system:controller:token-cleaner",
        holders: &[Account("token-cleaner")],
    },
];

pub(super) fn cluster_role_bindings() -> Vec<Value> {
    let bind = |name: &str, holders: &[Subject]| {
        let mut binding = object("ClusterRoleBinding", name, "");
        binding["roleRef"] = role_ref("ClusterRole", name);
        if !holders.is_empty() {
            binding["subjects"] = holders.iter().map(|one| one.to_value()).collect();
        }
        binding
    };
    let controllers = CONTROLLERS
        .iter()
        .map(|(account, _)| bind(&format!("system:controller:{account}"), &[Account(account)]));
    HOLDERS.iter().map(|(name, holders)| bind(name, holders)).chain(controllers).collect()
}

pub(super) fn roles() -> Vec<Value> {
    let make = |facts: &LocalRole| {
        let mut role = object("Role", facts.name, facts.namespace);
        role["rules"] = json!(facts.rules.iter().map(RuleFacts::rule).collect::<Vec<_>>());
        role
    };
    LOCAL_ROLES.iter().map(make).collect()
}

pub(super) fn role_bindings() -> Vec<Value> {
    let make = |facts: &LocalRole| {
        let mut binding = object("RoleBinding", facts.binding, facts.namespace);
        binding["roleRef"] = role_ref("Role", facts.name);
        binding["subjects"] = facts.holders.iter().map(|one| one.to_value()).collect();
        binding
    };
    LOCAL_ROLES.iter().map(make).collect()
}

fn role_ref(kind: &str, name: &str) -> Value {
    json!({"apiGroup": GROUP, "kind": kind, "name": name})
}

impl Subject {
    fn to_value(self) -> Value {
        match self {
            Self::User(name) => json!({"apiGroup": GROUP, "kind": "User", "name": name}),
            Self::Group(name) => json!({"apiGroup": GROUP, "kind": "Group", "name": name}),
            Self::Account(name) => json!({"kind": "ServiceAccount", "name": name, "namespace": SYSTEM}),
        }
    }
}
