use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::*;
use crate::ControlPlane;

fn config_map(text: &str) -> ConfigMap {
    kubewright_objects::from_value(json!({"metadata": {"name": "a"}, "data": {"text": text}}))
        .expect("a ConfigMap")
}

/// A cluster without controllers in which `a` was made, changed and deleted, and `b` is there.
async fn run(seed: u64) -> Recording {
    let builder = ControlPlane::builder().seed(seed).journal(10_000);
    let cluster = builder.start().await.expect("a cluster");
    let api: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
    let mut other = config_map("x");
    other.metadata.name = Some("b".to_owned());
    api.create(&PostParams::default(), &config_map("one")).await.expect("made");
    api.create(&PostParams::default(), &other).await.expect("made");
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let patch = Patch::Merge(json!({"data": {"text": "two"}}));
    api.patch("a", &PatchParams::apply("somebody"), &patch).await.expect("changed");
    api.delete("a", &DeleteParams::default()).await.expect("deleted");
    Recording::of_journal(cluster.journal().expect("asked for")).expect("all of it")
}

#[tokio::test(start_paused = true)]
async fn a_recording_says_who_did_what_and_when() {
    let recording = run(1).await;
    let writes: Vec<_> = recording.of("/configmaps", "default/a").collect();
    assert_eq!(
        writes.iter().map(|write| write.did).collect::<Vec<_>>(),
        [Did::Create, Did::Update, Did::Delete]
    );
    assert!(writes.iter().all(|write| write.by.user == "kubernetes-admin"));
    assert_eq!(writes[1].time.duration_since(writes[0].time).as_secs(), 60);
    assert_eq!(writes[1].object()["data"]["text"], "two");
    assert_eq!((writes[0].namespace(), writes[0].name()), ("default", "a"));
    assert_eq!(recording.writes()[0].by, Writer::default(), "the server makes the first objects");
    assert_eq!(recording.after(writes[1].revision), &recording.writes()[recording.writes().len() - 1..]);
}

#[tokio::test(start_paused = true)]
async fn a_file_holds_all_of_a_recording() {
    let recording = run(1).await;
    let header = Header { seed: Some(1), notes: vec!["for a test".to_owned()] };
    let mut file = Vec::new();
    recording.write(&header, &mut file).expect("written");
    let (read_header, read) = Recording::read(&file[..]).expect("a recording");
    assert_eq!((read_header, read.writes()), (header, recording.writes()));
    assert_eq!(read.digest(), recording.digest());
}

#[test]
fn what_is_no_recording_is_told_apart() {
    let error = |text: &str| Recording::read(text.as_bytes()).expect_err(text).to_string();
    assert!(error("").starts_with("it is no recording"));
    assert!(error("{\"format\":\"x\",\"version\":1}").starts_with("it is no recording"));
    assert!(error("{\"format\":\"kubewright recording\",\"version\":2}").contains("of version 2"));
    let head = "{\"format\":\"kubewright recording\",\"version\":1}\n";
    assert!(error(&format!("{head}nonsense")).starts_with("line 2: "));
    let write = "{\"revision\":2,\"time\":\"2026-01-01T00:00:00Z\",\"by\":{},\"did\":\"create\",\"collection\":\"/pods\",\"key\":\"a/b\",\"object\":{}}";
    assert_eq!(error(&format!("{head}{write}")), "line 2: the write of revision 1 is missing");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_made_again_as_it_was_at_any_revision() {
    let recording = run(1).await;
    let changed = recording.of("/configmaps", "default/a").nth(1).expect("the change").revision;
    for (revision, text) in [(changed, Some("two")), (recording.revision(), None)] {
        let past = recording.at(revision);
        let builder = ControlPlane::builder().recording(past);
        let cluster = builder.start().await.expect("it fits");
        assert_eq!(cluster.revision(), revision);
        let api: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
        let found =
            api.get_opt("a").await.expect("an answer").map(|found| found.data.expect("data")["text"].clone());
        assert_eq!(found.as_deref(), text);
        api.delete("b", &DeleteParams::default()).await.expect("it is there and can be written");
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_difference_of_two_recordings_is_found() {
    let (one, two) = (run(1).await, run(2).await);
    assert_eq!(one.first_difference(&one), None);
    let (here, there) = one.first_difference(&two).expect("other uids");
    assert_eq!(here.expect("a write").revision, there.expect("a write").revision);
    let shorter = one.at(Revision(3));
    assert_eq!(shorter.first_difference(&one), Some((None, Some(&*one.writes()[3]))));
}
