//! What the tests of the operator have in common.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::{batch::v1::Job, events::v1::Event};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, PostParams},
};
use kubewright::{conditions, testing::Cluster};
use kubewright_crontab::{CronTab, CronTabStatus, manifests};
use serde_json::{Value, json};

/// A CronTab of every hour, with more members of its spec; `for` and `exit` say how its simulated pods end.
pub(crate) fn crontab(name: &str, more: Value) -> CronTab {
    let Value::Object(mut more) = more else { panic!("members of a spec") };
    let mut annotations = json!({});
    for (member, annotation) in [("for", "kubewright.dev/run-for"), ("exit", "kubewright.dev/exit-code")] {
        if let Some(value) = more.remove(member) {
            annotations[annotation] = value;
        }
    }
    let pod = json!({"containers": [{"name": "main", "image": "main"}], "restartPolicy": "Never"});
    let template = json!({"metadata": {"annotations": annotations}, "spec": pod});
    let mut spec =
        json!({"schedule": "@hourly", "jobTemplate": {"spec": {"backoffLimit": 0, "template": template}}});
    spec.as_object_mut().expect("a spec").extend(more);
    CronTab::new(name, kubewright::object::from_value(spec).expect("a spec"))
}

/// The seed's own CronTab.
pub(crate) fn backup() -> CronTab {
    serde_saphyr::from_str(manifests::SAMPLE).expect("the sample is a CronTab")
}

pub(crate) fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

/// Lets time pass until the clock shows this.
pub(crate) async fn until(cluster: &Cluster, text: &str) {
    let left = time(text).duration_since(cluster.world().clock.now());
    cluster.advance(Duration::try_from(left).expect("it is later")).await;
}

/// The Jobs of a CronTab, in the order of their names.
pub(crate) async fn jobs(cluster: &Cluster, crontab: &str) -> Vec<String> {
    let jobs = cluster.list::<Job>().await;
    let names = jobs.iter().map(ResourceExt::name_any);
    names.filter(|name| name.rsplit_once('-').is_some_and(|(owner, _)| owner == crontab)).collect()
}

pub(crate) async fn status(cluster: &Cluster, name: &str) -> CronTabStatus {
    cluster.get::<CronTab>(name).await.status.expect("a status")
}

/// The condition `type_` of a CronTab: its status and reason.
pub(crate) async fn condition(cluster: &Cluster, name: &str, type_: &str) -> (String, String) {
    let found = conditions::find(&status(cluster, name).await.conditions, type_).cloned();
    found.map(|found| (found.status, found.reason)).unwrap_or_default()
}

/// The notes of the Events of CronTabs with this reason.
pub(crate) async fn notes(cluster: &Cluster, reason: &str) -> Vec<String> {
    let events = cluster.list::<Event>().await.into_iter();
    let of_crontabs = events.filter(|event| {
        let kind = event.regarding.as_ref().and_then(|regarding| regarding.kind.as_deref());
        kind == Some("CronTab") && event.reason.as_deref() == Some(reason)
    });
    of_crontabs.filter_map(|event| event.note).collect()
}

/// What the API server says to a CronTab with this spec.
pub(crate) async fn refusal(cluster: &Cluster, name: &str, spec: Value) -> String {
    let object = json!({"apiVersion": "alpha.ianlewis.org/v1", "kind": "CronTab", "metadata": {"name": name}, "spec": spec});
    let object: DynamicObject = kubewright::object::from_value(object).expect("an object");
    let kind = ApiResource::erase::<CronTab>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client(), cluster.namespace(), &kind);
    match api.create(&PostParams::default(), &object).await.expect_err("it is refused") {
        kube::Error::Api(status) => status.message,
        other => panic!("{other}"),
    }
}

/// What kubectl shows of the objects at a path: the titles of the columns, and the cells.
pub(crate) async fn table(cluster: &Cluster, path: &str) -> (Vec<String>, Vec<Vec<Value>>) {
    let request = http::Request::get(path)
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())
        .expect("a request");
    let table: Value = cluster.client().request(request).await.expect("a table");
    let columns = table["columnDefinitions"].as_array().expect("columns");
    let shown: Vec<usize> = (0..columns.len()).filter(|index| columns[*index]["priority"] == 0).collect();
    let cells = |row: &Value| shown.iter().map(|index| row["cells"][*index].clone()).collect();
    (
        shown.iter().map(|index| columns[*index]["name"].as_str().unwrap_or_default().to_owned()).collect(),
        table["rows"].as_array().expect("rows").iter().map(cells).collect(),
    )
}
