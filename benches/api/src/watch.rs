//! Fan-out of changes to many watchers, and how late the events arrive.
use crate::Ctx;
use crate::client::{JSON, MERGE, Result, Watch, field, list_rv};
use crate::crud::{cm_name, configmap};
use crate::stats::Sample;
use hyper::Method;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

#[derive(Default)]
struct Seen {
    lat: Vec<Duration>,
    reopened: usize,
    last: Option<Instant>,
}

/// Reads until `want` stamped events are seen.
async fn watcher(mut w: Watch, want: usize, begin: Instant, seen: Rc<RefCell<Seen>>) -> Result<()> {
    let mut got = 0;
    while got < want {
        let line = w.next().await?;
        let now = Instant::now();
        if let Some(t) = field(line, b"\"stamp\":\"").and_then(|s| s.parse().ok()) {
            got += 1;
            let mut s = seen.borrow_mut();
            s.lat.push((now - begin).saturating_sub(Duration::from_nanos(t)));
            s.last = Some(now);
        }
    }
    seen.borrow_mut().reopened += w.reopened;
    Ok(())
}

/// W watchers of one namespace, M merge patches to 10 ConfigMaps by one writer: as fast as it can, or `rate` per
/// second. The latency runs from sending the patch to the arrival of the event.
pub async fn fanout(x: &Ctx, rate: Option<f64>) -> Result<()> {
    const OBJECTS: usize = 10;
    let (watchers, updates) = (x.o.watchers, x.o.updates);
    let ns = x.namespace("watch").await?;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let p = path.clone();
    x.run(1, OBJECTS, async move |conn, i| {
        conn.ok(Method::POST, &p, JSON, configmap(&cm_name(i), "", "0")).await.map(drop)
    })
    .await?;
    let mut writer = x.target.connect().await?;
    let rv = list_rv(&writer.get(&format!("{path}?limit=1")).await?)?;

    let seen = Rc::new(RefCell::new(Seen::default()));
    let errors = Rc::new(RefCell::new(Sample::default()));
    let begin = Instant::now();
    let mut tasks = Vec::new();
    for conn in x.target.clients(watchers, x.o.conns).await? {
        let w = Watch::open(conn, &path, "", &rv).await?;
        let (seen, errors) = (seen.clone(), errors.clone());
        tasks.push(tokio::task::spawn_local(async move {
            if let Err(e) = watcher(w, updates, begin, seen).await {
                errors.borrow_mut().error(e);
            }
        }));
    }
    let opened = begin.elapsed();
    tokio::time::sleep(Duration::from_millis(500)).await;

    x.report.borrow_mut().start();
    let first = Instant::now();
    let mut s = Sample::default();
    for i in 0..updates {
        if let Some(r) = rate {
            tokio::time::sleep_until((first + Duration::from_secs_f64(i as f64 / r)).into()).await;
        }
        let body = format!(r#"{{"data":{{"stamp":"{}"}}}}"#, begin.elapsed().as_nanos());
        if let Err(e) =
            writer.ok(Method::PATCH, &format!("{path}/{}", cm_name(i % OBJECTS)), MERGE, body).await
        {
            s.error(e);
        }
    }
    let written = first.elapsed();
    let deadline = tokio::time::Instant::now() + x.o.timeout;
    for t in &mut tasks {
        if tokio::time::timeout_at(deadline, t).await.is_err() {
            s.error("a watcher did not see all updates");
        }
    }
    s.merge(errors.take());
    let seen = seen.take();
    s.lat = seen.lat;
    s.elapsed = seen.last.unwrap_or(first) - first;
    let note = format!(
        "{watchers} watchers opened in {:.2} s, {updates} writes in {:.2} s, {} of {} events, {} watches reopened",
        opened.as_secs_f64(),
        written.as_secs_f64(),
        s.lat.len(),
        watchers * updates,
        seen.reopened
    );
    let row = if rate.is_some() { "watch-paced" } else { "watch-fanout" };
    x.report.borrow().row(row, watchers, s.lat.len(), &s, note);
    tasks.iter().for_each(|t| t.abort());
    if !x.o.keep {
        x.run(1, OBJECTS, async move |conn, i| {
            conn.ok(Method::DELETE, &format!("{path}/{}", cm_name(i)), "", "").await.map(drop)
        })
        .await?;
    }
    x.drop_namespace(&ns).await
}
