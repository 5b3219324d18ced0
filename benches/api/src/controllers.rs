//! What the built-in controllers do: Deployment to pods, garbage collection, namespace deletion.
use crate::Ctx;
use crate::client::{JSON, Result, Watch, field};
use crate::crud::{cm_name, configmap};
use crate::stats::Sample;
use hyper::Method;
use serde::Deserialize;
use std::collections::HashSet;
use std::time::{Duration, Instant};

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    object: Object,
}

#[derive(Deserialize)]
struct Object {
    #[serde(default)]
    metadata: Meta,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize, Default)]
struct Meta {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize, Default)]
struct Status {
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

impl Object {
    fn ready(&self) -> bool {
        self.status.conditions.iter().any(|c| c.kind == "Ready" && c.status == "True")
    }
}

async fn watch(x: &Ctx, path: &str, selector: &str) -> Result<Watch> {
    Watch::from_now(x.target.connect().await?, path, selector).await
}

/// Reads events until `done` says so; an error when the time is up before.
async fn until(x: &Ctx, w: &mut Watch, mut done: impl FnMut(Event) -> bool) -> Result<()> {
    let all = async {
        loop {
            if done(serde_json::from_slice(w.next().await?)?) {
                return Ok(());
            }
        }
    };
    tokio::time::timeout(x.o.timeout, all).await.map_err(|_| "timeout")?
}

/// A Deployment of --replicas pods: all exist and, where a node is Ready, all are Ready.
pub async fn pod_up(x: &Ctx) -> Result<()> {
    let n = x.o.replicas;
    let ns = x.namespace("pods").await?;
    let mut conn = x.target.connect().await?;
    #[derive(Deserialize)]
    struct Nodes {
        items: Vec<Object>,
    }
    let nodes: Nodes = serde_json::from_slice(&conn.get("/api/v1/nodes").await?)?;
    let with_nodes = nodes.items.iter().any(Object::ready);
    // servers that admit pods by ServiceAccount make one for each namespace first
    let sa = format!("/api/v1/namespaces/{ns}/serviceaccounts/default");
    for _ in 0..100 {
        if conn.get(&sa).await.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    let mut w = watch(x, &pods, "").await?;
    let body = format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"web"}},"spec":{{"replicas":{n},"selector":{{"matchLabels":{{"app":"web"}}}},"template":{{"metadata":{{"labels":{{"app":"web"}}}},"spec":{{"containers":[{{"name":"web","image":"web:1"}}]}}}}}}}}"#
    );
    x.report.borrow_mut().start();
    let begin = Instant::now();
    conn.ok(Method::POST, &format!("/apis/apps/v1/namespaces/{ns}/deployments"), JSON, body).await?;
    let (mut exist, mut ready) = (Sample::default(), Sample::default());
    let (mut seen, mut seen_ready) = (HashSet::new(), HashSet::new());
    let end = until(x, &mut w, |e| {
        if e.kind == "ADDED" && seen.insert(e.object.metadata.name.clone()) {
            exist.lat.push(begin.elapsed());
            exist.elapsed = begin.elapsed();
        }
        if e.object.ready() && seen_ready.insert(e.object.metadata.name) {
            ready.lat.push(begin.elapsed());
        }
        seen.len() >= n && (!with_nodes || seen_ready.len() >= n)
    });
    if let Err(e) = end.await {
        exist.error(e);
    }
    ready.elapsed = begin.elapsed();
    x.report.borrow().row("pod-up", n, exist.lat.len(), &exist, "all pods exist; latency since the POST");
    if with_nodes {
        x.report.borrow().row(
            "pod-up-ready",
            n,
            ready.lat.len(),
            &ready,
            "all pods Ready; latency since the POST",
        );
    }
    if !x.o.keep {
        let d = format!("/apis/apps/v1/namespaces/{ns}/deployments/web?propagationPolicy=Background");
        conn.ok(Method::DELETE, &d, "", "").await?;
    }
    x.drop_namespace(&ns).await
}

/// --dependents ConfigMaps owned by one: delete it (background), wait until all are gone.
pub async fn gc(x: &Ctx) -> Result<()> {
    let n = x.o.dependents;
    let ns = x.namespace("gc").await?;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let mut conn = x.target.connect().await?;
    let owner = conn.ok(Method::POST, &path, JSON, configmap("owner", "", "0")).await?;
    let uid = field(&owner, b"\"uid\":\"").ok_or("no uid")?.to_string();
    let p = path.clone();
    let made = x.run(32, n, async move |conn, i| {
        let own = format!(
            r#","ownerReferences":[{{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"{uid}"}}]"#
        );
        conn.ok(Method::POST, &p, JSON, configmap(&cm_name(i), &own, "0")).await.map(drop)
    });
    let errors = made.await?.errors;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut w = watch(x, &path, "").await?;
    x.report.borrow_mut().start();
    let begin = Instant::now();
    conn.ok(Method::DELETE, &format!("{path}/owner?propagationPolicy=Background"), "", "").await?;
    let mut s = Sample { errors, ..Default::default() };
    let end = until(x, &mut w, |e| {
        if e.kind == "DELETED" && e.object.metadata.name.starts_with("cm-") {
            s.lat.push(begin.elapsed());
        }
        s.lat.len() >= n
    });
    if let Err(e) = end.await {
        s.error(e);
    }
    s.elapsed = begin.elapsed();
    x.report.borrow().row("gc", n, s.lat.len(), &s, "latency since the owner's DELETE");
    x.drop_namespace(&ns).await
}

/// A namespace of --dependents ConfigMaps: delete it, wait until it is gone.
pub async fn ns_delete(x: &Ctx) -> Result<()> {
    let n = x.o.dependents;
    let ns = x.namespace("nsdel").await?;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let made = x.run(32, n, async move |conn, i| {
        conn.ok(Method::POST, &path, JSON, configmap(&cm_name(i), "", "0")).await.map(drop)
    });
    let mut s = Sample { errors: made.await?.errors, ..Default::default() };
    let mut w = watch(x, "/api/v1/namespaces", &format!("&fieldSelector=metadata.name%3D{ns}")).await?;
    x.report.borrow_mut().start();
    let begin = Instant::now();
    x.target.connect().await?.ok(Method::DELETE, &format!("/api/v1/namespaces/{ns}"), "", "").await?;
    if let Err(e) = until(x, &mut w, |e| e.kind == "DELETED").await {
        s.error(e);
    }
    s.elapsed = begin.elapsed();
    s.lat.push(s.elapsed);
    x.report.borrow().row("ns-delete", 1, n, &s, "ops = objects; latency = namespace gone");
    Ok(())
}
