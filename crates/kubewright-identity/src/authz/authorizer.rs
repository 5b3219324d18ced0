//! The edge between decisions and the world: RBAC objects are compiled when they have changed, not when they are asked;
//! webhooks are asked when nothing else decides.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use kubewright_store::{Name, Revision, Snapshot};
use kubewright_world::Clock;
use serde::Deserialize;

use super::node::Objects;
use super::objects::{Binding, Role};
use super::rbac;
use super::{Mode, Rbac, Rights};
use crate::webhook::Client;

const CLUSTER_ROLES: &str = "rbac.authorization.k8s.io/clusterroles";
const ROLES: &str = "rbac.authorization.k8s.io/roles";
const CLUSTER_BINDINGS: &str = "rbac.authorization.k8s.io/clusterrolebindings";
const BINDINGS: &str = "rbac.authorization.k8s.io/rolebindings";

/// Decides by modes and by the RBAC objects of the store; keeps these compiled for as long as none of them changes.
pub struct Authorizer {
    modes: Arc<[Mode]>,
    compiled: ArcSwap<Compiled>,
    clock: Clock,
    /// Calls webhooks, where there is one to be called.
    client: Option<Client>,
}

#[derive(Debug, Default)]
struct Compiled {
    cluster_roles: Arc<Parsed<Role>>,
    roles: Arc<Parsed<Role>>,
    cluster_bindings: Arc<Parsed<Binding>>,
    bindings: Arc<Parsed<Binding>>,
    rbac: Arc<Rbac>,
}

/// A collection as it was after its last change.
#[derive(Debug)]
struct Parsed<K> {
    modified: Revision,
    objects: BTreeMap<Name, (Revision, Arc<K>)>,
}

impl Authorizer {
    /// These modes, in their order. `clock` says how long answers of webhooks hold.
    #[must_use]
    pub fn new(modes: Vec<Mode>, clock: Clock) -> Self {
        let asks = modes.iter().any(|mode| matches!(mode, Mode::Webhook(_)));
        let client = asks.then(|| Client::new(clock));
        Self { modes: modes.into(), compiled: ArcSwap::default(), clock, client }
    }

    /// Who may do what at this moment. A webhook is not asked: what only it could allow is not allowed.
    #[must_use]
    pub fn rights<T: Send + Sync + 'static>(&self, snapshot: &Snapshot<T>) -> Rights {
        let nodes = self.modes.iter().any(|mode| matches!(mode, Mode::Node));
        let objects = nodes.then(|| Box::new(snapshot.clone()) as Box<dyn Objects>);
        Rights::new(self.rbac(snapshot), Arc::clone(&self.modes), objects)
    }

    /// What `judge` says by the rights of this moment. Where that depends on a webhook it is asked, and `judge` begins
    /// anew; without one it is called once, and nothing is waited for.
    pub async fn resolve<T: Send + Sync + 'static, R>(
        &self,
        snapshot: &Snapshot<T>,
        mut judge: impl FnMut(&Rights) -> R,
    ) -> R {
        let rights = self.rights(snapshot);
        loop {
            let judged = judge(&rights);
            let (Some(client), Some(question)) = (&self.client, rights.missing()) else { return judged };
            drop(judged);
            let (index, asked) = &question;
            let Some(Mode::Webhook(reviewer)) = self.modes.get(*index) else { return judge(&rights) };
            let answer = reviewer.ask(client, self.clock, asked).await;
            rights.learn(question, answer);
        }
    }

    /// The roles and bindings of this moment. As long as none of them changes, this is four comparisons of numbers; after
    /// a change only the changed objects are parsed.
    #[must_use]
    pub fn rbac<T>(&self, snapshot: &Snapshot<T>) -> Arc<Rbac> {
        let known = self.compiled.load();
        if known.is_of(snapshot) {
            return Arc::clone(&known.rbac);
        }
        let compiled = known.renewed(snapshot);
        let rbac = Arc::clone(&compiled.rbac);
        self.compiled.store(Arc::new(compiled));
        rbac
    }
}

impl std::fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authorizer").field("modes", &self.modes).finish_non_exhaustive()
    }
}

impl Compiled {
    fn is_of<T>(&self, snapshot: &Snapshot<T>) -> bool {
        self.cluster_roles.modified == snapshot.modified(CLUSTER_ROLES)
            && self.roles.modified == snapshot.modified(ROLES)
            && self.cluster_bindings.modified == snapshot.modified(CLUSTER_BINDINGS)
            && self.bindings.modified == snapshot.modified(BINDINGS)
    }

    fn renewed<T>(&self, snapshot: &Snapshot<T>) -> Self {
        let cluster_roles = renew(&self.cluster_roles, snapshot, CLUSTER_ROLES);
        let roles = renew(&self.roles, snapshot, ROLES);
        let cluster_bindings = renew(&self.cluster_bindings, snapshot, CLUSTER_BINDINGS);
        let bindings = renew(&self.bindings, snapshot, BINDINGS);
        let rbac = Rbac::compile(rbac::Objects {
            cluster_roles: cluster_roles.all(),
            roles: roles.all(),
            cluster_bindings: cluster_bindings.all(),
            bindings: bindings.all(),
        });
        Self { cluster_roles, roles, cluster_bindings, bindings, rbac: Arc::new(rbac) }
    }
}

impl<K> Parsed<K> {
    fn all(&self) -> Vec<Arc<K>> {
        self.objects.values().map(|(_, object)| Arc::clone(object)).collect()
    }
}

impl<K> Default for Parsed<K> {
    fn default() -> Self {
        Self { modified: Revision(0), objects: BTreeMap::new() }
    }
}

/// The collection as it is in the snapshot; what has not changed since `known` is not parsed again.
fn renew<K, T>(known: &Arc<Parsed<K>>, snapshot: &Snapshot<T>, collection: &str) -> Arc<Parsed<K>>
where
    K: for<'de> Deserialize<'de>,
{
    let modified = snapshot.modified(collection);
    if known.modified == modified {
        return Arc::clone(known);
    }
    let mut objects = BTreeMap::new();
    for entry in snapshot.range(collection, "", None) {
        let parsed = match known.objects.get(&entry.key) {
            Some((revision, object)) if *revision == entry.revision => Arc::clone(object),
            _ => match serde_json::from_slice(&entry.bytes) {
                Ok(object) => Arc::new(object),
                Err(error) => {
                    tracing::warn!(collection, key = %entry.key, %error, "an RBAC object that cannot be read grants nothing");
                    continue;
                }
            },
        };
        objects.insert(Arc::clone(&entry.key), (entry.revision, parsed));
    }
    Arc::new(Parsed { modified, objects })
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use kubewright_store::{Change, Draft, Expect, Memory, Store};
    use serde_json::{Value, json};

    use super::*;
    use crate::authn::User;
    use crate::authz::{Attributes, Decision, ReviewVersion, Reviewer, webhook};

    fn authorizer() -> Authorizer {
        Authorizer::new(vec![Mode::Rbac], kubewright_world::World::simulated(1).clock)
    }

    fn put(store: &Memory<()>, collection: &str, key: &str, expect: Expect, object: &Value) -> Revision {
        let draft = Draft { bytes: object.to_string().into_bytes(), revision_at: None, tag: Arc::new(()) };
        let done = store.commit(&collection.into(), &key.into(), expect, Change::Put(draft)).now_or_never();
        done.expect("memory does not wait").expect("nobody else writes").revision
    }

    /// `get` on pods in `ns`, for `alice`.
    fn may_get_pods(authorizer: &Authorizer, store: &Memory<()>) -> bool {
        let what = Attributes { verb: "get", resource: "pods", namespace: "ns", ..Attributes::default() };
        let alice = User::new("alice", ["g"]);
        authorizer.rights(&store.snapshot()).authorize(&alice, &what).allowed()
    }

    fn role(namespace: &str, verb: &str) -> Value {
        json!({"metadata": {"name": "r", "namespace": namespace},
            "rules": [{"verbs": [verb], "apiGroups": [""], "resources": ["pods"]}]})
    }

    fn binding(namespace: &str, kind: &str, user: &str) -> Value {
        json!({"metadata": {"name": "b", "namespace": namespace}, "roleRef": {"kind": kind, "name": "r"},
            "subjects": [{"kind": "User", "name": user}]})
    }

    #[test]
    fn a_change_of_a_role_or_binding_shows_in_the_next_decision() {
        for (roles, bindings, kind, namespace, key) in [
            (CLUSTER_ROLES, CLUSTER_BINDINGS, "ClusterRole", "", "r"),
            (CLUSTER_ROLES, BINDINGS, "ClusterRole", "ns", "ns/b"),
            (ROLES, BINDINGS, "Role", "ns", "ns/r"),
        ] {
            let store = Memory::new();
            let authorizer = authorizer();
            let may = || may_get_pods(&authorizer, &store);
            assert!(!may());
            let made = put(&store, roles, key, Expect::Absent, &role(namespace, "get"));
            assert!(!may());
            let bound = put(&store, bindings, key, Expect::Absent, &binding(namespace, kind, "alice"));
            assert!(may());
            let bound = put(&store, bindings, key, Expect::At(bound), &binding(namespace, kind, "bob"));
            assert!(!may());
            put(&store, bindings, key, Expect::At(bound), &binding(namespace, kind, "alice"));
            assert!(may());
            put(&store, roles, key, Expect::At(made), &role(namespace, "list"));
            assert!(!may());
        }
    }

    /// Who is asked when the roles do not say yes.
    #[tokio::test(start_paused = true)]
    async fn a_webhook_is_asked_only_for_what_nothing_before_it_decides() {
        let store = Memory::new();
        let reviewer = Reviewer::new(webhook::tests::remote(), ReviewVersion::V1);
        let clock = kubewright_world::World::simulated(1).clock;
        let authorizer = Authorizer::new(vec![Mode::Rbac, Mode::Webhook(Box::new(reviewer))], clock);
        let server = webhook::tests::Server::new(json!({"allowed": true, "reason": "friend"}));
        authorizer.client.as_ref().unwrap().attach(Arc::clone(&server) as Arc<dyn crate::webhook::Local>);
        put(&store, CLUSTER_ROLES, "r", Expect::Absent, &role("", "get"));
        put(&store, CLUSTER_BINDINGS, "b", Expect::Absent, &binding("", "ClusterRole", "alice"));
        let what = Attributes { verb: "get", resource: "pods", namespace: "ns", ..Attributes::default() };
        let snapshot = store.snapshot();
        let ask = async |name: &str| {
            let user = User::new(name, ["g"]);
            authorizer.resolve(&snapshot, |rights| rights.authorize(&user, &what)).await
        };
        assert!(ask("alice").await.reason.starts_with("RBAC: allowed by"));
        assert!(server.asked.lock().is_empty());
        assert_eq!(ask("bob").await, Decision::allow("friend"));
        let two = ["carol", "dave"].map(|name| User::new(name, ["g"]));
        let both = authorizer
            .resolve(&snapshot, |rights| two.each_ref().map(|user| rights.authorize(user, &what).allowed()))
            .await;
        assert_eq!(both, [true, true], "as many questions as there are");
        let alone = authorizer.rights(&snapshot).authorize(&User::new("eve", ["g"]), &what);
        assert!(!alone.allowed() && alone.error.is_some(), "who cannot wait is not allowed");
    }

    #[test]
    fn nothing_is_compiled_while_no_role_changes() {
        let store = Memory::new();
        let authorizer = authorizer();
        put(&store, ROLES, "ns/r", Expect::Absent, &json!({"metadata": {"name": "r", "namespace": "ns"}}));
        let before = authorizer.rbac(&store.snapshot());
        put(&store, "/pods", "ns/p", Expect::Absent, &json!({}));
        assert!(Arc::ptr_eq(&before, &authorizer.rbac(&store.snapshot())));
        put(&store, ROLES, "ns/s", Expect::Absent, &json!({"metadata": {"name": "s", "namespace": "ns"}}));
        assert!(!Arc::ptr_eq(&before, &authorizer.rbac(&store.snapshot())));
    }

    #[test]
    fn an_object_that_cannot_be_read_grants_nothing_and_hides_no_other() {
        let store = Memory::new();
        put(&store, CLUSTER_BINDINGS, "a", Expect::Absent, &json!({"metadata": 7}));
        put(
            &store,
            CLUSTER_BINDINGS,
            "b",
            Expect::Absent,
            &json!({"metadata": {"name": "b"},
            "roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "Group", "name": "g"}]}),
        );
        put(
            &store,
            CLUSTER_ROLES,
            "r",
            Expect::Absent,
            &json!({"metadata": {"name": "r"},
            "rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]}),
        );
        assert!(may_get_pods(&authorizer(), &store));
    }
}
