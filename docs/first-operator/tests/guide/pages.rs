//! What other pages show in Rust, so that it compiles; it is not run.
#![expect(dead_code, reason = "a page shows parts of a program")]

use std::{fs, path::Path, sync::Arc, time::Duration};

use futures::Stream;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Secret},
};
use kube::Client;
use kubewright::{
    Context, Controller, Error, EventType, Index, Key, LeaderElection, Manager, Object, Outcome, Reconciler,
    World,
    command::{self, Operator},
    conditions::{self, NewCondition, Status},
    predicate::{Predicate, generation_changed, labels_changed},
    rbac::{Observed, Rights, Verb},
    sources,
    testing::Cluster,
    webhook::{
        self, Conversion, Defaulter, Denied,
        Operation::{Create, Delete, Update},
        Request, Server, Validator, Webhook, Webhooks,
    },
    workqueue::RateLimit,
};
use website_operator::{reconciler::controller, types::Website as WhiteList};

/// `docs/production.md`
mod production {
    use super::*;

    #[tokio::main]
    async fn main() -> std::process::ExitCode {
        Operator::new("whitelist", env!("CARGO_PKG_VERSION"))
            .definition::<WhiteList>() // its own kind
            .controller(controller) // a function that makes a Controller; any number
            .main()
            .await
    }

    fn rights(reconciler: impl Reconciler) -> Controller {
        Controller::new("whitelist", reconciler)
            .for_kind::<WhiteList>()
            .owns::<Deployment>()
            .writes::<Deployment>([Verb::Create, Verb::Update])
            .writes_subresource::<WhiteList>("status", [Verb::Patch])
            .may(|rights| rights.scaling::<Deployment>().live_reads::<Secret>())
    }

    fn besides(rights: &mut Rights) -> &mut Rights {
        rights.watching::<Secret>().guarding::<WhiteList>()
    }

    fn observed(client: &Client, world: World, rights: &Rights) {
        let observed = Observed::new();
        let manager = Manager::new(observed.client(client), world); // and run it
        let report = observed.report(rights);
        assert!(report.is_clean(), "{report}"); // what is missing, and what is in vain
        drop(manager);
    }
}

/// `docs/webhooks.md`
mod webhooks {
    use super::*;

    mod v1 {
        #[derive(kube::CustomResource, Clone, Debug, serde::Serialize, serde::Deserialize)]
        #[kube(group = "example.com", version = "v1", kind = "Memcached", namespaced, schema = "disabled")]
        pub(super) struct MemcachedSpec {
            pub(super) size: i32,
        }
    }

    mod v2 {
        #[derive(kube::CustomResource, Clone, Debug, serde::Serialize, serde::Deserialize)]
        #[kube(group = "example.com", version = "v2", kind = "Memcached", namespaced, schema = "disabled")]
        pub(super) struct MemcachedSpec {
            pub(super) replicas: i32,
        }
    }

    use v2::Memcached;

    impl From<v1::Memcached> for v2::Memcached {
        fn from(old: v1::Memcached) -> Self {
            Self { metadata: old.metadata, spec: v2::MemcachedSpec { replicas: old.spec.size } }
        }
    }

    impl From<v2::Memcached> for v1::Memcached {
        fn from(new: v2::Memcached) -> Self {
            Self { metadata: new.metadata, spec: v1::MemcachedSpec { size: new.spec.replicas } }
        }
    }

    struct Defaults;

    impl Defaulter<Memcached> for Defaults {
        async fn apply_defaults(&self, _: &Request, object: Memcached) -> Result<Memcached, Denied> {
            Ok(object)
        }
    }

    struct Checks;

    impl Validator<Memcached> for Checks {}

    fn declared() -> Operator {
        let webhooks = Webhooks::new("my-operator")
            .add(Webhook::defaulting::<Memcached>(Defaults))
            .add(Webhook::validating::<Memcached>(Checks).operations([Create, Update, Delete]))
            .convert(
                Conversion::hub::<v2::Memcached>()
                    .spoke::<v1::Memcached>()
                    .keeping("example.com/conversion-data"),
            );
        Operator::new("my-operator", "1.0").webhooks(webhooks)
    }

    fn alone(manager: &mut Manager, webhooks: Webhooks) {
        manager.serve(Server::new(webhooks));
    }

    fn tested(conversion: &Conversion<Memcached>, sample: Memcached, old: v1::Memcached) {
        conversion.assert_round_trips([sample]); // or check_round_trips in a property test
        conversion.assert_spoke_round_trips::<v1::Memcached>([old]);
    }
}

/// What `docs/coming-from.md` says that something is called here.
mod coming_from {
    use super::*;

    struct Mine;

    impl Reconciler for Mine {
        async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
            let Some(owner) = ctx.get::<WhiteList>(key) else { return Ok(Outcome::Done) };
            let all: Vec<Arc<WhiteList>> = ctx.list(None);
            let owned: Vec<Arc<ConfigMap>> = ctx.owned_by("uid");
            let live: Option<WhiteList> = ctx.live(key).await?;
            let desired = ConfigMap::default();
            ctx.ensure(&desired, Some(&*owner)).await?;
            ctx.apply(&desired).owned_by(&*owner).await?;
            ctx.apply(&*owner).forced().status().await?;
            ctx.guard(&*owner, "example.com/cleanup", || async { Ok(()) }).await?;
            let wanted = NewCondition::new("Ready", Status::True, "AllGood");
            conditions::set(&mut Vec::new(), &wanted, ctx.world().clock.now());
            ctx.set_condition(&*owner, &wanted).await?;
            ctx.event(&*owner, EventType::Normal, "Created", "").await;
            match (all.len(), owned.len(), live) {
                (0, 0, None) => Err(Error::terminal("err")),
                _ => Ok(Outcome::RequeueAfter(Duration::from_secs(
                    ctx.client().default_namespace().len() as u64
                ))),
            }
        }
    }

    fn controller<K: Object>(
        index: &Index<K>,
        stream: impl Stream<Item = Key> + Send + 'static,
        limit: RateLimit,
        d: Duration,
    ) -> Controller {
        let (changed, labelled) = (generation_changed(), labels_changed());
        let predicate: Predicate = changed.and(labelled.not()).or(generation_changed());
        Controller::new("mine", Mine)
            .for_kind::<WhiteList>()
            .predicate(predicate)
            .own_events()
            .owns::<ConfigMap>()
            .owns_metadata::<Secret>()
            .watches(|_: &K| Vec::new())
            .indexed(index)
            .projected(|_: &mut K| ())
            .labelled(kube::core::Expression::Exists("a".to_owned()))
            .selecting("metadata.name=a")
            .in_namespaces(["default"])
            .watches_metadata(|_: &kube::core::PartialObjectMeta<Deployment>| Vec::new())
            .source(stream)
            .source(sources::channel(1).1)
            .writes::<ConfigMap>([Verb::Patch])
            .may(|rights| rights.live_reads::<WhiteList>())
            .concurrency(2)
            .rate_limit(limit)
            .timeout(d)
            .all_own_events()
    }

    async fn program(client: Client, webhooks: webhook::Webhooks) -> command::Operator {
        let mut manager = Manager::new(client, World::real());
        manager.elect(LeaderElection::lease("default", "mine"));
        let cluster = Cluster::start().await;
        drop((manager, cluster));
        Operator::new("mine", "1").webhooks(webhooks)
    }
}

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Without its layout, which a page and rustfmt see in different ways.
fn flat(text: &str) -> String {
    let text: String = text.split_whitespace().collect();
    text.replace(",)", ")")
}

#[test]
fn what_the_pages_show_is_compiled_here() {
    let compiled = flat(include_str!("pages.rs"));
    for name in ["production.md", "webhooks.md"] {
        let page = page(name);
        let blocks: Vec<_> =
            page.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert!(blocks.len() > 1, "{name}");
        for block in blocks {
            assert!(compiled.contains(&flat(block)), "docs/{name} shows what is not compiled:\n{block}");
        }
    }
}

/// Each name in the last column of the tables of `docs/coming-from.md`.
#[test]
fn what_something_is_called_here_is_compiled_here() {
    /// What is no name of Rust: a field of objects, a command, placeholders.
    const OTHERS: [&str; 2] = ["managedFields", "manifests"];
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let words = |text: &str| -> Vec<String> {
        text.split(|letter| !is_part(letter)).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let compiled = words(include_str!("pages.rs"));
    let page = page("coming-from.md");
    let cells = page.lines().filter_map(|line| line.strip_suffix(" |")?.rsplit_once(" | "));
    let codes = cells.flat_map(|(_, cell)| cell.split('`').skip(1).step_by(2));
    let names: Vec<String> = codes.filter(|code| !code.starts_with("--")).flat_map(words).collect();
    assert!(names.len() > 80, "{}", names.len());
    for name in names {
        let is_known = compiled.contains(&name) || OTHERS.contains(&&*name);
        assert!(is_known, "docs/coming-from.md has `{name}`, which is not compiled here");
    }
}
