//! What the checks find by themselves: a test without an assertion, in which a user only does things.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::core::ObjectMeta;
use kubewright::owner;
use kubewright::testing::Cluster;
use kubewright::testing::harness::{Seeds, Test, first_failure, run};
use serde_json::json;

use super::STORY;
use super::bug::Bug;
use super::operator::{Page, operator, page};

const SILENT: Test = Test { name: "without_an_assertion_an_operator_without_a_bug_passes", ..STORY };

/// What a user does.
async fn acts(cluster: Cluster, bug: Option<Bug>) {
    let metadata = ObjectMeta { name: Some("b-page".to_owned()), ..ObjectMeta::default() };
    let data = Some([("text".to_owned(), "mine".to_owned())].into());
    let foreign = ConfigMap { metadata, data, ..ConfigMap::default() };
    cluster.create(&foreign).await;
    cluster.run(operator(bug)).await;
    let mut page_a = page("a", "one");
    page_a.spec.footer = Some("the end".to_owned());
    page_a.spec.languages = vec!["de".to_owned(), "fr".to_owned()];
    cluster.create(&page_a).await;
    cluster.create(&page("b", "other")).await;
    cluster.settle().await;

    let change = json!({"spec": {"text": "two", "footer": null, "languages": ["fr"]}});
    cluster.patch::<Page>("a", change).await;
    cluster.settle().await;

    // Somebody marks what there is, and takes some away; a page comes and goes.
    let theirs = owner::controller_reference(&cluster.get::<ConfigMap>("b-page").await);
    let maps = cluster.list::<ConfigMap>().await.into_iter().map(|map| map.name_any());
    for map in maps.filter(|name| name.starts_with("a-")) {
        let map = cluster.get::<ConfigMap>(&map).await;
        let mut owners = map.metadata.owner_references.clone().unwrap_or_default();
        owners.push(OwnerReference { controller: None, block_owner_deletion: None, ..theirs.clone() });
        let annotations = json!({"audit.example/seen": "yes"});
        let marks = json!({"metadata": {"annotations": annotations, "ownerReferences": owners}});
        cluster.patch::<ConfigMap>(&map.name_any(), marks).await;
    }
    cluster.create(&page("flash", "short")).await;
    cluster.advance(Duration::from_millis(20)).await;
    cluster.delete::<Page>("flash").await;
    cluster.patch::<Page>("a", json!({"spec": {"text": "three"}})).await;
    cluster.settle().await;

    if cluster.exists::<ConfigMap>("a-in-fr").await {
        cluster.delete::<ConfigMap>("a-in-fr").await;
        cluster.settle().await;
    }
}

#[test]
fn without_an_assertion_an_operator_without_a_bug_passes() {
    run(&SILENT, |cluster| acts(cluster, None));
}

#[test]
#[ignore = "takes minutes"]
fn without_an_assertion_an_operator_without_a_bug_passes_a_thousand_seeds() {
    run(&Test { seeds: Seeds::First(1000), ..SILENT }, |cluster| acts(cluster, None));
}

/// Which seed has caught a bug, and by what.
#[expect(clippy::print_stdout, reason = "with --nocapture it is a table of what catches what")]
fn is_caught(bug: Bug) {
    match first_failure(&SILENT, move |cluster| acts(cluster, Some(bug))) {
        Some((seed, why)) => println!("{bug:?}: seed {seed}: {}", why.lines().next().unwrap_or_default()),
        None => panic!("{bug:?} is not caught"),
    }
}

macro_rules! mutants {
    ($($name:ident: $bug:ident,)*) => {
        $(#[test]
        fn $name() {
            is_caught(Bug::$bug);
        })*
    };
}

mutants! {
    a_missing_owner_reference_is_caught: MissingOwner,
    creating_without_looking_is_caught: CreateUnchecked,
    a_status_before_the_action_is_caught: StatusFirst,
    a_lost_update_is_caught: LostUpdate,
    a_cleanup_that_cannot_be_repeated_is_caught: CleanupOnce,
    a_decision_on_old_state_is_caught: StaleRead,
    a_deletion_that_is_missed_is_caught: MissedDelete,
    a_hot_loop_is_caught: HotLoop,
    a_retry_without_end_is_caught: RetryWithoutEnd,
    adopting_a_strangers_child_is_caught: AdoptsStrangers,
    an_error_that_is_swallowed_is_caught: SwallowedError,
    a_finalizer_that_comes_late_is_caught: LateFinalizer,
    what_is_only_remembered_is_caught: ForgetsOnRestart,
    writing_what_is_there_is_caught: WritesTheSame,
    forgetting_to_remove_a_key_is_caught: ForgetsKey,
    forgetting_to_remove_a_child_is_caught: ForgetsChild,
    a_status_that_stays_behind_is_caught: StaleGeneration,
    fighting_an_injector_is_caught: FightsInjector,
}
