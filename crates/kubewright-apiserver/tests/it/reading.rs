//! Lists and watches.

mod edge;

use std::time::Duration;

use kubewright_identity::authn::User;
use serde_json::{Value, json};

use crate::support::Api;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str, color: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"color": color}}})
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_list_in_pages_is_one_consistent_whole() {
    let api = Api::start().await;
    for name in ["a", "b", "c", "d", "e"] {
        api.post(MAPS, map(name, "red")).await.expect(201);
    }
    let first = api.get(&format!("{MAPS}?limit=2")).await.expect(200);
    assert_eq!((names(&first), &first["metadata"]["remainingItemCount"]), (vec!["a", "b"], &json!(3)));
    api.delete(&format!("{MAPS}/d")).await.expect(200);
    api.post(MAPS, map("cc", "red")).await.expect(201);
    let token = first["metadata"]["continue"].as_str().unwrap();
    let rest = api.get(&format!("{MAPS}?limit=9&continue={token}")).await.expect(200);
    assert_eq!(names(&rest), ["c", "d", "e"]);
    assert_eq!(rest["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
}

/// `--etcd-compaction-interval` of kube-apiserver.
#[tokio::test(start_paused = true)]
async fn the_past_is_listed_for_five_minutes_at_least_and_for_ten_at_most() {
    let api = Api::start().await;
    for name in ["a", "b", "c"] {
        api.post(MAPS, map(name, "red")).await.expect(201);
    }
    let page = async |token: &str| api.get(&format!("{MAPS}?limit=1&continue={token}")).await;
    let first = async || {
        let first = api.get(&format!("{MAPS}?limit=1")).await.expect(200);
        let told = |field: &str| first["metadata"][field].as_str().unwrap().to_owned();
        (told("continue"), told("resourceVersion"))
    };
    let exact = |version: &str| format!("{MAPS}?resourceVersion={version}&resourceVersionMatch=Exact");
    let (old, old_version) = first().await;
    let mut watch =
        api.watch(&format!("{MAPS}?watch=true&resourceVersion={old_version}&timeoutSeconds=3600")).await;
    // Of what nothing follows for a while, the present is kept.
    tokio::time::advance(Duration::from_secs(100)).await;
    api.patch(&format!("{MAPS}/a"), "merge", json!({"data": {"x": "1"}})).await.expect(200);
    tokio::time::advance(Duration::from_secs(210)).await;
    api.post(MAPS, map("d", "red")).await.expect(201);
    let (new, new_version) = first().await;
    tokio::time::advance(Duration::from_secs(285)).await;
    assert_eq!(names(&page(&old).await.expect(200)), ["b"]);
    tokio::time::advance(Duration::from_secs(10)).await;
    api.delete(&format!("{MAPS}/b")).await.expect(200);

    let late = page(&old).await;
    let go_on = late.body["metadata"]["continue"].as_str().unwrap().to_owned();
    let why = late.refused(410, "Expired");
    assert!(
        why.starts_with("The provided continue parameter is too old to display a consistent list"),
        "{why}"
    );
    assert_eq!(names(&page(&go_on).await.expect(200)), ["c"], "the rest is told as it is now");
    let why = api.get(&exact(&old_version)).await.refused(410, "Expired");
    assert_eq!(why, "The resourceVersion for the provided list is too old.");
    assert_eq!(names(&page(&new).await.expect(200)), ["b"], "what is five minutes old is still there");
    assert_eq!(names(&api.get(&exact(&new_version)).await.expect(200)), ["a", "b", "c", "d"]);
    api.get(&format!("{MAPS}?resourceVersion={old_version}")).await.expect(200);
    watch.expect("MODIFIED", "a").await;
    watch.expect("ADDED", "d").await;
    watch.expect("DELETED", "b").await;
    let mut again = api.watch(&format!("{MAPS}?watch=true&resourceVersion={old_version}")).await;
    again.expect("MODIFIED", "a").await;
}

/// `compact_rev_key` of kube-apiserver.
#[tokio::test(start_paused = true)]
async fn what_was_listed_is_past_after_ten_minutes_although_nobody_has_written() {
    let api = Api::start().await;
    for name in ["a", "b", "c"] {
        api.post(MAPS, map(name, "red")).await.expect(201);
    }
    let page = async |token: &str| api.get(&format!("{MAPS}?limit=1&continue={token}")).await;
    let told = |list: &Value, field: &str| list["metadata"][field].as_str().unwrap().to_owned();
    let first = api.get(&format!("{MAPS}?limit=1")).await.expect(200);
    let (old, version) = (told(&first, "continue"), told(&first, "resourceVersion"));
    tokio::time::advance(Duration::from_secs(295)).await;
    assert_eq!(names(&page(&old).await.expect(200)), ["b"]);
    tokio::time::advance(Duration::from_secs(306)).await;
    let late = page(&old).await;
    let go_on = told(&late.body, "continue");
    late.refused(410, "Expired");
    let second = page(&go_on).await.expect(200);
    assert_eq!(names(&second), ["b"]);
    let newer = told(&second, "resourceVersion");
    assert!(newer.parse::<u64>().unwrap() > version.parse::<u64>().unwrap(), "{version}, {newer}");
    assert_eq!(names(&page(&told(&second, "continue")).await.expect(200)), ["c"]);
    // What was written for it is no object of anybody.
    let mut watch = api.watch(&format!("{MAPS}?watch=true&resourceVersion={version}")).await;
    api.post(MAPS, map("d", "red")).await.expect(201);
    watch.expect("ADDED", "d").await;
    tokio::time::advance(Duration::from_secs(3600)).await;
    assert_eq!(names(&api.get(&format!("{MAPS}?limit=9")).await.expect(200)), ["a", "b", "c", "d"]);
}

#[tokio::test(start_paused = true)]
async fn selectors_pick_by_label_and_by_field() {
    let api = Api::start().await;
    for (name, color) in [("a", "red"), ("b", "blue"), ("c", "red")] {
        api.post(MAPS, map(name, color)).await.expect(201);
    }
    let list = api.get(&format!("{MAPS}?labelSelector=color%3Dred")).await.expect(200);
    assert_eq!(names(&list), ["a", "c"]);
    let list = api.get(&format!("{MAPS}?fieldSelector=metadata.name%3Db")).await.expect(200);
    assert_eq!(names(&list), ["b"]);
    api.get(&format!("{MAPS}?fieldSelector=nope%3Db")).await.refused(400, "BadRequest");
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_list_sees_what_came_after_it_once() {
    let api = Api::start().await;
    api.post(MAPS, map("a", "red")).await.expect(201);
    let list = api.get(MAPS).await.expect(200);
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    api.post(MAPS, map("b", "red")).await.expect(201);
    let mut watch = api.watch(&format!("{MAPS}?watch=true&resourceVersion={version}")).await;
    watch.expect("ADDED", "b").await;
    api.patch(&format!("{MAPS}/a"), "merge", json!({"data": {"x": "1"}})).await.expect(200);
    let seen = watch.expect("MODIFIED", "a").await;
    api.delete(&format!("{MAPS}/a")).await.expect(200);
    let gone = watch.expect("DELETED", "a").await;
    let version =
        |object: &Value| object["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
    assert!(version(&gone) > version(&seen));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_leaves_a_selector_is_deleted_for_its_watcher() {
    let api = Api::start().await;
    let mut watch = api.watch(&format!("{MAPS}?watch=true&labelSelector=color%3Dred")).await;
    api.post(MAPS, map("a", "red")).await.expect(201);
    watch.expect("ADDED", "a").await;
    api.patch(&format!("{MAPS}/a"), "merge", json!({"metadata": {"labels": {"color": "blue"}}}))
        .await
        .expect(200);
    let last = watch.expect("DELETED", "a").await;
    assert_eq!(last["metadata"]["labels"]["color"], "red");
    api.patch(&format!("{MAPS}/a"), "merge", json!({"metadata": {"labels": {"color": "red"}}}))
        .await
        .expect(200);
    watch.expect("ADDED", "a").await;
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_ends_its_initial_events_with_a_bookmark() {
    let api = Api::start().await;
    api.post(MAPS, map("a", "red")).await.expect(201);
    let query =
        "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
    let mut watch = api.watch(&format!("{MAPS}?{query}")).await;
    watch.expect("ADDED", "a").await;
    let bookmark = watch.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_is_too_slow_is_told_gone_and_the_stream_ends() {
    let api = Api::start().await;
    api.post(MAPS, map("a", "red")).await.expect(201);
    let mut watch = api.watch(&format!("{MAPS}?watch=true")).await;
    watch.expect("ADDED", "a").await;
    for count in 0..5000 {
        let patch = json!({"data": {"count": count.to_string()}});
        api.patch(&format!("{MAPS}/a"), "merge", patch).await.expect(200);
    }
    let event = watch.next().await.unwrap();
    assert_eq!((event["type"].as_str(), &event["object"]["code"]), (Some("ERROR"), &json!(410)));
    assert!(watch.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_watches() {
    let api = Api::start().await;
    let mut watch = api.watch(&format!("{MAPS}?watch=true")).await;
    api.shutdown.cancel();
    let before = tokio::time::Instant::now();
    assert!(watch.next().await.is_none());
    assert_eq!(before.elapsed().as_secs(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_watch_lasts_as_long_as_it_asks() {
    let api = Api::start().await;
    let mut watch = api.watch(&format!("{MAPS}?watch=true&timeoutSeconds=5")).await;
    let before = tokio::time::Instant::now();
    assert!(watch.next().await.is_none());
    assert_eq!(before.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_over_before_it_begins_tells_of_nothing() {
    let api = Api::start().await;
    api.post("/api/v1/namespaces/default/configmaps", json!({"metadata": {"name": "a"}})).await.expect(201);
    let over = "watch=true&timeoutSeconds=-1";
    for query in ["", "&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"] {
        let mut watch = api.watch(&format!("{MAPS}?{over}{query}")).await;
        let before = tokio::time::Instant::now();
        assert!(watch.next().await.is_none(), "{query}");
        assert_eq!(before.elapsed().as_secs(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn who_may_not_list_is_told_a_name_where_all_selectors_can_be_read() {
    let api = Api::start().await.as_user(User::new("jane", ["dev"]));
    let maps = "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3Da";
    for (more, what) in
        [("", "configmaps \"a\" is forbidden"), ("&labelSelector=%3D", "configmaps is forbidden")]
    {
        let why = api.get(&format!("{maps}{more}")).await.refused(403, "Forbidden");
        assert!(why.starts_with(what), "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_old_path_of_a_watch_names_one_object() {
    let api = Api::start().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let mut watch = api.watch("/api/v1/watch/namespaces/default/configmaps/b").await;
    for name in ["a", "b"] {
        api.post(maps, json!({"metadata": {"name": name}})).await.expect(201);
    }
    watch.expect("ADDED", "b").await;
    assert!(watch.next().await.is_none());
    api.delete("/api/v1/watch/namespaces/default/configmaps/b").await.refused(405, "MethodNotAllowed");
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_a_continue_token_or_a_body_is_told() {
    let api = Api::start().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let message = api.get(&format!("{maps}?limit=1&continue=garbage")).await.refused(400, "BadRequest");
    assert_eq!(
        message,
        "invalid continue token: continue key is not valid: invalid character '\\u0081' looking for beginning of value"
    );
    let message = api.post(maps, json!([])).await.refused(400, "BadRequest");
    assert!(
        message.contains("json: cannot unmarshal array into Go value") && message.ends_with("(5b5d)"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_page_at_a_version_is_of_that_version_but_one_object_is_read_as_it_is_now() {
    let api = Api::start().await;
    let first = api.post(MAPS, json!({"metadata": {"name": "a"}})).await.expect(201);
    let version = first["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    api.post(MAPS, json!({"metadata": {"name": "b"}})).await.expect(201);
    let page = format!("{MAPS}?resourceVersion={version}&limit=5");
    assert_eq!(names(&api.get(&page).await.expect(200)), ["a"]);
    let of_one = format!("{page}&fieldSelector=metadata.name%3Db");
    assert_eq!(names(&api.get(&of_one).await.expect(200)), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn events_which_no_cache_has_are_told_page_by_page_at_any_version() {
    let api = Api::start().await;
    for collection in ["events", "configmaps"] {
        let path = format!("/api/v1/namespaces/default/{collection}");
        for name in ["a", "b"] {
            let event = json!({"metadata": {"name": name}, "involvedObject": {"namespace": "default"}});
            api.post(&path, event).await.expect(201);
        }
        let page = api.get(&format!("{path}?limit=1&resourceVersion=0")).await.expect(200);
        let is_page = page["metadata"]["continue"].is_string();
        assert_eq!(is_page, collection == "events", "{page}");
    }
}
