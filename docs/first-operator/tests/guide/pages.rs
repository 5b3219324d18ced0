//! What other pages show in Rust, so that it compiles; it is not run.
#![expect(dead_code, reason = "a page shows parts of a program")]

use std::{collections::BTreeMap, fs, path::Path, sync::Arc, time::Duration};

use futures::Stream;
use http::{Method, Response};
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        autoscaling::v1::Scale,
        core::v1::{ConfigMap, EnvFromSource, Namespace, Pod, Secret, SecretEnvSource},
    },
    apimachinery::pkg::api::resource::Quantity,
};
use kube::{
    Client,
    api::{ApiResource, DynamicObject},
    core::Status as ApiStatus,
};
use kubewright::{
    CancellationToken, ClientLayer, Clusters, Context, Controller, Defaults, DeleteParams, Desired, Error,
    ErrorPolicy, EventType, Index, JsonPatch, Key, LeaderElection, ListOptions, Manager, Namespaces,
    NewEvent, Object, Outcome, Phase, Reconciler, Selector, ValidationDirective, World,
    command::{self, Operator},
    conditions::{self, NewCondition, Status},
    predicate::{Predicate, generation_changed, labels_changed},
    rbac::{Observed, Rights, Verb},
    sources,
    testing::Cluster,
    webhook::{
        self, Authentication, Authenticator, Conversion, Defaulter, Denied,
        Operation::{Create, Delete, Update},
        Request, Server, TokenRequest, ValidationResult, Validator, Warnings, Webhook, Webhooks,
    },
    workqueue::RateLimit,
};
use serde_json::{Value, json};
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

    fn profile_for_30_seconds() -> Vec<u8> {
        Vec::new()
    }

    #[expect(clippy::disallowed_methods, reason = "a program that runs for real")]
    fn profiled() -> Operator {
        Operator::new("clouds", "1.0.0").setup(|manager| {
            manager.debug_handler("/debug/pprof/profile", |_request| async {
                let taken = tokio::task::spawn_blocking(profile_for_30_seconds).await;
                Response::new(taken.unwrap_or_default())
            });
            Ok(())
        })
    }

    #[expect(unused_variables, reason = "so the page says where they come from")]
    mod open {
        use super::*;

        #[derive(Default, serde::Deserialize)]
        struct Config {}

        fn controller(_region: &str) -> Controller {
            website_operator::reconciler::controller()
        }

        async fn program(
            telemetry: impl tracing_subscriber::Layer<tracing_subscriber::Registry> + Send + Sync + 'static,
        ) -> std::process::ExitCode {
            #[derive(clap::Args)]
            struct Cloud {
                /// The region to work in
                #[arg(long, env = "CLOUD_REGION", default_value = "eu")]
                region: String,
            }

            Operator::new("clouds", env!("CARGO_PKG_VERSION"))
                .args::<Cloud>() // beside ours; in --help under "Options of this operator"
                .config::<Config>() // --config FILE, YAML; Config::default() without
                .controller_with(|settings| Ok(controller(&settings.args::<Cloud>()?.region)))
                .setup_async(|manager, settings| {
                    Box::pin(async move {
                        let version = manager.client().apiserver_version().await?;
                        // manager.add(..), manager.run_also(..): before anything starts
                        Ok(())
                    })
                })
                .deployed_with(["--region=us"]) // flags that the Deployment passes
                .log_layer(telemetry) // a tracing layer beside ours; own_subscriber() in place of ours
                .main()
                .await
        }

        fn pod() -> Operator {
            Operator::new("clouds", env!("CARGO_PKG_VERSION")).pod(|pod| {
                let secret = SecretEnvSource { name: "clouds".into(), ..SecretEnvSource::default() };
                let source = EnvFromSource { secret_ref: Some(secret), ..EnvFromSource::default() };
                pod.container.env_from.get_or_insert_default().push(source);
                let resources = pod.container.resources.get_or_insert_default();
                resources.limits.get_or_insert_default().insert("memory".into(), Quantity("512Mi".into()));
            })
        }

        fn defaults(operator: Operator) -> Operator {
            operator.defaults(Defaults::new().concurrency(4).cache_sync_timeout(Duration::from_secs(120)))
        }
    }

    fn rights(reconciler: impl Reconciler) -> Controller {
        Controller::new("whitelist", reconciler)
            .for_kind::<WhiteList>()
            .owns::<Deployment>()
            .writes::<Deployment>([Verb::Create, Verb::Patch])
            .writes_status::<WhiteList>()
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

/// What handlers read, and who has a token.
mod handlers {
    use super::*;

    struct Open;

    impl Validator<ConfigMap> for Open {
        async fn validate_create(&self, request: &Request, _: &ConfigMap) -> ValidationResult {
            let namespace = request.context()?.get::<Namespace>(&Key::cluster_scoped(&request.namespace));
            match namespace.is_some_and(|namespace| namespace.metadata.labels.is_some()) {
                true => Ok(Warnings::none()),
                false => Err(Denied::forbidden("the namespace has no labels")),
            }
        }
    }
    fn opened() -> Operator {
        let webhooks =
            Webhooks::new("my-operator").add(Webhook::validating::<ConfigMap>(Open).reads::<Namespace>());
        Operator::new("my-operator", "1.0").webhooks(webhooks)
    }

    fn asked(staff: Staff) -> Operator {
        let webhooks = Webhooks::new("my-operator").authenticate("/authenticate", staff);
        Operator::new("my-operator", "1.0").webhooks(webhooks)
    }

    struct Staff {
        by_token: BTreeMap<String, String>,
    }

    impl Authenticator for Staff {
        async fn authenticate(&self, request: &TokenRequest) -> Authentication {
            match self.by_token.get(request.token()) {
                Some(name) => Authentication::user(name, ["staff"]),
                None => Authentication::Unauthenticated,
            }
        }
    }
}

/// `docs/client.md`
mod client {
    use super::{ApiStatus as Status, *};

    struct Shops;

    impl Reconciler for Shops {
        async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
            let (map, operations) = (ConfigMap::default(), JsonPatch::default());
            let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction"});
            let Some(pod) = ctx.get::<Pod>(key) else { return Ok(Outcome::Done) };
            let changed = Pod::clone(&pod);

            let web = ListOptions::in_namespace("shop").labels(Selector::from_iter([("app", "web")]));
            let running = ctx.list_selected::<Pod>(&web.clone().fields("status.phase=Running"))?;
            let newest = ctx.live_list::<Pod>(&web).await?;
            ctx.delete_all::<Pod>(&web.fields("status.phase=Failed"), &DeleteParams::background()).await?;

            let would_be = ctx.create(&map).dry_run().await?;
            ctx.create(&map).field_owner("shop-import").validation(ValidationDirective::Strict).await?;
            ctx.patch::<Pod>(key, json!({"metadata": {"labels": {"seen": "yes"}}})).await?; // a JSON merge patch
            ctx.patch_json::<Pod>(key, operations).await?; // RFC 6902, with its `test`
            ctx.merge_from(&*pod, &changed).optimistic_lock().await?; // what differs between two states; nothing, if nothing does

            let scale: Scale = ctx.subresource::<Deployment>(key, "scale").get().await?;
            let _: Value = ctx.subresource::<Pod>(key, "eviction").create(&eviction).await?;
            ctx.scale::<Deployment>(key, 3).await?; // the short form
            ctx.patch::<Pod>(key, json!({"spec": {}})).subresource("resize").await?; // written as the object itself
            drop((running, newest, would_be, scale));
            Ok(Outcome::Done)
        }
    }

    fn controller() -> Controller {
        Controller::new("shops", Shops)
            .for_kind::<ConfigMap>()
            .client_layer(ClientLayer::one_namespace("shop")) // 403 for the rest, and nothing is sent
            .client_layer(ClientLayer::field_owner("shop"))
            .client_layer(ClientLayer::intercepting(|request| match request.method {
                Method::DELETE => Err(Status::failure("not on Fridays", "Forbidden").with_code(403).boxed()),
                _ => Ok(()),
            }))
    }
}

/// `docs/clusters.md`
mod clusters {
    use super::*;

    struct Copier;
    struct Spreader;
    struct Teams(Namespaces);
    struct Maps;

    async fn follow_fleet(_clusters: Clusters, _stop: CancellationToken) -> Result<(), Error> {
        Ok(())
    }

    fn fleet(manager: &mut Manager) {
        let clusters = manager.clusters().clone();
        manager.run_also("fleet", Phase::EveryReplica, move |stop: CancellationToken| {
            follow_fleet(clusters.clone(), stop)
        });
        manager.add(
            Controller::new("copier", Copier).for_kind::<Secret>().applies::<ConfigMap>().in_each_cluster(),
        );
        manager.add(
            Controller::new("spreader", Spreader)
                .for_kind::<Secret>()
                .watches_in_each(|map: &ConfigMap| vec![Key::of(map)])
                .writes_in_each::<ConfigMap>([Verb::Create, Verb::Patch]),
        );
    }

    impl Reconciler for Copier {
        async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
            let (desired, owner) =
                (DynamicObject::new("a", &ApiResource::erase::<Secret>(&())), ctx.get::<Secret>(key));
            let Some(owner) = owner else { return Ok(Outcome::Done) };
            let Some(kind) = ctx.discover("example.com/v1", "Thing").await? else { return Ok(Outcome::Done) };
            let things = ctx.kind(&kind);
            let stored = things.live(key).await?;
            things.apply(&desired).owned_by(&*owner).await?;
            things.patch(key, json!({"status": {"ready": true}})).subresource("status").await?;
            let watching = things.watch(|thing: &DynamicObject| vec![Key::of(thing)]); // until it is dropped
            drop((stored, watching));
            Ok(Outcome::Done)
        }
    }

    fn teams(manager: &mut Manager) {
        let namespaces = Namespaces::new(["shop"]);
        manager.follow_namespaces(&namespaces);
        manager.add(Controller::new("teams", Teams(namespaces.clone())).for_kind::<Namespace>());
        manager.add(Controller::new("maps", Maps).for_kind::<ConfigMap>());
    }

    impl Reconciler for Teams {
        async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
            match ctx.get::<Namespace>(key) {
                Some(_) => self.0.add(&key.name)?,
                None => self.0.remove(&key.name),
            };
            Ok(Outcome::Done)
        }
    }

    impl Reconciler for Maps {
        async fn reconcile(&self, _: &Context, _: &Key) -> Result<Outcome, Error> {
            Ok(Outcome::Done)
        }
    }

    impl Reconciler for Spreader {
        async fn reconcile(&self, ctx: &Context, _: &Key) -> Result<Outcome, Error> {
            let wanted = ConfigMap::default();
            for name in ctx.clusters() {
                let Some(there) = ctx.in_cluster(&name) else { continue };
                there.apply(&wanted).await?;
            }
            Ok(Outcome::Done)
        }
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
            ctx.apply(&desired).owned_by(&*owner).await?;
            ctx.apply(&desired).unforced().dry_run().await?;
            let selected = ListOptions::all().labels(Selector::default()).fields("a=b");
            ctx.live_list::<ConfigMap>(&selected).await?;
            ctx.list_selected::<ConfigMap>(&selected)?;
            ctx.delete_all::<ConfigMap>(&selected, &DeleteParams::default()).await?;
            ctx.create(&desired).field_owner("x").validation(ValidationDirective::Strict).await?;
            let (before, after, data, delay) = (desired.clone(), desired.clone(), (), Duration::ZERO);
            ctx.merge_from(&before, &after).optimistic_lock().await?;
            let _ = ctx.in_cluster("edge");
            drop((data, ctx.discover("v1", "Pod")));
            ctx.patch_json::<ConfigMap>(key, JsonPatch::default()).await?;
            let _: Value = ctx.subresource::<ConfigMap>(key, "x").get().await?;
            ctx.apply(&*owner).status().await?;
            ctx.apply_all(&*owner, Desired::new().with(desired).then()).await?;
            ctx.guard(&*owner, "example.com/cleanup", || async { Ok(()) }).await?;
            let wanted = NewCondition::new("Ready", Status::True, "AllGood");
            conditions::set(&mut Vec::new(), &wanted, ctx.world().clock.now());
            ctx.status(&*owner).condition(wanted).set(|status| status.ready = 1).await?;
            ctx.event(&*owner, EventType::Normal, "Created", "");
            let event = NewEvent::new(EventType::Warning, "Failed", "").action("Clean").related(&*owner);
            ctx.record(&*owner, event);
            tracing::info!(reasons = %ctx.reasons());
            match (all.len(), owned.len(), live) {
                (0, 0, None) => Err(Error::terminal("err").reason("err")),
                (0, ..) => Err(Error::new("err").retry_after(delay)),
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
            .applies::<Deployment>()
            .applies_labelled::<Secret>("example.com/owner")
            .takes_over_from(["manager"])
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
            .cache_sync_timeout(d)
            .on_error(ErrorPolicy::default())
            .measured("mine_number", "A number", |_: &K| Some(1.0))
            .client_layer(ClientLayer::one_namespace("x"))
            .client_layer(ClientLayer::intercepting(|_| Ok(())))
            .dry_run()
            .watches_in_each(|_: &K| Vec::new())
            .in_each_cluster()
            .all_own_events()
    }

    #[derive(clap::Args)]
    struct A {}

    async fn program(client: Client, webhooks: webhook::Webhooks) -> command::Operator {
        let mut manager = Manager::new(client, World::real());
        manager.elect(LeaderElection::lease("default", "mine"));
        let cluster = Cluster::start().await;
        drop((manager, cluster));
        Operator::new("mine", "1").args::<A>().pod(|_| ()).defaults(Defaults::new()).webhooks(webhooks)
    }
}

/// `docs/migrating`
mod migrating {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::{CustomResource, runtime::controller::Action};
    use kubewright::{Guarded, kube_rs};
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};
    use website_operator::types::Website as Page;

    use super::*;

    struct Pages;

    impl Reconciler for Pages {
        async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
            ctx.remove_finalizer(&*ctx.get::<Page>(key).unwrap(), "old").await?;
            Ok(Outcome::Done)
        }
    }

    fn of_another_field_manager() -> Controller {
        let controller = Controller::new("pages", Pages)
            .for_kind::<Page>()
            .applies::<ConfigMap>()
            .takes_over_from(["manager"]);
        controller.core_events().event_source("name")
    }

    struct Data {
        client: Client,
    }

    async fn reconcile(_: Arc<Page>, data: Arc<Data>) -> Result<Action, kube::Error> {
        data.client.apiserver_version().await?;
        Ok(Action::await_change())
    }

    fn error_policy(_: Arc<Page>, _: &kube::Error, _: Arc<Data>) -> Action {
        Action::await_change()
    }

    fn pages(client: Client) -> Controller {
        Controller::new("pages", kube_rs::reconciler(reconcile, error_policy, Arc::new(Data { client })))
            .for_kind::<Page>()
            .owns::<ConfigMap>()
            .all_own_events()
            .writes::<ConfigMap>([Verb::Create, Verb::Patch])
    }

    fn operator() -> Operator {
        Operator::new("pages", env!("CARGO_PKG_VERSION"))
            .definition::<Page>()
            .controller_in(|manager| pages(manager.client().clone()))
    }

    #[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
    #[kube(group = "example.com", version = "v1", kind = "Site", namespaced, status = "SiteStatus")]
    struct SiteSpec {
        page: String,
    }

    #[derive(JsonSchema, Clone, Debug, Default, Serialize, Deserialize)]
    struct SiteStatus {
        reachable: bool,
    }

    struct Sites {
        dns: Dns,
    }

    impl Reconciler for Sites {
        async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
            let Some(site) = ctx.get::<Site>(key) else { return Ok(Outcome::Done) };
            let host = format!("{}.example.com", key.name);
            if ctx.guard(&*site, "example.com/dns", || self.dns.remove(&host)).await? == Guarded::Cleaned {
                return Ok(Outcome::Done);
            }
            self.dns.add(&host).await?;
            ctx.apply(&page_of(&site)).owned_by(&*site).await?;
            let reachable = self.dns.resolves(&host).await?;
            ctx.status(&*site).set(|status| status.reachable = reachable).await?;
            Ok(Outcome::RequeueAfter(Duration::from_secs(60)))
        }
    }

    fn page_of(site: &Site) -> ConfigMap {
        let (name, namespace) = (site.metadata.name.clone(), site.metadata.namespace.clone());
        let data = [("index.html".to_owned(), site.spec.page.clone())];
        ConfigMap {
            metadata: ObjectMeta { name, namespace, ..ObjectMeta::default() },
            data: Some(data.into()),
            ..ConfigMap::default()
        }
    }

    fn sites() -> Controller {
        Controller::new("sites", Sites { dns: Dns })
            .for_kind::<Site>()
            .applies::<ConfigMap>()
            .writes_status::<Site>()
            .guards::<Site>()
    }

    /// A service outside of the cluster.
    struct Dns;

    impl Dns {
        async fn add(&self, _: &str) -> Result<(), Error> {
            Ok(())
        }

        async fn remove(&self, _: &str) -> Result<(), Error> {
            Ok(())
        }

        async fn resolves(&self, _: &str) -> Result<bool, Error> {
            Ok(true)
        }
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
    let elsewhere = page("../crates/kubewright/examples/quotas.rs");
    let compiled = flat(include_str!("pages.rs")) + &flat(&elsewhere);
    for name in [
        "client.md",
        "clusters.md",
        "coming-from.md",
        "migrating/from-controller-runtime.md",
        "migrating/from-josdk.md",
        "migrating/from-kopf.md",
        "migrating/from-kube-rs.md",
        "production.md",
        "webhooks.md",
    ] {
        let page = page(name);
        let blocks: Vec<_> =
            page.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert!(!blocks.is_empty(), "{name}");
        for block in blocks {
            // Items and statements stand in different places.
            for part in block.split("\nlet webhooks = ") {
                let part = part
                    .strip_prefix("Webhooks::")
                    .map_or_else(|| part.to_owned(), |rest| format!("let webhooks = Webhooks::{rest}"));
                assert!(compiled.contains(&flat(&part)), "docs/{name} shows what is not compiled:\n{part}");
            }
        }
    }
}

#[test]
fn the_go_that_a_page_shows_is_compiled_and_tested() {
    let (shown, tested) = (page("coming-from.md"), page("../tests/envtest-go/quotas/quotas.go"));
    let blocks: Vec<_> = shown.split("```go\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), 1);
    assert!(tested.contains(blocks[0].trim_end()), "docs/coming-from.md shows what is not in the suite");
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
    let mut compiled = words(include_str!("pages.rs"));
    compiled.extend(words(&page("../crates/kubewright/examples/quotas.rs")));
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
