//! Connections that a client wants to go on with in another protocol than HTTP.

use bytes::Bytes;
use http::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue, UPGRADE};
use http::request::Parts;
use http::{Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;

use super::response_body::ResponseBody;

/// The answer to a client who does not get the protocol that it asks for.
pub(super) type Refused = Box<Response<ResponseBody>>;

/// A connection that can be gone on with in another protocol, as its client wants.
pub(super) struct Upgrade(OnUpgrade);

impl Upgrade {
    /// `None` when the client does not want that, or the connection is none that can.
    pub(super) fn of(request: &Parts) -> Option<Self> {
        if !says(&request.headers, &CONNECTION, "upgrade") {
            return None;
        }
        request.extensions.get::<OnUpgrade>().cloned().map(Self)
    }

    /// The answer that lets a connection go on in `protocol`.
    pub(super) fn response(protocol: &'static str) -> Response<ResponseBody> {
        let mut response = Response::new(ResponseBody::whole(Bytes::new()));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static(protocol));
        response
    }

    /// Does something with the connection, once the answer is sent.
    pub(super) fn go_on<W: Future<Output = ()> + Send + 'static>(
        &self,
        with: impl FnOnce(TokioIo<Upgraded>) -> W + Send + 'static,
    ) {
        let connection = self.0.clone();
        tokio::spawn(async move {
            match connection.await {
                Ok(upgraded) => with(TokioIo::new(upgraded)).await,
                Err(error) => tracing::debug!(%error, "a connection ended instead of going on"),
            }
        });
    }
}

/// Whether a header has this word among its values.
pub(super) fn says(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(word))
}
