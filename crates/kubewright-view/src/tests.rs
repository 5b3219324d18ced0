//! The endpoints, as a browser meets them.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use k8s_openapi::api::core::v1::{ConfigMap, Secret as SecretObject};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kubewright_control_plane::recording::{Did, Recording};
use kubewright_control_plane::{ControlPlane, Secret};
use kubewright_meta::access::{Access, Found};
use kubewright_recording::{Author, Mark, Reconcile, Record, Request as AskedFor};
use serde_json::{Value, json};

use crate::View;
use crate::answer::Body;
use crate::server::Gate;
use crate::testing::write;

const HOST: &str = "127.0.0.1:7070";

struct Browser {
    gate: Gate,
    view: View,
}

impl Browser {
    fn of(view: View) -> Self {
        Self { gate: Gate { port: 7070, token: Secret::of("sesame") }, view }
    }

    async fn send(&self, request: http::request::Builder, body: &Value) -> Response<Body> {
        let body = Full::<Bytes>::new(if body.is_null() { Bytes::new() } else { body.to_string().into() });
        let body = body.map_err(|never: Infallible| match never {});
        self.gate.answer(&self.view, request.body(body).expect("a request")).await
    }

    async fn page(&self, path: &str) -> Response<Body> {
        self.send(Request::get(path).header("host", HOST), &Value::Null).await
    }

    async fn call(&self, method: Method, path: &str, body: &Value) -> (StatusCode, Value) {
        let request = Request::builder().method(method).uri(format!("/api/{path}")).header("host", HOST);
        let response = self.send(request.header("authorization", "Bearer sesame"), body).await;
        (response.status(), read(response).await)
    }

    async fn get(&self, path: &str) -> Value {
        let (status, value) = self.call(Method::GET, path, &Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{path}: {value}");
        value
    }
}

async fn read(response: Response<Body>) -> Value {
    let body = response.into_body().collect().await.expect("bytes").to_bytes();
    serde_json::from_slice(&body).unwrap_or_default()
}

fn recorded(writes: u64) -> Browser {
    let writes = (1..=writes).map(|revision| write(revision, Did::Update, "default/a"));
    Browser::of(View::of_recording(&writes.collect::<Recording>(), Vec::new(), "a test"))
}

async fn cluster() -> (ControlPlane, Browser) {
    let control_plane = ControlPlane::builder().admin(true).journal(1_000).start().await.expect("it starts");
    let view = View::of_control_plane(&control_plane, "a test").expect("a journal");
    (control_plane, Browser::of(view))
}

#[tokio::test]
async fn data_takes_the_token_and_the_page_does_not() {
    let browser = recorded(1);
    assert_eq!(browser.page("/").await.status(), StatusCode::OK);
    for token in ["", "Bearer ", "Bearer sesam", "Bearer sesame2", "Basic sesame", "sesame"] {
        let request =
            Request::get("/api/about?token=sesame").header("host", HOST).header("authorization", token);
        let response = browser.send(request, &Value::Null).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{token}");
        assert!(read(response).await["error"].as_str().expect("why").starts_with("token: "));
    }
    assert_eq!(browser.get("about").await["title"], "a test");
}

#[tokio::test]
async fn another_name_for_this_machine_and_another_page_are_refused() {
    let browser = recorded(1);
    let status = async |host: &str, origin: Option<&str>| {
        let mut request =
            Request::get("/api/about").header("host", host).header("authorization", "Bearer sesame");
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        browser.send(request, &Value::Null).await.status()
    };
    assert_eq!(status("localhost:7070", Some("http://localhost:7070")).await, StatusCode::OK);
    for host in ["evil.example:7070", "127.0.0.1", "127.0.0.1:7071", "127.0.0.1.evil.example:7070"] {
        assert_eq!(status(host, None).await, StatusCode::MISDIRECTED_REQUEST, "{host}");
    }
    for origin in ["https://evil.example", "null", "http://127.0.0.1:7071"] {
        assert_eq!(status(HOST, Some(origin)).await, StatusCode::FORBIDDEN, "{origin}");
    }
}

#[tokio::test]
async fn every_answer_forbids_scripts_of_others_and_inline_ones() {
    let browser = recorded(1);
    for path in ["/", "/main.js", "/style.css", "/nothing", "/api/about"] {
        let response = browser.page(path).await;
        let header = |name: &str| response.headers()[name].to_str().expect("text").to_owned();
        let policy = header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:"));
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(
            (header("x-content-type-options"), header("cache-control")),
            ("nosniff".into(), "no-store".into())
        );
    }
}

#[test]
fn the_page_has_no_inline_script_reads_no_markup_and_is_small() {
    let mut bytes = 0;
    for path in [
        "/",
        "/style.css",
        "/main.js",
        "/dom.js",
        "/model.js",
        "/client.js",
        "/tree.js",
        "/object.js",
        "/timeline.js",
        "/requests.js",
        "/controls.js",
    ] {
        let asset = crate::assets::asset(path).expect(path);
        let text = std::str::from_utf8(asset.bytes).expect("text");
        bytes += text.len();
        for banned in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "style=\"",
            "https://",
        ] {
            assert!(!text.contains(banned), "{path}: {banned}");
        }
        assert_eq!(text.matches("<script").count(), usize::from(path == "/"), "{path}");
    }
    assert!(bytes < 400 << 10, "{bytes}");
}

#[tokio::test]
async fn answers_are_limited_and_go_on_where_the_last_one_ended() {
    let browser = recorded(7_000);
    let first = browser.get("writes?after=0&limit=1000000").await;
    let rows = first["rows"].as_array().expect("rows");
    assert_eq!((rows.len(), &first["last"]), (5_000, &json!(7_000)));
    let rest = browser.get("writes?after=5000").await;
    assert_eq!(rest["rows"].as_array().map(Vec::len), Some(2_000));
    assert_eq!(rest["rows"][0]["revision"], 5_001);
    let history = browser.get("history?collection=/configmaps&key=default/a&limit=1000").await;
    assert_eq!((history["changes"].as_array().map(Vec::len), &history["more"]), (Some(50), &json!(true)));
}

#[tokio::test]
async fn what_is_asked_wrongly_is_refused_by_the_name_of_what_is_wrong() {
    let browser = recorded(1);
    for (path, status, why) in [
        ("writes?after=x", 400, "after: "),
        ("object?key=default/a", 400, "collection: "),
        ("object?collection=/pods", 400, "key: "),
        ("object?collection=/pods&key=default/a", 404, "/pods default/a was not there"),
        ("requests?status=x", 400, "status: "),
        ("reconciles?after=x", 400, "after: "),
        ("reconcile?position=x", 400, "position: "),
        ("reconcile?position=7", 404, "the reconcile 7 is not known"),
        ("clock", 404, "a recording has no clock"),
        ("nothing", 404, "there is no GET /api/nothing"),
    ] {
        let (found, told) = browser.call(Method::GET, path, &Value::Null).await;
        assert_eq!(found.as_u16(), status, "{path}");
        assert!(told["error"].as_str().expect("why").starts_with(why), "{path}: {told}");
    }
}

fn reconcile(second: i64, key: &str) -> Reconcile {
    let time = jiff::Timestamp::from_second(second).expect("a time");
    let mut read = Access::new("get", "/configmaps".to_owned(), key.to_owned());
    (read.cached, read.found) = (true, Found::Version("1".to_owned()));
    let written = Access::new("patch", "/configmaps/status".to_owned(), key.to_owned());
    Reconcile {
        time,
        accesses: vec![read, written],
        controller: "press".to_owned(),
        key: key.to_owned(),
        took: 0.25,
        ..Reconcile::default()
    }
}

#[tokio::test]
async fn a_recording_has_the_reconciles_the_marks_and_the_requests_that_were_recorded() {
    let time = jiff::Timestamp::from_second(7).expect("a time");
    let mark = Mark { time, what: "fault".to_owned(), note: "injected".to_owned() };
    let request = AskedFor {
        time,
        by: Author { user: "u".to_owned(), program: "press/1".to_owned() },
        verb: "list".to_owned(),
        resource: "/pods".to_owned(),
        key: "default/".to_owned(),
        code: Some(403),
        fault: None,
    };
    let besides = vec![
        Record::Reconcile(reconcile(1, "default/a")),
        Record::Mark(mark),
        Record::Request(request),
        Record::Reconcile(reconcile(2, "default/b")),
    ];
    let writes = [write(1, Did::Create, "default/a")].into_iter().collect::<Recording>();
    let browser = Browser::of(View::of_recording(&writes, besides, "a test"));
    assert_eq!(browser.get("about").await["requests"], true);
    let first = browser.get("reconciles?limit=1").await;
    assert_eq!(
        (&first["reconciles"][0]["key"], &first["reconciles"][0]["took"]),
        (&json!("default/a"), &json!(250.0))
    );
    assert_eq!(first["marks"], json!([{"time": 7000, "what": "fault", "note": "injected"}]));
    let (after, marks) = (&first["after"], &first["marksAfter"]);
    let second = browser.get(&format!("reconciles?after={after}&marksAfter={marks}")).await;
    assert_eq!((&second["reconciles"][0]["key"], &second["marks"]), (&json!("default/b"), &json!([])));
    assert_eq!(
        (&second["reconciles"][0]["reads"], &second["reconciles"][0]["writes"]),
        (&json!(1), &json!(1))
    );
    let read =
        json!({"verb": "get", "resource": "/configmaps", "key": "default/b", "cached": true, "version": "1"});
    assert_eq!(browser.get("reconcile?position=1").await["accesses"][0], read);
    let requests = browser.get("requests?status=403&what=pods").await;
    assert_eq!((&requests["total"], &requests["requests"][0]["what"]), (&json!(1), &json!("/pods")));
    assert_eq!(browser.get("requests?status=2xx").await["requests"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn what_an_operator_tells_comes_with_the_events_of_a_cluster_that_runs() {
    let (control_plane, browser) = cluster().await;
    let admin = control_plane.admin().expect("it was asked for");
    let request = Request::get("/api/events").header("host", HOST).header("authorization", "Bearer sesame");
    let mut events = browser.send(request, &Value::Null).await.into_body();
    events.frame().await.expect("the first").expect("a frame");
    admin.note_reconcile(reconcile(1, "default/a"));
    let event = tokio::time::timeout(Duration::from_secs(1), events.frame()).await;
    assert!(event.expect("at once").is_some());
    let told = browser.get("reconciles").await;
    assert_eq!((&told["reconciles"][0]["controller"], &told["queues"]), (&json!("press"), &json!([])));
    let after = &told["after"];
    assert_eq!(browser.get(&format!("reconciles?after={after}")).await["reconciles"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn an_object_is_shown_as_it_was_with_who_owns_and_who_changed_it() {
    let (control_plane, browser) = cluster().await;
    let api: Api<ConfigMap> = Api::namespaced(control_plane.client(), "default");
    let made = json!({"metadata": {"name": "a"}, "data": {"x": "<img src=x onerror=alert(1)>"}});
    let made =
        api.create(&PostParams::default(), &serde_json::from_value(made).expect("one")).await.expect("made");
    let change = Patch::Merge(json!({"data": {"y": "2"}}));
    api.patch("a", &PatchParams::apply("somebody"), &change).await.expect("changed");

    let place = "collection=/configmaps&key=default/a";
    let now = browser.get(&format!("object?{place}")).await;
    let line = |text: &str| {
        now["lines"].as_array().expect("lines").iter().find(|line| line["text"] == text).cloned()
    };
    let owners = |text: &str| line(text).unwrap_or_else(|| panic!("{text}: {now}"))["owners"].clone();
    assert_eq!(now["managers"][owners("  y: \"2\"")[0].as_u64().expect("one") as usize]["name"], "somebody");
    assert!(line("  x: \"<img src=x onerror=alert(1)>\"").is_some(), "markup is text: {now}");

    let revision = made.metadata.resource_version.expect("one");
    let then = browser.get(&format!("object?{place}&at={revision}")).await;
    assert!(!then.to_string().contains("y:"), "{then}");
    let history = browser.get(&format!("history?{place}")).await;
    let changes = history["changes"].as_array().expect("changes");
    assert_eq!((&changes[0]["did"], &changes[1]["did"]), (&json!("update"), &json!("create")));
    assert_eq!(changes[0]["user"], "kubernetes-admin");
    assert!(changes[0]["diff"].as_array().expect("lines").contains(&json!("+  y: \"2\"")), "{history}");
}

#[tokio::test(start_paused = true)]
async fn values_of_secrets_are_shown_only_to_who_wants_them() {
    let (control_plane, browser) = cluster().await;
    let api: Api<SecretObject> = Api::namespaced(control_plane.client(), "default");
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"password": "hunter2"}});
    api.create(&PostParams::default(), &serde_json::from_value(secret).expect("one")).await.expect("made");
    for path in ["object", "history"] {
        let path = format!("{path}?collection=/secrets&key=default/s");
        assert!(!browser.get(&path).await.to_string().contains("aHVudGVyMg=="), "{path}");
        assert!(
            browser.get(&format!("{path}&secrets=shown")).await.to_string().contains("aHVudGVyMg=="),
            "{path}"
        );
    }
    assert!(!browser.get("writes?after=0").await.to_string().contains("aHVudGVyMg=="));
}

#[tokio::test(start_paused = true)]
async fn requests_are_filtered_by_who_verb_answer_and_what() {
    let (control_plane, browser) = cluster().await;
    let api: Api<ConfigMap> = Api::namespaced(control_plane.client(), "default");
    let _ = api.get("missing").await;
    let _ = api.list(&kube::api::ListParams::default()).await;
    let found = async |query: &str| {
        let answer = browser.get(&format!("requests?{query}")).await;
        answer["requests"].as_array().expect("requests").len()
    };
    assert_eq!(found("").await, 2);
    assert_eq!(found("verb=get&what=missing&status=404&who=kubernetes-admin").await, 1);
    assert_eq!(found("status=4xx").await, 1);
    assert_eq!(found("who=nobody").await, 0);
    assert_eq!(
        browser.call(Method::GET, "requests?status=bad", &Value::Null).await.0,
        StatusCode::BAD_REQUEST
    );
}

#[tokio::test(start_paused = true)]
async fn time_passes_and_faults_strike_by_hand() {
    let (control_plane, browser) = cluster().await;
    let before = control_plane.world().clock.now();
    let (status, told) = browser.call(Method::POST, "clock/advance", &json!({"by": "1h"})).await;
    assert_eq!(status, StatusCode::OK, "{told}");
    assert!(control_plane.world().clock.now().duration_since(before).as_secs() >= 3600);
    let fault = json!({"match": {"verbs": ["list"]}, "fault": {"error": {"code": 403}}, "times": 1});
    let (status, told) = browser.call(Method::POST, "faults", &fault).await;
    assert_eq!(status, StatusCode::OK, "{told}");
    let api: Api<ConfigMap> = Api::namespaced(control_plane.client(), "default");
    api.list(&kube::api::ListParams::default()).await.expect_err("a fault");
    assert_eq!(browser.get("faults").await["faults"][0]["hits"], 1);
    let path = format!("faults/{}", told["id"]);
    assert_eq!(browser.call(Method::DELETE, &path, &Value::Null).await.0, StatusCode::OK);
    let (status, told) = browser.call(Method::POST, "clock/advance", &json!({"by": "soon"})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{told}");
    let (status, _) = browser.call(Method::POST, "reset", &Value::Null).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "the page does not empty a cluster");
}

#[tokio::test(start_paused = true)]
async fn a_page_that_reads_slowly_gets_one_line_for_many_writes() {
    let (control_plane, browser) = cluster().await;
    let request = Request::get("/api/events").header("host", HOST).header("authorization", "Bearer sesame");
    let mut events = browser.send(request, &Value::Null).await.into_body();
    let mut next = async || {
        let frame = tokio::time::timeout(Duration::from_secs(1), events.frame()).await.ok()??;
        Some(String::from_utf8(frame.expect("a frame").into_data().expect("data").to_vec()).expect("text"))
    };
    assert!(next().await.is_some(), "the newest, at once");
    let api: Api<ConfigMap> = Api::namespaced(control_plane.client(), "default");
    for name in ["a", "b", "c"] {
        let made = serde_json::from_value(json!({"metadata": {"name": name}})).expect("one");
        api.create(&PostParams::default(), &made).await.expect("made");
    }
    assert_eq!(next().await, Some(format!("{}\n", control_plane.revision())));
    assert_eq!(next().await, None, "nothing was written since");
}
