//! Namespaces: what they are born with, and how they end.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, ServiceAccount};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Resource};
use serde_json::json;

use crate::support::{World, deployment};

struct Shop {
    world: World,
    namespaces: Api<Namespace>,
}

impl Shop {
    async fn open() -> Self {
        let world = World::start().await;
        let namespaces = Api::<Namespace>::all(world.client.clone());
        let shop =
            kubewright_objects::from_value(json!({"metadata": {"name": "shop"}})).expect("a namespace");
        namespaces.create(&PostParams::default(), &shop).await.expect("created");
        world.settle().await;
        Self { world, namespaces }
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.world.client.clone(), "shop")
    }

    async fn close(&self) {
        self.namespaces.delete("shop", &DeleteParams::default()).await.expect("deleted");
        self.world.settle().await;
    }

    async fn is_open(&self) -> bool {
        self.namespaces.get_opt("shop").await.expect("an answer").is_some()
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_has_an_account_and_the_certificates_and_gets_them_back() {
    let shop = Shop::open().await;
    let (accounts, maps) = (shop.api::<ServiceAccount>(), shop.api::<ConfigMap>());
    let first = accounts.get("default").await.expect("the account").metadata.uid;
    accounts.delete("default", &DeleteParams::default()).await.expect("deleted");
    let spoilt = Patch::Merge(json!({"data": {"ca.crt": "spoilt", "more": "x"}}));
    maps.patch("kube-root-ca.crt", &PatchParams::default(), &spoilt).await.expect("patched");
    shop.world.settle().await;
    assert_ne!(accounts.get("default").await.expect("the account").metadata.uid, first);
    let mended = maps.get("kube-root-ca.crt").await.expect("the map").data.expect("data");
    assert_eq!(mended.keys().collect::<Vec<_>>(), ["ca.crt"]);
    assert_ne!(mended["ca.crt"], "spoilt");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_namespace_takes_everything_with_it() {
    let shop = Shop::open().await;
    let web: Deployment = kubewright_objects::from_value(deployment(2)).expect("a Deployment");
    shop.api().create(&PostParams::default(), &web).await.expect("created");
    shop.world.settle().await;
    shop.close().await;
    assert!(!shop.is_open().await);
    assert!(
        shop.api::<Pod>().list(&kube::api::ListParams::default()).await.expect("a list").items.is_empty()
    );
}

#[tokio::test(start_paused = true)]
async fn pods_go_before_everything_else() {
    let shop = Shop::open().await;
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]},
        "spec": {"containers": [{"name": "c", "image": "web:1"}]}});
    let held: Pod = kubewright_objects::from_value(held).expect("a pod");
    shop.api().create(&PostParams::default(), &held).await.expect("created");
    let plain: ConfigMap =
        kubewright_objects::from_value(json!({"metadata": {"name": "plain"}})).expect("a map");
    shop.api().create(&PostParams::default(), &plain).await.expect("created");
    shop.world.settle().await;
    shop.close().await;
    let plain = shop.api::<ConfigMap>().get("plain").await.expect("it waits for the pod");
    assert_eq!(plain.metadata.deletion_timestamp, None);

    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    shop.api::<Pod>().patch("held", &PatchParams::default(), &free).await.expect("patched");
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(!shop.is_open().await);
}

#[tokio::test(start_paused = true)]
async fn what_holds_a_namespace_up_is_told_in_its_conditions() {
    let shop = Shop::open().await;
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
    let held: ConfigMap = kubewright_objects::from_value(held).expect("a map");
    shop.api().create(&PostParams::default(), &held).await.expect("created");
    shop.close().await;
    let status = shop.namespaces.get("shop").await.expect("it is held").status.expect("a status");
    let messages: Vec<_> =
        status.conditions.expect("conditions").into_iter().filter_map(|c| c.message).collect();
    assert_eq!(
        messages,
        [
            "All resources successfully discovered",
            "All legacy kube types successfully parsed",
            "All content successfully deleted, may be waiting on finalization",
            "Some resources are remaining: configmaps. has 1 resource instances",
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_namespace_waits_for_api_servers_that_do_not_say_what_they_serve() {
    let shop = Shop::open().await;
    let resource =
        ApiResource::from_gvk(&GroupVersionKind::gvk("apiregistration.k8s.io", "v1", "APIService"));
    let services = Api::<DynamicObject>::all_with(shop.world.client.clone(), &resource);
    let service = json!({
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1.example.com"},
        "spec": {
            "group": "example.com", "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 10,
            "service": {"namespace": "default", "name": "nobody"}
        }
    });
    let service = kubewright_objects::from_value(service).expect("an APIService");
    services.create(&PostParams::default(), &service).await.expect("created");
    shop.world.settle().await;
    shop.close().await;
    let left = shop.namespaces.get("shop").await.expect("it is there");
    let conditions = left.status.and_then(|status| status.conditions).unwrap_or_default();
    let condition = &conditions[0];
    assert_eq!(condition.type_, "NamespaceDeletionDiscoveryFailure");
    assert_eq!((&*condition.status, condition.reason.as_deref()), ("True", Some("DiscoveryFailed")));
    let why = "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: example.com/v1: stale GroupVersion discovery: example.com/v1";
    assert_eq!(condition.message.as_deref(), Some(why));
    services.delete("v1.example.com", &DeleteParams::default()).await.expect("deleted");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!shop.is_open().await);
}
