//! Operators in a test.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, ObjectMeta, PropagationPolicy};
use kube::{Api, ResourceExt};
use kubewright::command::Operator;
use kubewright::testing::Cluster;
use kubewright::testing::admin::{ApiFault, Match, Rule, Verb};
use kubewright::{Context, Controller, Error, Key, Outcome, Reconciler, owner, rbac};
use serde_json::json;

use crate::copier::{self, secret};

#[kubewright::test]
async fn an_operator_runs_as_its_account_under_its_name(cluster: Cluster) {
    let operator = cluster.run(copier::operator()).await;
    assert_eq!(operator.name(), "copier");
    let secret = cluster.create(&secret("a", &["key"])).await;
    cluster.settle().await;
    let copies = cluster.owned_by::<ConfigMap>(&secret).await;
    assert_eq!(copies.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["a"]);
    let events = cluster.events_of(&secret).await;
    let recorded: Vec<_> =
        events.iter().map(|event| (event.reason.as_deref(), event.note.as_deref())).collect();
    assert_eq!(recorded, [(Some("Copied"), Some("Copied its keys"))]);
    let history = cluster.history::<ConfigMap>("a");
    let write = &history.writes[0];
    assert_eq!(
        (write.verb.as_str(), write.program.as_str(), write.user.as_str()),
        ("patch", "copier/1.0", "system:serviceaccount:copier-system:copier")
    );
    let because = "copier reconciled default/a: Secret default/a created at ";
    assert!(write.because.starts_with(because), "{}", write.because);
    let rights = operator.rights();
    assert_eq!(rights.unused.iter().collect::<Vec<_>>(), [("configmaps".to_owned(), "delete".to_owned())]);
}

#[kubewright::test(real = true)]
async fn what_is_deleted_comes_back(cluster: Cluster) {
    cluster.run(copier::operator()).await;
    cluster.create(&secret("a", &["key"])).await;
    let first = cluster.eventually(async |cluster: Cluster| cluster.try_get::<ConfigMap>("a").await).await;
    cluster.delete::<ConfigMap>("a").await;
    cluster
        .eventually(async |cluster: Cluster| {
            cluster.try_get::<ConfigMap>("a").await.filter(|copy| copy.metadata.uid != first.metadata.uid)
        })
        .await;
}

/// While its watch lags, it does not know that the owner is gone, and sees one copy after the other being taken.
#[kubewright::test]
async fn an_owner_that_is_gone_gets_no_second_child_while_the_watch_lags(cluster: Cluster) {
    cluster.run(copier::operator()).await;
    cluster.create(&secret("a", &["key"])).await;
    cluster.settle().await;
    let secrets = Match {
        resource: Some("secrets".to_owned()),
        user_agent: Some("copier".to_owned()),
        ..Match::default()
    };
    let lag = Rule::new(ApiFault::HoldWatch { lasting: None }).on(secrets);
    let lag = cluster.admin().expect("the admin").inject(lag);
    cluster.delete::<Secret>("a").await;
    cluster.advance(Duration::from_mins(5)).await;
    assert!(!cluster.exists::<ConfigMap>("a").await);
    let made = |cluster: &Cluster| {
        let writes = cluster.history::<ConfigMap>("a").writes;
        writes.iter().filter(|write| write.verb == "patch").count()
    };
    assert_eq!(made(&cluster), 1, "{}", cluster.history::<ConfigMap>("a"));

    // Another of the same name is another owner.
    cluster.create(&secret("a", &["key"])).await;
    cluster.admin().expect("the admin").remove_fault(lag);
    cluster.settle().await;
    assert!(cluster.exists::<ConfigMap>("a").await);
    assert_eq!(made(&cluster), 2);
}

/// Gives each Secret without a child one, under a name that the server chooses.
struct Provider;

impl Reconciler for Provider {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(secret) = ctx.get::<Secret>(key) else { return Ok(Outcome::Done) };
        if secret.metadata.deletion_timestamp.is_none()
            && ctx.owned_by::<ConfigMap>(&secret.uid().unwrap_or_default()).is_empty()
        {
            let metadata = ObjectMeta {
                generate_name: Some(format!("{}-", key.name)),
                namespace: key.namespace.clone(),
                owner_references: Some(vec![owner::controller_reference(&*secret)]),
                ..ObjectMeta::default()
            };
            ctx.create(&ConfigMap { metadata, ..ConfigMap::default() }).await?;
        }
        Ok(Outcome::Done)
    }
}

/// The garbage collector takes the owner from its child, and the operator would find that it has none.
#[kubewright::test]
async fn an_owner_that_left_its_child_behind_gets_no_other_while_the_watch_lags(cluster: Cluster) {
    let controller = || {
        let controller = Controller::new("provider", Provider).for_kind::<Secret>().owns::<ConfigMap>();
        controller.writes::<ConfigMap>([rbac::Verb::Create])
    };
    cluster.run(Operator::new("provider", "1.0").controller(controller)).await;
    cluster.create(&secret("a", &["key"])).await;
    cluster.settle().await;
    let secrets = Match { user_agent: Some("provider".to_owned()), ..Match::resource("secrets") };
    cluster.admin().expect("the admin").inject(Rule::new(ApiFault::HoldWatch { lasting: None }).on(secrets));
    let orphan =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    let secrets = Api::<Secret>::namespaced(cluster.client(), cluster.namespace());
    secrets.delete("a", &orphan).await.expect("deleted");
    cluster.advance(Duration::from_mins(5)).await;
    assert!(!cluster.exists::<Secret>("a").await);
    let left = cluster.list::<ConfigMap>().await;
    let left: Vec<_> = left.iter().filter(|map| map.name_any().starts_with("a-")).collect();
    assert_eq!((left.len(), left[0].owner_references()), (1, [].as_slice()));
}

fn replacer() -> Operator {
    let controller = || {
        let controller = Controller::new("replacer", Replacer).for_kind::<Secret>().owns::<ConfigMap>();
        controller.writes::<ConfigMap>([rbac::Verb::Create, rbac::Verb::Delete])
    };
    Operator::new("replacer", "1.0").controller(controller)
}

/// Deletes what it has made for a Secret when that one changes, and makes it anew.
struct Replacer;

impl Reconciler for Replacer {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(secret) = ctx.get::<Secret>(key) else { return Ok(Outcome::Done) };
        let wanted = secret.data.as_ref().map_or(0, BTreeMap::len).to_string();
        let made = ctx.get::<ConfigMap>(key);
        let has = made.as_ref().and_then(|made| made.data.as_ref()?.get("keys"));
        if has == Some(&wanted) {
            return Ok(Outcome::Done);
        }
        if made.is_some() {
            ctx.delete::<ConfigMap>(key, DeleteParams::default()).await?;
        }
        let metadata = ObjectMeta {
            name: Some(key.name.clone()),
            namespace: key.namespace.clone(),
            owner_references: Some(vec![owner::controller_reference(&*secret)]),
            ..ObjectMeta::default()
        };
        let data = Some([("keys".to_owned(), wanted)].into());
        ctx.create(&ConfigMap { metadata, data, ..ConfigMap::default() }).await?;
        Ok(Outcome::Done)
    }
}

#[kubewright::test(controllers = "")]
async fn the_owner_is_asked_for_when_a_child_was_taken_and_not_when_it_was_given_up(cluster: Cluster) {
    cluster.run(replacer).await;
    let asked = |cluster: &Cluster| {
        let gets = Match {
            resource: Some("secrets".to_owned()),
            verbs: vec![Verb::Get],
            user_agent: Some("replacer".to_owned()),
            ..Match::default()
        };
        cluster.admin().expect("the admin").requests(&gets, 100).requests.len()
    };
    cluster.create(&secret("a", &["key"])).await;
    cluster.settle().await;
    for more in ["other", "third"] {
        cluster.patch::<Secret>("a", json!({"stringData": {more: "x"}})).await;
        cluster.settle().await;
    }
    let keys = cluster.get::<ConfigMap>("a").await.data.and_then(|data| data.get("keys").cloned());
    assert_eq!((keys.as_deref(), asked(&cluster)), (Some("3"), 0));

    cluster.delete::<ConfigMap>("a").await;
    cluster.settle().await;
    assert!(cluster.exists::<ConfigMap>("a").await);
    assert_eq!(asked(&cluster), 1);
}

#[kubewright::test]
async fn after_a_crash_nothing_is_done_until_it_is_started_again(cluster: Cluster) {
    let operator = cluster.run(copier::operator()).await;
    cluster.settle().await;
    operator.crash().await;
    assert!(!operator.is_running());
    cluster.create(&secret("a", &["key"])).await;
    cluster.settle().await;
    assert!(!cluster.exists::<ConfigMap>("a").await);
    operator.restart().await;
    assert!(operator.is_running());
    cluster.settle().await;
    assert!(cluster.exists::<ConfigMap>("a").await);
    operator.stop().await;
    assert!(!operator.is_running());
}

#[kubewright::test]
async fn it_can_crash_between_any_two_writes(cluster: Cluster) {
    let operator = cluster.run(copier::operator()).await;
    cluster.settle().await;
    let mut crashes = 0;
    for writes in 0.. {
        operator.crash_after(writes);
        let name = format!("number-{writes}");
        cluster.create(&secret(&name, &["key"])).await;
        cluster.patch::<Secret>(&name, json!({"stringData": {"other": "x"}})).await;
        cluster.settle().await;
        if operator.is_running() {
            break;
        }
        crashes += 1;
        let before = cluster.history::<ConfigMap>(&name).writes.len();
        assert!(before as u64 <= writes, "it wrote {before} times");
        operator.restart().await;
        cluster.settle().await;
        assert_eq!(cluster.get::<ConfigMap>(&name).await.data.map(|data| data.len()), Some(2));
    }
    assert!(crashes > 0);
}

#[kubewright::test]
async fn of_two_replicas_one_works_and_the_other_takes_over(cluster: Cluster) {
    let operator = cluster.run(copier::operator()).replicas(2).await;
    cluster.create(&secret("a", &["key"])).await;
    cluster.eventually(async |cluster: Cluster| cluster.exists::<ConfigMap>("a").await).await;
    let home = cluster.in_namespace("copier-system");
    let holder = async || home.get::<Lease>("copier").await.spec.and_then(|spec| spec.holder_identity);
    let first = holder().await;
    operator.crash_leader().await;
    cluster.create(&secret("b", &["key"])).await;
    cluster.settle().await;
    assert!(!cluster.exists::<ConfigMap>("b").await, "the lease of the dead one holds the other up");
    cluster.eventually(async |cluster: Cluster| cluster.exists::<ConfigMap>("b").await).await;
    assert_ne!(holder().await, first);
}

#[kubewright::test(namespaces = ["mine", "others"])]
async fn it_may_be_told_to_look_at_some_namespaces_alone(cluster: Cluster) {
    cluster.run(copier::operator()).watching(["mine"]).await;
    let others = cluster.in_namespace("others");
    cluster.create(&secret("a", &["key"])).await;
    others.create(&secret("a", &["key"])).await;
    cluster.settle().await;
    assert!(cluster.exists::<ConfigMap>("a").await);
    assert!(!others.exists::<ConfigMap>("a").await);
}

#[kubewright::test]
async fn a_requeue_lives_in_cluster_time(cluster: Cluster) {
    cluster.run(copier::operator()).await;
    cluster.create(&secret("a", &["key"])).await;
    cluster.settle().await;
    cluster.patch::<ConfigMap>("a", json!({"data": {"key": null}})).await;
    cluster.settle().await;
    assert!(cluster.get::<ConfigMap>("a").await.data.is_some_and(|data| data.contains_key("key")));
    cluster.advance(copier::AGAIN).await;
    cluster.advance(Duration::from_hours(24 * 365)).await;
}
