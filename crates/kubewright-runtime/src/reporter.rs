//! What controllers do, told to an API server that asks for it: one of Kubewright whose page is open or that is recorded. It says so by a
//! header of its answers; to any other nothing is sent.

use std::{collections::HashMap, sync::Arc, time::Duration};

use http::{HeaderMap, Method, Request};
use kube::Client;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::journal::Journals;

/// By which header an API server asks for reconciles. Its value is the path that takes them.
const HEADER: &str = "kubewright-reconciles";
/// How long what has ended is gathered.
const GATHERED: Duration = Duration::from_millis(250);
/// The path to which an API server wants reconciles told, once it has said so; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Invitation(Arc<watch::Sender<Option<String>>>);

impl Default for Invitation {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl Invitation {
    /// Looks whether an answer asks for reconciles.
    pub(crate) fn read(&self, headers: &HeaderMap) {
        let Some(path) = headers.get(HEADER).and_then(|path| path.to_str().ok()) else { return };
        // Nothing else of the server is called by this, whatever it says.
        if path.starts_with("/kubewright/") && self.0.borrow().is_none() {
            self.0.send_replace(Some(path.to_owned()));
        }
    }

    async fn path(&self) -> String {
        let mut told = self.0.subscribe();
        loop {
            if let Some(path) = told.borrow_and_update().clone() {
                return path;
            }
            if told.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// Tells what the controllers do from the moment on at which they are asked for it, until `stop`, or until it is refused.
pub(crate) async fn report(
    client: Client,
    invitation: Invitation,
    journals: Journals,
    stop: CancellationToken,
) {
    let work = async {
        let path = invitation.path().await;
        journals.keep();
        let (mut positions, mut last) = (HashMap::new(), None);
        loop {
            let report = journals.since(&mut positions);
            let queues = queues(&report);
            if last.as_ref() != Some(&queues) || has_reconciles(&report) {
                if let Err(why) = send(&client, &path, &report).await {
                    tracing::debug!(path, %why, "the API server asks for reconciles and does not take them");
                    return;
                }
                last = Some(queues);
            }
            tokio::time::sleep(GATHERED).await;
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

fn controllers(report: &Value) -> impl Iterator<Item = &Value> {
    report["controllers"].as_array().into_iter().flatten()
}

fn has_reconciles(report: &Value) -> bool {
    controllers(report).any(|one| one["reconciles"].as_array().is_some_and(|all| !all.is_empty()))
}

/// What waits and fails, without times, which go on by themselves.
fn queues(report: &Value) -> Vec<(Value, Vec<Value>)> {
    let keys =
        |one: &Value| one["failing"].as_array().into_iter().flatten().map(|one| one["key"].clone()).collect();
    controllers(report).map(|one| (one["waiting"].clone(), keys(one))).collect()
}

async fn send(client: &Client, path: &str, report: &Value) -> Result<(), kube::Error> {
    let request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(report.to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    client.request::<Value>(request).await.map(drop)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::Response;
    use jiff::Timestamp;
    use kube::client::Body;
    use parking_lot::Mutex;
    use tower::service_fn;

    use super::*;
    use crate::{Key, Metrics, Reasons, journal::Reconciled};

    /// A client of a server that asks for reconciles by this header, and what it was told.
    fn server(asks: Option<&'static str>) -> (Client, Arc<Mutex<Vec<String>>>) {
        let told = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&told);
        let service = service_fn(move |request: Request<Body>| {
            let kept = Arc::clone(&kept);
            async move {
                if request.method() == Method::POST {
                    kept.lock().push(request.uri().path().to_owned());
                }
                let mut response = Response::new(Body::from(b"{}".to_vec()));
                if let Some(path) = asks {
                    response.headers_mut().insert(HEADER, http::HeaderValue::from_static(path));
                }
                Ok::<_, Infallible>(response)
            }
        });
        (Client::new(service, "default"), told)
    }

    /// What a server is told by a manager that makes a request and then has a reconcile.
    async fn reports(asks: Option<&'static str>) -> Vec<String> {
        let (client, told) = server(asks);
        let (metrics, journals) = (Metrics::new(), Journals::default());
        let client = metrics.requests().client(client, "there");
        let stop = CancellationToken::new();
        let invitation = metrics.requests().invitation();
        let reporter = tokio::spawn(report(client.clone(), invitation, journals.clone(), stop.clone()));
        let journal = journals.begin("web".into());
        client
            .send(Request::get("/version").body(Body::empty()).expect("a request"))
            .await
            .expect("an answer");
        tokio::time::sleep(GATHERED * 2).await;
        let key = Key::namespaced("default", "a");
        let done = || ("done".to_owned(), false);
        let reconciled = Reconciled { began: Timestamp::UNIX_EPOCH, took: Duration::ZERO, accesses: None };
        journal.note(&key, &Reasons::default(), reconciled, done);
        tokio::time::sleep(GATHERED * 10).await;
        stop.cancel();
        reporter.await.expect("it ends");
        std::mem::take(&mut *told.lock())
    }

    #[tokio::test(start_paused = true)]
    async fn an_api_server_is_told_of_reconciles_that_it_asks_for_and_no_other_one_is() {
        assert_eq!(reports(None).await, Vec::<String>::new());
        assert_eq!(
            reports(Some("/api/v1/namespaces")).await,
            Vec::<String>::new(),
            "no other path is called"
        );
        let path = "/kubewright/reconciles";
        assert_eq!(reports(Some(path)).await, [path, path], "the queues at first, and the reconcile");
    }
}
