//! A cluster whose clock is in a test's hand, over its socket: what takes a day there takes one call here.

use std::time::Duration;

use futures::{Stream, StreamExt};
use http::Request;
use http_body_util::BodyExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenRequest, TokenReview};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::api::{Api, PostParams, WatchEvent, WatchParams};
use kube::client::Body;
use kube::config::{AuthInfo, Kubeconfig};
use kube::{Client, ResourceExt};
use kubewright_runtime::{Connect, metrics::Metrics};
use kubewright_tests::Up;
use serde_json::{Value, json};

use crate::kube_rs::client;

async fn call(client: &Client, method: &str, path: &str, body: Value) -> Value {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path).body(body).expect("a request");
    client.request(request).await.expect(path)
}

async fn advance(client: &Client, by: &str) -> String {
    let clock = call(client, "POST", "/kubewright/clock/advance", json!({"by": by})).await;
    clock["now"].as_str().expect("the time").to_owned()
}

fn map(name: &str) -> ConfigMap {
    kubewright_objects::from_value(json!({"metadata": {"name": name}})).expect("a ConfigMap")
}

async fn next_name(events: &mut (impl Stream<Item = kube::Result<WatchEvent<ConfigMap>>> + Unpin)) -> String {
    match events.next().await.expect("the watch is open").expect("an event") {
        WatchEvent::Added(map) => map.name_any(),
        other => panic!("{other:?}"),
    }
}

/// Whether a rollout that makes no progress was given up, as it is after ten minutes.
async fn is_given_up(client: &Client) -> bool {
    let web: Deployment = Api::default_namespaced(client.clone()).get("web").await.expect("the deployment");
    let conditions = web.status.and_then(|status| status.conditions).unwrap_or_default();
    conditions.iter().any(|one| one.reason.as_deref() == Some("ProgressDeadlineExceeded"))
}

async fn deploy(client: &Client) {
    let deployment: Deployment = kubewright_objects::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]}
            }
        }
    }))
    .expect("a Deployment");
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    deployments.create(&PostParams::default(), &deployment).await.expect("created");
}

#[tokio::test]
#[ignore = "needs the built command: cargo xtask test"]
async fn a_day_passes_in_one_call_and_only_then() {
    let up = Up::start(
        "clock",
        &[
            "--clock",
            "2030-01-01T00:00:00Z,speed=0",
            "--admin",
            "--nodes",
            "0",
            "--controllers",
            "deployment,replicaset",
        ],
    );
    let client = client(&up).await;
    let config_maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let first = config_maps.create(&PostParams::default(), &map("first")).await.expect("created");
    assert_eq!(
        first.metadata.creation_timestamp.clone().expect("a time").0.to_string(),
        "2030-01-01T00:00:00Z"
    );

    let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
    let wanted =
        kubewright_objects::from_value(json!({"spec": {"audiences": [], "expirationSeconds": 7200}}));
    let wanted: TokenRequest = wanted.expect("a TokenRequest");
    accounts
        .create(
            &PostParams::default(),
            &kubewright_objects::from_value(json!({"metadata": {"name": "web"}})).expect("an account"),
        )
        .await
        .expect("created");
    let token = accounts.create_token_request("web", &PostParams::default(), &wanted).await.expect("a token");
    let token = token.status.expect("a token").token;
    let is_good = async || {
        let review: TokenReview =
            kubewright_objects::from_value(json!({"spec": {"token": token}})).expect("a review");
        let reviews: Api<TokenReview> = Api::all(client.clone());
        let review = reviews.create(&PostParams::default(), &review).await.expect("reviewed");
        review.status.expect("an answer").authenticated.unwrap_or(false)
    };

    deploy(&client).await;
    let version = first.resource_version().expect("a version");
    let watch = WatchParams::default().disable_bookmarks().fields("metadata.name=second");
    let mut events = config_maps.watch(&watch, &version).await.expect("a watch").boxed();
    assert!(is_good().await && !is_given_up(&client).await);

    assert_eq!(advance(&client, "4m").await, "2030-01-01T00:04:00Z");
    config_maps.create(&PostParams::default(), &map("second")).await.expect("created");
    assert_eq!(next_name(&mut events).await, "second", "the watch has survived the minutes without a word");

    assert!(!is_given_up(&client).await);
    assert_eq!(advance(&client, "16m").await, "2030-01-01T00:20:00Z");
    assert!(is_good().await);
    assert!(is_given_up(&client).await, "ten minutes without progress have passed");

    assert_eq!(advance(&client, "23h40m").await, "2030-01-02T00:00:00Z");
    assert!(!is_good().await, "a token of two hours has expired");
}

/// A token of this account for ten minutes, which is the least.
async fn token_of(client: &Client, account: &str) -> String {
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
    let wanted = kubewright_objects::from_value(json!({"spec": {"audiences": [], "expirationSeconds": 600}}));
    let wanted: TokenRequest = wanted.expect("a TokenRequest");
    let token =
        accounts.create_token_request(account, &PostParams::default(), &wanted).await.expect("a token");
    token.status.and_then(|status| status.token).expect("a token")
}

/// SC, Beyond 5: the kubelet writes the next token into the file when most of the old one's time is over. An operator's client reads
/// the file anew within a minute, so nothing is refused. (A minute of the machine's clock, which this test has to wait for.)
#[tokio::test]
#[ignore = "needs the built command: cargo xtask test"]
async fn a_token_that_is_rotated_is_used_before_the_old_one_expires() {
    let up = Up::start(
        "rotation",
        &[
            "--clock",
            "2030-01-01T00:00:00Z,speed=0",
            "--admin",
            "--nodes",
            "0",
            "--controllers",
            "deployment",
        ],
    );
    let client = client(&up).await;
    let account = kubewright_objects::from_value(json!({"metadata": {"name": "web"}})).expect("an account");
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
    accounts.create(&PostParams::default(), &account).await.expect("created");

    let file = up.file("token", &token_of(&client, "web").await);
    let mut kubeconfig = Kubeconfig::read_from(up.kubeconfig()).expect("a kubeconfig");
    for user in &mut kubeconfig.auth_infos {
        user.auth_info = Some(AuthInfo { token_file: Some(file.clone()), ..AuthInfo::default() });
    }
    let kubeconfig = up.file("in-a-pod", &serde_json::to_string(&kubeconfig).expect("JSON"));
    let connect = Connect { kubeconfig: Some(kubeconfig.into()), ..Connect::default() };
    let (operator, _) = connect.client(Metrics::new().requests()).await.expect("a client");
    let who_am_i = async || -> kube::Result<String> {
        let reviews: Api<SelfSubjectReview> = Api::all(operator.clone());
        let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
        Ok(review.status.and_then(|status| status.user_info?.username).unwrap_or_default())
    };
    let web = "system:serviceaccount:default:web";
    assert_eq!(who_am_i().await.expect("the first token is good"), web);

    advance(&client, "8m").await;
    let _ = up.file("token", &token_of(&client, "web").await);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(who_am_i().await.expect("both are good"), web);
    advance(&client, "3m").await;
    assert_eq!(who_am_i().await.expect("the second is good, the first one has expired"), web);

    advance(&client, "1h").await;
    let refused = who_am_i().await.expect_err("nobody has rotated the second one");
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 401), "{refused}");
}

#[tokio::test]
#[ignore = "needs the built command: cargo xtask test"]
async fn time_passes_faster_than_the_machines() {
    let up = Up::start("speed", &["--clock", "speed=3600", "--nodes", "0"]);
    let client = client(&up).await;
    deploy(&client).await;
    let given_up = async {
        while !is_given_up(&client).await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), given_up)
        .await
        .expect("ten minutes take a sixth of a second");
}

#[tokio::test]
#[ignore = "needs the built command: cargo xtask test"]
async fn faults_are_injected_for_a_client_outside() {
    let up = Up::start("faults", &["--admin", "--nodes", "0"]);
    let client = client(&up).await;
    let config_maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let rule = json!({"match": {"verbs": ["create"]}, "fault": {"timeout": {"done": true}}});
    call(&client, "POST", "/kubewright/faults", rule).await;
    let cut = config_maps.create(&PostParams::default(), &map("lost")).await;
    assert!(matches!(cut, Err(kube::Error::HyperError(_) | kube::Error::Service(_))), "{cut:?}");
    config_maps.get("lost").await.expect("it was carried out");

    for (how, ends_well) in [("cleanly", true), ("reset", false)] {
        let watch = Request::get("/api/v1/configmaps?watch=1").body(Body::empty()).expect("a request");
        let events = client.send(watch).await.expect("a watch").into_body();
        let dropped = json!({"match": {"resource": "configmaps"}, "fault": {"dropWatch": {"how": how}}});
        let dropped = call(&client, "POST", "/kubewright/faults", dropped).await;
        assert_eq!(dropped["hits"], 1, "{dropped}");
        assert_eq!(events.collect().await.is_ok(), ends_well, "{how}");
    }
    let log = call(&client, "GET", "/kubewright/requests?verbs=create", Value::Null).await;
    assert_eq!((&log["requests"][0]["code"], &log["requests"][0]["fault"]), (&Value::Null, &1.into()));
}
