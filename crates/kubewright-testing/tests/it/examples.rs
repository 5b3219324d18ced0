//! The examples of the crate `kubewright`, each under seeded faults.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Namespace, ResourceQuota, Secret},
};
use kube::{Api, api::PostParams};
use kubewright::{Error, testing::Cluster};
use parking_lot::Mutex;
use serde_json::json;

use self::bucket::{Buckets, Shop, ShopSpec};
use self::databases::{Database, DatabaseSpec, Plan, PlanSpec};
use self::regions::{Site, SiteSpec};
use self::secret_users::{App, AppSpec};
use crate::copier::secret;

#[path = "../../../kubewright/examples/bucket.rs"]
#[expect(dead_code, reason = "its main runs it")]
mod bucket;
#[path = "../../../kubewright/examples/databases.rs"]
#[expect(dead_code, reason = "its main runs it")]
mod databases;
#[path = "../../../kubewright/examples/quotas.rs"]
#[expect(dead_code, reason = "its main runs it")]
mod quotas;
#[path = "../../../kubewright/examples/regions.rs"]
#[expect(dead_code, reason = "its main runs it")]
mod regions;
#[path = "../../../kubewright/examples/secret_users.rs"]
#[expect(dead_code, reason = "its main runs it")]
mod secret_users;

#[derive(Default)]
struct Memory(Mutex<BTreeSet<String>>);

impl Buckets for Memory {
    async fn create(&self, name: &str) -> Result<(), Error> {
        self.0.lock().insert(name.to_owned());
        Ok(())
    }

    async fn delete(&self, name: &str) -> Result<(), Error> {
        self.0.lock().remove(name);
        Ok(())
    }
}

#[kubewright::test(seeds = 50, faults)]
async fn a_shop_has_a_bucket_and_servers_for_as_long_as_it_is_there(cluster: Cluster) {
    let buckets = Arc::new(Memory::default());
    cluster.run(bucket::operator(&buckets)).await;
    cluster.create(&Shop::new("a", ShopSpec { bucket: "pictures".to_owned(), replicas: 2 })).await;
    cluster.settle().await;
    let shop = cluster.get::<Shop>("a").await;
    let status = shop.status.expect("a status");
    assert_eq!(
        (&*status.conditions[0].reason, status.observed_generation),
        ("Serving", shop.metadata.generation)
    );
    assert!(buckets.0.lock().contains("pictures"));
    cluster.delete::<Shop>("a").await;
    cluster.settle().await;
    assert!(buckets.0.lock().is_empty());
    assert!(!cluster.exists::<Shop>("a").await && !cluster.exists::<Deployment>("a").await);
}

#[kubewright::test(seeds = 50, faults)]
async fn an_app_follows_the_secret_that_it_names(cluster: Cluster) {
    cluster.run(secret_users::operator()).await;
    cluster.create(&App::new("a", AppSpec { secret_name: "password".to_owned() })).await;
    cluster.settle().await;
    assert_eq!(cluster.get::<ConfigMap>("a").await.data.unwrap_or_default().len(), 0);
    cluster.create(&secret("password", &["one"])).await;
    for text in ["", "Mg=="] {
        cluster.patch::<Secret>("password", json!({"data": {"two": text}})).await;
        cluster.settle().await;
        let version = cluster.get::<Secret>("password").await.metadata.resource_version;
        let told = cluster.get::<ConfigMap>("a").await.data.unwrap_or_default().remove("secretVersion");
        assert_eq!(told, version);
    }
    cluster.delete::<Secret>("password").await;
    cluster.settle().await;
    assert_eq!(cluster.get::<ConfigMap>("a").await.data.unwrap_or_default().len(), 0);
}

/// Creates a Database as a patient user does: again, when its webhooks could not be asked.
async fn order(
    cluster: &Cluster,
    name: &str,
    plan: &str,
    gigabytes: Option<u32>,
) -> Result<Database, String> {
    let api: Api<Database> = Api::namespaced(cluster.client(), cluster.namespace());
    let database = Database::new(name, DatabaseSpec { plan: plan.to_owned(), gigabytes });
    for _ in 0..100 {
        match api.create(&PostParams::default(), &database).await {
            Err(error) if error.to_string().contains("failed calling webhook") => {
                cluster.advance(Duration::from_secs(5)).await;
            }
            answer => return answer.map_err(|error| error.to_string()),
        }
    }
    Err("its webhooks are never there".to_owned())
}

#[kubewright::test(seeds = 50, faults)]
async fn a_database_is_what_its_plan_says_and_allows(cluster: Cluster) {
    cluster.run(databases::operator()).await;
    cluster.create(&Plan::new("small", PlanSpec { default_gigabytes: 5, most_gigabytes: 10 })).await;
    cluster.settle().await;
    let made = order(&cluster, "a", "small", None).await.expect("it is as the plan says");
    assert_eq!(made.spec.gigabytes, Some(5));
    order(&cluster, "b", "small", Some(10)).await.expect("the plan allows it");
    let refused = order(&cluster, "c", "small", Some(11)).await.expect_err("it is too large");
    assert!(refused.contains("spec.gigabytes: Invalid value: 11: at most 10 in the plan small"), "{refused}");
    let refused = order(&cluster, "c", "large", None).await.expect_err("there is no such plan");
    assert!(refused.contains("spec.plan: Not found: \"large\""), "{refused}");
    cluster.patch::<Plan>("small", json!({"spec": {"mostGigabytes": 20}})).await;
    cluster.settle().await;
    order(&cluster, "c", "small", Some(20)).await.expect("the plan allows it now");
}

#[kubewright::test(seeds = 20, faults)]
async fn a_site_is_in_the_regions_that_it_names_and_in_no_other(cluster: Cluster) {
    let mut regions = Vec::new();
    for name in ["east", "west"] {
        let settings = kubewright_cluster::Cluster::builder().world(cluster.world().clone());
        let region = Cluster::of(settings.controllers("").nodes(0)).await.expect("a cluster");
        regions.push((name.to_owned(), region));
    }
    let clients = regions.iter().map(|(name, region)| (name.clone(), region.client())).collect();
    cluster.run(regions::operator(clients)).await;
    let is_in = async || {
        cluster.settle().await;
        let mut is_in = Vec::new();
        for (name, region) in &regions {
            region.settle().await;
            if region.exists::<ConfigMap>("a").await {
                is_in.push(name.as_str());
            }
        }
        is_in.join(" ")
    };
    let in_regions = |regions: &[&str]| SiteSpec {
        text: "hello".to_owned(),
        regions: regions.iter().map(|name| (*name).to_owned()).collect(),
    };
    cluster.create(&Site::new("a", in_regions(&["east"]))).await;
    assert_eq!(is_in().await, "east");
    cluster.patch::<Site>("a", json!({"spec": {"regions": ["east", "west"], "text": "hallo"}})).await;
    assert_eq!(is_in().await, "east west");
    assert_eq!(regions[0].1.get::<ConfigMap>("a").await.data.unwrap_or_default()["text"], "hallo");
    regions[1].1.delete::<ConfigMap>("a").await;
    assert_eq!(is_in().await, "east west");
    cluster.patch::<Site>("a", json!({"spec": {"regions": ["west"]}})).await;
    assert_eq!(is_in().await, "west");
    cluster.delete::<Site>("a").await;
    assert_eq!(is_in().await, "");
    assert!(!cluster.exists::<Site>("a").await);
}

/// Labels the namespace, and takes the label away.
async fn a_namespace_has_the_quota_of_its_label(cluster: &Cluster) {
    let pods = async |label: Option<&str>| {
        cluster
            .patch::<Namespace>("default", json!({"metadata": {"labels": {"example.com/pods": label}}}))
            .await;
        cluster.settle().await;
        let quota = cluster.try_get::<ResourceQuota>("team").await?;
        quota.spec?.hard?.remove("pods").map(|pods| pods.0)
    };
    assert_eq!(pods(Some("5")).await.as_deref(), Some("5"));
    assert_eq!(pods(Some("7")).await.as_deref(), Some("7"));
    assert_eq!(pods(None).await, None);
    assert_eq!(pods(Some("9")).await.as_deref(), Some("9"));
    cluster.delete::<ResourceQuota>("team").await;
    cluster.settle().await;
    assert!(cluster.exists::<ResourceQuota>("team").await);
}

#[kubewright::test(seeds = 20, faults)]
async fn quotas_follow_labels(cluster: Cluster) {
    cluster.run(quotas::operator()).await;
    a_namespace_has_the_quota_of_its_label(&cluster).await;
}

#[kubewright::test]
async fn quotas_follow_labels_by_functions_of_kube(cluster: Cluster) {
    cluster.run(quotas::ported_operator()).await;
    a_namespace_has_the_quota_of_its_label(&cluster).await;
}
