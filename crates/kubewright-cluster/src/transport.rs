//! How a client in this process reaches the API server: as a function call, under an identity that the transport
//! vouches for.

use bytes::Bytes;
use http::header::{HeaderValue, USER_AGENT};
use http::{Request, Response};
use kube::Client;
use kubewright_apiserver::authn::User;
use kubewright_apiserver::http::ApiServer;
use tower::{BoxError, Service, service_fn};

use crate::admin::Admin;
use crate::admin::front::Front;

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
    through(server, caller, default_namespace, |server| server)
}

/// The same for one whose requests pass an [`Admin`].
pub(crate) fn client_behind(
    admin: &Admin,
    server: &ApiServer,
    caller: Caller,
    default_namespace: &str,
) -> Client {
    let admin = admin.clone();
    through(server, caller, default_namespace, move |server| Front::new(server, admin.clone()))
}

fn through<S, B>(
    server: &ApiServer,
    caller: Caller,
    default_namespace: &str,
    front: impl Fn(ApiServer) -> S + Send + 'static,
) -> Client
where
    S: Service<
            Request<kube::client::Body>,
            Response = Response<B>,
            Error: Into<BoxError>,
            Future: Send + 'static,
        >,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let server = server.downgrade();
    let service = service_fn(move |mut request: Request<kube::client::Body>| {
        request.extensions_mut().insert(caller.user.clone());
        if let Some(program) = &caller.program {
            request.headers_mut().entry(USER_AGENT).or_insert_with(|| program.clone());
        }
        let answer = server.upgrade().map(|server| front(server).call(request));
        async move {
            match answer {
                Some(answer) => answer.await.map_err(Into::into),
                None => Err(BoxError::from("the cluster has ended")),
            }
        }
    });
    Client::new(service, default_namespace)
}
