//! Requests on single objects: ConfigMaps, custom resources, server-side apply.
use crate::client::{APPLY, JSON, MERGE, RV, Result, field};
use crate::stats::Sample;
use crate::{Conn, Ctx};
use bytes::Bytes;
use hyper::Method;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A ConfigMap of about 1 KiB on the wire. `extra` goes into metadata (`,"labels":{...}`).
pub fn configmap(name: &str, extra: &str, value: &str) -> Bytes {
    const FILL: &str = "0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqr"; // 64
    Bytes::from(format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"{extra}}},"data":{{"value":"{value}","fill":"{}"}}}}"#,
        FILL.repeat(14)
    ))
}

pub fn cm_name(i: usize) -> String {
    format!("cm-{i}")
}

/// Sizes per concurrency: a tenth of -n with one worker.
fn sizes(x: &Ctx) -> impl Iterator<Item = (usize, usize)> {
    x.o.c.clone().into_iter().map(|c| (c, if c == 1 { (x.o.n / 10).max(1) } else { x.o.n }))
}

/// create, get, update, patch (and delete while clearing up) of ConfigMaps, for every concurrency.
pub async fn configmaps(x: &Ctx, which: &[&str]) -> Result<()> {
    for (c, n) in sizes(x) {
        let ns = x.namespace("crud").await?;
        let path: Rc<str> = format!("/api/v1/namespaces/{ns}/configmaps").into();
        let rvs = Rc::new(RefCell::new(vec![String::new(); n]));
        let run = async |name: &'static str, s: Result<Sample>| -> Result<()> {
            let s = s?;
            if which.contains(&name) {
                x.report.borrow().row(name, c, s.lat.len(), &s, "");
            }
            Ok(())
        };
        let start = || x.report.borrow_mut().start();

        let (p, r) = (path.clone(), rvs.clone());
        start();
        let s = x.run(c, n, async move |conn, i| {
            let b = conn.ok(Method::POST, &p, JSON, configmap(&cm_name(i), "", "0")).await?;
            r.borrow_mut()[i] = field(&b, RV).ok_or("no resourceVersion")?.to_string();
            Ok(())
        });
        run("create", s.await).await?;

        if which.contains(&"get") {
            let p = path.clone();
            start();
            let s =
                x.run(c, n, async move |conn, i| conn.get(&format!("{p}/{}", cm_name(i))).await.map(drop));
            run("get", s.await).await?;
        }
        if which.contains(&"update") {
            let p = path.clone();
            start();
            let s = x.run(c, n, async move |conn, i| {
                let name = cm_name(i);
                let rv = format!(r#","resourceVersion":"{}""#, rvs.borrow()[i]);
                conn.ok(Method::PUT, &format!("{p}/{name}"), JSON, configmap(&name, &rv, "1")).await.map(drop)
            });
            run("update", s.await).await?;
        }
        if which.contains(&"patch") {
            let p = path.clone();
            start();
            let s = x.run(c, n, async move |conn, i| {
                let body = r#"{"data":{"value":"2"}}"#;
                conn.ok(Method::PATCH, &format!("{p}/{}", cm_name(i)), MERGE, body).await.map(drop)
            });
            run("patch", s.await).await?;
        }
        if !x.o.keep {
            start();
            let s = x.run(c, n, async move |conn, i| {
                conn.ok(Method::DELETE, &format!("{path}/{}", cm_name(i)), "", "").await.map(drop)
            });
            let s = s.await?;
            x.report.borrow().row("delete", c, s.lat.len(), &s, "");
        }
        x.drop_namespace(&ns).await?;
    }
    Ok(())
}

/// Creates a CRD (or leaves it) and waits until `probe`, a POST, is answered by other than 404.
pub async fn install_crd(
    x: &Ctx,
    conn: &mut Conn,
    crd: &'static str,
    probe: (&str, Bytes),
) -> Result<(u16, Bytes)> {
    const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (status, b) = conn.call(Method::POST, CRDS, JSON, crd.into()).await?;
    if status >= 300 && status != 409 {
        return Err(format!("CRD: {status} {}", String::from_utf8_lossy(&b)).into());
    }
    let begin = Instant::now();
    loop {
        let r = conn.call(Method::POST, probe.0, JSON, probe.1.clone()).await?;
        if r.0 != 404 {
            return Ok(r);
        }
        if begin.elapsed() > x.o.timeout {
            return Err("the CRD's resource did not appear".into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn sample_cr(name: &str, min: usize) -> Bytes {
    let items: Vec<String> = (0..12)
        .map(|i| {
            format!(r#"{{"key":"item-{i}","value":"0123456789abcdefghijklmnopqrstuvwxyz0123456789","weight":{i}}}"#)
        })
        .collect();
    Bytes::from(format!(
        r#"{{"apiVersion":"bench.example.com/v1","kind":"Sample","metadata":{{"name":"{name}"}},"spec":{{"minReplicas":{min},"replicas":3,"mode":"fast","items":[{}]}}}}"#,
        items.join(",")
    ))
}

/// Custom resources of about 1 KiB with a structural schema and a CEL rule.
pub async fn create_cr(x: &Ctx) -> Result<()> {
    for (c, n) in sizes(x) {
        let ns = x.namespace("cr").await?;
        let path = format!("/apis/bench.example.com/v1/namespaces/{ns}/samples");
        let mut conn = x.target.connect().await?;
        // an object that breaks the rule: 422 says that the resource is served and the rule is enforced
        let bad = sample_cr("bad", 4);
        let (status, b) = install_crd(x, &mut conn, include_str!("sample-crd.json"), (&path, bad)).await?;
        if status != 422 || memchr::memmem::find(&b, b"minReplicas").is_none() {
            return Err(
                format!("the CEL rule is not enforced: {status} {}", String::from_utf8_lossy(&b)).into()
            );
        }
        let p = path.clone();
        x.measure("create-cr", c, n, async move |conn, i| {
            conn.ok(Method::POST, &p, JSON, sample_cr(&cm_name(i), 1)).await.map(drop)
        })
        .await?;
        if !x.o.keep {
            x.run(32, n, async move |conn, i| {
                conn.ok(Method::DELETE, &format!("{path}/{}", cm_name(i)), "", "").await.map(drop)
            })
            .await?;
        }
        x.drop_namespace(&ns).await?;
    }
    Ok(())
}

/// A Deployment that controllers have no work with: paused, without replicas.
fn deployment(name: &str, image: &str) -> Bytes {
    let container = |n: &str| {
        format!(
            r#"{{"name":"{n}","image":"{image}","ports":[{{"name":"http","containerPort":8080}}],"env":[{{"name":"A","value":"1"}},{{"name":"B","value":"2"}}],"resources":{{"requests":{{"cpu":"10m","memory":"16Mi"}},"limits":{{"memory":"64Mi"}}}}}}"#
        )
    };
    Bytes::from(format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{name}","labels":{{"app":"{name}"}}}},"spec":{{"paused":true,"replicas":0,"selector":{{"matchLabels":{{"app":"{name}"}}}},"template":{{"metadata":{{"labels":{{"app":"{name}"}}}},"spec":{{"containers":[{},{}]}}}}}}}}"#,
        container("main"),
        container("side")
    ))
}

/// Server-side apply of Deployments: create, change of the image, the same again (no change).
pub async fn ssa(x: &Ctx) -> Result<()> {
    for (c, n) in sizes(x) {
        let ns = x.namespace("ssa").await?;
        let path: Rc<str> = format!("/apis/apps/v1/namespaces/{ns}/deployments").into();
        for (row, image) in [("ssa-create", "app:1"), ("ssa-update", "app:2"), ("ssa-noop", "app:2")] {
            let p = path.clone();
            x.measure(row, c, n, async move |conn, i| {
                let name = format!("app-{i}");
                let url = format!("{p}/{name}?fieldManager=apibench&force=true");
                conn.ok(Method::PATCH, &url, APPLY, deployment(&name, image)).await.map(drop)
            })
            .await?;
        }
        if !x.o.keep {
            x.run(32, n, async move |conn, i| {
                conn.ok(Method::DELETE, &format!("{path}/app-{i}"), "", "").await.map(drop)
            })
            .await?;
        }
        x.drop_namespace(&ns).await?;
    }
    Ok(())
}
