//! What streams cost that are open and not read, or have nothing to read.
use crate::client::{JSON, Result, list_rv};
use crate::stats::Sample;
use crate::{Ctx, crud};
use hyper::Method;
use std::time::{Duration, Instant};

/// Bytes in each object of the unread lists and watches, and how many objects there are.
const LARGE: usize = 900 << 10;
const OBJECTS: usize = 4;

/// Watches that are told nothing: the memory of the server before and with them.
pub async fn idle(x: &Ctx) -> Result<()> {
    let path = "/api/v1/namespaces/default/configmaps";
    let rv = list_rv(&x.target.connect().await?.get(&format!("{path}?limit=1")).await?)?;
    let url = format!("{path}?watch=1&resourceVersion={rv}");
    open(x, "watch-idle", vec![url; x.o.streams], false).await
}

/// Lists and watches of objects of nearly a MiB by clients that do not read: half of the streams each.
pub async fn unread(x: &Ctx) -> Result<()> {
    let ns = x.namespace("unread").await?;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let mut conn = x.target.connect().await?;
    for at in 0..OBJECTS {
        let body = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}"}},"data":{{"fill":"{}"}}}}"#,
            crud::cm_name(at),
            "x".repeat(LARGE)
        );
        conn.ok(Method::POST, &path, JSON, body).await?;
    }
    let urls =
        (0..x.o.streams / 5).map(|at| if at % 2 == 0 { path.clone() } else { format!("{path}?watch=1") });
    open(x, "streams-unread", urls.collect(), true).await?;
    x.drop_namespace(&ns).await
}

/// Opens a stream for each path and reads none; then the memory for some seconds.
async fn open(x: &Ctx, name: &str, urls: Vec<String>, is_small: bool) -> Result<()> {
    x.report.borrow_mut().start();
    let before = x.report.borrow().server_rss();
    let (begin, mut sample) = (Instant::now(), Sample::default());
    let (mut bodies, mut peak) = (Vec::new(), before);
    for (conn, url) in x.target.clients_with(urls.len(), x.o.conns, is_small).await?.into_iter().zip(urls) {
        let mut conn = conn;
        let asked = Instant::now();
        let sent = conn.send(Method::GET, &url, "", "".into());
        match tokio::time::timeout(Duration::from_secs(5), sent).await {
            Ok(Ok(answer)) if answer.status().is_success() => {
                sample.lat.push(asked.elapsed());
                bodies.push((conn, answer.into_body()));
            }
            Ok(Ok(answer)) => sample.error(answer.status()),
            Ok(Err(error)) => sample.error(error),
            Err(_) => sample.error("no answer in 5 s"),
        }
        if bodies.len() % 100 == 0 {
            peak = x.report.borrow().server_rss().max(peak);
        }
    }
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(250)).await;
        peak = x.report.borrow().server_rss().max(peak);
    }
    sample.elapsed = begin.elapsed();
    let note = format!("{} open, {before:.0} MiB before, at most {peak:.0} with them", bodies.len());
    x.report.borrow().row(name, 1, sample.lat.len(), &sample, note);
    Ok(())
}
