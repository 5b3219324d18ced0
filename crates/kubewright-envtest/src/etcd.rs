//! etcd, as far as those who start it beside kube-apiserver look at it: it is healthy. It keeps nothing, because our
//! kube-apiserver needs no store but its own.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, bail};
use bytes::Bytes;
use futures::stream::{FuturesUnordered, StreamExt};
use http::{Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::Full;
use hyper::body::Incoming;
use kubewright_serve::{Listener, MaxConnections, connection::Http1, signals::Signals};

use super::flags::Flags;

/// Where etcd listens for clients unless it is told otherwise.
const CLIENTS: &str = "http://localhost:2379";

/// Time for the head of a request, and how large it may be.
const HEAD: Duration = Duration::from_secs(30);
const HEAD_BYTES: usize = 400 << 10;

/// For a request that we do not answer.
const NOT_HERE: &str = "kubewright stands here in the place of etcd and keeps nothing: \
    its kube-apiserver has a store of its own.\n";

/// Answers until a signal comes.
///
/// # Errors
/// When a URL is none that it can listen on.
pub(super) fn run(flags: &Flags) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let clients = flags.text("listen-client-urls").unwrap_or(CLIENTS);
        let more = ["listen-client-http-urls", "listen-metrics-urls"].map(|name| flags.text(name));
        let mut listeners = Vec::new();
        for url in std::iter::once(clients).chain(more.into_iter().flatten()).flat_map(|list| list.split(','))
        {
            listeners.push(bind(url.trim()).await?);
        }
        // Held, not served: what else wants the port is to find it taken, as with the real one.
        let mut peers = Vec::new();
        for url in flags.text("listen-peer-urls").into_iter().flat_map(|list| list.split(',')) {
            peers.push(bind(url.trim()).await?);
        }
        let mut serving: FuturesUnordered<_> = listeners.into_iter().map(serve).collect();
        tokio::select! {
            biased;
            () = signals.next() => {}
            _ = serving.next() => {}
        }
        drop(peers);
        Ok(())
    })
}

/// Takes the port of a URL such as `http://127.0.0.1:2379`.
async fn bind(url: &str) -> anyhow::Result<Listener> {
    let address = address(url)?;
    Listener::bind("etcd", address).await.with_context(|| format!("listen tcp {address}"))
}

/// What a URL says to listen on.
fn address(url: &str) -> anyhow::Result<SocketAddr> {
    let Some(host) = url.strip_prefix("http://") else {
        bail!("{url:?}: only http:// URLs can be listened on here");
    };
    // etcd wants addresses and no names, but for this one.
    let host = host.trim_end_matches('/').replace("localhost:", "127.0.0.1:");
    host.parse().with_context(|| format!("{url:?}: expected an IP address and a port"))
}

/// Answers whoever comes, for ever.
async fn serve(listener: Listener) {
    let http = Http1 { head: HEAD, head_bytes: HEAD_BYTES, keep_alive: true };
    let answer =
        |request: Request<Incoming>| std::future::ready(answer(request.method(), request.uri().path()));
    http.serve_all(listener, MaxConnections(usize::MAX), answer).await;
}

/// As etcd answers (`server/etcdserver/api/etcdhttp`).
fn answer(method: &Method, path: &str) -> Response<Full<Bytes>> {
    const JSON: &str = "application/json";
    const TEXT: &str = "text/plain; charset=utf-8";
    let (status, kind, body) = match path {
        "/health" | "/version" | "/livez" | "/readyz" if method != Method::GET && method != Method::HEAD => {
            (StatusCode::METHOD_NOT_ALLOWED, TEXT, "Method Not Allowed\n")
        }
        "/health" => (StatusCode::OK, JSON, r#"{"health":"true","reason":""}"#),
        "/version" => {
            (StatusCode::OK, JSON, r#"{"etcdserver":"3.6.8","etcdcluster":"3.6.0","storage":"3.6.0"}"#)
        }
        "/livez" | "/readyz" => (StatusCode::OK, TEXT, "ok\n"),
        _ => (StatusCode::NOT_IMPLEMENTED, TEXT, NOT_HERE),
    };
    let mut response = Response::new(Full::new(Bytes::from_static(body.as_bytes())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response
}
