//! What lies between one replica and the server, with levers for what goes wrong there. It lies before the embedded control
//! plane and before a real one alike, so that a bad day can be had with both.

use std::{collections::BTreeSet, io, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use kube::{Client, client::Body};
use kubewright_world::Dice;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tower::Service;

use crate::stream::{self, Passed};

type Answer = Response<Passed>;

/// How long somebody waits for an answer that was lost.
const LOST: Duration = Duration::from_secs(30);

/// The requests that passed links, in order, and how much came back by watches. Clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Requests(Arc<Mutex<Log>>);

#[derive(Default)]
struct Log {
    lines: Vec<String>,
    frames: usize,
}

impl Requests {
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().lines.clone()
    }

    /// A number that grows with all that passes.
    pub(crate) fn traffic(&self) -> usize {
        let log = self.0.lock();
        log.lines.len() + log.frames
    }

    pub(crate) fn count_frame(&self) {
        self.0.lock().frames += 1;
    }
}

/// How watches end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The connection is gone; the history is there.
    Connection,
    /// The history is gone too, which a watch is told in an event, as kube-apiserver does.
    History,
    /// The history is gone too, which a watch is told by its HTTP status.
    HistoryByStatus,
}

/// A connection; clones are the same one.
#[derive(Clone)]
pub(crate) struct Link(Arc<Inner>);

struct Inner {
    server: Client,
    dice: Dice,
    requests: Requests,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// Requests whose path ends so wait, before they reach the server.
    held: Option<&'static str>,
    /// One request in so many is delayed, and one lost, and one's answer; none with 0.
    trouble: usize,
    /// Watches see a change this much later.
    watch_delay: Duration,
    /// Answers take this long.
    latency: Duration,
    /// Resources that are answered with 404.
    missing: BTreeSet<String>,
    /// Every request is answered with this code, but those for other resources.
    refused: Option<(u16, &'static str, Option<String>)>,
    /// What is made of what clients write.
    mutation: Option<fn(&mut Value)>,
    /// Every watch is told 410 at once.
    expires: bool,
    /// The paths whose next watch is told that its history is gone, and whether by its status.
    gone: BTreeSet<String>,
    gone_by_status: bool,
    /// The watches that are open.
    watches: Vec<String>,
    /// Ends them.
    cut: CancellationToken,
}

impl Link {
    pub(crate) fn new(seed: u64, server: Client, requests: Requests) -> Self {
        let dice = Dice::from_seed(seed);
        Self(Arc::new(Inner { server, dice, requests, state: Mutex::default(), changed: Notify::new() }))
    }

    /// Requests wait from now on.
    pub(crate) fn hold(&self) {
        self.hold_only("");
    }

    /// Requests about this object wait from now on.
    pub(crate) fn hold_only(&self, name: &'static str) {
        self.0.state.lock().held = Some(name);
    }

    /// Requests that waited, and all others, go on.
    pub(crate) fn release(&self) {
        self.0.state.lock().held = None;
        self.0.changed.notify_waiters();
    }

    /// One request in so many meets trouble of each kind; none with 0.
    pub(crate) fn trouble(&self, one_in: usize) {
        self.0.state.lock().trouble = one_in;
    }

    /// Watches see changes this much later from now on.
    pub(crate) fn delay_watches(&self, delay: Duration) {
        self.0.state.lock().watch_delay = delay;
    }

    /// Answers take this long from now on.
    pub(crate) fn slow_down(&self, latency: Duration) {
        self.0.state.lock().latency = latency;
    }

    /// Ends every watch.
    pub(crate) fn cut_watches(&self, cut: Cut) {
        let mut state = self.0.state.lock();
        if cut != Cut::Connection {
            state.gone = state.watches.iter().cloned().collect();
            state.gone_by_status = cut == Cut::HistoryByStatus;
        }
        state.cut();
    }

    /// Refuses every request, or those for one resource, until [`Link::accept`].
    pub(crate) fn refuse(&self, code: u16, reason: &'static str, resource: Option<&str>) {
        let mut state = self.0.state.lock();
        state.refused = Some((code, reason, resource.map(str::to_owned)));
        state.cut();
    }

    pub(crate) fn accept(&self) {
        self.0.state.lock().refused = None;
    }

    /// Makes something else of what clients write from now on, as a webhook does.
    pub(crate) fn change_writes(&self, mutation: fn(&mut Value)) {
        self.0.state.lock().mutation = Some(mutation);
    }

    /// Tells every watch 410 as soon as it begins, or not any more.
    pub(crate) fn expire(&self, expires: bool) {
        let mut state = self.0.state.lock();
        state.expires = expires;
        state.cut();
    }

    /// Answers 404 for `resource` until [`Link::install`].
    pub(crate) fn uninstall(&self, resource: &str) {
        let mut state = self.0.state.lock();
        state.missing.insert(resource.to_owned());
        state.cut();
    }

    /// Serves `resource` again.
    pub(crate) fn install(&self, resource: &str) {
        self.0.state.lock().missing.remove(resource);
    }

    /// A client that reaches the server by this link.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.service(), "default")
    }

    fn service(
        &self,
    ) -> impl Service<Request<Body>, Response = Answer, Error = io::Error, Future: Send> + Clone + Send + use<>
    {
        let link = self.clone();
        tower::service_fn(move |request: Request<Body>| {
            let link = link.clone();
            // Who gives up waiting does not call a request back: it may arrive much later.
            let answer = tokio::spawn(async move {
                link.pass(request.uri().path()).await?;
                let answer = link.serve(request).await?;
                link.pass("").await?;
                Ok::<_, io::Error>(answer)
            });
            async move { answer.await? }
        })
    }

    async fn pass(&self, path: &str) -> io::Result<()> {
        loop {
            let changed = self.0.changed.notified();
            if self.0.state.lock().held.is_none_or(|held| !path.ends_with(held)) {
                break;
            }
            changed.await;
        }
        let trouble = self.0.state.lock().trouble;
        if trouble > 0 && self.0.dice.below(trouble) == 0 {
            let delay = Duration::from_millis(self.0.dice.below(20_000) as u64);
            tokio::time::sleep(delay).await;
        }
        if trouble > 0 && self.0.dice.below(trouble) == 0 {
            tokio::time::sleep(LOST).await;
            return Err(io::Error::other("lost"));
        }
        Ok(())
    }

    async fn serve(&self, request: Request<Body>) -> io::Result<Answer> {
        let path = request.uri().path().to_owned();
        self.0.requests.0.lock().lines.push(format!("{} {path}", request.method()));
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let (latency, refusal, cut) = {
            let mut state = self.0.state.lock();
            (state.latency, state.refusal(&path, is_watch), state.cut.clone())
        };
        let answer = match refusal {
            Some(refusal) => refusal,
            None => {
                let mutation = self.0.state.lock().mutation.filter(|_| request.method() != Method::GET);
                let request = match mutation {
                    Some(mutation) => changed(request, mutation).await?,
                    None => request,
                };
                let answer = self.0.server.send(request).await.map_err(io::Error::other)?;
                answer.map(stream::whole)
            }
        };
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        Ok(if is_watch && answer.status().is_success() { self.watched(path, answer, cut) } else { answer })
    }

    /// The answer to a watch, late and cut as the levers say.
    fn watched(&self, path: String, answer: Answer, cut: CancellationToken) -> Answer {
        self.0.state.lock().watches.push(path.clone());
        let (link, closing) = (self.clone(), self.clone());
        let closed = move || {
            let mut state = closing.0.state.lock();
            if let Some(at) = state.watches.iter().position(|open| *open == path) {
                state.watches.swap_remove(at);
            }
        };
        let delay = move || {
            link.0.requests.count_frame();
            link.0.state.lock().watch_delay
        };
        answer.map(|body| stream::delayed(body, delay, cut, closed))
    }
}

impl State {
    fn cut(&mut self) {
        std::mem::take(&mut self.cut).cancel();
    }

    /// What is answered instead of the server's answer.
    fn refusal(&mut self, path: &str, is_watch: bool) -> Option<Answer> {
        let resource = resource_of(path);
        if let Some((code, reason, only)) = &self.refused
            && only.as_deref().is_none_or(|only| only == resource)
        {
            return Some(status(*code, reason));
        }
        if self.missing.contains(resource) {
            return Some(status(404, "NotFound"));
        }
        let is_gone = is_watch && (self.expires || self.gone.remove(path));
        match (is_gone, self.gone_by_status) {
            (false, _) => None,
            (true, true) => Some(status(410, "Expired")),
            (true, false) => Some(answer(200, &json!({"type": "ERROR", "object": failure(410, "Expired")}))),
        }
    }
}

/// A write of what is made of its object.
async fn changed(request: Request<Body>, mutation: fn(&mut Value)) -> io::Result<Request<Body>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let mut object = serde_json::from_slice(&body)?;
    mutation(&mut object);
    Ok(Request::from_parts(parts, Body::from(serde_json::to_vec(&object)?)))
}

/// The plural in a path of the API.
fn resource_of(path: &str) -> &str {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let rest = if parts.first() == Some(&"apis") { parts.get(3..) } else { parts.get(2..) };
    match rest.unwrap_or_default() {
        ["namespaces", _, resource, ..] | [resource, ..] => resource,
        [] => "",
    }
}

fn failure(code: u16, reason: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": reason, "reason": reason, "code": code})
}

fn status(code: u16, reason: &str) -> Answer {
    answer(code, &failure(code, reason))
}

fn answer(code: u16, body: &Value) -> Answer {
    let mut answer = Response::new(stream::whole(Full::new(Bytes::from(body.to_string()))));
    *answer.status_mut() = StatusCode::from_u16(code).expect("a status");
    answer
}
