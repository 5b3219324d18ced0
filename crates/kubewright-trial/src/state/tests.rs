use std::time::Duration;

use serde_json::json;

use super::*;

fn write(key: &str, did: Did, by: Who, object: Value) -> Write {
    let id = ObjectId::new("/configmaps", key);
    Write { at: Duration::ZERO, id, did, by, subresource: String::new(), object }
}

fn map(name: &str, uid: &str, more: &Value) -> Value {
    let mut object = json!({"kind": "ConfigMap", "metadata": {"name": name, "namespace": "a", "uid": uid}});
    if let (Some(object), Some(more)) = (object.as_object_mut(), more.as_object()) {
        object.extend(more.clone());
    }
    object
}

#[test]
fn what_the_program_deleted_and_the_cluster_made_again_is_not_the_programs() {
    let written = |again: Who| {
        let writes = [
            write("a/pod", Did::Update, Who::Program, map("pod", "1", &json!({}))),
            write("a/pod", Did::Delete, Who::Program, map("pod", "1", &json!({}))),
            write("a/pod", Did::Create, again, map("pod", "2", &json!({}))),
        ];
        state(&writes, &[]).len()
    };
    assert_eq!((written(Who::Cluster), written(Who::Program)), (0, 1));
}

#[test]
fn a_resource_version_of_a_sample_that_is_written_down_elsewhere_is_any() {
    let owner = ObjectId::new("/configmaps", "a/owner");
    let noted = |version: &str, note: &str| {
        let mut sample = map("owner", "1", &json!({}));
        sample["metadata"]["resourceVersion"] = version.into();
        let mut object = map("a", "2", &json!({}));
        object["metadata"]["labels"] = json!({"owner-rv": note});
        let writes = [
            write("a/owner", Did::Create, Who::Trial, sample),
            write("a/a", Did::Create, Who::Program, object),
        ];
        state(&writes, std::slice::from_ref(&owner))
    };
    let differ = |one: &State, other: &State| differences(one, other, &Volatile::default()).len();
    assert_eq!(differ(&noted("240", "240"), &noted("311", "311")), 0);
    assert_eq!(differ(&noted("240", "240"), &noted("311", "240")), 0, "the same number");
    assert_eq!(differ(&noted("240", "240"), &noted("311", "3")), 1);
}

#[test]
fn the_order_of_lists_that_are_maps_says_nothing() {
    let of = |ports: Value| {
        let more = json!({"spec": {"ports": ports, "args": ["b", "a"]}});
        state(&[write("a/a", Did::Create, Who::Program, map("a", "1", &more))], &[])
    };
    let differ = |one: Value, other: Value| differences(&of(one), &of(other), &Volatile::default()).len();
    let (http, amqp) = (json!({"port": 80, "name": "http"}), json!({"port": 5672, "name": "amqp"}));
    assert_eq!(differ(json!([http, amqp]), json!([amqp, http])), 0);
    assert_eq!(differ(json!([http, amqp]), json!([{"port": 80, "name": "web"}, amqp])), 1);
}

#[test]
fn names_that_are_others_in_each_run_are_counted() {
    let of = |names: &[&str]| -> State {
        names.iter().map(|name| (ObjectId::new("g/workloads", format!("a/{name}")), json!({}))).collect()
    };
    let mut volatile = Volatile::default();
    volatile.learn(&of(&["job-75be5"]), &of(&["job-1a2b3"]));
    let differ = |reached: &[&str]| differences(&of(&["job-75be5"]), &of(reached), &volatile).len();
    assert_eq!(differ(&["job-9c8d7"]), 0);
    assert_eq!(differ(&["job-9c8d7", "job-6b5a4"]), 2, "one too many, whichever it is");
    assert_eq!(differ(&["job-9c8d7", "other-6b5a4"]), 1);
}

#[test]
fn what_has_completed_says_so_by_its_phase_or_a_condition() {
    assert!(is_completed(&json!({"phase": "DONE"})));
    assert!(is_completed(&json!({"conditions": [{"type": "Complete", "status": "True"}]})));
    assert!(!is_completed(&json!({"conditions": [{"type": "Complete", "status": "False"}]})));
    assert!(!is_completed(&json!({"phase": "Running"})));
}

#[test]
fn a_generation_may_be_a_text() {
    let mut object = json!({"status": {"observedGeneration": "2"}});
    relate_generations(&mut object, Some(2));
    assert_eq!(object["status"]["observedGeneration"], "<current>");
}

#[test]
fn a_uid_that_is_known_in_one_story_alone_is_the_same() {
    let of = |uid: &str| State::from([(ObjectId::new("/endpoints", "a"), json!({"uid": uid}))]);
    let differ = |one: &str, other: &str| differences(&of(one), &of(other), &Volatile::default()).len();
    assert_eq!(differ("<uid>", "<uid of nodes node-0>"), 0);
    assert_eq!(differ("<uid>", "<uid of an earlier nodes node-0>"), 1);
    assert_eq!(differ("<uid of pods a>", "<uid of nodes node-0>"), 1);
}

#[test]
fn what_the_trial_has_added_is_left_out_of_records_too() {
    let record = |metadata: &str| {
        let text = format!(r#"{{"spec": {{"size": 1}}, "metadata": {{{metadata}}}}}"#);
        let mut object = map("a", "1", &json!({}));
        object["metadata"]["annotations"] = json!({"x.dev/last-handled": text});
        state(&[write("a/a", Did::Update, Who::Program, object)], &[])
    };
    assert!(
        differences(
            &record(""),
            &record(r#""annotations": {"trial.kubewright.dev/looked-at":"1"}"#),
            &Volatile::default()
        )
        .is_empty()
    );
}

#[test]
fn a_condition_that_is_false_is_as_good_as_one_that_is_not_there() {
    let of = |conditions: Value| {
        State::from([(ObjectId::new("g/pages", "a"), json!({"status": {"conditions": conditions}}))])
    };
    let ready = json!({"type": "Ready", "status": "True"});
    let paused = |status: &str| json!({"type": "Paused", "status": status});
    let places = |one: Value, other: Value| -> Vec<String> {
        differences(&of(one), &of(other), &Volatile::default()).into_iter().map(|one| one.field).collect()
    };
    assert_eq!(places(json!([ready]), json!([ready, paused("False")])), [""; 0]);
    assert_eq!(places(json!([ready]), json!([ready, paused("True")])), ["/status/conditions/Paused"]);
    assert_eq!(
        places(json!([ready, paused("True")]), json!([ready, paused("False")])),
        ["/status/conditions/Paused/status"]
    );
}

#[test]
fn the_state_has_what_the_program_wrote_and_what_is_there() {
    let writes = [
        write("a/one", Did::Create, Who::Program, map("one", "1", &json!({"data": {"a": "1"}}))),
        write("a/one", Did::Update, Who::Trial, map("one", "1", &json!({"data": {"a": "2"}}))),
        write("a/two", Did::Create, Who::Program, map("two", "2", &json!({}))),
        write("a/two", Did::Delete, Who::Cluster, map("two", "2", &json!({}))),
        write("a/three", Did::Create, Who::Cluster, map("three", "3", &json!({}))),
    ];
    let state = state(&writes, &[]);
    assert_eq!(state.keys().map(|id| &*id.key).collect::<Vec<_>>(), ["a/one"]);
    assert_eq!(state.values().next().expect("one")["data"]["a"], "2");
}

#[test]
fn what_the_trial_itself_has_added_is_no_part_of_the_state() {
    let metadata = json!({"name": "one", "namespace": "a", "uid": "1"});
    let plain = write("a/one", Did::Create, Who::Program, json!({"kind": "ConfigMap", "metadata": metadata}));
    let mut extended = plain.clone();
    let added = json!({"labels": {ADDITION: "theirs"}, "annotations": {"trial.kubewright.dev/looked-at": "yes"},
        "ownerReferences": [{"kind": "ConfigMap", "name": OWNER, "uid": "2"}]});
    let fields = extended.object["metadata"].as_object_mut().zip(added.as_object());
    let (metadata, added) = fields.expect("metadata");
    metadata.extend(added.clone());
    let found = differences(&state(&[plain], &[]), &state(&[extended], &[]), &Volatile::default());
    assert_eq!(found, []);
}

#[test]
fn an_owner_that_came_again_is_told_from_the_one_that_went() {
    let uid = |number: u8| format!("0f8fad5b-d9cb-469f-a165-7086772895{number:02}");
    let owned = map("child", "x", &json!({"data": {"owner": uid(1)}}));
    let mut writes = vec![
        write("a/owner", Did::Create, Who::Program, map("owner", &uid(1), &json!({}))),
        write("a/child", Did::Create, Who::Program, owned),
    ];
    let owner = |writes: &[Write]| {
        state(writes, &[])[&ObjectId::new("/configmaps", "a/child")]["data"]["owner"].clone()
    };
    assert_eq!(owner(&writes), "<uid of configmaps a/owner>");
    writes.push(write("a/owner", Did::Create, Who::Program, map("owner", &uid(2), &json!({}))));
    assert_eq!(owner(&writes), "<uid of an earlier configmaps a/owner>");
}

#[test]
fn how_often_an_object_was_changed_does_not_count() {
    let page = |generation: i64, observed: i64| {
        let mut page = map("p", "1", &json!({"status": {"observedGeneration": observed}}));
        page["metadata"]["generation"] = generation.into();
        let mut write = write("a/p", Did::Update, Who::Program, page);
        "status".clone_into(&mut write.subresource);
        state(&[write], &[])
    };
    assert_eq!(page(1, 1), page(3, 3));
    assert_ne!(page(3, 3), page(3, 1));
}

#[test]
fn a_zero_in_the_spec_of_a_sample_is_as_good_as_absent() {
    let id = ObjectId::new("/configmaps", "a/one");
    let state = |spec: Value| {
        let sample = map("one", "1", &json!({"spec": spec}));
        state(&[write("a/one", Did::Create, Who::Trial, sample)], std::slice::from_ref(&id))
    };
    let zeros = json!({"on": false, "name": "", "list": [{"count": 0, "a": 1}]});
    assert_eq!(state(zeros), state(json!({"list": [{"a": 1}]})));
}

#[test]
fn what_is_empty_is_as_good_as_absent() {
    let state = |object: Value| State::from([(ObjectId::new("/pods", "a/b"), object)]);
    let (one, other) = (state(json!({"spec": {"list": [], "map": {}}})), state(json!({"spec": {}})));
    assert_eq!(differences(&one, &other, &Volatile::default()), []);
    let count =
        |one: Value, other: Value| differences(&state(one), &state(other), &Volatile::default()).len();
    assert_eq!(count(json!({"a": 0}), json!({})), 1);
    assert_eq!(count(json!({"backend": {"external": {}}}), json!({})), 0);
    assert_eq!(count(json!({"backend": {"external": {"name": "x"}}}), json!({})), 1);
    assert_eq!(count(json!({"list": [{}]}), json!({})), 1);
}

#[test]
fn claims_of_stateful_sets_are_compared_and_may_be_more_and_larger() {
    let claim = |name: &str, storage: &str| {
        let more = json!({"spec": {"resources": {"requests": {"storage": storage}}}});
        let mut write = write(&format!("a/{name}"), Did::Create, Who::Cluster, map(name, "1", &more));
        CLAIMS.clone_into(&mut write.id.collection);
        write
    };
    let state = |claims: &[(&str, &str)]| {
        let writes: Vec<Write> = claims.iter().map(|(name, storage)| claim(name, storage)).collect();
        state(&writes, &[])
    };
    let count = |one: &[(&str, &str)], other: &[(&str, &str)]| {
        differences(&state(one), &state(other), &Volatile::default()).len()
    };
    assert_eq!(count(&[("d-0", "1Gi")], &[("d-0", "2Gi"), ("d-1", "1Gi")]), 0);
    assert_eq!(count(&[("d-0", "2Gi")], &[("d-0", "1Gi")]), 1);
    assert_eq!(count(&[("d-0", "1Gi")], &[]), 1);
}

#[test]
fn a_quantity_that_is_written_otherwise_is_the_same() {
    let state = |amount: Value| State::from([(ObjectId::new("/pods", "a/b"), json!({"limit": amount}))]);
    let count =
        |one: Value, other: Value| differences(&state(one), &state(other), &Volatile::default()).len();
    assert_eq!(count("2000m".into(), 2.into()), 0);
    assert_eq!(count("1Gi".into(), "1024Mi".into()), 0);
    assert_eq!(count("1Gi".into(), "1G".into()), 1);
}

#[test]
fn the_smallest_places_that_differ_are_told_but_for_those_that_always_do() {
    let state = |object: Value| State::from([(ObjectId::new("/pods", "a/b"), object)]);
    let one = state(json!({"a": {"b": 1, "c": [1, 2]}, "d": 1}));
    let other = state(json!({"a": {"b": 2, "c": [1, 3]}, "e": 1}));
    let places = |volatile: &Volatile| -> Vec<String> {
        differences(&one, &other, volatile).into_iter().map(|one| one.field).collect()
    };
    assert_eq!(places(&Volatile::default()), ["/a/b", "/a/c/1", "/d", "/e"]);
    let mut volatile = Volatile::default();
    volatile.learn(&one, &state(json!({"a": {"b": 3, "c": [4, 2]}, "d": 1})));
    assert_eq!(places(&volatile), ["/a/c/1", "/d", "/e"]);
}
