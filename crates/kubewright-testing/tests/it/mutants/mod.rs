//! Operators with bugs: each is caught within 200 seeds by the checks alone ([`silent`]); the operator without a bug passes as many, and
//! 1,000 when asked.

mod bug;
mod operator;
mod silent;

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::core::ObjectMeta;
use kubewright::owner;
use kubewright::testing::Cluster;
use kubewright::testing::harness::{Faults, Seeds, Test, run};
use serde_json::json;

use operator::Page;
pub(crate) use operator::{LEDGER, operator, page};

/// The test of the operator.
const STORY: Test = Test {
    package: env!("CARGO_PKG_NAME"),
    module: module_path!(),
    name: "the_operator_without_a_bug_passes_two_hundred_seeds",
    controllers: "garbagecollector",
    kubernetes: None,
    nodes: 0,
    namespaces: &["press", LEDGER],
    seeds: Seeds::First(200),
    faults: Faults::All,
};

/// What a user does, and sees.
async fn story(cluster: Cluster) {
    let metadata = ObjectMeta { name: Some("b-page".to_owned()), ..ObjectMeta::default() };
    let foreign = ConfigMap {
        metadata,
        data: Some([("text".to_owned(), "mine".to_owned())].into()),
        ..ConfigMap::default()
    };
    cluster.create(&foreign).await;
    cluster.run(operator(None)).await;
    cluster.advance(Duration::from_secs(2)).await;

    let mut page_a = page("a", "one");
    page_a.spec.footer = Some("the end".to_owned());
    page_a.spec.languages = vec!["de".to_owned(), "fr".to_owned()];
    cluster.create(&page_a).await;
    cluster.settle().await;
    let first = printed(&cluster, "a", "one").await;

    // Somebody else's object may own it, too.
    let mut owners = first.metadata.owner_references.clone().unwrap_or_default();
    let theirs = owner::controller_reference(&cluster.get::<ConfigMap>("b-page").await);
    owners.push(OwnerReference { controller: None, block_owner_deletion: None, ..theirs });
    cluster.patch::<ConfigMap>(&first.name_any(), json!({"metadata": {"ownerReferences": owners}})).await;

    // Others may write into it, and have pages of names that somebody else uses; pages come and go.
    cluster.patch::<ConfigMap>(&first.name_any(), json!({"data": {"note": "kept"}})).await;
    cluster.create(&page("b", "other")).await;
    cluster.create(&page("flash", "short")).await;
    cluster.advance(Duration::from_millis(20)).await;
    cluster.delete::<Page>("flash").await;
    cluster.patch::<Page>("a", json!({"spec": {"text": "two", "footer": null, "languages": ["fr"]}})).await;
    cluster.settle().await;
    let second = printed(&cluster, "a", "two").await;
    let data = second.data.expect("data");
    assert_eq!(data.get("note").map(String::as_str), Some("kept"), "the note");
    assert_eq!(data.get("footer"), None, "the footer");
    assert_eq!(second.metadata.owner_references.map(|owners| owners.len()), Some(owners.len()), "the owners");
    let maps = cluster.list::<ConfigMap>().await.into_iter().map(|map| map.name_any());
    let translations: Vec<String> = maps.filter(|name| name.starts_with("a-in-")).collect();
    assert_eq!(translations, ["a-in-fr"], "the translations");
    let theirs = cluster.get::<ConfigMap>("b-page").await;
    assert_eq!((theirs.data, theirs.metadata.owner_references), (foreign.data, None), "somebody else's");
    let ready = cluster.get::<Page>("b").await.status.is_some_and(|status| status.ready);
    assert!(!ready, "b is not printed");

    cluster.delete::<ConfigMap>(&first.name_any()).await;
    cluster.settle().await;
    printed(&cluster, "a", "two").await;
}

/// The only ConfigMap of a page, which has its text, as its status says.
async fn printed(cluster: &Cluster, name: &str, text: &str) -> ConfigMap {
    let page = cluster.get::<Page>(name).await;
    let status = page.status.clone().unwrap_or_default();
    assert!(status.ready && status.observed_generation == page.metadata.generation, "{name}: {status:?}");
    let mut maps = cluster.list::<ConfigMap>().await;
    maps.retain(|map| map.name_any().starts_with(&format!("{name}-page")));
    assert_eq!(maps.len(), 1, "ConfigMaps of {name}");
    let map = maps.remove(0);
    let found = map.data.as_ref().and_then(|data| data.get("text"));
    assert_eq!(found.map(String::as_str), Some(text), "the text of {name}");
    map
}

#[test]
fn the_operator_without_a_bug_passes_two_hundred_seeds() {
    run(&STORY, story);
}

#[test]
#[ignore = "takes minutes"]
fn the_operator_without_a_bug_passes_a_thousand_seeds() {
    run(&Test { seeds: Seeds::First(1000), ..STORY }, story);
}
