//! Every operation of the SDK under the rights that were generated for it: with them it works, and without one of them the
//! refusal says which.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ObjectMeta, PostParams};
use kubewright_cluster::{Cluster, admission::Plugins};
use kubewright_runtime::rbac::{Missing, Observed, Rights, Verb};
use kubewright_runtime::webhook::{Certificates, Reach, Registration, Server, Validator, Webhook, Webhooks};
use kubewright_runtime::{
    CancellationToken, Context, Controller, Desired, Error, EventType, Key, LeaderElection, Manager, Outcome,
    Reconciler, Sharding, World,
};
use kubewright_world::Dice;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// What a reconcile does.
type Act = for<'a> fn(&'a Context, &'a Key) -> BoxFuture<'a, Result<(), Error>>;

/// An operation of the Context, and how it is declared.
struct Operation {
    name: &'static str,
    declare: fn(Controller) -> Controller,
    act: Act,
    /// What admission asks for, which no request tells of.
    besides: &'static [&'static str],
}

/// Does it for the ConfigMap `a`, and keeps what came of the first time.
struct Acting(Act, Arc<Mutex<Option<Result<(), String>>>>);

impl Reconciler for Acting {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        if key.name == "a" && self.1.lock().is_none() {
            let done = (self.0)(ctx, key).await;
            *self.1.lock() = Some(done.map_err(|error| error.to_string()));
        }
        Ok(Outcome::Done)
    }
}

fn operations() -> Vec<Operation> {
    let of = |name, declare, act| Operation { name, declare, act, besides: &[] };
    vec![
        of(
            "create",
            |one| one.writes::<Secret>([Verb::Create]),
            |ctx, _| async { ctx.create(&secret("made")).await.map(drop) }.boxed(),
        ),
        of(
            "update",
            |one| one.writes::<ConfigMap>([Verb::Update]),
            |ctx, key| async { ctx.update(&labelled(&own(ctx, key))).await.map(drop) }.boxed(),
        ),
        of(
            "patch",
            |one| one.writes::<ConfigMap>([Verb::Patch]),
            |ctx, key| {
                let patch = json!({"metadata": {"labels": {"a": "b"}}});
                async { ctx.patch::<ConfigMap>(key, patch).await.map(drop) }.boxed()
            },
        ),
        of("status", Controller::writes_status::<Deployment>, |ctx, _| {
            let patch = json!({"status": {"observedGeneration": 7}});
            async move { ctx.patch_status::<Deployment>(&named("web"), patch).await.map(drop) }.boxed()
        }),
        of(
            "apply",
            |one| one.writes::<Secret>([Verb::Create, Verb::Patch]),
            |ctx, _| async { ctx.apply(&secret("made")).await.map(drop) }.boxed(),
        ),
        of(
            "delete",
            |one| one.writes::<Secret>([Verb::Delete]),
            |ctx, _| {
                async { ctx.delete::<Secret>(&named("old"), DeleteParams::default()).await.map(drop) }.boxed()
            },
        ),
        Operation {
            besides: &["configmaps/finalizers update (in the namespace default, on a)"],
            ..of(
                "ensure",
                |one| one.owns::<Secret>().writes::<Secret>([Verb::Create, Verb::Patch]),
                |ctx, key| {
                    async { ctx.ensure(&secret("made"), Some(&*own(ctx, key))).await.map(drop) }.boxed()
                },
            )
        },
        Operation {
            besides: &["configmaps/finalizers update (in the namespace default, on a)"],
            ..of("apply all", Controller::applies::<Secret>, |ctx, key| {
                async {
                    ctx.apply_all(&*own(ctx, key), Desired::new().with(secret("made"))).await?;
                    ctx.apply_all(&*own(ctx, key), Desired::new()).await.map(drop)
                }
                .boxed()
            })
        },
        Operation {
            besides: &[
                "secrets delete (in the namespace default, on old)",
                "configmaps/finalizers update (in the namespace default, on a)",
            ],
            ..of(
                "adopt",
                |one| one.owns::<Secret>().writes::<Secret>([Verb::Patch, Verb::Delete]),
                |ctx, key| {
                    async { ctx.ensure(&secret("old"), Some(&*own(ctx, key))).await.map(drop) }.boxed()
                },
            )
        },
        of("guard", Controller::guards::<ConfigMap>, |ctx, key| {
            let cleanup = || async { Ok(()) };
            async move { ctx.guard(&*own(ctx, key), "example.com/guard", cleanup).await.map(drop) }.boxed()
        }),
        of(
            "live",
            |one| one.may(|rights| rights.live_reads::<Secret>()),
            |ctx, _| async { ctx.live::<Secret>(&named("old")).await.map(drop) }.boxed(),
        ),
        of(
            "scale",
            |one| one.may(|rights| rights.scaling::<Deployment>()),
            |ctx, _| async { ctx.scale::<Deployment>(&named("web"), 3).await.map(drop) }.boxed(),
        ),
        of(
            "watch",
            |one| one.may(|rights| rights.watching::<Secret>()),
            |ctx, _| {
                async {
                    let _watching = ctx.watch::<Secret>(|_| Vec::new());
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    Ok(())
                }
                .boxed()
            },
        ),
        of(
            "event",
            |one| one,
            |ctx, key| {
                async {
                    ctx.event(&*own(ctx, key), EventType::Normal, "Seen", "it is there");
                    Ok(())
                }
                .boxed()
            },
        ),
        of("core event", Controller::core_events, |ctx, key| {
            async {
                ctx.event(&*own(ctx, key), EventType::Normal, "Seen", "it is there");
                Ok(())
            }
            .boxed()
        }),
    ]
}

fn named(name: &str) -> Key {
    Key::namespaced("default", name)
}

fn secret(name: &str) -> Secret {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some("default".to_owned()),
        ..ObjectMeta::default()
    };
    Secret { metadata, ..Secret::default() }
}

fn own(ctx: &Context, key: &Key) -> Arc<ConfigMap> {
    ctx.get(key).expect("it is there")
}

fn labelled(map: &ConfigMap) -> ConfigMap {
    let mut map = map.clone();
    map.metadata.labels.get_or_insert_default().insert("a".to_owned(), "b".to_owned());
    map
}

/// A cluster with what the operations are about.
async fn cluster() -> Cluster {
    let plugins = Plugins::default().enable("OwnerReferencesPermissionEnforcement").unwrap();
    let cluster = Cluster::builder().controllers("").nodes(0).admission(plugins).start().await.unwrap();
    let deployment = json!({"metadata": {"name": "web"}, "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web"}]}},
    }});
    let deployment: Deployment = kubewright_objects::from_value(deployment).unwrap();
    let map: ConfigMap = kubewright_objects::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    let (client, params) = (cluster.client(), PostParams::default());
    Api::default_namespaced(client.clone()).create(&params, &deployment).await.unwrap();
    Api::default_namespaced(client.clone()).create(&params, &map).await.unwrap();
    Api::default_namespaced(client).create(&params, &secret("old")).await.unwrap();
    cluster
}

/// A client of an account with these rules and no others, and what it asks for.
async fn under(cluster: &Cluster, rules: Vec<PolicyRule>) -> (Client, Observed) {
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "operator"}, "rules": rules});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "operator"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "operator"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "operator"}]});
    for object in [role, binding] {
        let object: DynamicObject = kubewright_objects::from_value(object).unwrap();
        let types = object.types.as_ref().unwrap();
        let kind = kube::core::ApiResource::from_gvk(&types.try_into().unwrap());
        let api: Api<DynamicObject> = Api::all_with(cluster.client(), &kind);
        api.create(&PostParams::default(), &object).await.unwrap();
    }
    let observed = Observed::new();
    (observed.client(&cluster.client_of_service_account("default", "operator")), observed)
}

/// What became of an operation of an operator with these rules, and what was observed.
async fn run(operation: &Operation, rules: Vec<PolicyRule>) -> (Option<Result<(), String>>, Observed) {
    let cluster = cluster().await;
    let (client, observed) = under(&cluster, rules).await;
    let result = Arc::new(Mutex::new(None));
    let mut manager = Manager::in_process(client, cluster.world().clone());
    manager.add(controller(operation, Acting(operation.act, Arc::clone(&result))));
    let running = tokio::spawn(manager.run(cluster.shutdown()));
    tokio::time::sleep(Duration::from_secs(5)).await;
    cluster.stop().await;
    running.await.unwrap().unwrap();
    let result = result.lock().clone();
    (result, observed)
}

fn controller(operation: &Operation, acting: Acting) -> Controller {
    (operation.declare)(Controller::new("op", acting).for_kind::<ConfigMap>())
}

fn rights(operation: &Operation) -> Rights {
    controller(operation, Acting(operation.act, Arc::default())).rights()
}

/// The rules without one right (`apps/deployments/scale patch ...`).
fn without(rules: &[PolicyRule], right: &str) -> Vec<PolicyRule> {
    let mut words = right.split(' ');
    let (what, verb) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut left = Vec::new();
    for rule in rules {
        for resource in rule.resources.iter().flatten() {
            let group = rule.api_groups.clone().unwrap_or_default().concat();
            let whole = if group.is_empty() { resource.clone() } else { format!("{group}/{resource}") };
            let mut one = PolicyRule { resources: Some(vec![resource.clone()]), ..rule.clone() };
            one.verbs.retain(|have| whole != what || have != verb);
            left.extend((!one.verbs.is_empty()).then_some(one));
        }
    }
    left
}

fn described(missing: &[Missing]) -> Vec<String> {
    missing.iter().map(ToString::to_string).collect()
}

/// `apps/deployments patch`.
fn short(text: &str) -> &str {
    text.split_once(" (").map_or(text, |(short, _)| short)
}

#[tokio::test(start_paused = true)]
async fn every_operation_works_under_the_rights_that_were_generated_for_it_and_without_one_says_which() {
    for operation in operations() {
        let (name, rights) = (operation.name, rights(&operation));
        let (result, observed) = run(&operation, rights.rules()).await;
        assert_eq!(result, Some(Ok(())), "{name}");
        let report = observed.report(&rights);
        assert!(report.missing.is_empty(), "{name}: {report}");
        if operation.besides.is_empty() {
            assert!(report.is_clean(), "{name}: {report}");
            let (result, observed) = run(&operation, all_rules(&observed)).await;
            assert_eq!(result, Some(Ok(())), "{name} with the roles that were observed: {observed:?}");
        }
        let used: Vec<String> = observed.used().iter().map(ToString::to_string).collect();
        assert!(used.len() >= 2, "{name}: {used:?}");
        // Every controller watches its own kind: one of them shows what that takes.
        let is_common =
            |right: &&str| right.starts_with("configmaps list") || right.starts_with("configmaps watch");
        let rights_used =
            used.iter().map(String::as_str).filter(|right| name == "create" || !is_common(right));
        for right in rights_used.chain(operation.besides.iter().copied()) {
            let (result, observed) = run(&operation, without(&rights.rules(), right)).await;
            let missing = described(&observed.missing());
            let expected = format!("add: {}", short(right));
            assert!(
                missing.iter().any(|text| short(text) == expected),
                "{name} without {right}: {missing:?}"
            );
            for missing in observed.missing() {
                let remedy = missing.remedy(&rights);
                assert!(
                    remedy.contains("the cluster does not grant it"),
                    "{name} without {right}: {missing}: {remedy}"
                );
            }
            // What is watched is told in the log alone, and an event that cannot be recorded is no failure.
            let is_error =
                !name.contains("event") && !matches!(right.split(' ').nth(1), Some("list" | "watch"));
            let asks = !operation.besides.contains(&right);
            if is_error && asks {
                let error = result.and_then(Result::err).unwrap_or_default();
                assert!(error.contains(&expected), "{name} without {right}: {error:?}");
            }
        }
    }
}

/// The rules of the roles that were observed: everything happens in one namespace, but what is watched everywhere.
fn all_rules(observed: &Observed) -> Vec<PolicyRule> {
    let roles = observed.roles("operator", "operator-system").into_iter();
    roles
        .flat_map(|role| kubewright_objects::from_value::<Vec<PolicyRule>>(&role.data["rules"]).unwrap())
        .collect()
}

struct Fine;

impl Validator<ConfigMap> for Fine {}

/// What a manager asks for that elects, shares or serves webhooks, under the rights that it says it needs.
async fn served(join: impl Fn(&mut Manager), rights: impl Fn(&Manager) -> Rights) -> Observed {
    let cluster = cluster().await;
    let world = World { dice: Dice::from_seed(3), ..cluster.world().clone() };
    let rules = {
        let mut manager = Manager::in_process(cluster.client(), world.clone());
        join(&mut manager);
        rights(&manager).rules()
    };
    let (client, observed) = under(&cluster, rules).await;
    let mut manager = Manager::in_process(client, world);
    join(&mut manager);
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    tokio::time::sleep(Duration::from_secs(30)).await;
    stop.cancel();
    running.await.unwrap().unwrap();
    cluster.stop().await;
    observed
}

#[tokio::test(start_paused = true)]
async fn a_manager_knows_the_rights_to_elect_to_share_and_to_serve_webhooks() {
    let elect = |manager: &mut Manager| {
        manager.elect(LeaderElection::lease("default", "op"));
    };
    let share = |manager: &mut Manager| {
        manager.share(Sharding::ring("default", "op"));
    };
    let server = |registration| {
        Server::new(Webhooks::new("op").add(Webhook::validating::<ConfigMap>(Fine)))
            .bind(([127, 0, 0, 1], 0).into())
            .reached_at(Reach::service("default", "op"))
            .certificates(Certificates::in_secret("default", "op-ca"))
            .registration(registration)
    };
    let serve = |manager: &mut Manager| {
        manager.serve(server(Registration::Apply));
    };
    type Join<'a> = (&'a str, &'a dyn Fn(&mut Manager), &'a [&'a str]);
    let joins: [Join<'_>; 3] = [
        (
            "elect",
            &elect,
            &["coordination.k8s.io/leases update", "coordination.k8s.io/leases create", "events create"],
        ),
        ("share", &share, &["coordination.k8s.io/leases update", "coordination.k8s.io/leases list"]),
        (
            "serve",
            &serve,
            &["secrets create", "admissionregistration.k8s.io/validatingwebhookconfigurations patch"],
        ),
    ];
    for (name, join, used) in joins {
        let observed = served(join, Manager::rights).await;
        assert!(observed.missing().is_empty(), "{name}: {:?}", observed.missing());
        let all: Vec<String> = observed.used().iter().map(ToString::to_string).collect();
        for right in used {
            assert!(all.iter().any(|text| short(text) == *right), "{name}: {right} in {all:?}");
        }
        let none = served(join, |_| Rights::default()).await;
        assert!(!none.missing().is_empty(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_right_that_the_code_does_not_declare_is_told_with_its_declaration() {
    let forgetful = Operation {
        declare: |one| one,
        ..operations().into_iter().find(|operation| operation.name == "create").unwrap()
    };
    let rights = rights(&forgetful);
    let (result, observed) = run(&forgetful, rights.rules()).await;
    let error = result.and_then(Result::err).unwrap_or_default();
    assert!(
        error.ends_with("in the namespace \"default\"; add: secrets create (in the namespace default)"),
        "{error}"
    );
    assert_eq!(
        observed.report(&rights).to_string(),
        "these rights are missing:\n  add: secrets create (in the namespace default): the code does not declare it: \
         add .writes::<K>([Verb::Create]) with K of secrets to the controller"
    );
    let value: Value = kubewright_objects::to_value(&observed.roles("op", "default")).unwrap();
    assert_eq!(value[0]["kind"], "ClusterRole");
}
