//! Tokens by which machines join, and tokens that nobody uses any more.

use std::time::Duration;

use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use kubewright_cluster::Cluster;
use serde_json::{Value, json};

use crate::support::World;

const TOKEN: &str = "abcdef.0123456789abcdef";

async fn joinable(controllers: &str) -> World {
    let cluster = Cluster::builder().controllers(controllers).nodes(0).bootstrap_tokens(true).start();
    let cluster = cluster.await.expect("a cluster");
    let client = cluster.client();
    let world = World { cluster, client };
    world.settle().await;
    world
}

/// User and groups of a token.
async fn who(world: &World, token: &str) -> Option<(String, Vec<String>)> {
    let review: TokenReview =
        kubewright_objects::from_value(json!({"spec": {"token": token}})).expect("a review");
    let reviews = Api::<TokenReview>::all(world.client.clone());
    let status = reviews.create(&PostParams::default(), &review).await.expect("an answer").status?;
    let user = status.user.filter(|_| status.authenticated == Some(true))?;
    Some((user.username?, user.groups.unwrap_or_default()))
}

fn system<K>(world: &World) -> Api<K>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    Api::namespaced(world.client.clone(), "kube-system")
}

async fn bootstrap_secret(world: &World, fields: Value) {
    let mut object = json!({"metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token",
        "stringData": {"token-id": "abcdef", "token-secret": "0123456789abcdef",
            "usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true"}});
    for (name, value) in fields.as_object().expect("fields") {
        object["stringData"][name] = value.clone();
    }
    let object: Secret = kubewright_objects::from_value(object).expect("a secret");
    system::<Secret>(world).create(&PostParams::default(), &object).await.expect("created");
}

#[tokio::test(start_paused = true)]
async fn a_machine_joins_by_a_token_until_it_has_expired() {
    let world = joinable("*,tokencleaner").await;
    assert_eq!(who(&world, TOKEN).await, None);
    let end = world.cluster.world().clock.now() + Duration::from_secs(3600);
    let end = end.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    bootstrap_secret(&world, json!({"expiration": end, "auth-extra-groups": "system:bootstrappers:nodes"}))
        .await;
    let groups = ["system:bootstrappers", "system:bootstrappers:nodes", "system:authenticated"];
    let user = ("system:bootstrap:abcdef".to_owned(), groups.map(str::to_owned).to_vec());
    assert_eq!(who(&world, TOKEN).await, Some(user));
    assert_eq!(who(&world, "abcdef.0123456789abcdee").await, None);
    tokio::time::sleep(Duration::from_secs(3590)).await;
    assert!(system::<Secret>(&world).get_opt("bootstrap-token-abcdef").await.expect("an answer").is_some());
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(who(&world, TOKEN).await, None);
    assert!(system::<Secret>(&world).get_opt("bootstrap-token-abcdef").await.expect("an answer").is_none());
}

#[tokio::test(start_paused = true)]
async fn without_being_asked_a_server_knows_no_such_token() {
    let world = World::with_nodes("*", 0).await;
    bootstrap_secret(&world, json!({})).await;
    assert_eq!(who(&world, TOKEN).await, None);
}

#[tokio::test(start_paused = true)]
async fn what_a_machine_reads_first_is_signed_by_each_token() {
    let world = joinable("bootstrapsigner").await;
    let infos = Api::<ConfigMap>::namespaced(world.client.clone(), "kube-public");
    let info = json!({"metadata": {"name": "cluster-info"}, "data": {"kubeconfig": "text"}});
    let info: ConfigMap = kubewright_objects::from_value(info).expect("a config map");
    infos.create(&PostParams::default(), &info).await.expect("created");
    bootstrap_secret(&world, json!({})).await;
    world.settle().await;
    let data = infos.get("cluster-info").await.expect("it").data.unwrap_or_default();
    assert!(data["jws-kubeconfig-abcdef"].contains(".."), "{data:?}");
    system::<Secret>(&world).delete("bootstrap-token-abcdef", &Default::default()).await.expect("deleted");
    world.settle().await;
    let data = infos.get("cluster-info").await.expect("it").data.unwrap_or_default();
    assert_eq!(data.into_keys().collect::<Vec<_>>(), ["kubeconfig"]);
}

/// The labels of the Secret `robot-token`; none when it is gone.
async fn labels(world: &World) -> Option<std::collections::BTreeMap<String, String>> {
    let secret = world.api::<Secret>().get_opt("robot-token").await.expect("an answer")?;
    Some(secret.metadata.labels.unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn a_token_that_nobody_uses_for_a_year_is_marked_and_goes_a_year_later() {
    const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
    const INVALID: &str = "kubernetes.io/legacy-token-invalid-since";
    const DAY: Duration = Duration::from_secs(86_400);
    let world = World::with_nodes("serviceaccount-token,legacy-service-account-token-cleaner", 0).await;
    let tracking =
        system::<ConfigMap>(&world).get("kube-apiserver-legacy-service-account-token-tracking").await;
    let today = world.cluster.world().clock.now().strftime("%Y-%m-%d").to_string();
    assert_eq!(tracking.expect("it").data.unwrap_or_default()["since"], today);

    let robot = json!({"metadata": {"name": "robot"}, "secrets": [{"name": "robot-token"}]});
    world.create::<ServiceAccount>(robot).await;
    world
        .create::<Secret>(
            json!({"type": "kubernetes.io/service-account-token", "metadata": {"name": "robot-token",
            "annotations": {"kubernetes.io/service-account.name": "robot"}}}),
        )
        .await;
    world.settle().await;
    let secret = world.api::<Secret>().get("robot-token").await.expect("the secret");
    let token = String::from_utf8(secret.data.expect("data")["token"].0.clone()).expect("text");

    tokio::time::sleep(100 * DAY).await;
    assert!(who(&world, &token).await.is_some());
    let used = labels(&world).await.expect("there");
    let today = world.cluster.world().clock.now().strftime("%Y-%m-%d").to_string();
    assert_eq!(used.get(LAST_USED), Some(&today));
    let version = world.cluster.revision();
    assert!(who(&world, &token).await.is_some());
    assert_eq!(world.cluster.revision(), version, "one label a day");

    tokio::time::sleep(360 * DAY).await;
    assert_eq!(labels(&world).await.expect("there").get(INVALID), None);
    tokio::time::sleep(10 * DAY).await;
    assert!(labels(&world).await.expect("there").contains_key(INVALID));
    assert_eq!(who(&world, &token).await, None);
    // That it was tried counts as a use; a day of use long ago and no mark make it good again.
    let old = json!({"metadata": {"labels": {LAST_USED: "2020-01-01"}}});
    let patch = Patch::Merge(old);
    world.api::<Secret>().patch("robot-token", &PatchParams::default(), &patch).await.expect("patched");
    tokio::time::sleep(360 * DAY).await;
    assert!(labels(&world).await.is_some());
    tokio::time::sleep(10 * DAY).await;
    assert_eq!(labels(&world).await, None);
}
