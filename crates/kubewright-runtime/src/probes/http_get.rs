//! Asking by HTTP.

use bytes::Bytes;
use http::Uri;
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};

use super::ProbeResult;

/// How much of an answer is read.
const LONGEST_ANSWER: usize = 64 << 10;
/// How much of it is told.
const LONGEST_TEXT: usize = 256;

/// Asks by a plain HTTP GET, as the kubelet does: a status from 200 to 399 is well. Redirects are not followed, and TLS is not
/// spoken. Clones share connections.
#[derive(Clone, Debug)]
pub struct HttpGet(Client<HttpConnector, Empty<Bytes>>);

impl Default for HttpGet {
    fn default() -> Self {
        Self(Client::builder(TokioExecutor::new()).build_http())
    }
}

impl HttpGet {
    /// The result, in the time that it takes: the probes' timeout ends it. Of a long answer only the beginning is told.
    pub fn get(&self, uri: Uri) -> impl Future<Output = ProbeResult> + Send + use<> {
        let asking = self.0.get(uri);
        async move {
            let answer = asking.await.map_err(|error| error.to_string())?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), LONGEST_ANSWER).collect().await;
            let body = body.map_err(|error| format!("{status}: {error}"))?.to_bytes();
            let text: String = String::from_utf8_lossy(&body).trim().chars().take(LONGEST_TEXT).collect();
            let line = if text.is_empty() { status.to_string() } else { format!("{status}: {text}") };
            if status.is_success() || status.is_redirection() { Ok(line) } else { Err(line) }
        }
    }
}
