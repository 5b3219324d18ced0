//! How a client in this process reaches the API server: as a function call, under an identity that the transport
//! vouches for.

use http::Request;
use kube::Client;
use kubewright_apiserver::authn::User;
use kubewright_apiserver::http::ApiServer;
use tower::ServiceExt;

/// A client that acts as `user`: no socket, no TLS, no token.
pub(crate) fn client(server: &ApiServer, user: User, default_namespace: &str) -> Client {
    let service = server.clone().map_request(move |mut request: Request<kube::client::Body>| {
        request.extensions_mut().insert(user.clone());
        request
    });
    Client::new(service, default_namespace)
}
