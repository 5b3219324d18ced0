//! The paths under `/kubewright`.

use kubewright_apiserver::http::listener::RemoteAddress;

use super::*;

async fn call(cluster: &ControlPlane, request: http::request::Builder, body: Value) -> (u16, Value) {
    let (status, _, text) = send(cluster, master(), request, &body).await;
    (status.as_u16(), serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

async fn get(cluster: &ControlPlane, path: &str) -> (u16, Value) {
    call(cluster, Request::get(path), Value::Null).await
}

#[tokio::test(start_paused = true)]
async fn without_being_asked_for_there_is_nothing() {
    let cluster = ControlPlane::builder().start().await.unwrap();
    let (status, text) = get(&cluster, "/kubewright").await;
    assert_eq!((status, text), (404, "404 page not found\n".into()));
    assert!(cluster.admin().is_none());
}

#[tokio::test(start_paused = true)]
async fn they_are_for_who_may_use_them_and_comes_from_this_machine() {
    let cluster = cluster().await;
    let ask = async |user: User, from: Option<&str>| {
        let mut request = Request::get("/kubewright/clock");
        if let Some(from) = from {
            request = request.extension(RemoteAddress(from.parse().unwrap()));
        }
        send(&cluster, user, request, &Value::Null).await.0.as_u16()
    };
    assert_eq!(ask(master(), None).await, 200);
    assert_eq!(ask(master(), Some("127.0.0.1:1")).await, 200);
    assert_eq!(ask(master(), Some("[::1]:1")).await, 200);
    assert_eq!(ask(master(), Some("[::ffff:127.0.0.1]:1")).await, 200);
    assert_eq!(ask(master(), Some("192.0.2.1:1")).await, 404);
    assert_eq!(ask(User::anonymous(), Some("127.0.0.1:1")).await, 403);
    let alice = || User::new("alice", Vec::<String>::new());
    assert_eq!(ask(alice(), None).await, 403);

    let role = json!({
        "metadata": {"name": "clock"},
        "rules": [{"nonResourceURLs": ["/kubewright/*"], "verbs": ["get"]}]
    });
    let binding = json!({
        "metadata": {"name": "clock"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "clock"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]
    });
    let group = "/apis/rbac.authorization.k8s.io/v1";
    for (kind, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        assert_eq!(call(&cluster, Request::post(format!("{group}/{kind}")), object).await.0, 201);
    }
    assert_eq!(ask(alice(), None).await, 200);
    let advance = Request::post("/kubewright/clock/advance");
    assert_eq!(send(&cluster, alice(), advance, &json!({"by": "1h"})).await.0, 403);
}

#[tokio::test(start_paused = true)]
async fn one_call_lets_time_pass() {
    let cluster = cluster().await;
    assert_eq!(get(&cluster, "/kubewright/clock").await.1["now"], "2026-01-01T00:00:00Z");
    let advance = async |by| call(&cluster, Request::post("/kubewright/clock/advance"), by).await;
    let (status, clock) = advance(json!({"by": "1h30m"})).await;
    assert_eq!((status, clock), (200, json!({"now": "2026-01-01T01:30:00Z", "canAdvance": true})));
    for (body, expected) in [
        (json!({"by": "-1h"}), "\"-1h\" is negative"),
        (json!({"by": "1"}), "missing unit in duration"),
        (json!({"by": "200000h"}), "at most ten years"),
        (json!({"for": "1h"}), "unknown field `for`, expected `by`"),
        (Value::Null, "{\"by\":\"1h30m\"}"),
    ] {
        let (status, answer) = advance(body).await;
        let message = answer["message"].as_str().unwrap();
        assert!(status == 400 && message.contains(expected), "{status} {message}");
    }
}

#[tokio::test]
async fn the_time_of_the_machine_cannot_be_advanced() {
    let world = kubewright_world::World::real();
    let cluster = ControlPlane::builder().world(world).admin(true).start().await.unwrap();
    assert_eq!(get(&cluster, "/kubewright/clock").await.1["canAdvance"], false);
    let request = Request::post("/kubewright/clock/advance");
    let (status, answer) = call(&cluster, request, json!({"by": "1h"})).await;
    assert_eq!(status, 409);
    assert!(answer["message"].as_str().unwrap().contains("KUBEWRIGHT_CLOCK"));
}

#[tokio::test(start_paused = true)]
async fn faults_are_made_listed_and_removed() {
    let cluster = cluster().await;
    let example = json!({"match": {"resource": "configmaps"}, "fault": "error", "times": 2});
    let (status, made) = call(&cluster, Request::post("/kubewright/faults"), example).await;
    assert_eq!((status, &made["id"], &made["hits"]), (200, &1.into(), &0.into()));
    assert_eq!(made["fault"], json!({"error": {"code": 500}}));
    assert_eq!(code(&maps(&cluster).get("a").await.unwrap_err()), 500);
    let (_, listed) = get(&cluster, "/kubewright/faults").await;
    assert_eq!((&listed["faults"][0]["hits"], &listed["faults"][0]["spent"]), (&1.into(), &false.into()));
    assert_eq!(get(&cluster, "/kubewright/faults/1").await.1, listed["faults"][0]);
    assert_eq!(get(&cluster, "/kubewright/faults/2").await.0, 404);
    assert_eq!(call(&cluster, Request::delete("/kubewright/faults/1"), Value::Null).await.0, 200);
    assert_eq!(call(&cluster, Request::delete("/kubewright/faults/1"), Value::Null).await.0, 404);
    assert_eq!(code(&maps(&cluster).get("a").await.unwrap_err()), 404);
    let unknown = json!({"fault": "flood"});
    let (status, answer) = call(&cluster, Request::post("/kubewright/faults"), unknown).await;
    assert_eq!((status, &answer["kind"], &answer["reason"]), (400, &"Status".into(), &"BadRequest".into()));
    assert!(answer["message"].as_str().unwrap().contains("expected one of `conflict`"));
}

#[tokio::test(start_paused = true)]
async fn the_log_is_asked_by_what_requests_have_in_common() {
    let cluster = cluster().await;
    create(&cluster, "a").await;
    let _ = maps(&cluster).get("a").await;
    let path = "/kubewright/requests?verbs=create,update&resource=configmaps&limit=5";
    let (_, found) = get(&cluster, path).await;
    assert_eq!((&found["total"], &found["counts"][0]["count"]), (&2.into(), &1.into()));
    assert_eq!(
        (&found["requests"][0]["verb"], &found["requests"][0]["code"]),
        (&"create".into(), &201.into())
    );
    for (query, expected) in [
        ("verb=get", "unknown field `verb`"),
        ("verbs=put", "unknown variant `put`"),
        ("limit=x", "no number"),
    ] {
        let (status, answer) = get(&cluster, &format!("/kubewright/requests?{query}")).await;
        assert!(status == 400 && answer["message"].as_str().unwrap().contains(expected), "{answer}");
    }
    assert_eq!(call(&cluster, Request::delete("/kubewright/requests"), Value::Null).await.0, 200);
    assert_eq!(get(&cluster, "/kubewright/requests").await.1["total"], 0);
}

#[tokio::test(start_paused = true)]
async fn one_call_makes_the_cluster_new() {
    let cluster = cluster().await;
    create(&cluster, "a").await;
    admin(&cluster).inject(Rule::new(ApiFault::Conflict {}));
    assert_eq!(call(&cluster, Request::post("/kubewright/reset"), Value::Null).await.0, 200);
    assert_eq!(get(&cluster, "/kubewright/requests").await.1["total"], 0);
    assert_eq!(get(&cluster, "/kubewright/faults").await.1["faults"], json!([]));
    assert_eq!(maps(&cluster).get_opt("a").await.unwrap(), None);
    create(&cluster, "a").await;
}

#[tokio::test(start_paused = true)]
async fn each_example_of_the_index_works() {
    let cluster = cluster().await;
    let (_, index) = get(&cluster, "/kubewright").await;
    let endpoints = index["endpoints"].as_array().unwrap();
    for endpoint in endpoints {
        let text = |key: &str| endpoint[key].as_str().unwrap().to_owned();
        let (example, path) = (text("example"), text("path").replace("{id}", "1"));
        let (path, body) = match example.strip_prefix('?') {
            Some(_) => (format!("{path}{example}"), Value::Null),
            None => (path, serde_json::from_str(&example).unwrap_or_default()),
        };
        if text("method") == "DELETE" && path.ends_with("/1") {
            admin(&cluster).inject(Rule::new(ApiFault::Conflict {}));
        }
        let request = Request::builder().method(text("method").as_str()).uri(&path);
        let (status, answer) = call(&cluster, request, body).await;
        assert!(status == 200 || path.ends_with("/1") && status == 404, "{path}: {answer}");
    }
    let (status, answer) = get(&cluster, "/kubewright/forecast").await;
    assert!(
        status == 404 && answer["message"].as_str().unwrap().contains("GET /kubewright/clock"),
        "{answer}"
    );
    let (status, answer) = call(&cluster, Request::post("/kubewright/clock"), Value::Null).await;
    assert_eq!((status, &answer["message"]), (405, &"there is only GET /kubewright/clock".into()));
}

/// What stands in backticks behind `expected`: what a refusal says that there is.
fn expected(refusal: &str) -> Vec<String> {
    let (_, known) = refusal.split_once("expected").unwrap_or_default();
    known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The fields and values of a rule, as it is read and refused.
fn fields_of_rules() -> String {
    use kubewright_reference::{code, table};
    let refused = |json: Value| Rule::read(json.to_string().as_bytes()).expect_err("refused");
    let all = |known: Vec<String>| known.iter().map(|one| code(one)).collect::<Vec<_>>().join(", ");
    let of_rules = all(expected(&refused(json!({"fault": "error", "?": 0}))));
    let of_matches = all(expected(&refused(json!({"fault": "error", "match": {"?": 0}}))));
    let verbs = all(expected(&refused(json!({"fault": "error", "match": {"verbs": ["?"]}}))));
    let mut rows = Vec::new();
    for fault in expected(&refused(json!({"fault": "?"}))) {
        let fields = expected(&refused(json!({"fault": {&fault: {"?": 0}}})));
        let plain = Rule::read(json!({"fault": fault}).to_string().as_bytes());
        let defaults = plain.as_ref().map_or(Value::Null, |rule| json!(rule.fault)[&fault].clone());
        let shown = fields.iter().map(|field| match (&plain, &defaults[field]) {
            (Err(why), _) if why.contains(&format!("missing field `{field}`")) => {
                format!("{} (required)", code(field))
            }
            (_, Value::Null) => code(field),
            (_, default) => format!("{} ({})", code(field), code(&default.to_string())),
        });
        let is_of_watches = match &plain {
            Ok(rule) => rule.fault.is_of_watches(),
            Err(_) => false,
        };
        let shown = shown.collect::<Vec<_>>().join(", ");
        rows.push(vec![code(&fault), (if is_of_watches { "watches" } else { "requests" }).to_owned(), shown]);
    }
    let faults = table(&["fault", "of", "fields (defaults)"], &rows);
    format!("A rule: {of_rules}.\n\nIts `match`: {of_matches}.\n\nIts `verbs`: {verbs}.\n\n{faults}")
}

/// A request that the log's example finds.
async fn write_status(cluster: &ControlPlane) {
    let operator = User::new("system:admin", ["system:masters"]);
    let request = Request::patch("/apis/apps/v1/namespaces/default/deployments/web/status")
        .header("user-agent", "manager/v1.0")
        .header("content-type", "application/merge-patch+json");
    assert_eq!(send(cluster, operator, request, &json!({})).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn the_reference_has_each_path_with_what_it_answers() {
    use std::fmt::Write;
    let cluster = cluster().await;
    let (_, index) = get(&cluster, "/kubewright").await;
    let (mut rows, mut sections) = (Vec::new(), String::new());
    for endpoint in index["endpoints"].as_array().expect("endpoints") {
        let text = |key: &str| endpoint[key].as_str().expect("text").to_owned();
        let (method, path, does, example) = (text("method"), text("path"), text("does"), text("example"));
        if path.ends_with("/{id}") {
            admin(&cluster).inject(Rule::new(ApiFault::Conflict {}));
        }
        let id = admin(&cluster).show_faults()["faults"]
            .as_array()
            .and_then(|all| Some(all.last()?["id"].to_string()));
        let (query, body) = if example.starts_with('?') { (&*example, "") } else { ("", &*example) };
        let asked = format!("{}{query}", path.replace("{id}", &id.unwrap_or_default()));
        let sent = serde_json::from_str(body).unwrap_or_default();
        let request = Request::builder().method(&*method).uri(&asked);
        let mut answer = call(&cluster, request, sent).await.1;
        if path == "/kubewright/reset" {
            // The log is empty now.
            write_status(&cluster).await;
        }
        if let Some(endpoints) = answer.get_mut("endpoints").and_then(Value::as_array_mut) {
            endpoints.truncate(2);
        }
        let named = format!("{method} {path}");
        rows.push(vec![format!("`{named}`"), kubewright_reference::cell(&does)]);
        let shown = format!("{method} {asked}\n{body}");
        let answer = serde_json::to_string_pretty(&answer).expect("JSON");
        let _ = write!(
            sections,
            "\n## `{named}`\n\nIt {}.\n\n```http\n{}\n```\n\n```json\n{answer}\n```\n",
            kubewright_reference::cell(&does),
            shown.trim_end()
        );
    }
    let page = format!("{}{sections}", kubewright_reference::table(&["request", "what it does"], &rows));
    let made_by = "cargo test -p kubewright-control-plane --lib reference";
    kubewright_reference::check_part("admin.md", "paths", made_by, &page);
    kubewright_reference::check_part("admin.md", "fields", made_by, &fields_of_rules());
}
