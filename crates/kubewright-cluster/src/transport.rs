//! How a client in this process reaches the API server: as a function call, under an identity that the transport
//! vouches for.

use http::Request;
use http::header::{HeaderValue, USER_AGENT};
use kube::Client;
use kubewright_apiserver::authn::User;
use kubewright_apiserver::http::ApiServer;
use tower::{BoxError, Service, service_fn};

/// Who makes the requests of a client.
#[derive(Clone)]
pub(crate) struct Caller {
    /// Whose rights count.
    pub(crate) user: User,
    /// The program, for requests that name none: whose the fields are that it writes (`managedFields`).
    pub(crate) program: Option<HeaderValue>,
}

/// A client of this caller: no socket, no TLS, no token. It does not keep the server: once the cluster has ended, its
/// requests fail.
pub(crate) fn client(server: &ApiServer, caller: Caller, default_namespace: &str) -> Client {
    let server = server.downgrade();
    let service = service_fn(move |mut request: Request<kube::client::Body>| {
        request.extensions_mut().insert(caller.user.clone());
        if let Some(program) = &caller.program {
            request.headers_mut().entry(USER_AGENT).or_insert_with(|| program.clone());
        }
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
