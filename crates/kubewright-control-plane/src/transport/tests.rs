//! What goes on in another protocol, for a client in this process.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fake::Fake;
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{AttachParams, AttachedProcess, LogParams, PostParams, TerminalSize};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::ControlPlane;

#[path = "../../../kubewright-apiserver/tests/it/support/kubelet.rs"]
#[allow(unreachable_pub, reason = "the tests of the API server share it")]
mod fake;

#[test]
fn only_watches_are_made_to_last() {
    let adjusted = |uri: &'static str| lasting_watch(&Uri::from_static(uri)).map(|uri| uri.to_string());
    assert_eq!(
        adjusted("/api/v1/pods?&watch=true&timeoutSeconds=0&allowWatchBookmarks=true&resourceVersion=7"),
        Some("/api/v1/pods?&watch=true&resourceVersion=7&timeoutSeconds=315360000".to_owned())
    );
    assert_eq!(adjusted("/api/v1/pods?timeoutSeconds=290"), None);
}

/// A cluster with a pod on a node whose kubelet is a fake.
async fn with_a_pod() -> (ControlPlane, Api<Pod>, Arc<Fake>) {
    let cluster = ControlPlane::builder().start().await.expect("it starts");
    let kubelet = Arc::new(Fake::default());
    cluster.server().kubelets().register("n", Arc::clone(&kubelet) as _);
    let node = json!({"metadata": {"name": "n"}, "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.9"}]}});
    let account = json!({"metadata": {"name": "default"}});
    let pod = json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "x"}]}});
    let client = cluster.client();
    let read = |value| kubewright_objects::from_value(value).expect("an object");
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(client.clone());
    nodes
        .create(&PostParams::default(), &kubewright_objects::from_value(node).expect("a node"))
        .await
        .expect("created");
    let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> =
        Api::namespaced(client.clone(), "default");
    let account = kubewright_objects::from_value(account).expect("an account");
    accounts.create(&PostParams::default(), &account).await.expect("created");
    let pods: Api<Pod> = Api::namespaced(client, "default");
    pods.create(&PostParams::default(), &read(pod)).await.expect("created");
    (cluster, pods, kubelet)
}

async fn all(mut reader: impl tokio::io::AsyncRead + Unpin) -> String {
    let mut text = String::new();
    reader.read_to_string(&mut text).await.expect("text");
    text
}

async fn exit_code(mut process: AttachedProcess) -> Option<String> {
    let status = process.take_status().expect("a status").await.expect("one that came");
    process.join().await.expect("an end");
    status.details?.causes?.into_iter().find(|cause| cause.reason.as_deref() == Some("ExitCode"))?.message
}

#[tokio::test]
async fn a_client_in_this_process_runs_commands() {
    let (_cluster, pods, kubelet) = with_a_pod().await;
    let mut process = pods.exec("a", ["echo", "a", "b"], &AttachParams::default()).await.expect("it runs");
    assert_eq!(all(process.stdout().expect("an output")).await, "a b\n");
    assert_eq!(exit_code(process).await, None);
    let mut process = pods.exec("a", ["complain", "no"], &AttachParams::default()).await.expect("it runs");
    assert_eq!(all(process.stderr().expect("an output")).await, "no\n");
    assert_eq!(exit_code(process).await.as_deref(), Some("1"));
    assert_eq!(kubelet.running.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_client_in_this_process_talks_to_a_command() {
    let (_cluster, pods, _) = with_a_pod().await;
    let params = AttachParams::default().stdin(true).stderr(false);
    let mut process = pods.exec("a", ["cat"], &params).await.expect("it runs");
    let mut stdin = process.stdin().expect("an input");
    stdin.write_all(b"to and fro").await.expect("written");
    stdin.shutdown().await.expect("ended");
    assert_eq!(all(process.stdout().expect("an output")).await, "to and fro");
    assert_eq!(exit_code(process).await, None);

    let mut process = pods.exec("a", ["sizes"], &AttachParams::interactive_tty()).await.expect("it runs");
    let mut sizes = process.terminal_size().expect("a terminal");
    for (width, height) in [(80, 24), (1, 1)] {
        sizes.try_send(TerminalSize { width, height }).expect("sent");
    }
    assert_eq!(all(process.stdout().expect("an output")).await, "80x24\n1x1\n");
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_command() {
    let (_cluster, pods, kubelet) = with_a_pod().await;
    let process = pods.exec("a", ["sleep"], &AttachParams::default()).await.expect("it runs");
    assert_eq!(kubelet.running.load(Ordering::SeqCst), 1);
    process.abort();
    drop(process);
    while kubelet.running.load(Ordering::SeqCst) > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_client_in_this_process_attaches() {
    let (_cluster, pods, kubelet) = with_a_pod().await;
    let params = AttachParams::default().stdin(true);
    let mut process = pods.attach("a", &params).await.expect("it is attached");
    let mut stdin = process.stdin().expect("an input");
    stdin.write_all(b"hello").await.expect("written");
    stdin.shutdown().await.expect("ended");
    assert_eq!(all(process.stdout().expect("an output")).await, "hello");
    assert_eq!(exit_code(process).await, None);
    assert!(kubelet.asked.lock()[0].starts_with("attach c "), "{:?}", kubelet.asked);
}

#[tokio::test]
async fn a_client_in_this_process_reaches_ports() {
    let (_cluster, pods, _) = with_a_pod().await;
    let mut ports = pods.portforward("a", &[7, 9]).await.expect("it forwards");
    let refused = ports.take_error(9).expect("a place for errors");
    let mut stream = ports.take_stream(7).expect("a stream");
    let bytes = vec![b'x'; 1 << 20];
    let (mut reader, mut writer) = tokio::io::split(&mut stream);
    let mut back = vec![0; bytes.len()];
    let (sent, read) = tokio::join!(writer.write_all(&bytes), reader.read_exact(&mut back));
    sent.expect("sent");
    read.expect("all comes back");
    assert_eq!(back, bytes);
    let why = refused.await.expect("an error");
    assert!(why.ends_with("dial tcp4 127.0.0.1:9: connect: connection refused"), "{why}");
}

#[tokio::test]
async fn a_client_in_this_process_reads_logs() {
    let (_cluster, pods, kubelet) = with_a_pod().await;
    let params = LogParams { tail_lines: Some(2), timestamps: true, ..LogParams::default() };
    assert_eq!(pods.logs("a", &params).await.expect("a log"), "one\ntwo\n");
    let asked = kubelet.asked.lock().pop().expect("it was asked");
    assert!(asked.contains("timestamps: true, tail_lines: Some(2)"), "{asked}");
    let follow = LogParams { follow: true, ..LogParams::default() };
    let lines = futures::AsyncBufReadExt::lines(pods.log_stream("a", &follow).await.expect("a log"));
    let mut lines = std::pin::pin!(lines);
    assert_eq!(lines.try_next().await.expect("a line").as_deref(), Some("one"));
}
