//! How long another client waits while one request is large.
use crate::client::{Conn, JSON, JSON_PATCH, Result, TABLE, Target};
use crate::stats::Sample;
use crate::{Ctx, crud};
use bytes::Bytes;
use hyper::Method;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// How long each load goes on; it is done twice at least.
const SPAN: Duration = Duration::from_secs(5);
/// Between two of the neighbour's requests.
const PAUSE: Duration = Duration::from_millis(2);

/// Items of the list into which the JSON patch inserts, and how many operations it has.
const ITEMS: usize = 1_200_000;
const INSERTS: usize = 3_000;
const PATTERNS: usize = 100;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const LARGE: &str = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"larges.bench.example.com"},"spec":{"group":"bench.example.com","scope":"Namespaced","names":{"plural":"larges","singular":"large","kind":"Large","listKind":"LargeList"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}}"#;

/// What the other client does.
#[derive(Clone, Copy)]
enum Load {
    Nothing,
    Patch,
    Patterns,
    Table,
}

impl Load {
    /// Does it, the `times + 1`th time; gives the status of the answer.
    async fn once(self, conn: &mut Conn, ns: &str, times: usize) -> Result<u16> {
        match self {
            Load::Nothing => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                Ok(200)
            }
            Load::Patch => json_patch(conn, ns).await,
            Load::Patterns => patterns(conn, times).await,
            Load::Table => {
                conn.accept = TABLE;
                conn.drain(&format!("/api/v1/namespaces/{ns}/pods")).await.map(|_| 200)
            }
        }
    }
}

/// GETs of a ConfigMap by one client, alone and while another client's requests are large.
pub async fn neighbour(x: &Ctx) -> Result<()> {
    let ns = x.namespace("neighbour").await?;
    let mut conn = x.target.connect().await?;
    let small = format!("/api/v1/namespaces/{ns}/configmaps");
    conn.ok(Method::POST, &small, JSON, crud::configmap("small", "", "0")).await?;
    let small = format!("{small}/small");
    pods(x, &ns).await?;
    crud::install_crd(x, &mut conn, LARGE, (&larges(&ns), large())).await?;
    for (name, load) in [
        ("neighbour-alone", Load::Nothing),
        ("neighbour-patch", Load::Patch),
        ("neighbour-regex", Load::Patterns),
        ("neighbour-table", Load::Table),
    ] {
        row(x, &ns, &small, name, load).await?;
    }
    x.drop_namespace(&ns).await
}

/// The load on a thread of its own; here the requests of the neighbour.
async fn row(x: &Ctx, ns: &str, path: &str, name: &str, load: Load) -> Result<()> {
    let mut conn = x.target.connect().await?;
    conn.get(path).await?;
    x.report.borrow_mut().start();
    let (begin, target, ns) = (Instant::now(), x.target.clone(), ns.to_owned());
    let loading = thread::spawn(move || repeated(&target, &ns, load));
    let mut sample = Sample::default();
    while !loading.is_finished() {
        let asked = Instant::now();
        match conn.get(path).await {
            Ok(_) => sample.lat.push(asked.elapsed()),
            Err(error) => sample.error(error),
        }
        tokio::time::sleep(PAUSE).await;
    }
    sample.elapsed = begin.elapsed();
    let note = loading.join().map_err(|_| "the load panicked")??;
    x.report.borrow().row(name, 1, sample.lat.len(), &sample, note);
    Ok(())
}

/// Does it again until the span is over; gives how often, the longest, and the last status.
fn repeated(target: &Arc<Target>, ns: &str, load: Load) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let work = async {
        let mut conn = target.connect().await?;
        let (begin, mut longest, mut times, mut status) = (Instant::now(), Duration::ZERO, 0, 0);
        while times < 2 || begin.elapsed() < SPAN {
            let started = Instant::now();
            status = load.once(&mut conn, ns, times).await?;
            longest = longest.max(started.elapsed());
            times += 1;
        }
        Ok(format!("{times} times, longest {:.2} s, last status {status}", longest.as_secs_f64()))
    };
    runtime.block_on(work).map_err(|error: crate::Error| error.to_string())
}

fn larges(ns: &str) -> String {
    format!("/apis/bench.example.com/v1/namespaces/{ns}/larges")
}

/// An object with a list of 1.2 million numbers. An etcd with its usual limit takes none.
fn large() -> Bytes {
    let list = vec!["0"; ITEMS].join(",");
    format!(
        r#"{{"apiVersion":"bench.example.com/v1","kind":"Large","metadata":{{"name":"large"}},"spec":{{"list":[{list}]}}}}"#
    )
    .into()
}

/// Inserts 3,000 items at the front of that list.
async fn json_patch(conn: &mut Conn, ns: &str) -> Result<u16> {
    let inserts = vec![r#"{"op":"add","path":"/spec/list/0","value":1}"#; INSERTS].join(",");
    let path = format!("{}/large", larges(ns));
    let (status, _) = conn.call(Method::PATCH, &path, JSON_PATCH, format!("[{inserts}]").into()).await?;
    Ok(status)
}

/// A definition whose 100 properties have a large pattern each, other ones each time.
async fn patterns(conn: &mut Conn, times: usize) -> Result<u16> {
    let name = format!("patterns{times}");
    let properties: Vec<String> = (0..PATTERNS)
        .map(|at| format!(r#""p{at}":{{"type":"string","pattern":"^[\\p{{L}}]{{1,10}}-{times}-{at}$"}}"#))
        .collect();
    let definition = format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"{name}.bench.example.com"}},"spec":{{"group":"bench.example.com","scope":"Namespaced","names":{{"plural":"{name}","singular":"{name}","kind":"{name}k","listKind":"{name}kList"}},"versions":[{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{{"type":"object","properties":{{"spec":{{"type":"object","properties":{{{}}}}}}}}}}}}}]}}}}"#,
        properties.join(",")
    );
    let (status, _) = conn.call(Method::POST, CRDS, JSON, definition.into()).await?;
    conn.call(Method::DELETE, &format!("{CRDS}/{name}.bench.example.com"), "", "".into()).await?;
    Ok(status)
}

/// The pods of the table, which no node takes.
async fn pods(x: &Ctx, ns: &str) -> Result<()> {
    let account = r#"{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}}"#;
    let mut conn = x.target.connect().await?;
    let accounts = format!("/api/v1/namespaces/{ns}/serviceaccounts");
    conn.call(Method::POST, &accounts, JSON, account.into()).await?;
    let path = format!("/api/v1/namespaces/{ns}/pods");
    x.measure("neighbour-setup(pods)", 32, x.o.pods, async move |conn, i| {
        let pod = format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"pod-{i}","labels":{{"app":"a","index":"{i}"}}}},"spec":{{"schedulerName":"none","containers":[{{"name":"c","image":"registry.example.com/image:1","env":[{{"name":"A","value":"b"}}],"resources":{{"requests":{{"cpu":"1m"}}}}}}]}}}}"#
        );
        conn.ok(Method::POST, &path, JSON, pod).await.map(drop)
    })
    .await
}
