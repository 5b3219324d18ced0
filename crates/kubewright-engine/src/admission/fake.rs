//! A cluster for tests of plugins: built-in kinds and some objects of them, and nobody with any rights.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use kubewright_identity::authn::User;
use kubewright_identity::authz::{Authorizer, Mode, Rights};
use kubewright_kinds::built_in::core::namespace::NAMESPACE;
use kubewright_kinds::built_in::core::resource_quota::RESOURCE_QUOTA;
use kubewright_kinds::{BuiltIn, Kind, Kinds, Plugin, Plugins, Summary, encode};
use kubewright_meta::{ApiError, object};
use kubewright_spec::Version;
use kubewright_store::{Change, Expect, Memory, Snapshot, Store};
use kubewright_world::World;
use serde_json::{Value, json};

use super::{Admission, Edit, Objects, Operation, Options, Review};
use crate::request::{Call, WriteOptions, key};

/// The cluster.
pub(super) struct Fake {
    store: Memory<Summary>,
    kinds: Arc<Kinds>,
    authorizer: Authorizer,
    world: World,
    admission: Admission,
    user: User,
    options: WriteOptions,
}

impl Fake {
    /// With these objects. All plugins are on.
    pub(super) fn with(objects: &[(&BuiltIn, Value)]) -> Self {
        let world = World::seeded(1);
        let plugins = Plugins::only(Plugin::ALL.map(Plugin::name)).expect("names of plugins");
        let fake = Self {
            store: Memory::new(),
            // The newest version has all kinds.
            kinds: Arc::new(Kinds::of_version(Version::V1_37)),
            authorizer: Authorizer::new(vec![Mode::Rbac], world.clock),
            admission: Admission::new(&plugins, &world),
            world,
            user: User::new("nobody", ["nobodies"]),
            options: WriteOptions::default(),
        };
        for (kind, object) in objects {
            fake.put(kind, object.clone());
        }
        fake
    }

    /// Stores an object, whatever is there.
    fn put(&self, kind: &BuiltIn, object: Value) {
        let kind = self.kinds.find(kind).expect("it is served");
        let key = key(object::namespace(&object), object::name(&object));
        let expect = match self.store.snapshot().get(&kind.collection, &key) {
            Some(entry) => Expect::At(entry.revision),
            None => Expect::Absent,
        };
        let change = Change::Put(encode::draft(kind, object));
        let committed = self.store.commit(&kind.collection, &key, expect, change).now_or_never();
        committed.expect("nothing is waited for").expect("nobody else writes");
    }

    /// What somebody does to an object in the namespace `n`.
    pub(super) fn review(&self, kind: &BuiltIn, operation: Operation) -> Review<'_> {
        let kind = self.kinds.find(kind).expect("it is served");
        let namespace = if kind.namespaced() { "n" } else { "" };
        Review {
            objects: self,
            call: Call { kind, namespace, name: "", user: &self.user },
            operation,
            subresource: "",
            old: None,
            dry_run: false,
            options: Options::Write(&self.options),
            collection: false,
        }
    }
}

impl Objects for Fake {
    fn snapshot(&self) -> Snapshot<Summary> {
        self.store.snapshot()
    }

    fn kinds(&self) -> Arc<Kinds> {
        Arc::clone(&self.kinds)
    }

    fn rights(&self) -> Rights {
        self.authorizer.rights(&self.store.snapshot())
    }

    fn world(&self) -> &World {
        &self.world
    }

    fn admission(&self) -> &Admission {
        &self.admission
    }

    fn in_version<'a>(&'a self, _: &'a Kind, _: &'a Value) -> BoxFuture<'a, Result<Option<Value>, ApiError>> {
        async { Ok(None) }.boxed()
    }

    fn create_namespace<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), ApiError>> {
        self.put(&NAMESPACE, json!({"metadata": {"name": name}}));
        async { Ok(()) }.boxed()
    }

    fn edit_quota<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        edit: &'a Edit<'a>,
    ) -> BoxFuture<'a, Result<(), ApiError>> {
        let objects: &dyn Objects = self;
        let found = objects.object(&RESOURCE_QUOTA, &key(namespace, name));
        let edited = found.ok_or_else(|| ApiError::not_found_in("", "resourcequotas", name));
        let edited = edited.and_then(|mut quota| edit(&mut quota).map(|()| self.put(&RESOURCE_QUOTA, quota)));
        async { edited }.boxed()
    }
}
