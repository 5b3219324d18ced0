//! API servers of this process, which are asked without a socket.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kubewright_identity::authn::PeerCertificate;
use kubewright_identity::webhook::InProcess;
use tokio::io::DuplexStream;

use super::super::incoming::BoxError;
use super::super::service::ApiServer;

/// Serves connections in memory by a service.
struct Serving<S>(S);

impl<S, B> InProcess for Serving<S>
where
    S: tower::Service<Request<Incoming>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    fn serve(&self, connection: DuplexStream, shown: Option<PeerCertificate>) {
        let service = self.0.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            if let Some(shown) = &shown {
                request.extensions_mut().insert(shown.clone());
            }
            service.clone().call(request)
        });
        let serving = http1::Builder::new().serve_connection(TokioIo::new(connection), service);
        tokio::spawn(serving.with_upgrades().map(|ended| {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection in memory ended with an error");
            }
        }));
    }
}

impl ApiServer {
    /// Asks a service of this process in the place of the API server that is behind a Service: no socket is opened, so that it works in
    /// simulated time, and neither the Service nor its endpoints have to be there. Each request carries the certificate that this server shows to others, as a
    /// [`PeerCertificate`] among its extensions.
    pub fn attach_api_server<S, B>(&self, namespace: &str, service: &str, server: S)
    where
        S: tower::Service<Request<Incoming>, Response = Response<B>, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        self.aggregation().upstreams.attach(namespace, service, Arc::new(Serving(server)));
    }
}
