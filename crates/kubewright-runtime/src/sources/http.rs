//! Keys that somebody posts.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use kubewright_serve::{Listener, MaxConnections, connection::Http1};
use tokio::{
    net::TcpListener,
    sync::mpsc::{self, error::TrySendError},
};

use crate::Key;

/// How many connections are served at the same time; more wait in the system's queue.
const CONNECTIONS: usize = 64;
/// How long the head of a request may take, and how large it may be.
const HEAD: Duration = Duration::from_secs(10);
const HEAD_SIZE: usize = 16 << 10;
/// How many keys wait for the controller; more are refused.
const WAITING: usize = 1024;
/// The longest name of an object, and of a namespace.
const LONGEST_NAME: usize = 253;

/// A source that listens: `POST /namespace/name` (or `/name`, of a cluster-scoped kind) has that key reconciled, for
/// webhooks of Git servers and registries, and for a curl by hand.
///
/// It answers 202 when the key was taken, 503 when more than a thousand wait. A body is not read. It speaks plain HTTP/1:
/// listen on loopback or behind a proxy, and ask for a token where others can reach it. What a key does is only that an object
/// is looked at once more, so the worst that a stranger can do is work.
#[derive(Debug)]
pub struct Http {
    listener: TcpListener,
    token: Option<String>,
}

impl Http {
    /// Takes what comes to `listener`.
    #[must_use]
    pub fn on(listener: TcpListener) -> Self {
        Self { listener, token: None }
    }

    /// Refuses (401) who does not send `Authorization: Bearer` with this token.
    #[must_use]
    pub fn bearer_token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// The source.
    pub fn keys(self) -> impl Stream<Item = Key> + Send + 'static {
        let (sender, receiver) = mpsc::channel(WAITING);
        let taken = Arc::new(Taken { sender, token: self.token });
        let serving = stream::once(serve(self.listener, taken)).filter_map(|()| async { None });
        stream::select(super::received(receiver), serving)
    }
}

struct Taken {
    sender: mpsc::Sender<Key>,
    token: Option<String>,
}

/// Serves for ever; connections end when this is dropped.
async fn serve(listener: TcpListener, taken: Arc<Taken>) {
    let Ok(listener) = Listener::of("keys", listener) else { return std::future::pending().await };
    // Each request has a connection of its own: nobody keeps a place by doing nothing.
    let http = Http1 { head: HEAD, head_bytes: HEAD_SIZE, keep_alive: false };
    let answer = move |request: Request<Incoming>| {
        let (status, text) = taken.answer(&request);
        std::future::ready(answer(status, text))
    };
    http.serve_all(listener, MaxConnections(CONNECTIONS), answer).await;
}

impl Taken {
    fn answer<B>(&self, request: &Request<B>) -> (StatusCode, &'static str) {
        if !self.may(request) {
            return (StatusCode::UNAUTHORIZED, "Unauthorized\n");
        }
        if request.method() != Method::POST {
            return (StatusCode::METHOD_NOT_ALLOWED, "POST /namespace/name\n");
        }
        let Some(key) = key(request.uri().path()) else {
            return (StatusCode::BAD_REQUEST, "POST /namespace/name, or /name of a cluster-scoped kind\n");
        };
        match self.sender.try_send(key) {
            Ok(()) => (StatusCode::ACCEPTED, "Accepted\n"),
            Err(TrySendError::Full(_) | TrySendError::Closed(_)) => {
                (StatusCode::SERVICE_UNAVAILABLE, "too many keys wait\n")
            }
        }
    }

    fn may<B>(&self, request: &Request<B>) -> bool {
        let Some(token) = &self.token else { return true };
        let sent = request.headers().get(header::AUTHORIZATION).map(header::HeaderValue::as_bytes);
        let sent = sent.and_then(|sent| sent.strip_prefix(b"Bearer "));
        sent.is_some_and(|sent| is_equal(sent, token.as_bytes()))
    }
}

/// Compares in a time that tells nothing of where they differ.
fn is_equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

/// The key that a path names.
fn key(path: &str) -> Option<Key> {
    let is_name = |name: &str| {
        let is_name_char =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.' | ':');
        (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(is_name_char)
    };
    let key = Key::from_text(path.strip_prefix('/')?);
    (is_name(&key.name) && key.namespace.as_deref().is_none_or(is_name)).then_some(key)
}

fn answer(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *answer.status_mut() = status;
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_key_or_nothing() {
        assert_eq!(key("/default/web"), Some(Key::namespaced("default", "web")));
        assert_eq!(key("/node-1"), Some(Key::cluster_scoped("node-1")));
        let long = format!("/default/{}", "a".repeat(254));
        for bad in ["", "/", "//", "/a/", "/a/b/c", "/a/..%2f", "/A", "/a b", &long] {
            assert_eq!(key(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_a_post_with_the_token_is_taken_and_only_so_many() {
        let (sender, mut receiver) = mpsc::channel(1);
        let taken = Taken { sender, token: Some("secret".into()) };
        let ask = |method: &str, token: &str| {
            let request =
                Request::builder().method(method).uri("/default/web").header("authorization", token);
            request.body(()).map(|request| taken.answer(&request).0.as_u16()).ok()
        };
        assert_eq!(ask("POST", "Bearer wrong"), Some(401));
        assert_eq!(ask("POST", "secret"), Some(401));
        assert_eq!(ask("GET", "Bearer secret"), Some(405));
        assert_eq!(ask("POST", "Bearer secret"), Some(202));
        assert_eq!(ask("POST", "Bearer secret"), Some(503));
        assert_eq!(receiver.try_recv().ok(), Some(Key::namespaced("default", "web")));
    }
}
