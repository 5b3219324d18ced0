use std::io::Cursor;

use jiff::{SignedDuration, Timestamp};
use kubewright_meta::access::Access;
use proptest::prelude::*;
use serde_json::{Value, json, value::to_raw_value};

use super::*;

fn time(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).expect("a time")
}

fn write(revision: u64, second: i64, text: &str) -> Record {
    let object = json!({"metadata": {"name": "a", "resourceVersion": revision.to_string()}, "data": text});
    Record::Write(Write {
        revision,
        time: time(second),
        by: Author { user: "alice".to_owned(), program: String::new() },
        did: Did::Update,
        inferred: revision.is_multiple_of(3),
        collection: "/configmaps".to_owned(),
        key: "default/a".to_owned(),
        object: to_raw_value(&object).expect("JSON"),
    })
}

fn records() -> impl Strategy<Value = Vec<Vec<Record>>> {
    let record = prop_oneof![
        3 => (0..50_u64, 0..50_i64, "[a-z\"\\n]{0,40}").prop_map(|(revision, second, text)| write(revision, second, &text)),
        1 => (0..50_i64, proptest::option::of(200..500_u16)).prop_map(|(second, code)| Record::Request(Request {
            time: time(second),
            by: Author { user: String::new(), program: "kubectl".to_owned() },
            verb: "get".to_owned(),
            resource: "apps/deployments/status".to_owned(),
            key: "default/web".to_owned(),
            code,
            fault: code.is_none().then_some(1),
        })),
        1 => (0..50_i64, ".{0,10}", any::<bool>()).prop_map(|(second, reasons, failed)| Record::Reconcile(Reconcile {
            time: time(second),
            by: Author { user: "u".to_owned(), program: "web/1".to_owned() },
            controller: "web".to_owned(),
            key: "default/web".to_owned(),
            reasons,
            waited: 0.5,
            took: 1.25,
            outcome: "done".to_owned(),
            failed,
            accesses: vec![Access::new("get", "/pods".to_owned(), "default/web".to_owned()); usize::from(failed)],
            accesses_left_out: second.unsigned_abs(),
        })),
        1 => (0..50_i64, ".{0,10}").prop_map(|(second, note)| Record::Mark(Mark {
            time: time(second),
            what: "lost".to_owned(),
            note,
        })),
    ];
    proptest::collection::vec(proptest::collection::vec(record, 0..6), 0..6)
}

fn header() -> Header {
    Header { program: "a test".to_owned(), seed: Some(7), started: Some(time(0)), ..Header::default() }
}

/// A file with these records, a block for each list, and where each block ends.
fn file_of(blocks: &[Vec<Record>]) -> (Vec<u8>, Vec<u64>) {
    let mut writer = Writer::create(Vec::new(), &header()).expect("memory");
    let mut ends = vec![writer.bytes()];
    for block in blocks {
        block.iter().for_each(|record| writer.push(record).expect("memory"));
        writer.flush().expect("memory");
        ends.push(writer.bytes());
    }
    (writer.finish().expect("memory"), ends)
}

fn read_all<F: std::io::Read + std::io::Seek>(reader: &mut Reader<F>) -> Vec<Record> {
    std::iter::from_fn(|| reader.next_record().expect("whole blocks can be read")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(blocks in records()) {
        let (file, _) = file_of(&blocks);
        let mut reader = Reader::open(Cursor::new(&file)).expect("a recording");
        prop_assert_eq!(reader.header(), &header());
        prop_assert_eq!(read_all(&mut reader), blocks.concat());
        prop_assert_eq!(reader.unread().expect("memory"), 0);
    }

    #[test]
    fn any_prefix_opens_and_gives_the_records_of_its_whole_blocks(blocks in records(), cut in any::<prop::sample::Index>()) {
        let (file, ends) = file_of(&blocks);
        let length = 8 + cut.index(file.len() - 7);
        let mut reader = Reader::open(Cursor::new(&file[..length])).expect("a recording");
        let whole = ends.iter().filter(|end| **end <= length as u64).count();
        let expected = blocks[..whole.saturating_sub(1)].concat();
        prop_assert_eq!(read_all(&mut reader), expected);
        let end = if whole == 0 { 8 } else { ends[whole - 1] };
        prop_assert_eq!(reader.end().expect("memory"), end);
    }

    #[test]
    fn a_damaged_byte_ends_the_recording_before_its_block(blocks in records(), at in any::<prop::sample::Index>(), with in 1..=255_u8) {
        let (mut file, ends) = file_of(&blocks);
        prop_assume!(file.len() as u64 > ends[0]);
        let first = usize::try_from(ends[0]).expect("short");
        let damaged = first + at.index(file.len() - first);
        file[damaged] ^= with;
        let mut reader = Reader::open(Cursor::new(&file)).expect("a recording");
        let whole = ends.iter().filter(|end| **end <= damaged as u64).count();
        prop_assert_eq!(read_all(&mut reader), blocks[..whole - 1].concat());
    }

    #[test]
    fn who_goes_by_the_heads_of_blocks_finds_what_who_reads_all_finds(blocks in records(), revision in 0..60_u64, second in -5..60_i64) {
        let (file, _) = file_of(&blocks);
        for limit in [Limit::Revision(revision), Limit::Time(time(second)), Limit::Nothing] {
            let mut found = Vec::new();
            let mut reader = Reader::open(Cursor::new(&file)).expect("a recording");
            let index = reader.blocks().expect("memory");
            reader.for_each(|span| limit.may_include(span), |record| found.push(record)).expect("a recording");
            found.retain(|record| limit.includes(record));
            let all = blocks.concat().into_iter().filter(|record| limit.includes(record));
            prop_assert_eq!(found, all.collect::<Vec<_>>());
            let counts: Vec<usize> = index.iter().map(|block| block.span.records as usize).collect();
            let written: Vec<usize> = blocks.iter().map(Vec::len).filter(|length| *length > 0).collect();
            prop_assert_eq!(counts, written);
        }
    }
}

#[test]
fn who_reads_while_it_is_written_goes_on_with_what_came_since() {
    let (file, ends) = file_of(&[vec![write(1, 1, "one")], vec![write(2, 2, "two")]]);
    let path = std::env::temp_dir().join(format!("kubewright-recording-{}", std::process::id()));
    let length = usize::try_from(ends[1]).expect("short");
    std::fs::write(&path, &file[..length + 10]).expect("written");
    let mut reader = Reader::open(std::fs::File::open(&path).expect("opened")).expect("a recording");
    assert_eq!(read_all(&mut reader), [write(1, 1, "one")]);
    assert_eq!(reader.unread().expect("it is there"), 10);
    std::fs::write(&path, &file).expect("written");
    assert_eq!(read_all(&mut reader), [write(2, 2, "two")]);
    std::fs::remove_file(&path).expect("it was there");
}

#[test]
fn a_recording_whose_end_was_torn_is_gone_on_with_behind_its_last_whole_block() {
    let (file, ends) = file_of(&[vec![write(1, 1, "one")], vec![write(2, 2, "two")]]);
    let path = std::env::temp_dir().join(format!("kubewright-recording-torn-{}", std::process::id()));
    std::fs::write(&path, &file[..file.len() - 1]).expect("written");
    let open = || std::fs::OpenOptions::new().read(true).write(true).open(&path).expect("opened");
    let (mut writer, cut) = Writer::append(open()).expect("a recording");
    assert_eq!(cut, file.len() as u64 - 1 - ends[1]);
    writer.push(&write(3, 3, "three")).expect("written");
    writer.finish().expect("written");
    let mut reader = Reader::open(open()).expect("a recording");
    assert_eq!(read_all(&mut reader), [write(1, 1, "one"), write(3, 3, "three")]);
    std::fs::remove_file(&path).expect("it was there");
}

#[test]
fn what_is_no_recording_is_refused_with_the_reason() {
    let refused = |bytes: &[u8]| Reader::open(Cursor::new(bytes.to_vec())).expect_err("refused").to_string();
    assert_eq!(refused(b""), "it is no recording of kubewright");
    assert_eq!(refused(b"kind: Pod"), "it is no recording of kubewright");
    assert!(refused(b"KWREC\x03\r\n").contains("version 3"));
    assert!(refused(b"KWREC\x02").contains("cut off before its first record"));
}

#[test]
fn a_moment_is_a_revision_a_time_or_so_long_before_the_end() {
    assert_eq!("230".parse(), Ok(At::Revision(230)));
    assert_eq!("2026-01-31T12:00:00Z".parse(), Ok(At::Time("2026-01-31T12:00:00Z".parse().expect("a time"))));
    let quarter = At::BeforeEnd(SignedDuration::from_mins(15));
    assert_eq!("15 minutes before the end".parse(), Ok(quarter));
    assert_eq!("15m before the end".parse(), Ok(quarter));
    assert_eq!(quarter.limit(Some(time(1000))), Limit::Time(time(100)));
    for text in ["", "yesterday", "before the end", "-3m before the end", "99999999999999999999"] {
        let refused = text.parse::<At>().expect_err(text).to_string();
        assert!(refused.contains("is no moment"), "{refused}");
    }
}

#[test]
fn the_data_of_secrets_is_hashed_and_what_repeats_it_too() {
    let redactor = Redactor::new(b"key", true, vec![]);
    let secret = |value: &str| {
        let mut object = json!({"metadata": {"annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": format!("{{\"data\":{{\"p\":\"{value}\"}}}}"), "a": "b"}},
            "data": {"p": value, "q": "eA=="}, "type": "Opaque"});
        redactor.redact("/secrets", &mut object);
        object
    };
    let (one, two) = (secret("c2VjcmV0"), secret("b3RoZXI="));
    assert!(!one.to_string().contains("c2VjcmV0"), "{one}");
    assert_eq!((&one["data"]["q"], &one["type"]), (&two["data"]["q"], &json!("Opaque")));
    assert_ne!(one["data"]["p"], two["data"]["p"], "a change is seen");
    assert_eq!(one["metadata"]["annotations"]["a"], "b");
    assert!(one.get("stringData").is_none());
    let mut map = json!({"data": {"p": "c2VjcmV0"}});
    redactor.redact("/configmaps", &mut map);
    assert_eq!(map, json!({"data": {"p": "c2VjcmV0"}}));
}

#[test]
fn fields_at_a_path_are_hashed_in_lists_too() {
    let path = "spec.containers.env.value".parse().expect("a path");
    let redactor = Redactor::new(b"key", false, vec![path, "spec.limits.*".parse().expect("a path")]);
    let mut pod = json!({"spec": {"limits": {"a": 3, "b": true}, "containers": [{"env": [{"name": "A", "value": "secret"}]}]}});
    redactor.redact("/pods", &mut pod);
    assert!(!pod.to_string().contains("secret"), "{pod}");
    assert_eq!(pod["spec"]["limits"], json!({"a": 0, "b": false}));
    assert_eq!(pod["spec"]["containers"][0]["env"][0]["name"], Value::from("A"));
    assert_eq!(redactor.names(), ["spec.containers.env.value", "spec.limits.*"]);
    assert!("spec..a".parse::<FieldPath>().is_err());
}
