//! Requests that no client sends: made from valid ones of every kind by breaking them, and out of random bytes. Whatever
//! comes, there is an answer that a client can understand, and the server holds no more than it did before.

use std::collections::BTreeMap;

use http::Method;
use kubewright_codec::protobuf;
use kubewright_engine::Settings;
use kubewright_kinds::{Kind, Kinds};
use kubewright_meta::cidr::ServiceCidrs;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::support::{Answer, Api};

/// How many broken requests are sent.
const REQUESTS: usize = 100_000;
const SEED: u64 = 0x6b75_6265;

/// The most memory that the process may have had at any time more than before, in KiB: a request and its answer, what was
/// created on the way, and what the tests beside this one need.
const MEMORY: usize = 384 << 10;

/// A 500 that Kubernetes gives too, told by a part of its message.
const ALLOWED: [&str; 15] = [
    // The proxy of a node that has none.
    "no preferred addresses found",
    // An applied configuration with fields that its kind does not have.
    "failed to create typed patch object",
    "resourceVersion should not be set on objects to be created",
    "strconv.Parse",
    // `metadata.resourceVersion` of an update that is no number.
    "invalid resource version",
    // Strategic merge patches that contradict themselves.
    "map: ",
    "does not contain declared merge key",
    "unrecognized type: ",
    "delete directive",
    "$setElementOrder",
    "expected a []interface {}",
    "expected a map[string]interface {}",
    "content is not a list",
    // `$deleteFromPrimitiveList` of what is of another type than the list has.
    "list element types are not identical",
    // A binding that names no node.
    "target.name: Required value",
];

/// The memory that the process has (`VmRSS`) or has had at most (`VmHWM`), in KiB; 0 where the system does not tell.
fn memory(of: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(of)?.strip_prefix(':'));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// A request before it is broken.
#[derive(Clone)]
struct Request {
    method: Method,
    path: String,
    query: Vec<(String, String)>,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

#[tokio::test(start_paused = true)]
async fn whatever_comes_there_is_an_answer() {
    // More services come than the default network has addresses.
    let service_cidrs = ServiceCidrs::parse("10.0.0.0/16").expect("a network");
    let api = Api::start_with(Settings { service_cidrs, ..Settings::default() }).await;
    api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition()).await.expect(201);
    let kinds = api.server.engine().kinds();
    let valid: Vec<Request> = kinds.iter().flat_map(|kind| requests(kind)).chain(others(&kinds)).collect();
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut failures = Vec::new();
    let mut codes: BTreeMap<u16, usize> = BTreeMap::new();
    let before = memory("VmRSS");
    for number in 0..REQUESTS {
        let mut request = valid.choose(&mut random).expect("there are requests").clone();
        if random.random_bool(0.3) {
            request.query.retain(|(name, _)| name != "dryRun");
        }
        for _ in 0..random.random_range(1..4) {
            break_it(&mut request, &mut random);
        }
        // Without any network no service has an address: that is answered with 500, as by Kubernetes.
        if request.method == Method::DELETE && request.path.contains("servicecidrs") {
            continue;
        }
        let answer = send(&api, &request).await;
        *codes.entry(answer.code.as_u16()).or_default() += 1;
        failures.extend(check(number, &request, &answer));
        assert!(failures.len() < 10, "{}", failures.join("\n\n"));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    let most = memory("VmHWM");
    assert!(most.saturating_sub(before) < MEMORY, "{} MiB were needed", (most - before) >> 10);
    // Broken requests are refused for many reasons, and a few are not broken enough: else this tests nothing.
    for code in [200, 201, 400, 404, 405, 406, 409, 415, 422] {
        assert!(codes.get(&code).is_some_and(|count| *count > 20), "{code}: {codes:?}");
    }
    api.get("/api/v1/namespaces").await.expect(200);
}

async fn send(api: &Api, request: &Request) -> Answer {
    let query: Vec<String> = request.query.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let path = match query.is_empty() {
        true => request.path.clone(),
        false => format!("{}?{}", request.path, query.join("&")),
    };
    let headers: Vec<(&str, &str)> =
        request.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    api.send(request.method.clone(), &path, &headers, request.body.clone()).await
}

/// What is wrong with an answer: nothing, or the request and the answer to show.
fn check(number: usize, request: &Request, answer: &Answer) -> Option<String> {
    let told = String::from_utf8_lossy(&answer.bytes);
    let unmarked = answer.code.is_server_error()
        && !matches!(answer.code.as_u16(), 501 | 503 | 504)
        && !ALLOWED.iter().any(|reason| told.contains(reason));
    let is_status = answer.body["kind"] == "Status" && answer.code.is_client_error();
    let wrong_status =
        is_status && (answer.body["code"] != answer.code.as_u16() || !answer.body["message"].is_string());
    (unmarked || wrong_status || told.contains("panicked")).then(|| {
        let body = String::from_utf8_lossy(&request.body[..request.body.len().min(500)]);
        format!(
            "request {number}: {} {}?{:?} {:?}\n{body}\n-> {} {told:.500}",
            request.method, request.path, request.query, request.headers, answer.code
        )
    })
}

/// Valid requests for a kind: every verb, in the forms that bodies have.
fn requests(kind: &Kind) -> Vec<Request> {
    let root = match kind.group.as_str() {
        "" => format!("/api/{}", kind.version),
        group => format!("/apis/{group}/{}", kind.version),
    };
    let place = if kind.namespaced() { "/namespaces/default" } else { "" };
    let collection = format!("{root}{place}/{}", kind.plural);
    let object = format!("{collection}/a");
    let body = json!({
        "kind": kind.kind, "apiVersion": kind.api_version(),
        "metadata": {"name": "a", "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["e.io/f"]},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "ports": [{"port": 80, "name": "x"}],
            "containers": [{"name": "c", "image": "i", "env": [{"name": "E", "value": "v"}]}],
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
            "resourceAttributes": {"verb": "get", "resource": "pods"}, "user": "u", "token": "t",
        },
        "data": {"k": "djE="}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
        "status": {"phase": "x", "conditions": [{"type": "T", "status": "True"}]},
    });
    let json = || vec![("content-type", "application/json".to_owned())];
    let request = |method: Method, path: &str, headers, body: Vec<u8>| Request {
        method,
        path: path.to_owned(),
        query: vec![("dryRun".to_owned(), "All".to_owned()), ("fieldManager".to_owned(), "m".to_owned())],
        headers,
        body,
    };
    let text = body.to_string().into_bytes();
    let mut all = vec![
        request(Method::POST, &collection, json(), text.clone()),
        request(Method::PUT, &object, json(), text.clone()),
        request(Method::DELETE, &object, json(), br#"{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":1,"preconditions":{"uid":"x"}}"#.to_vec()),
        request(Method::DELETE, &collection, Vec::new(), Vec::new()),
        Request {
            query: vec![("labelSelector".to_owned(), "a%3Db".to_owned()), ("limit".to_owned(), "2".to_owned())],
            ..request(Method::GET, &collection, vec![("accept", "application/json;as=Table;v=v1;g=meta.k8s.io".to_owned())], Vec::new())
        },
        request(Method::GET, &object, vec![("accept", "application/yaml".to_owned())], Vec::new()),
    ];
    if let Some(bytes) = protobuf::encode(&body) {
        let headers = vec![
            ("content-type", protobuf::MEDIA_TYPE.to_owned()),
            ("accept", protobuf::MEDIA_TYPE.to_owned()),
        ];
        all.push(request(Method::POST, &collection, headers, bytes));
    }
    let yaml = vec![("content-type", "application/yaml".to_owned())];
    all.push(request(Method::POST, &collection, yaml, YAML.as_bytes().to_vec()));
    for (media_type, patch) in PATCHES {
        all.push(request(
            Method::PATCH,
            &object,
            vec![("content-type", media_type.to_owned())],
            patch.as_bytes().to_vec(),
        ));
    }
    for subresource in &kind.subresources {
        let path = format!("{object}/{}", subresource.name());
        let method = [Method::PUT, Method::POST, Method::GET][usize::from(path.len() as u8 % 3)].clone();
        all.push(request(method, &path, json(), text.clone()));
    }
    all
}

const YAML: &str = "metadata: &m\n  name: a\n  labels: {a: 'b', c: \"d\"}\ndata:\n  k: |\n    v\n  l: 0x10\nspec:\n  <<: *m\n  replicas: yes\n";
const PATCHES: [(&str, &str); 4] = [
    (
        "application/json-patch+json",
        r#"[{"op":"test","path":"/metadata/name","value":"a"},{"op":"move","from":"/metadata/labels","path":"/spec/x"},{"op":"replace","path":"/metadata/annotations/c","value":[1]}]"#,
    ),
    (
        "application/merge-patch+json",
        r#"{"metadata":{"labels":{"a":null,"b":"c"}},"spec":{"ports":[{"port":1}]},"data":null}"#,
    ),
    (
        "application/strategic-merge-patch+json",
        r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["e.io/f"]},"spec":{"$retainKeys":["ports"],"ports":[{"port":80,"$patch":"delete"}],"$setElementOrder/ports":[{"port":80}]}}"#,
    ),
    ("application/apply-patch+yaml", "metadata:\n  name: a\nspec:\n  ports:\n  - port: 80\n"),
];

/// A kind that is not built in.
fn definition() -> Value {
    let schema = json!({
        "type": "object",
        "properties": {"spec": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"replicas": {"type": "integer", "default": 1}, "ports": {
                "type": "array",
                "items": {"type": "object", "properties": {"port": {"type": "integer", "maximum": 100}}},
            }},
        }},
    });
    json!({
        "metadata": {"name": "boxes.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "boxes", "kind": "Box"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
            }],
        },
    })
}

/// Valid requests for what is no object.
fn others(kinds: &Kinds) -> Vec<Request> {
    let mut paths: Vec<String> =
        ["/", "/api", "/apis", "/healthz", "/readyz", "/metrics", "/version", "/openapi/v3"]
            .map(str::to_owned)
            .to_vec();
    paths.extend(kinds.iter().map(|kind| format!("/apis/{}/{}", kind.group, kind.version)));
    let request = |path| Request {
        method: Method::GET,
        path,
        query: Vec::new(),
        headers: Vec::new(),
        body: Vec::new(),
    };
    paths.into_iter().map(request).collect()
}

/// Breaks one part of a request.
fn break_it(request: &mut Request, random: &mut ChaCha8Rng) {
    match random.random_range(0..12) {
        0..=5 if !request.body.is_empty() => break_body(&mut request.body, random),
        0 | 6 => request.path = broken_path(&request.path, random),
        1 | 7 => {
            let value = pick(&NASTY, random).to_owned();
            request.query.push((pick(&PARAMETERS, random).to_owned(), value));
        }
        2 | 8 => {
            let value = pick(&MEDIA_TYPES, random).to_owned();
            request.headers.retain(|(name, _)| *name != "content-type");
            request.headers.push(("content-type", value));
        }
        3 | 9 => request.headers.push((pick(&HEADERS, random), pick(&VALUES, random).to_owned())),
        4 | 10 => {
            let methods = [
                Method::GET,
                Method::POST,
                Method::PUT,
                Method::PATCH,
                Method::DELETE,
                Method::HEAD,
                Method::OPTIONS,
            ];
            request.method = methods.choose(random).expect("there are some").clone();
        }
        _ => request.body = pick(&BODIES, random).as_bytes().to_vec(),
    }
}

fn pick<'a>(of: &[&'a str], random: &mut ChaCha8Rng) -> &'a str {
    of.choose(random).expect("there are some")
}

/// Breaks a body: as bytes, or as the JSON that it is.
fn break_body(body: &mut Vec<u8>, random: &mut ChaCha8Rng) {
    if random.random_bool(0.6)
        && let Ok(mut value) = serde_json::from_slice::<Value>(body)
    {
        break_value(&mut value, random, 0);
        *body = value.to_string().into_bytes();
        return;
    }
    let at = random.random_range(0..body.len());
    match random.random_range(0..6) {
        0 => body.truncate(at),
        1 => body[at] = random.random(),
        2 => body.insert(at, random.random()),
        3 => drop(body.remove(at)),
        4 => {
            let end = (at + random.random_range(1..40)).min(body.len());
            let copy = body[at..end].to_vec();
            body.splice(at..at, copy);
        }
        _ => body.extend_from_within(at..),
    }
}

/// Goes down into a value by chance, and breaks what it finds.
fn break_value(value: &mut Value, random: &mut ChaCha8Rng, depth: usize) {
    let deeper = depth < 12 && random.random_bool(0.75);
    match value {
        Value::Object(map) if deeper && !map.is_empty() => {
            let at = random.random_range(0..map.len());
            if let Some(member) = map.values_mut().nth(at) {
                break_value(member, random, depth + 1);
            }
        }
        Value::Array(list) if deeper && !list.is_empty() => {
            let at = random.random_range(0..list.len());
            break_value(&mut list[at], random, depth + 1);
        }
        Value::Object(map) if random.random_bool(0.5) => {
            map.insert(pick(&NASTY, random).to_owned(), nasty_value(random));
        }
        other => *other = nasty_value(random),
    }
}

fn nasty_value(random: &mut ChaCha8Rng) -> Value {
    match random.random_range(0..10) {
        0 => Value::Null,
        1 => json!(random.random::<i64>()),
        2 => json!(random.random::<f64>() * 1e300),
        3 => json!(random.random::<bool>()),
        4 => json!([[], {}, null, 0]),
        5 => json!({"a": {"": []}}),
        6 => json!("x".repeat(random.random_range(0..300))),
        7 => (0..random.random_range(1..100)).fold(json!(0), |inner, _| json!([inner])),
        _ => json!(pick(&NASTY, random)),
    }
}

fn broken_path(path: &str, random: &mut ChaCha8Rng) -> String {
    let segments: Vec<&str> = path.split('/').collect();
    let at = random.random_range(0..segments.len());
    let mut broken: Vec<String> = segments.iter().map(ToString::to_string).collect();
    match random.random_range(0..4) {
        0 => drop(broken.remove(at)),
        1 => broken.insert(at, pick(&SEGMENTS, random).to_owned()),
        2 => broken[at] = pick(&SEGMENTS, random).to_owned(),
        _ => broken.swap(at, segments.len() - 1),
    }
    format!("/{}", broken.join("/").trim_start_matches('/'))
}

const SEGMENTS: [&str; 14] = [
    "",
    "..",
    "%2e%2e",
    "%00",
    "%ff",
    "a%2Fb",
    "watch",
    "namespaces",
    "status",
    "scale",
    "proxy",
    "A_B",
    "pods",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
];
const PARAMETERS: [&str; 18] = [
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "labelSelector",
    "fieldSelector",
    "dryRun",
    "fieldValidation",
    "fieldManager",
    "force",
    "timeout",
    "timeoutSeconds",
    "pretty",
    "includeObject",
    "sendInitialEvents",
    "propagationPolicy",
    "gracePeriodSeconds",
    "watch",
];
const NASTY: [&str; 22] = [
    "",
    "0",
    "-1",
    "99999999999999999999",
    "abc",
    "null",
    "true",
    "..",
    "%00",
    "%ff",
    "a=b,,",
    "a%20in%20(b",
    "!",
    "metadata.name%3D",
    "Exact",
    "NotOlderThan",
    "Strict",
    "All",
    "1s",
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0",
    "$patch",
    "%E2%98%83",
];
const MEDIA_TYPES: [&str; 12] = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "text/plain",
    "",
    ";",
    "application/json;charset",
    "*/*",
];
const HEADERS: [&str; 8] = [
    "accept",
    "accept-encoding",
    "authorization",
    "impersonate-user",
    "impersonate-group",
    "if-none-match",
    "audit-id",
    "content-type",
];
const VALUES: [&str; 12] = [
    "application/vnd.kubernetes.protobuf",
    "application/yaml",
    "text/html",
    "gzip",
    "Bearer x.y.z",
    "Basic eA==",
    "system:admin",
    "",
    "*/*;q=x",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
];
const BODIES: [&str; 12] = [
    "",
    "{",
    "[]",
    "null",
    "1",
    "\"x\"",
    "{}",
    "k8s\0",
    "- a",
    "a: [b",
    "{\"metadata\":{\"name\":\"a\"}}",
    "[{\"op\":\"add\"}]",
];
