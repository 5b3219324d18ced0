use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kubewright_recording::{Mark, Record};
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
async fn who_made_a_service_is_noted_and_what_follows_of_it_is_nobodys() {
    let cluster = ControlPlane::builder().journal(1_000).start().await.expect("a cluster");
    let service: Service =
        kubewright_objects::from_value(json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}))
            .expect("a Service");
    let api: Api<Service> = Api::namespaced(cluster.client(), "default");
    api.create(&PostParams::default(), &service).await.expect("made");
    let recording = Recording::of_journal(cluster.journal().expect("asked for")).expect("all of it");
    let made = recording.of("/services", "default/a").next().expect("a write");
    assert_eq!(made.by.user, "kubernetes-admin");
    let addresses =
        recording.writes().iter().filter(|write| *write.collection == *"networking.k8s.io/ipaddresses");
    let by: Vec<&Writer> = addresses.map(|write| &write.by).collect();
    assert!(!by.is_empty() && by.iter().all(|by| **by == Writer::default()), "{by:?}");
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

/// A file of this name in the folder for such, opened again; it is removed at once.
fn file(name: &str, bytes: &[u8]) -> std::fs::File {
    let path = std::env::temp_dir().join(format!("kubewright-{name}-{}", std::process::id()));
    std::fs::write(&path, bytes).expect("written");
    let file = std::fs::File::open(&path).expect("it is there");
    std::fs::remove_file(&path).expect("it was there");
    file
}

#[tokio::test(start_paused = true)]
async fn blocks_hold_all_of_a_recording_and_give_it_as_it_was_at_any_moment() {
    let recording = run(1).await;
    let mut bytes = Vec::new();
    let mark = |time| Record::Mark(Mark { time, what: "fault".to_owned(), note: String::new() });
    let (first, end) = (recording.writes()[0].time, recording.end().expect("writes"));
    let besides = vec![mark(end), mark(first - SignedDuration::from_secs(1))];
    recording.write_blocks(&kubewright_recording::Header::default(), besides, &mut bytes).expect("written");
    let read = super::besides(file("besides", &bytes), 10).expect("marks");
    assert_eq!(
        read.iter().map(Record::time).collect::<Vec<_>>(),
        [first - SignedDuration::from_secs(1), end]
    );
    let open = |at: Option<&str>| {
        let at = at.map(|at| at.parse().expect("a moment"));
        Recording::open(file("blocks", &bytes), at)
    };
    let opened = open(None).expect("a recording");
    assert!(opened.is_whole && opened.cut == 0);
    assert_eq!(opened.recording.digest(), recording.digest());
    let changed = recording.of("/configmaps", "default/a").nth(1).expect("the change");
    let at = |at: &str| open(Some(at)).expect(at).recording.revision();
    assert_eq!(at(&changed.revision.to_string()), changed.revision);
    assert_eq!(at("30 seconds before the end"), Revision(changed.revision.0 - 1));
    assert_eq!(at(&changed.time.to_string()), recording.revision(), "it went at the same time");
    assert!(open(Some("9999")).expect_err("too far").to_string().contains("ends at revision"));
    assert!(open(Some("2001-01-01T00:00:00Z")).expect_err("too early").to_string().contains("begins at"));
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_was_recorded_by_watches_is_made_of_the_objects_that_were_there() {
    let recording = run(1).await;
    let later = |write: &Write| {
        let mut record = write.record().expect("JSON");
        record.revision += 100_000;
        record
    };
    let maps = recording.writes().iter().filter(|write| &*write.collection == "/configmaps");
    let mut writer = kubewright_recording::Writer::create(Vec::new(), &Default::default()).expect("memory");
    for write in maps {
        writer.push(&kubewright_recording::Record::Write(later(write))).expect("memory");
    }
    let bytes = writer.finish().expect("memory");
    let opened = Recording::open(file("sparse", &bytes), None).expect("a recording");
    assert!(!opened.is_whole);
    assert_eq!(opened.last.expect("a write").revision.0, recording.revision().0 + 100_000);
    let cluster = ControlPlane::builder().recording(opened.recording).start().await.expect("it fits");
    let api: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
    let names: Vec<_> = api.list(&Default::default()).await.expect("a list").items;
    assert_eq!(names.iter().filter_map(|map| map.metadata.name.as_deref()).collect::<Vec<_>>(), ["b"]);
    let there =
        recording.objects().into_keys().filter(|(collection, _)| &**collection == "/configmaps").count();
    assert_eq!(
        names[0].metadata.resource_version,
        Some(there.to_string()),
        "it is the last of those that are there"
    );
    api.delete("b", &DeleteParams::default()).await.expect("it can be written");
}

#[tokio::test(start_paused = true)]
async fn a_tap_gives_each_write_once_in_its_order_with_who_made_it_and_the_requests() {
    let cluster = ControlPlane::builder().journal(1_000).request_log(true).start().await.expect("a cluster");
    let mut tap = Tap::of(&cluster).expect("it has a journal");
    let api: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
    let mut records = tap.take();
    api.create(&PostParams::default(), &config_map("one")).await.expect("made");
    tokio::time::timeout(std::time::Duration::from_secs(1), tap.changed()).await.expect("a commit");
    api.delete("a", &DeleteParams::default()).await.expect("deleted");
    records.extend(tap.take());
    records.extend(tap.take());
    let revisions: Vec<u64> = records.iter().filter_map(Record::revision).collect();
    assert_eq!(revisions, (1..=cluster.revision().0).collect::<Vec<_>>());
    let Some(Record::Write(write)) = records.iter().rev().find(|record| record.revision().is_some()) else {
        panic!("no write")
    };
    assert_eq!((&*write.by.user, &*write.key), ("kubernetes-admin", "default/a"));
    let requests = records.iter().filter_map(|record| match record {
        Record::Request(request) => Some((&*request.verb, &*request.resource, &*request.key, request.code)),
        _ => None,
    });
    assert_eq!(
        requests.collect::<Vec<_>>(),
        [("create", "/configmaps", "default/", Some(201)), ("delete", "/configmaps", "default/a", Some(200))]
    );
}

#[tokio::test(start_paused = true)]
async fn a_tap_of_a_cluster_that_was_there_before_begins_with_its_objects() {
    let recording = run(1).await;
    let revision = recording.revision();
    let cluster = ControlPlane::builder().recording(recording).journal(10).start().await.expect("it fits");
    let records = Tap::of(&cluster).expect("it has a journal").take();
    assert!(records.iter().all(|record| record.revision().is_some_and(|at| at <= revision.0)));
    let snapshot = cluster.server().engine().snapshot();
    let there: usize = snapshot.collections().map(|collection| snapshot.len(collection)).sum();
    assert_eq!(records.len(), there);
}
