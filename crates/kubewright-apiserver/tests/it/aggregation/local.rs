//! The APIServices that the server keeps by itself.

use serde_json::json;

use super::{API_SERVICES, DEFINITIONS, api_service, definition};
use crate::support::Api;

fn names(list: &serde_json::Value) -> Vec<String> {
    let items = list["items"].as_array().expect("a list");
    items.iter().filter_map(|one| one["metadata"]["name"].as_str()).map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn every_built_in_version_is_registered_when_the_server_starts() {
    let api = Api::start().await;
    let list = api.get(API_SERVICES).await.expect(200);
    let names = names(&list);
    assert!(names.contains(&"v1.".to_owned()) && names.contains(&"v2.autoscaling".to_owned()), "{names:?}");
    assert!(!names.contains(&"v1.apiregistration.k8s.io".to_owned()));
    for one in list["items"].as_array().expect("a list") {
        assert_eq!(
            one["metadata"]["labels"],
            json!({"kube-aggregator.kubernetes.io/automanaged": "onstart"})
        );
        let condition = &one["status"]["conditions"][0];
        assert_eq!((&condition["status"], &condition["reason"]), (&json!("True"), &json!("Local")));
    }
    let apps = api.get(&format!("{API_SERVICES}/v1.apps")).await.expect(200);
    let spec =
        json!({"group": "apps", "version": "v1", "groupPriorityMinimum": 17_800, "versionPriority": 15});
    assert_eq!(apps["spec"], spec);
}

#[tokio::test(start_paused = true)]
async fn one_of_a_built_in_version_that_is_deleted_stays_away_and_the_version_is_still_served() {
    let api = Api::start().await;
    api.delete(&format!("{API_SERVICES}/v1.apps")).await.expect(200);
    api.get(&format!("{API_SERVICES}/v1.apps")).await.refused(404, "NotFound");
    api.get("/apis/apps/v1/deployments").await.expect(200);
    let groups = api.get("/apis").await.expect(200);
    let groups = groups["groups"].as_array().expect("a list");
    assert!(groups.iter().all(|group| group["name"] != "apps"), "discovery goes by APIServices");
    api.get("/apis/apps").await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn a_definition_registers_the_versions_that_it_serves_for_as_long_as_it_is_there() {
    let api = Api::start().await;
    let mut two = definition();
    let first = two["spec"]["versions"][0].clone();
    two["spec"]["versions"].as_array_mut().expect("a list").push(first);
    two["spec"]["versions"][1]["name"] = "v2".into();
    two["spec"]["versions"][1]["storage"] = false.into();
    api.post(DEFINITIONS, two).await.expect(201);
    let made = api.get(&format!("{API_SERVICES}/v1.example.com")).await.expect(200);
    assert_eq!(made["metadata"]["labels"]["kube-aggregator.kubernetes.io/automanaged"], "true");
    assert_eq!(
        made["spec"],
        json!({"group": "example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 100})
    );
    // Who deletes it gets it back, and who changes it finds it as it was.
    let path = format!("{API_SERVICES}/v2.example.com");
    let before = api.get(&path).await.expect(200);
    api.delete(&path).await.expect(200);
    let after = api.get(&path).await.expect(200);
    assert_ne!(before["metadata"]["uid"], after["metadata"]["uid"]);
    api.patch(&path, "merge", json!({"spec": {"versionPriority": 7}})).await.expect(200);
    assert_eq!(api.get(&path).await.expect(200)["spec"]["versionPriority"], 100);
    let unserved = json!([{"op": "replace", "path": "/spec/versions/1/served", "value": false}]);
    api.patch(&format!("{DEFINITIONS}/things.example.com"), "json", unserved).await.expect(200);
    api.get(&path).await.refused(404, "NotFound");
    api.delete(&format!("{DEFINITIONS}/things.example.com")).await.expect(200);
    api.get(&format!("{API_SERVICES}/v1.example.com")).await.refused(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn one_that_says_it_is_kept_by_the_server_and_is_not_goes() {
    let api = Api::start().await;
    let mut object = api_service("v9");
    object["spec"].as_object_mut().expect("an object").remove("service");
    object["spec"].as_object_mut().expect("an object").remove("insecureSkipTLSVerify");
    let mut kept = object.clone();
    kept["metadata"]["labels"] = json!({"kube-aggregator.kubernetes.io/automanaged": "true"});
    api.post(API_SERVICES, kept).await.expect(201);
    api.get(&format!("{API_SERVICES}/v9.example.com")).await.refused(404, "NotFound");
    api.post(API_SERVICES, object).await.expect(201);
    let made = api.get(&format!("{API_SERVICES}/v9.example.com")).await.expect(200);
    assert_eq!(made["status"]["conditions"][0]["reason"], "Local");
    api.get("/apis/example.com/v9").await.expect(404);
    let group = api.get("/apis/example.com").await.expect(200);
    assert_eq!(group["preferredVersion"]["version"], "v9");
}

#[tokio::test(start_paused = true)]
async fn one_that_leads_here_again_is_available() {
    let api = Api::start().await;
    let made = api.post(API_SERVICES, api_service("v1")).await.expect(201);
    assert_eq!((&made["status"], &made["spec"]["service"]["port"]), (&json!({}), &json!(443)));
    let path = format!("{API_SERVICES}/v1.example.com");
    let local = json!({"spec": {"service": null, "insecureSkipTLSVerify": null}});
    api.patch(&path, "merge", local).await.expect(200);
    assert_eq!(api.get(&path).await.expect(200)["status"]["conditions"][0]["reason"], "Local");
}
