//! Requests to the collector, by the HTTP client that the operator has anyway.

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, Uri, header::CONTENT_TYPE};
use http_body_util::BodyExt;
use kube::{Client, Config, client::Body};
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::Handle;
use tracing::{instrument::WithSubscriber, subscriber::NoSubscriber};

/// A client of a collector. Clones share its connections.
#[derive(Clone)]
pub(crate) struct Http {
    client: Client,
    /// Where requests are done: those of the SDK come from a thread of its own.
    runtime: Handle,
}

impl Http {
    /// Requests go to the host of this address, whatever host they name.
    pub(crate) fn new(endpoint: &str) -> Result<Self, String> {
        let address: Uri = endpoint.parse().map_err(|error| format!("it is no address: {error}"))?;
        if !matches!(address.scheme_str(), Some("http" | "https")) {
            return Err("it begins with neither http:// nor https://".to_owned());
        }
        let mut parts = address.into_parts();
        // The path is in each request.
        parts.path_and_query = Some(http::uri::PathAndQuery::from_static("/"));
        let host = Uri::from_parts(parts).map_err(|error| error.to_string())?;
        let client = Client::try_from(Config::new(host)).map_err(|error| error.to_string())?;
        let runtime = Handle::try_current().map_err(|error| error.to_string())?;
        Ok(Self { client, runtime })
    }

    pub(crate) async fn post(&self, address: &str, body: Vec<u8>) -> Result<(), String> {
        let request = Request::post(address).header(CONTENT_TYPE, "application/x-protobuf");
        let request = request.body(Bytes::from(body)).map_err(|error| error.to_string())?;
        let answer = self.send(request).await?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("the collector answered {status}")),
        }
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        let (mut parts, body) = request.into_parts();
        let path = parts.uri.path_and_query().cloned();
        parts.uri = path.map_or_else(Uri::default, Uri::from);
        let answer = self.client.send(Request::from_parts(parts, Body::from(body)));
        // What sends spans and metrics is no span.
        let answer =
            answer.with_subscriber(NoSubscriber::default()).await.map_err(|error| error.to_string())?;
        let (head, body) = answer.into_parts();
        let body = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
        Ok(Response::from_parts(head, body))
    }
}

#[async_trait]
impl HttpClient for Http {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.clone();
        Ok(self.runtime.spawn(async move { client.send(request).await }).await??)
    }
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}
