//! Objects through the whole way of the server: create, read, update, patch, delete.

use http::Method;
use serde_json::{Value, json};

use crate::support::Api;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]}
            }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn what_is_created_has_a_uid_a_version_and_a_time_and_is_read_back_the_same() {
    let api = Api::start().await;
    let made = api.post(MAPS, map("a")).await.expect(201);
    assert_eq!(made["metadata"]["creationTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(made["metadata"]["uid"].as_str().unwrap().len(), 36);
    assert_eq!(made["metadata"]["namespace"], "default");
    assert_eq!(api.get(&format!("{MAPS}/a")).await.expect(200), made);
}

#[tokio::test(start_paused = true)]
async fn a_name_is_taken_once() {
    let api = Api::start().await;
    api.post(MAPS, map("a")).await.expect(201);
    assert_eq!(
        api.post(MAPS, map("a")).await.refused(409, "AlreadyExists"),
        "configmaps \"a\" already exists"
    );
}

#[tokio::test(start_paused = true)]
async fn generate_name_gives_a_name_of_its_own_each_time() {
    let api = Api::start().await;
    let body = json!({"metadata": {"generateName": "web-"}});
    let first = api.post(MAPS, body.clone()).await.expect(201);
    let second = api.post(MAPS, body).await.expect(201);
    let name = first["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("web-") && name.len() == 9, "{name}");
    assert_ne!(first["metadata"]["name"], second["metadata"]["name"]);
}

#[tokio::test(start_paused = true)]
async fn of_two_writers_with_the_same_version_one_gets_a_conflict() {
    let api = Api::start().await;
    let mut object = api.post(MAPS, map("a")).await.expect(201);
    object["data"]["a"] = "2".into();
    api.put(&format!("{MAPS}/a"), object.clone()).await.expect(200);
    object["data"]["a"] = "3".into();
    api.put(&format!("{MAPS}/a"), object).await.refused(409, "Conflict");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_keeps_the_version() {
    let api = Api::start().await;
    let object = api.post(MAPS, map("a")).await.expect(201);
    let path = format!("{MAPS}/a");
    assert_eq!(api.put(&path, object.clone()).await.expect(200), object);
    assert_eq!(api.patch(&path, "merge", json!({"data": {"a": "1"}})).await.expect(200), object);
}

#[tokio::test(start_paused = true)]
async fn a_test_for_null_on_a_missing_key_holds() {
    let api = Api::start().await;
    api.post(MAPS, map("a")).await.expect(201);
    let patch = json!([
        {"op": "test", "path": "/metadata/finalizers", "value": null},
        {"op": "add", "path": "/metadata/finalizers", "value": ["example.com/hold"]}
    ]);
    let object = api.patch(&format!("{MAPS}/a"), "json", patch).await.expect(200);
    assert_eq!(object["metadata"]["finalizers"], json!(["example.com/hold"]));
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_a_deletion_until_the_last_one_is_gone() {
    let api = Api::start().await;
    let mut object = map("a");
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.post(MAPS, object).await.expect(201);
    let path = format!("{MAPS}/a");
    let held = api.delete(&path).await.expect(200);
    assert!(held["metadata"]["deletionTimestamp"].is_string());
    api.get(&path).await.expect(200);
    api.patch(&path, "merge", json!({"metadata": {"finalizers": null}})).await.expect(200);
    api.get(&path).await.refused(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_checks_its_preconditions() {
    let api = Api::start().await;
    api.post(MAPS, map("a")).await.expect(201);
    let body = json!({"preconditions": {"uid": "another"}}).to_string();
    let path = format!("{MAPS}/a");
    api.send(Method::DELETE, &path, &[], body).await.refused(409, "Conflict");
    api.get(&path).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn propagation_becomes_a_finalizer() {
    let api = Api::start().await;
    for (policy, finalizer) in [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")] {
        api.post(MAPS, map("a")).await.expect(201);
        let path = format!("{MAPS}/a");
        let held = api.delete(&format!("{path}?propagationPolicy={policy}")).await.expect(200);
        assert_eq!(held["metadata"]["finalizers"], json!([finalizer]));
        api.patch(&path, "merge", json!({"metadata": {"finalizers": null}})).await.expect(200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_answers_and_changes_nothing() {
    let api = Api::start().await;
    let made = api.post(&format!("{MAPS}?dryRun=All"), map("a")).await.expect(201);
    assert!(made["metadata"]["uid"].is_string());
    api.get(&format!("{MAPS}/a")).await.refused(404, "NotFound");
    api.post(MAPS, map("a")).await.expect(201);
    let path = format!("{MAPS}/a?dryRun=All");
    api.patch(&path, "merge", json!({"data": {"a": "2"}})).await.expect(200);
    api.delete(&path).await.expect(200);
    assert_eq!(api.get(&format!("{MAPS}/a")).await.expect(200)["data"]["a"], "1");
}

#[tokio::test(start_paused = true)]
async fn a_link_to_itself_is_answered_on_trial_and_never_stored() {
    let api = Api::start().await;
    let (pods, leases) =
        ("/api/v1/namespaces/default/pods", "/apis/coordination.k8s.io/v1/namespaces/default/leases");
    let account = json!({"metadata": {"name": "default"}});
    api.post("/api/v1/namespaces/default/serviceaccounts", account).await.expect(201);
    api.post(MAPS, map("a")).await.expect(201);
    api.post(pods, json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}))
        .await
        .expect(201);
    let change = json!({"metadata": {"selfLink": "/a"}});
    for path in [format!("{MAPS}/a"), format!("{pods}/a"), format!("{pods}/a/status")] {
        let trial = api.patch(&format!("{path}?dryRun=All"), "merge", change.clone()).await.expect(200);
        assert_eq!(trial["metadata"]["selfLink"], "/a", "{path}");
        let before = api.get(&path).await.expect(200);
        assert_eq!(api.patch(&path, "merge", change.clone()).await.expect(200), before, "{path}");
    }
    let lease = json!({"metadata": {"name": "a", "selfLink": "/a"}});
    let made = api.put(&format!("{leases}/a"), lease).await.expect(201);
    assert_eq!(made["metadata"].get("selfLink"), None);
}

#[tokio::test(start_paused = true)]
async fn the_labels_that_a_job_has_of_its_template_belong_to_who_created_it() {
    let api = Api::start().await;
    let template = json!({
        "metadata": {"labels": {"app": "a"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    });
    let job = json!({"metadata": {"name": "a"}, "spec": {"template": template}});
    let made = api.post("/apis/batch/v1/namespaces/default/jobs", job).await.expect(201);
    assert_eq!(made["metadata"]["labels"]["batch.kubernetes.io/job-name"], "a");
    let owned = &made["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"];
    assert_eq!(*owned, json!({"f:labels": {".": {}, "f:app": {}}}));
}

/// Go compares lists that are one value as they are in memory.
/// An update has the labels of its template where it has none (`SetDefaults_Job`), and a write to the status takes over labels.
#[tokio::test(start_paused = true)]
async fn a_job_has_the_labels_of_the_template_that_its_status_is_written_with() {
    const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
    let api = Api::start().await;
    let job = |labels: Value| {
        let pod = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]});
        json!({"metadata": {"name": "a"}, "spec": {"template": {"metadata": {"labels": labels}, "spec": pod}}})
    };
    api.post(JOBS, job(json!({}))).await.expect(201);
    let written = api.put(&format!("{JOBS}/a/status"), job(json!({"x": "y"}))).await.expect(200);
    assert_eq!(written["metadata"]["labels"], json!({"x": "y"}));
    let mut bare = job(json!({}));
    bare["spec"]["template"]["metadata"] = json!({});
    let bare = api.put(&format!("{JOBS}/a/status"), bare).await.expect(200);
    assert_eq!(
        bare["metadata"]["labels"], bare["spec"]["template"]["metadata"]["labels"],
        "whenever it is read"
    );
    assert_ne!(bare["metadata"]["resourceVersion"], written["metadata"]["resourceVersion"]);
    // It is compared with what is read.
    let mut again = job(json!({}));
    again["spec"]["template"]["metadata"] = json!({});
    let again = api.put(&format!("{JOBS}/a/status"), again).await.expect(200);
    assert_ne!(again["metadata"]["resourceVersion"], bare["metadata"]["resourceVersion"]);
}

#[tokio::test(start_paused = true)]
async fn who_writes_a_quantity_otherwise_in_a_list_that_is_one_value_owns_the_list() {
    const RANGES: &str = "/api/v1/namespaces/default/limitranges";
    let api = Api::start().await;
    let range = |cpu: &str| json!({"metadata": {"name": "a"}, "spec": {"limits": [{"type": "Pod", "max": {"cpu": cpu}}]}});
    api.post(&format!("{RANGES}?fieldManager=one"), range("1500m")).await.expect(201);
    for (cpu, owner) in [("1500m", "one"), ("1.5", "two")] {
        let written = api.put(&format!("{RANGES}/a?fieldManager=two"), range(cpu)).await.expect(200);
        assert_eq!(written["spec"]["limits"][0]["max"]["cpu"], "1500m");
        let owners = written["metadata"]["managedFields"].as_array().expect("owners");
        assert_eq!(owners.iter().map(|entry| &entry["manager"]).collect::<Vec<_>>(), [owner]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_name_is_generated_of_fits_into_a_path() {
    let api = Api::start().await;
    let classes = "/apis/resource.k8s.io/v1/deviceclasses";
    let class = |generate: &str| json!({"metadata": {"name": "a", "generateName": generate}});
    let message = api.post(classes, class("x/y")).await.refused(422, "Invalid");
    assert!(
        message.ends_with("metadata.generateName: Invalid value: \"x/y\": may not contain '/'"),
        "{message}"
    );
    api.post(classes, class("No Name")).await.expect(201);
}

#[tokio::test(start_paused = true)]
async fn status_and_the_rest_are_written_apart() {
    let api = Api::start().await;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let mut made = deployment("web");
    made["status"] = json!({"replicas": 7});
    let made = api.post(path, made).await.expect(201);
    assert_ne!(made["status"]["replicas"], 7);
    let path = format!("{path}/web");
    let body = json!({"spec": {"replicas": 5}, "status": {"replicas": 5, "updatedReplicas": 5}});
    let status = api.patch(&format!("{path}/status"), "merge", body.clone()).await.expect(200);
    assert_eq!((&status["spec"]["replicas"], &status["status"]["replicas"]), (&json!(1), &json!(5)));
    assert_eq!(status["metadata"]["generation"], 1);
    let body = json!({"spec": {"replicas": 3}, "status": {"replicas": 9}});
    let main = api.patch(&path, "merge", body).await.expect(200);
    assert_eq!((&main["spec"]["replicas"], &main["status"]["replicas"]), (&json!(3), &json!(5)));
    assert_eq!(main["metadata"]["generation"], 2);
}

#[tokio::test(start_paused = true)]
async fn scale_is_a_view_of_the_replicas() {
    let api = Api::start().await;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    api.post(path, deployment("web")).await.expect(201);
    let mut scale = api.get(&format!("{path}/web/scale")).await.expect(200);
    assert_eq!(scale["status"]["selector"], "app=web");
    scale["spec"]["replicas"] = 4.into();
    let answer = api.put(&format!("{path}/web/scale"), scale.clone()).await.expect(200);
    assert_eq!((answer["kind"].as_str(), &answer["spec"]["replicas"]), (Some("Scale"), &json!(4)));
    api.put(&format!("{path}/web/scale"), scale).await.refused(409, "Conflict");
    assert_eq!(api.get(&format!("{path}/web")).await.expect(200)["spec"]["replicas"], 4);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_created_in_a_namespace_that_is_not_there() {
    let api = Api::start().await;
    let message = api.post("/api/v1/namespaces/nope/configmaps", map("a")).await.refused(404, "NotFound");
    assert_eq!(message, "namespaces \"nope\" not found");
}

#[tokio::test(start_paused = true)]
async fn services_get_addresses_of_their_own() {
    let api = Api::start().await;
    let path = "/api/v1/namespaces/default/services";
    let service = |name: &str| json!({"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let a = api.post(path, service("a")).await.expect(201);
    let b = api.post(path, service("b")).await.expect(201);
    assert_ne!(a["spec"]["clusterIP"], b["spec"]["clusterIP"]);
    assert_ne!(a["spec"]["ports"][0]["nodePort"], b["spec"]["ports"][0]["nodePort"]);
    let mut taken = service("c");
    taken["spec"]["clusterIP"] = a["spec"]["clusterIP"].clone();
    api.post(path, taken).await.refused(422, "Invalid");
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_are_refused_warned_of_or_dropped_as_asked() {
    let api = Api::start().await;
    let body = || json!({"metadata": {"name": "a"}, "nope": 1});
    let strict = api.post(&format!("{MAPS}?fieldValidation=Strict"), body()).await.refused(400, "BadRequest");
    assert!(strict.ends_with("strict decoding error: unknown field \"nope\""), "{strict}");
    let warned = api.post(MAPS, body()).await;
    assert_eq!(warned.headers["warning"], "299 - \"unknown field \\\"nope\\\"\"");
    assert!(warned.expect(201).get("nope").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_body_of_another_version_is_read_as_that_before_it_is_refused() {
    let api = Api::start().await;
    let path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
    let body = |spec: Value| {
        let (version, kind) = ("autoscaling/v1", "HorizontalPodAutoscaler");
        json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": spec})
    };
    let start = "HorizontalPodAutoscaler in version \"v1\" cannot be handled as a HorizontalPodAutoscaler: ";
    let unknown = || body(json!({"targetCPUUtilizationPercentage": 1, "metrics": []}));
    let strict = api.post(&format!("{path}?fieldValidation=Strict"), unknown()).await;
    let strict = strict.refused(400, "BadRequest");
    assert_eq!(strict, format!("{start}strict decoding error: unknown field \"spec.metrics\""));
    let warned = api.post(path, unknown()).await;
    assert_eq!(warned.headers["warning"], "299 - \"unknown field \\\"spec.metrics\\\"\"");
    assert_eq!(
        warned.refused(400, "BadRequest"),
        "the API version in the data (autoscaling/v1) does not match the expected API version (autoscaling/v2)"
    );
    let wrong = api.post(path, body(json!({"maxReplicas": "many"}))).await.refused(400, "BadRequest");
    assert!(wrong.starts_with(&format!("{start}json: cannot unmarshal string")), "{wrong}");
}

/// Status, reason and message of the condition `Dangling` of a flow schema.
async fn dangling(api: &Api, name: &str) -> Value {
    let schema = api.get(&format!("{FLOWS}/flowschemas/{name}")).await.expect(200);
    let conditions = schema["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let told = conditions.iter().find(|one| one["type"] == "Dangling").cloned().unwrap_or_default();
    json!([told["status"], told["reason"], told["message"]])
}

const FLOWS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";

#[tokio::test(start_paused = true)]
async fn a_flow_schema_tells_whether_its_priority_level_is_there() {
    let api = Api::start().await;
    let told = |level: &str, is_there: bool| {
        let what =
            format!("This FlowSchema references the PriorityLevelConfiguration object named \"{level}\"");
        match is_there {
            true => json!(["False", "Found", what + " and it exists"]),
            false => json!(["True", "NotFound", what + " but there is no such object"]),
        }
    };
    assert_eq!(dangling(&api, "service-accounts").await, told("workload-low", true));
    let schema = json!({"metadata": {"name": "mine"}, "spec": {"matchingPrecedence": 500,
        "priorityLevelConfiguration": {"name": "own"}, "rules": [{"subjects": [{"kind": "User", "user": {"name": "ada"}}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]}]}});
    api.post(&format!("{FLOWS}/flowschemas"), schema).await.expect(201);
    assert_eq!(dangling(&api, "mine").await, told("own", false));
    let level = json!({"metadata": {"name": "own"}, "spec": {"type": "Limited",
        "limited": {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}}}});
    api.post(&format!("{FLOWS}/prioritylevelconfigurations"), level).await.expect(201);
    assert_eq!(dangling(&api, "mine").await, told("own", true));
    api.delete(&format!("{FLOWS}/prioritylevelconfigurations/own")).await.expect(200);
    assert_eq!(dangling(&api, "mine").await, told("own", false));
    let other = json!({"spec": {"priorityLevelConfiguration": {"name": "exempt"}}});
    api.patch(&format!("{FLOWS}/flowschemas/mine"), "merge", other).await.expect(200);
    assert_eq!(dangling(&api, "mine").await, told("exempt", true));
}
