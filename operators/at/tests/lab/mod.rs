//! What the tests of the operator have in common.

use std::future::Future;

use k8s_openapi::api::{core::v1::Pod, events::v1::Event};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, PostParams},
};
use kubewright::{conditions, testing::Cluster};
use kubewright_at::{At, Phase};
use serde_json::{Value, json};

/// An At of `echo YAY` that is due, with more members of its spec; `for` and `exit` say how its simulated pod ends.
pub(crate) fn at(name: &str, more: Value) -> At {
    let Value::Object(mut more) = more else { panic!("members of a spec") };
    let run_for = more.remove("for").unwrap_or(json!("1s"));
    let exit = more.remove("exit").unwrap_or(json!("0"));
    let annotations = json!({"kubewright.dev/run-for": run_for, "kubewright.dev/exit-code": exit});
    let mut spec = json!({
        "schedule": "2023-07-14T10:12:00Z",
        "command": "echo YAY",
        "template": {"metadata": {"annotations": annotations}},
    });
    spec.as_object_mut().expect("a spec").extend(more);
    At::new(name, kubewright::object::from_value(spec).expect("a spec"))
}

pub(crate) async fn phase(cluster: &Cluster, name: &str) -> Phase {
    cluster.get::<At>(name).await.status.expect("a status").phase
}

/// The At, once it is done.
pub(crate) async fn done(cluster: &Cluster, name: &str) -> At {
    cluster.eventually(is_done(name)).await
}

pub(crate) fn is_done(
    name: &str,
) -> impl FnMut(Cluster) -> std::pin::Pin<Box<dyn Future<Output = Option<At>>>> {
    let name = name.to_owned();
    move |cluster| {
        let name = name.clone();
        Box::pin(async move {
            let at = cluster.try_get::<At>(&name).await;
            at.filter(|at| at.status.as_ref().is_some_and(|status| status.phase == Phase::Done))
        })
    }
}

/// The condition `type_` of an At: its status and reason.
pub(crate) async fn condition(cluster: &Cluster, name: &str, type_: &str) -> (String, String) {
    let status = cluster.get::<At>(name).await.status.expect("a status");
    let found = conditions::find(&status.conditions, type_).cloned();
    found.map(|found| (found.status, found.reason)).unwrap_or_default()
}

/// The names of all pods.
pub(crate) async fn pods(cluster: &Cluster) -> Vec<String> {
    cluster.list::<Pod>().await.iter().map(ResourceExt::name_any).collect()
}

/// The notes of the Events with this reason.
pub(crate) async fn notes(cluster: &Cluster, reason: &str) -> Vec<String> {
    let events = cluster.list::<Event>().await;
    let events = events.into_iter().filter(|event| event.reason.as_deref() == Some(reason));
    events.filter_map(|event| event.note).collect()
}

/// What the API server says to an At `example-at` with these members.
pub(crate) async fn refusal(cluster: &Cluster, members: Value) -> String {
    let mut object = json!({"metadata": {"name": "example-at"}});
    let Value::Object(members) = members else { panic!("members of an At") };
    object.as_object_mut().expect("an object").extend(members);
    object["apiVersion"] = json!("cnat.study.jayground8/v1alpha1");
    object["kind"] = json!("At");
    let object: DynamicObject = kubewright::object::from_value(object).expect("an object");
    let ats: Api<DynamicObject> =
        Api::namespaced_with(cluster.client(), cluster.namespace(), &ApiResource::erase::<At>(&()));
    match ats.create(&PostParams::default(), &object).await.expect_err("it is refused") {
        kube::Error::Api(status) => status.message,
        other => panic!("{other}"),
    }
}

/// Where Ats are.
pub(crate) const ATS: &str = "/apis/cnat.study.jayground8/v1alpha1/namespaces/default/ats";

/// What kubectl shows of the objects at a path: the titles of the columns, and the cells of the rows.
pub(crate) async fn table(cluster: &Cluster, path: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let request = http::Request::get(path)
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())
        .expect("a request");
    let table: Value = cluster.client().request(request).await.expect("a table");
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let columns = table["columnDefinitions"].as_array().expect("columns");
    let shown: Vec<usize> = (0..columns.len()).filter(|index| columns[*index]["priority"] == 0).collect();
    let row = |row: &Value| shown.iter().map(|index| text(&row["cells"][*index])).collect();
    (
        shown.iter().map(|index| text(&columns[*index]["name"])).collect(),
        table["rows"].as_array().expect("rows").iter().map(row).collect(),
    )
}
