//! What the operator logs.

use std::time::Duration;

use kubewright::testing::{Cluster, Log};
use kubewright_security_group::SecurityGroup;
use serde_json::json;

use crate::lab::{GROUP, Lab, MASTER, SAMPLE, sample, sample_with};

/// The operator, by its name in code.
const OPERATOR: &str = "kubewright_security_group";

/// SG-02, SG-04, SG-09: the messages of the write-up, in its order.
#[kubewright::test(nodes = 0, controllers = "")]
async fn sg_02_the_log_tells_each_step_in_the_words_of_the_write_up(cluster: Cluster) {
    let log = Log::keep();
    let lab = Lab::start(cluster).await;
    let server = lab.node("master", &[MASTER]).await;
    lab.create(SAMPLE, sample()).await;
    lab.until_ready(SAMPLE).await;
    let id = lab.group(GROUP);
    lab.cluster.patch::<SecurityGroup>(SAMPLE, json!({"spec": {"nodeSelector": {"role": "other"}}})).await;
    lab.cluster.settle().await;
    lab.cluster.delete::<SecurityGroup>(SAMPLE).await;
    lab.cluster.settle().await;
    assert_eq!(
        log.of(OPERATOR),
        [
            "Creating SG name=\"sg-test\"".to_owned(),
            format!("Success creating SG name=\"sg-test\" id=\"{id}\""),
            "Creating SG Rule cidr=\"127.0.0.1/32\" port=\"8888-8888\"".to_owned(),
            "Success to create SG Rule cidr=\"127.0.0.1/32\" port=\"8888-8888\"".to_owned(),
            "Deleting SG Rule cidr=\"\" port=\"0-0\"".to_owned(),
            "Success to delete SG Rule cidr=\"\" port=\"0-0\"".to_owned(),
            "Deleting SG Rule cidr=\"\" port=\"0-0\"".to_owned(),
            "Success to delete SG Rule cidr=\"\" port=\"0-0\"".to_owned(),
            format!("Info Attach SG to Server=\"{server}\""),
            format!("Info Dettach SG from Server=\"{server}\""),
            format!("Deleted SecurityGroup {id} name=\"sg-test\""),
            format!("instance not found securitygroup=default/{SAMPLE}"),
        ]
    );
}

/// Not even where everything is logged: passwords, tokens, what a Secret holds.
#[kubewright::test(nodes = 0, controllers = "")]
async fn nothing_secret_is_logged_or_told(cluster: Cluster) {
    let log = Log::keep();
    let lab = Lab::start(cluster).await;
    lab.masters().await;
    lab.cloud.with(|cloud| drop(cloud.passwords.insert("other".to_owned(), "hunter2-is-secret".to_owned())));
    let yaml = format!(
        "clouds: {{x: {{auth: {{auth_url: '{}/v3', username: other, password: hunter2-is-secret, project_name: other}}}}}}",
        crate::fake::URL
    );
    for (name, text) in [
        ("good", yaml.clone()),
        ("bad", yaml.replace("username: other", "username: nobody")),
        ("odd", yaml.replace("}}}", "")),
    ] {
        let secret = json!({"metadata": {"name": name}, "stringData": {"clouds.yaml": text}});
        let secret: k8s_openapi::api::core::v1::Secret =
            kubewright::object::from_value(secret).expect("a Secret");
        lab.cluster.create(&secret).await;
        lab.create(name, sample_with(json!({"name": name, "cloudRef": {"name": name}}))).await;
    }
    lab.create(SAMPLE, sample()).await;
    lab.until_ready(SAMPLE).await;
    lab.cloud.set_faults(Some(crate::fake::Faults::new(3, 50)));
    lab.cluster.advance(Duration::from_secs(600)).await;
    assert_eq!(lab.condition("bad", "Ready").await.0, "False");
    let mut text = log.text();
    for object in lab.cluster.list::<SecurityGroup>().await {
        text += &serde_json::to_string(&object).expect("JSON");
    }
    for event in lab.cluster.list::<k8s_openapi::api::events::v1::Event>().await {
        text += &serde_json::to_string(&event).expect("JSON");
    }
    assert!(text.contains("Creating SG"), "it was kept");
    let tokens: Vec<String> = lab.cloud.with(|cloud| cloud.tokens.keys().cloned().collect());
    assert!(!tokens.is_empty());
    for secret in tokens.iter().map(String::as_str).chain(["hunter2-is-secret", "gAAAAA"]) {
        let line = text.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret}");
    }
}

/// What lasts is told once, not at each of sixty looks in an hour.
#[kubewright::test(nodes = 0, controllers = "")]
async fn what_lasts_is_logged_once(cluster: Cluster) {
    let log = Log::keep();
    let lab = Lab::with_sample(cluster).await;
    let before = log.of(OPERATOR).len();
    lab.node_of("gone", &[MASTER], "99999999-2222-3333-4444-555555555555", None).await;
    lab.cloud.with(|cloud| drop(cloud.passwords.insert("demo".to_owned(), "new".to_owned())));
    lab.cloud.with(|cloud| cloud.tokens.clear());
    lab.cluster.advance(Duration::from_hours(1)).await;
    let told = log.of(OPERATOR).split_off(before);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("does not take the credentials"), "{told:?}");
}
