//! `componentstatuses`: how the other programs of the control plane are, asked when somebody wants to know
//! (`k8s.io/kubernetes/pkg/registry/core/componentstatus`, `pkg/probe/http`).

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::{ACCEPT, CONNECTION, HOST, USER_AGENT};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use kubewright_engine::request::ListOptions;
use kubewright_meta::ApiError;
use kubewright_serve::unverified;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::dispatch::RequestInfo;
use super::respond;
use super::response_body::ResponseBody;

/// So long an answer is waited for.
const LONGEST: Duration = Duration::from_secs(20);
/// So much of an answer is read.
const LONGEST_BODY: usize = 10 * 1024;
const NAMES: [&str; 3] = ["controller-manager", "etcd-0", "scheduler"];
/// Where the programs listen, unless they are told otherwise (`pkg/cluster/ports`).
const CONTROLLER_MANAGER: u16 = 10257;
const SCHEDULER: u16 = 10259;

/// Which programs of a control plane are in this process. The others are looked for on this machine, at their default ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Components {
    /// What kube-controller-manager does.
    pub controller_manager: bool,
    /// What kube-scheduler does.
    pub scheduler: bool,
}

/// Answers a read of them; they know no other verbs. Boxed: few ask, and what that takes is large.
pub(super) fn answer<'a>(
    info: &'a RequestInfo<'_>,
) -> BoxFuture<'a, Result<Response<ResponseBody>, ApiError>> {
    read(info).boxed()
}

async fn read(info: &RequestInfo<'_>) -> Result<Response<ResponseBody>, ApiError> {
    let (call, shaper) = (info.call, info.shaper()?);
    let bytes = match info.verb {
        "get" if NAMES.contains(&call.name) => {
            let mut component = component(info, call.name).await;
            component["kind"] = call.kind.kind.as_str().into();
            component["apiVersion"] = call.kind.api_version().into();
            shaper.object(component.to_string().into())?
        }
        "get" => return Err(ApiError::not_found_in("", "componentstatus", call.name)),
        "list" => {
            let options = ListOptions::read(info.query, call.kind, false)?;
            let (one, two, three) =
                tokio::join!(component(info, NAMES[0]), component(info, NAMES[1]), component(info, NAMES[2]));
            let selected = |component: &Value| {
                let name = component["metadata"]["name"].as_str().unwrap_or_default();
                let field = |field: &str| if field == "metadata.name" { name } else { "" };
                options.labels.matches_by(|_| None) && options.fields.matches(field)
            };
            shaper.computed([one, two, three].into_iter().filter(selected))?
        }
        "watch" => {
            let why = format!("watch is not supported on resources of kind {:?}", call.kind.plural);
            return Err(ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", why)
                .with_details(json!({"kind": call.kind.plural})));
        }
        _ => return Err(ApiError::method_not_allowed()),
    };
    Ok(respond::json(StatusCode::OK, bytes, info.wanted.encoding))
}

async fn component(info: &RequestInfo<'_>, name: &str) -> Value {
    let here = info.server.settings().components;
    let health = match name {
        "controller-manager" if !here.controller_manager => ask(info, CONTROLLER_MANAGER).await,
        "scheduler" if !here.scheduler => ask(info, SCHEDULER).await,
        _ => Ok("ok".to_owned()),
    };
    let (status, message) = match health {
        Ok(message) => ("True", message),
        Err(message) => ("False", message),
    };
    let mut condition = json!({"type": "Healthy", "status": status});
    if !message.is_empty() {
        condition["message"] = message.into();
    }
    json!({"metadata": {"name": name}, "conditions": [condition]})
}

/// What the program that listens at a port of this machine says of its health, or why it does not.
async fn ask(info: &RequestInfo<'_>, port: u16) -> Result<String, String> {
    let url = format!("https://127.0.0.1:{port}/healthz");
    let refused = || format!("Get {url:?}: dial tcp 127.0.0.1:{port}: connect: connection refused");
    let world = info.server.engine().world();
    if world.simulation().is_some() {
        // Nobody is outside.
        return Err(refused());
    }
    let answer = world.clock.wait_outside(LONGEST, get(port)).await;
    let late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
    match answer {
        Err(_) => Err(format!("Get {url:?}: {late}")),
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => Err(refused()),
        Ok(Err(error)) => Err(format!("Get {url:?}: {error}")),
        Ok(Ok((200..=399, body))) => Ok(body),
        Ok(Ok((code, _))) => Err(format!("HTTP probe failed with statuscode: {code}")),
    }
}

async fn get(port: u16) -> io::Result<(u16, String)> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let stream = unverified::connect(IpAddr::from(Ipv4Addr::LOCALHOST).into(), stream).await?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(io::Error::other)?;
    let exchange = async {
        let request = Request::get("/healthz")
            .header(HOST, format!("127.0.0.1:{port}"))
            .header(USER_AGENT, "kube-probe/")
            .header(ACCEPT, "*/*")
            .header(CONNECTION, "close")
            .body(Empty::<Bytes>::new())
            .map_err(io::Error::other)?;
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        let code = response.status().as_u16();
        let body = Limited::new(response.into_body(), LONGEST_BODY).collect().await;
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        Ok((code, String::from_utf8_lossy(&body).into_owned()))
    };
    // The connection ends with the answer.
    tokio::pin!(exchange);
    tokio::select! {
        biased;
        answer = &mut exchange => answer,
        ended = connection => match ended {
            Ok(()) => exchange.await,
            Err(error) => Err(io::Error::other(error)),
        },
    }
}
