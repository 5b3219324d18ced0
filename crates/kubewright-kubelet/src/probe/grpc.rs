//! Probes by the health protocol of gRPC (`grpc.health.v1.Health/Check`).

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, TE};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::url::authority;
use super::{ProbeResult, tcp};

/// `UNIMPLEMENTED` and `NOT_FOUND` among gRPC's status codes.
const NOT_FOUND: &str = "5";
const UNIMPLEMENTED: &str = "12";
const LONGEST_ANSWER: usize = 64 * 1024;

pub(super) async fn probe(host: &str, port: u16, service: &str, timeout: Duration) -> ProbeResult {
    let address = authority(host, port);
    let check = async {
        let stream = match tcp::connect(host, port, timeout).await {
            Ok(stream) => stream,
            Err(problem) => {
                return ProbeResult::Bad(format!(
                    "error: failed to connect service at {address:?}: connection error: desc = \"transport: Error while dialing: {problem}\""
                ));
            }
        };
        match ask(stream, &address, service).await {
            Ok(answer) => answer,
            Err(error) => ProbeResult::Bad(format!("error: health rpc probe failed: {error}")),
        }
    };
    let late =
        || ProbeResult::Bad(format!("timeout: health rpc did not complete within {}s", timeout.as_secs()));
    tokio::time::timeout(timeout, check).await.unwrap_or_else(|_| late())
}

async fn ask(stream: tokio::net::TcpStream, address: &str, service: &str) -> hyper::Result<ProbeResult> {
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await?;
    tokio::spawn(async move {
        let _ = connection.await;
    });
    let request = Request::post(format!("http://{address}/grpc.health.v1.Health/Check"))
        .header(CONTENT_TYPE, "application/grpc")
        .header(TE, "trailers")
        .header(http::header::USER_AGENT, super::user_agent("kube-probe"))
        .body(Full::new(question(service)));
    let Ok(request) = request else {
        return Ok(ProbeResult::Unknown("the address is no URL".to_owned()));
    };
    let response = sender.send_request(request).await?;
    let head = response.headers().clone();
    let Ok(body) = Limited::new(response.into_body(), LONGEST_ANSWER).collect().await else {
        return Ok(ProbeResult::Bad("error: health rpc probe failed: the answer cannot be read".to_owned()));
    };
    let trailers = body.trailers().cloned().unwrap_or_default();
    Ok(verdict(&head, &trailers, &body.to_bytes()))
}

/// A message with the name of a service in field 1, in gRPC's frame.
fn question(service: &str) -> Bytes {
    let mut message = Vec::new();
    if !service.is_empty() {
        message.push(0x0a);
        let mut length = service.len();
        while length >= 0x80 {
            message.push(u8::try_from(length & 0x7f).unwrap_or_default() | 0x80);
            length >>= 7;
        }
        message.push(u8::try_from(length).unwrap_or_default());
        message.extend_from_slice(service.as_bytes());
    }
    let mut frame = vec![0];
    frame.extend_from_slice(&u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes());
    frame.extend(message);
    frame.into()
}

fn verdict(head: &HeaderMap, trailers: &HeaderMap, body: &[u8]) -> ProbeResult {
    let told = |name: &str| {
        trailers
            .get(name)
            .or_else(|| head.get(name))
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    let message = told("grpc-message");
    match told("grpc-status") {
        "0" => match status(body) {
            1 => ProbeResult::Good,
            other => ProbeResult::Bad(format!("service unhealthy (responded with {:?})", name(other))),
        },
        UNIMPLEMENTED => ProbeResult::Bad(format!(
            "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {message}"
        )),
        NOT_FOUND => ProbeResult::Bad(format!(
            "error: health rpc probe failed: rpc error: code = NotFound desc = {message}"
        )),
        code => ProbeResult::Bad(format!(
            "error: health rpc probe failed: rpc error: code = Code({code}) desc = {message}"
        )),
    }
}

/// The number in field 1 of the message; 0 where it is left out.
fn status(body: &[u8]) -> u8 {
    match body {
        [_, _, _, _, _, 0x08, status, ..] => *status,
        _ => 0,
    }
}

fn name(status: u8) -> &'static str {
    match status {
        1 => "SERVING",
        2 => "NOT_SERVING",
        3 => "SERVICE_UNKNOWN",
        _ => "UNKNOWN",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_serves_is_healthy_and_what_says_otherwise_is_told() {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
        let head = HeaderMap::new();
        assert_eq!(verdict(&head, &trailers, &[0, 0, 0, 0, 2, 8, 1]), ProbeResult::Good);
        assert_eq!(
            verdict(&head, &trailers, &[0, 0, 0, 0, 2, 8, 2]),
            ProbeResult::Bad("service unhealthy (responded with \"NOT_SERVING\")".to_owned())
        );
        trailers.insert("grpc-status", http::HeaderValue::from_static("12"));
        let ProbeResult::Bad(message) = verdict(&head, &trailers, &[]) else { panic!("it is bad") };
        assert!(message.starts_with("error: this server does not implement"), "{message}");
    }

    #[test]
    fn a_question_names_its_service() {
        assert_eq!(&question("")[..], [0, 0, 0, 0, 0]);
        assert_eq!(&question("ab")[..], [0, 0, 0, 0, 4, 0x0a, 2, b'a', b'b']);
    }
}
