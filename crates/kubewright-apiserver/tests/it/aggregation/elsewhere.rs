//! A second API server of this process behind the first, in simulated time.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use kubewright_identity::authn::User;
use kubewright_serve::authority::Authority;
use kubewright_spec::Version;
use kubewright_world::World;
use serde_json::{Value, json};

use super::{API_SERVICES, DEFINITIONS, api_service, behind, condition, definition, front, jane};
use crate::support::Api;

const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";
const AGGREGATED: (&str, &str) =
    ("accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");

/// Two servers; what is served as `example.com/v1` by the second is asked of the first.
async fn two(version: Version) -> (Api, Api) {
    let world = World::simulated(7);
    let authority = Authority::new(&world).expect("there is entropy");
    let (front, behind) = (front(world.clone(), version, &authority).await, behind(world, &authority).await);
    behind.post(DEFINITIONS, definition()).await.expect(201);
    front.server.attach_api_server("default", "api", behind.server.clone());
    front.post(API_SERVICES, api_service("v1")).await.expect(201);
    condition(&front, "v1.example.com", "Passed").await;
    (front, behind)
}

fn group<'a>(document: &'a Value, name: &str) -> Option<&'a Value> {
    document["items"].as_array()?.iter().find(|group| group["metadata"]["name"] == name)
}

#[tokio::test(start_paused = true)]
async fn objects_are_those_of_the_other_server() {
    for version in Version::ALL {
        let (front, behind) = two(version).await;
        let mut watch = front.watch(&format!("{THINGS}?watch=true")).await;
        let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}});
        let made = front.post(THINGS, thing).await.expect(201);
        assert_eq!(behind.get(&format!("{THINGS}/a")).await.expect(200), made);
        assert_eq!(watch.expect("ADDED", "a").await["metadata"]["uid"], made["metadata"]["uid"]);
        front.patch(&format!("{THINGS}/a"), "merge", json!({"spec": 1})).await.expect(200);
        watch.expect("MODIFIED", "a").await;
        let why = front.get(&format!("{THINGS}/b")).await.refused(404, "NotFound");
        assert_eq!(why, "things.example.com \"b\" not found");
        front.delete(&format!("{THINGS}/a")).await.expect(200);
        watch.expect("DELETED", "a").await;
    }
}

#[tokio::test(start_paused = true)]
async fn discovery_and_openapi_tell_of_what_is_served_elsewhere() {
    let (front, behind) = two(Version::DEFAULT).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let groups = front.get("/apis").await.expect(200);
    assert_eq!(groups["groups"][1]["name"], "example.com", "by its priority");
    let of_group = front.get("/apis/example.com").await.expect(200);
    assert_eq!(of_group["preferredVersion"]["groupVersion"], "example.com/v1");
    let resources = front.get("/apis/example.com/v1").await.expect(200);
    assert_eq!(resources, behind.get("/apis/example.com/v1").await.expect(200));
    let document = front.send(Method::GET, "/apis", &[AGGREGATED], "").await.expect(200);
    let theirs = behind.send(Method::GET, "/apis", &[AGGREGATED], "").await.expect(200);
    assert_eq!(group(&document, "example.com"), group(&theirs, "example.com"));
    let index = front.get("/openapi/v3").await;
    let index: Value = serde_json::from_slice(&index.bytes).expect("JSON");
    let url = index["paths"]["apis/example.com/v1"]["serverRelativeURL"].as_str().expect("it is listed");
    assert!(front.get(url).await.expect(200)["components"]["schemas"]["com.example.v1.Thing"].is_object());
    let apps = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().expect("it is listed");
    front.get(apps).await.expect(200);
    let swagger = front.get("/openapi/v2").await.expect(200);
    assert!(swagger["paths"][THINGS.replace("default", "{namespace}")].is_object());
    assert!(swagger["definitions"]["com.example.v1.Thing"].is_object());
    assert!(swagger["definitions"]["io.k8s.api.apps.v1.Deployment"].is_object());
    // What is new there is seen here within a minute.
    let mut more = definition();
    more["metadata"]["name"] = "parts.example.com".into();
    more["spec"]["names"] = json!({"plural": "parts", "singular": "part", "kind": "Part"});
    behind.post(DEFINITIONS, more).await.expect(201);
    tokio::time::sleep(Duration::from_secs(61)).await;
    let document = front.send(Method::GET, "/apis", &[AGGREGATED], "").await.expect(200);
    let found = group(&document, "example.com").expect("it is told");
    assert_eq!(found["versions"][0]["resources"].as_array().map(Vec::len), Some(2));
}

#[tokio::test(start_paused = true)]
async fn an_api_service_that_goes_takes_its_group_with_it() {
    let (front, _behind) = two(Version::DEFAULT).await;
    front.delete(&format!("{API_SERVICES}/v1.example.com")).await.expect(200);
    front.get(THINGS).await.expect(404);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let document = front.send(Method::GET, "/apis", &[AGGREGATED], "").await.expect(200);
    assert_eq!(group(&document, "example.com"), None);
    let index = front.get("/openapi/v3").await;
    let index: Value = serde_json::from_slice(&index.bytes).expect("JSON");
    assert_eq!(index["paths"]["apis/example.com/v1"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn rights_count_on_both_servers() {
    let (front, behind) = two(Version::DEFAULT).await;
    let jane = jane();
    let own = front.as_user(jane.clone());
    let why = own.get(THINGS).await.refused(403, "Forbidden");
    assert!(why.starts_with("things.example.com is forbidden: User \"jane\" cannot list"), "{why}");
    let role = json!({"metadata": {"name": "things"}, "rules": [
        {"apiGroups": ["example.com"], "resources": ["things"], "verbs": ["list"]}
    ]});
    let binding = json!({
        "metadata": {"name": "things"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "things"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "dev"}]
    });
    let grant = async |api: &Api| {
        api.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", role.clone()).await.expect(201);
        api.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding.clone()).await.expect(201);
    };
    grant(&front).await;
    // The other server decides by its own objects, about the same user.
    own.get(THINGS).await.refused(403, "Forbidden");
    grant(&behind).await;
    own.get(THINGS).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn who_asks_is_told_and_cannot_be_said_by_the_client() {
    let world = World::simulated(7);
    let authority = Authority::new(&world).expect("there is entropy");
    let front = front(world, Version::DEFAULT, &authority).await;
    let echo = tower::service_fn(async |request: Request<Incoming>| {
        let headers = request.headers().iter();
        let headers = headers.map(|(name, value)| json!([name.as_str(), value.to_str().unwrap_or_default()]));
        let told = json!({
            "method": request.method().as_str(),
            "path": request.uri().to_string(),
            "headers": headers.collect::<Vec<_>>()
        });
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(told.to_string()))))
    });
    front.server.attach_api_server("default", "api", echo);
    front.post(API_SERVICES, api_service("v1")).await.expect(201);
    condition(&front, "v1.example.com", "Passed").await;
    let mut jane = jane();
    jane.groups.push("system:masters".to_owned());
    let own = front.as_user(jane);
    let said =
        [("x-remote-user", "root"), ("x-remote-group", "g"), ("authorization", "Bearer x"), ("x-own", "1")];
    let told = own.send(Method::PUT, &format!("{THINGS}/a?b=c&d=%2F"), &said, "{}").await.expect(200);
    assert_eq!((&told["method"], &told["path"]), (&json!("PUT"), &json!(format!("{THINGS}/a?b=c&d=%2F"))));
    let all = |name: &str| -> Vec<&str> {
        let headers = told["headers"].as_array().expect("a list").iter();
        headers.filter(|one| one[0] == name).filter_map(|one| one[1].as_str()).collect()
    };
    assert_eq!(all("x-remote-user"), ["jane"]);
    assert_eq!(all("x-remote-uid"), ["7"]);
    assert_eq!(all("x-remote-group"), ["dev", "system:masters", "system:authenticated"]);
    assert_eq!(all("x-remote-extra-example.com%2fteam"), ["a", "b"]);
    assert_eq!(all("authorization"), Vec::<&str>::new());
    assert_eq!(all("x-own"), ["1"]);
    // Somebody is acted as: the other server is told of that one alone.
    let admin = front.as_user(User::new("admin", ["system:masters"]));
    let acting = [("impersonate-user", "joe"), ("impersonate-group", "system:masters")];
    let told = admin.send(Method::GET, THINGS, &acting, "").await.expect(200);
    let told = told["headers"].to_string();
    assert!(told.contains("[\"x-remote-user\",\"joe\"]") && !told.contains("impersonate"), "{told}");
}
