//! What the operator logs.

use std::{
    cell::RefCell,
    io::{self, Write},
    sync::Once,
    time::Duration,
};

use kubewright::testing::Cluster;
use kubewright_security_group::SecurityGroup;
use serde_json::json;
use tracing_subscriber::{Layer, filter::dynamic_filter_fn, fmt, prelude::*, registry};

use crate::lab::{GROUP, Lab, MASTER, SAMPLE, sample, sample_with};

thread_local! {
    /// What the test of this thread has logged: each has a thread, and a runtime on it, of its own.
    static LOG: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Keeps what this thread logs from now on.
fn keep() {
    static ONCE: Once = Once::new();
    // For the whole process: which lines are wanted is a fact of the process.
    ONCE.call_once(|| {
        let is_kept = dynamic_filter_fn(|_, _| LOG.with_borrow(Option::is_some));
        let lines = fmt::layer().with_writer(|| Kept).with_ansi(false).with_filter(is_kept);
        registry().with(lines).init();
    });
    LOG.set(Some(Vec::new()));
}

fn kept() -> String {
    LOG.with_borrow(|log| String::from_utf8(log.clone().unwrap_or_default()).expect("text"))
}

struct Kept;

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.with_borrow_mut(|log| {
            if let Some(log) = log {
                log.extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What follows each other in the log, of the operator's own lines.
fn lines(text: &str) -> Vec<String> {
    let own =
        text.lines().filter_map(|line| line.split_once(" kubewright_security_group::").map(|(_, rest)| rest));
    own.filter_map(|rest| rest.split_once(": ").map(|(_, told)| told.to_owned())).collect()
}

/// SG-02, SG-04, SG-09: the messages of the write-up, in its order.
#[kubewright::test(nodes = 0, controllers = "")]
async fn sg_02_the_log_tells_each_step_in_the_words_of_the_write_up(cluster: Cluster) {
    keep();
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
        lines(&kept()),
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
    keep();
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
        let secret: k8s_openapi::api::core::v1::Secret = serde_json::from_value(secret).expect("a Secret");
        lab.cluster.create(&secret).await;
        lab.create(name, sample_with(json!({"name": name, "cloudRef": {"name": name}}))).await;
    }
    lab.create(SAMPLE, sample()).await;
    lab.until_ready(SAMPLE).await;
    lab.cloud.set_faults(Some(crate::fake::Faults::new(3, 50)));
    lab.cluster.advance(Duration::from_secs(600)).await;
    assert_eq!(lab.condition("bad", "Ready").await.0, "False");
    let mut text = kept();
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
    keep();
    let lab = Lab::with_sample(cluster).await;
    let before = lines(&kept()).len();
    lab.node_of("gone", &[MASTER], "99999999-2222-3333-4444-555555555555", None).await;
    lab.cloud.with(|cloud| drop(cloud.passwords.insert("demo".to_owned(), "new".to_owned())));
    lab.cloud.with(|cloud| cloud.tokens.clear());
    lab.cluster.advance(Duration::from_hours(1)).await;
    let told = lines(&kept()).split_off(before);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("does not take the credentials"), "{told:?}");
}
