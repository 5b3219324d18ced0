//! How a client in this process reaches the API server: as a function call, under an identity that the transport
//! vouches for.

use http::Request;
use kube::Client;
use kubewright_apiserver::authn::User;
use kubewright_apiserver::http::ApiServer;
use tower::{BoxError, Service, service_fn};

/// A client that acts as `user`: no socket, no TLS, no token. It does not keep the server: once the cluster has ended, its
/// requests fail.
pub(crate) fn client(server: &ApiServer, user: User, default_namespace: &str) -> Client {
    let server = server.downgrade();
    let service = service_fn(move |mut request: Request<kube::client::Body>| {
        request.extensions_mut().insert(user.clone());
        let answer = server.upgrade().map(|mut server| server.call(request));
        async move {
            match answer {
                Some(answer) => Ok(answer.await.unwrap_or_else(|never| match never {})),
                None => Err(BoxError::from("the cluster has ended")),
            }
        }
    });
    Client::new(service, default_namespace)
}
