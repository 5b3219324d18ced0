//! A small API server in memory for the tests of the SDK: any namespaced core resource, with list, watch, get, create,
//! update, merge patch and delete as Kubernetes has them, and levers for what goes wrong.

use std::{collections::BTreeMap, convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::stream;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use kube::{Client, client::Body};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{sync::Notify, time::Instant};

pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// Resource, namespace and name.
type Id = (String, String, String);

struct Event {
    version: u64,
    resource: String,
    at: Instant,
    line: Value,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<Id, Value>,
    log: Vec<Event>,
    version: u64,
    /// Watches from before this version are told 410.
    compacted: u64,
    /// How often all watches were cut.
    cuts: u64,
    gone_by_status: bool,
    /// Watches see a change this much later.
    watch_delay: Duration,
    /// Answers take this long.
    latency: Duration,
    missing: Vec<String>,
    /// Every request is answered with this code, but those for other resources.
    refused: Option<(u16, &'static str, Option<String>)>,
    /// Every watch is told 410 at once.
    expires: bool,
    requests: Vec<String>,
    /// What is made of what clients write.
    mutation: Option<fn(&mut Value)>,
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

/// The server; clones are the same one.
#[derive(Clone)]
pub(crate) struct Server {
    state: Arc<Mutex<State>>,
    /// Wakes the watches up.
    changed: Arc<Notify>,
}

impl Server {
    pub(crate) fn new() -> Self {
        Self { state: Arc::default(), changed: Arc::default() }
    }

    /// A client that talks to this server, on the current runtime.
    pub(crate) fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.serve(request).await) }
        });
        Client::new(service, "default")
    }

    /// Watches see changes this much later from now on.
    pub(crate) fn delay_watches(&self, delay: Duration) {
        self.state.lock().watch_delay = delay;
    }

    /// Answers take this long from now on.
    pub(crate) fn slow_down(&self, latency: Duration) {
        self.state.lock().latency = latency;
    }

    /// Ends every watch.
    pub(crate) fn cut_watches(&self, cut: Cut) {
        let mut state = self.state.lock();
        if cut != Cut::Connection {
            state.version += 1;
            state.compacted = state.version;
            state.gone_by_status = cut == Cut::HistoryByStatus;
        }
        state.cuts += 1;
        self.changed.notify_waiters();
    }

    /// Refuses every request, or those for one resource, until [`Server::accept`].
    pub(crate) fn refuse(&self, code: u16, reason: &'static str, resource: Option<&str>) {
        let mut state = self.state.lock();
        state.refused = Some((code, reason, resource.map(str::to_owned)));
        state.cuts += 1;
        self.changed.notify_waiters();
    }

    pub(crate) fn accept(&self) {
        self.state.lock().refused = None;
    }

    /// Tells every watch 410 as soon as it begins, or not any more.
    pub(crate) fn expire(&self, expires: bool) {
        let mut state = self.state.lock();
        state.expires = expires;
        state.cuts += 1;
        self.changed.notify_waiters();
    }

    /// Makes something else of what clients write from now on, as a webhook does.
    pub(crate) fn change_writes(&self, mutation: fn(&mut Value)) {
        self.state.lock().mutation = Some(mutation);
    }

    /// Answers 404 for `resource` until [`Server::install`].
    pub(crate) fn uninstall(&self, resource: &str) {
        let mut state = self.state.lock();
        state.missing.push(resource.to_owned());
        state.cuts += 1;
        self.changed.notify_waiters();
    }

    /// Serves `resource` again.
    pub(crate) fn install(&self, resource: &str) {
        self.state.lock().missing.retain(|missing| missing != resource);
    }

    /// Writes as somebody else.
    pub(crate) fn put(&self, resource: &str, name: &str, body: Value) -> Value {
        self.put_in("default", resource, name, body)
    }

    /// Writes as somebody else, in this namespace.
    pub(crate) fn put_in(&self, namespace: &str, resource: &str, name: &str, body: Value) -> Value {
        let id = (resource.to_owned(), namespace.to_owned(), name.to_owned());
        let mut object = body;
        object["metadata"]["name"] = json!(name);
        object["metadata"]["namespace"] = json!(namespace);
        self.commit(&mut self.state.lock(), &id, object)
    }

    /// Deletes as somebody else.
    pub(crate) fn remove(&self, resource: &str, name: &str) {
        let id = (resource.to_owned(), "default".to_owned(), name.to_owned());
        self.delete(&mut self.state.lock(), &id);
    }

    /// What is stored, if it is there.
    pub(crate) fn stored(&self, resource: &str, name: &str) -> Option<Value> {
        let id = (resource.to_owned(), "default".to_owned(), name.to_owned());
        self.state.lock().objects.get(&id).cloned()
    }

    /// The names of what is stored.
    pub(crate) fn names(&self, resource: &str) -> Vec<String> {
        self.state.lock().objects.keys().filter(|id| id.0 == resource).map(|id| id.2.clone()).collect()
    }

    /// The requests so far, `METHOD path`.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.state.lock().requests.clone()
    }

    pub(crate) async fn serve(self, request: Request<Body>) -> Answer {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let latency = {
            let mut state = self.state.lock();
            state.requests.push(format!("{} {}", parts.method, parts.uri.path()));
            state.latency
        };
        let query = parts.uri.query().unwrap_or_default().to_owned();
        let answer = self.route(&parts.method, parts.uri.path(), &query, body);
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        answer
    }

    fn route(&self, method: &Method, path: &str, query: &str, body: Value) -> Answer {
        let path: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let rest = if path.first() == Some(&"apis") { &path[3..] } else { &path[2..] };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] => (Some(*namespace), rest),
            rest => (None, rest),
        };
        let mut state = self.state.lock();
        let refused = |(_, _, only): &&(u16, _, Option<String>)| {
            only.as_deref().is_none_or(|only| rest.first() == Some(&only))
        };
        if let Some((code, reason, _)) = state.refused.as_ref().filter(refused) {
            return refusal(*code, reason);
        }
        match rest {
            [resource, ..] if state.missing.iter().any(|missing| missing == resource) => {
                refusal(404, "NotFound")
            }
            [resource] if query.contains("watch=true") => self.watch(&state, resource, namespace, query),
            [resource] if method == Method::GET => list(&state, resource, namespace, query),
            [resource] if method == Method::POST => {
                let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                let id = ((*resource).to_owned(), namespace.unwrap_or_default().to_owned(), name);
                if state.objects.contains_key(&id) {
                    return refusal(409, "AlreadyExists");
                }
                let mut body = body;
                body["metadata"]["namespace"] = json!(namespace);
                answer(201, &self.commit(&mut state, &id, body))
            }
            [resource, name, ..] => {
                let id =
                    ((*resource).to_owned(), namespace.unwrap_or_default().to_owned(), (*name).to_owned());
                self.one(&mut state, method, &id, &body)
            }
            _ => refusal(405, "MethodNotAllowed"),
        }
    }

    fn one(&self, state: &mut State, method: &Method, id: &Id, body: &Value) -> Answer {
        let Some(stored) = state.objects.get(id).cloned() else { return refusal(404, "NotFound") };
        if *method == Method::GET {
            return answer(200, &stored);
        }
        if *method == Method::DELETE {
            let wanted = &body["preconditions"];
            for field in ["uid", "resourceVersion"] {
                if !wanted[field].is_null() && wanted[field] != stored["metadata"][field] {
                    return refusal(409, "Conflict");
                }
            }
            return match self.delete(state, id) {
                Some(held) => answer(200, &held),
                None => answer(
                    200,
                    &json!({"kind": "Status", "apiVersion": "v1", "status": "Success",
                    "details": {"name": id.2, "kind": id.0, "uid": stored["metadata"]["uid"]}}),
                ),
            };
        }
        let mut object = stored.clone();
        if *method == Method::PUT {
            object.clone_from(body);
        } else {
            merge(&mut object, body);
        }
        if let Some(mutation) = state.mutation {
            mutation(&mut object);
        }
        let asked = &body["metadata"]["resourceVersion"];
        if !asked.is_null() && *asked != stored["metadata"]["resourceVersion"] {
            return refusal(409, "Conflict");
        }
        answer(200, &self.commit(state, id, object))
    }

    /// Stores `object`, unless it is what is stored; removes it when nothing holds it any longer.
    fn commit(&self, state: &mut State, id: &Id, mut object: Value) -> Value {
        let stored = state.objects.get(id).cloned();
        let metadata = &mut object["metadata"];
        match &stored {
            Some(stored) => {
                for field in ["uid", "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"] {
                    if let Some(value) = stored["metadata"].get(field) {
                        metadata[field] = value.clone();
                    }
                }
            }
            None => metadata["uid"] = json!(format!("uid-{}", state.version + 1)),
        }
        if stored.as_ref() == Some(&object) {
            return object;
        }
        state.version += 1;
        object["metadata"]["resourceVersion"] = json!(state.version.to_string());
        let held = object["metadata"]["finalizers"].as_array().is_some_and(|held| !held.is_empty());
        let kind = if object["metadata"]["deletionTimestamp"].is_string() && !held {
            state.objects.remove(id);
            "DELETED"
        } else {
            state.objects.insert(id.clone(), object.clone());
            if stored.is_some() { "MODIFIED" } else { "ADDED" }
        };
        self.tell(state, &id.0, kind, &object);
        object
    }

    /// Deletes; gives the object when a finalizer holds it.
    fn delete(&self, state: &mut State, id: &Id) -> Option<Value> {
        let mut object = state.objects.get(id).cloned()?;
        state.version += 1;
        object["metadata"]["resourceVersion"] = json!(state.version.to_string());
        if object["metadata"]["finalizers"].as_array().is_some_and(|held| !held.is_empty()) {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            object["metadata"]["deletionGracePeriodSeconds"] = json!(0);
            state.objects.insert(id.clone(), object.clone());
            self.tell(state, &id.0, "MODIFIED", &object);
            return Some(object);
        }
        state.objects.remove(id);
        self.tell(state, &id.0, "DELETED", &object);
        None
    }

    fn tell(&self, state: &mut State, resource: &str, kind: &str, object: &Value) {
        let line = json!({"type": kind, "object": object});
        let (version, at) = (state.version, Instant::now() + state.watch_delay);
        state.log.push(Event { version, resource: resource.to_owned(), at, line });
        self.changed.notify_waiters();
    }

    fn watch(&self, state: &State, resource: &str, namespace: Option<&str>, query: &str) -> Answer {
        let version = query.split('&').find_map(|part| part.strip_prefix("resourceVersion="));
        let from: u64 = version.and_then(|version| version.parse().ok()).unwrap_or(0);
        if from < state.compacted || state.expires {
            let gone = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                "message": "too old resource version", "reason": "Expired", "code": 410});
            return if state.gone_by_status {
                answer(410, &gone)
            } else {
                answer(200, &json!({"type": "ERROR", "object": gone}))
            };
        }
        let watcher = Watcher {
            state: self.state.clone(),
            resource: resource.to_owned(),
            namespace: namespace.map(str::to_owned),
            position: state.log.iter().take_while(|event| event.version <= from).count(),
            changed: self.changed.clone(),
            cuts: state.cuts,
        };
        let lines = stream::unfold(watcher, |mut watcher| async move {
            let line = watcher.next().await?;
            Some((Ok(http_body::Frame::data(Bytes::from(format!("{line}\n")))), watcher))
        });
        Response::new(StreamBody::new(lines).boxed_unsync())
    }
}

struct Watcher {
    state: Arc<Mutex<State>>,
    resource: String,
    namespace: Option<String>,
    position: usize,
    changed: Arc<Notify>,
    /// How often watches had been cut when this one began.
    cuts: u64,
}

impl Watcher {
    fn is_for(&self, event: &Event) -> bool {
        let namespace = &event.line["object"]["metadata"]["namespace"];
        event.resource == self.resource && self.namespace.as_ref().is_none_or(|mine| namespace == mine)
    }

    async fn next(&mut self) -> Option<Value> {
        loop {
            let changed = self.changed.notified();
            let due = {
                let state = self.state.lock();
                if state.cuts != self.cuts {
                    return None;
                }
                let mut events = state.log.iter().enumerate().skip(self.position);
                let next = events.find(|(_, event)| self.is_for(event));
                self.position = next.map_or(state.log.len(), |(position, _)| position);
                match next {
                    Some((_, event)) if event.at <= Instant::now() => {
                        self.position += 1;
                        return Some(event.line.clone());
                    }
                    next => next.map(|(_, event)| event.at),
                }
            };
            match due {
                None => changed.await,
                Some(at) => {
                    tokio::select! {
                        biased;
                        () = changed => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
            }
        }
    }
}

/// With a label selector of the form `name=value`, percent-encoded, if there is one.
fn list(state: &State, resource: &str, namespace: Option<&str>, query: &str) -> Answer {
    let selector = query.split('&').find_map(|part| part.strip_prefix("labelSelector="));
    let selector = selector.map(|selector| selector.replace("%2F", "/").replace("%3D", "="));
    let is_selected = |object: &Value| {
        selector
            .as_deref()
            .and_then(|selector| selector.split_once('='))
            .is_none_or(|(name, value)| object["metadata"]["labels"][name] == value)
    };
    let items: Vec<&Value> = state
        .objects
        .iter()
        .filter(|(id, object)| {
            id.0 == resource && namespace.is_none_or(|namespace| id.1 == namespace) && is_selected(object)
        })
        .map(|(_, object)| object)
        .collect();
    let metadata = json!({"resourceVersion": state.version.to_string()});
    answer(200, &json!({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items}))
}

fn answer(code: u16, body: &Value) -> Answer {
    let body = http_body_util::Full::new(Bytes::from(body.to_string())).boxed_unsync();
    Response::builder().status(code).body(body).unwrap_or_default()
}

fn refusal(code: u16, reason: &str) -> Answer {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
        "message": reason, "reason": reason, "code": code});
    answer(code, &status)
}

/// JSON merge patch (RFC 7386).
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (field, patch) in patch {
        if patch.is_null() {
            target.as_object_mut().and_then(|target| target.remove(field));
        } else {
            merge(&mut target[field.as_str()], patch);
        }
    }
}
