//! Networks of service addresses that come and go.

use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::{IPAddress, ServiceCIDR};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use kubewright_cluster::{Cluster, ServiceCidrs};
use serde_json::json;

use crate::support::World;

/// A cluster whose services have six addresses, one of which is the API server's.
async fn narrow() -> World {
    let cidrs = ServiceCidrs::parse("10.0.0.0/29").expect("a network");
    let cluster = Cluster::builder().service_cidr(cidrs).start().await.expect("a cluster");
    let client = cluster.client();
    let world = World { cluster, client };
    world.settle().await;
    world
}

fn networks(world: &World) -> Api<ServiceCIDR> {
    Api::all(world.client.clone())
}

async fn network(world: &World, name: &str, cidr: &str) {
    let object = json!({"metadata": {"name": name}, "spec": {"cidrs": [cidr]}});
    let object = kubewright_objects::from_value(object).expect("a network");
    networks(world).create(&PostParams::default(), &object).await.expect("created");
    world.settle().await;
}

/// Status, reason and message of the condition `Ready`.
async fn ready(world: &World, name: &str) -> Option<(String, String, String)> {
    let network = networks(world).get_opt(name).await.expect("an answer")?;
    let ready = network.status?.conditions?.into_iter().find(|one| one.type_ == "Ready")?;
    Some((ready.status, ready.reason, ready.message))
}

async fn service(world: &World, name: &str) -> Result<String, kube::Error> {
    let object = json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}});
    let object = kubewright_objects::from_value(object).expect("a service");
    let made = world.api::<Service>().create(&PostParams::default(), &object).await?;
    Ok(made.spec.and_then(|spec| spec.cluster_ip).expect("an address"))
}

async fn addresses(world: &World) -> Vec<String> {
    let all = Api::<IPAddress>::all(world.client.clone());
    let all = all.list(&ListParams::default()).await.expect("a list").items;
    all.into_iter().filter_map(|address| address.metadata.name).collect()
}

#[tokio::test(start_paused = true)]
async fn a_service_whose_network_is_full_gets_an_address_of_another() {
    let world = narrow().await;
    for name in ["a", "b", "c", "d", "e"] {
        assert!(service(&world, name).await.expect("created").starts_with("10.0.0."));
    }
    let refused = service(&world, "f").await.expect_err("full").to_string();
    assert!(refused.contains("failed to allocate a serviceIP for Service \"f\": range is full"), "{refused}");
    network(&world, "more", "10.9.0.0/24").await;
    assert!(service(&world, "f").await.expect("created").starts_with("10.9.0."));
    assert_eq!(addresses(&world).await.len(), 7);
}

#[tokio::test(start_paused = true)]
async fn an_address_is_an_object_while_a_service_has_it_and_taken_while_there_is_one() {
    let world = narrow().await;
    assert_eq!(addresses(&world).await, ["10.0.0.1"]);
    let held = json!({"metadata": {"name": "10.0.0.3"},
        "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "other"}}});
    let held = kubewright_objects::from_value(held).expect("an address");
    let all = Api::<IPAddress>::all(world.client.clone());
    all.create(&PostParams::default(), &held).await.expect("created");
    let wanted =
        json!({"metadata": {"name": "a"}, "spec": {"clusterIP": "10.0.0.3", "ports": [{"port": 80}]}});
    let wanted: Service = kubewright_objects::from_value(wanted).expect("a service");
    let services = world.api::<Service>();
    let refused = services.create(&PostParams::default(), &wanted).await.expect_err("taken").to_string();
    assert!(
        refused.contains("failed to allocate IP 10.0.0.3: provided IP is already allocated"),
        "{refused}"
    );
    all.delete("10.0.0.3", &DeleteParams::default()).await.expect("deleted");
    services.create(&PostParams::default(), &wanted).await.expect("created");
    let address = all.get("10.0.0.3").await.expect("an object");
    let parent = address.spec.parent_ref;
    assert_eq!((parent.resource.as_str(), parent.name.as_str()), ("services", "a"));
    services.delete("a", &DeleteParams::default()).await.expect("deleted");
    assert_eq!(addresses(&world).await, ["10.0.0.1"]);
}

#[tokio::test(start_paused = true)]
async fn a_network_goes_when_its_last_address_is_free_and_gives_none_away_meanwhile() {
    let world = narrow().await;
    let expected = ("True".to_owned(), String::new(), "Kubernetes Service CIDR is ready".to_owned());
    assert_eq!(ready(&world, "kubernetes").await, Some(expected.clone()));
    network(&world, "more", "10.9.0.0/24").await;
    assert_eq!(ready(&world, "more").await, Some(expected));
    let chosen =
        json!({"metadata": {"name": "a"}, "spec": {"clusterIP": "10.9.0.9", "ports": [{"port": 80}]}});
    world.create::<Service>(chosen).await;

    networks(&world).delete("more", &DeleteParams::default()).await.expect("deleted");
    world.settle().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let (status, reason, message) = ready(&world, "more").await.expect("held");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "Terminating"));
    assert_eq!(
        message,
        "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR"
    );
    let other =
        json!({"metadata": {"name": "b"}, "spec": {"clusterIP": "10.9.0.8", "ports": [{"port": 80}]}});
    let other = kubewright_objects::from_value(other).expect("a service");
    let refused = world.api::<Service>().create(&PostParams::default(), &other).await;
    let refused = refused.expect_err("on its way out").to_string();
    assert!(refused.contains("the provided network does not match the current range"), "{refused}");

    world.api::<Service>().delete("a", &DeleteParams::default()).await.expect("deleted");
    world.settle().await;
    assert_eq!(ready(&world, "more").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_network_within_another_goes_ten_seconds_later_though_its_addresses_are_in_use() {
    let world = narrow().await;
    network(&world, "wide", "10.9.0.0/16").await;
    network(&world, "part", "10.9.1.0/24").await;
    let chosen =
        json!({"metadata": {"name": "a"}, "spec": {"clusterIP": "10.9.1.9", "ports": [{"port": 80}]}});
    world.create::<Service>(chosen).await;
    networks(&world).delete("part", &DeleteParams::default()).await.expect("deleted");
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert!(ready(&world, "part").await.is_some());
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(ready(&world, "part").await.is_none());
}
