//! The path at which operators tell of their reconciles, and the header by which they are asked to.
//!
//! Every user of the cluster may tell, from this machine: what is told is noted as the user's, and shown to people alone.

use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use kubewright_meta::ApiError;
use kubewright_recording::Author;

use super::body::Body;
use super::endpoint;
use super::reconciles::OperatorReport;
use super::refusal;
use super::service::{AdminService, RequestBody};

/// Where operators tell.
const PATH: &str = "/kubewright/reconciles";
/// Asks them to, with that path.
const HEADER: HeaderName = HeaderName::from_static("kubewright-reconciles");
/// The largest body of a request.
const LARGEST: usize = 4 << 20;

/// Whether a request tells of reconciles.
pub(super) fn is_report<B>(request: &Request<B>) -> bool {
    request.uri().path() == PATH && request.method() == Method::POST && endpoint::is_own(request)
}

/// An answer that asks its client to tell.
pub(super) fn ask(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(HEADER, HeaderValue::from_static(PATH));
    response
}

/// Notes what a client tells.
pub(super) async fn answer<B: RequestBody>(service: &AdminService, request: Request<B>) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    let info = service.identify(&mut parts).await;
    if info.user.is_empty() || info.user == "system:anonymous" {
        return refusal::status(&ApiError::unauthorized());
    }
    let Ok(body) = Limited::new(Box::pin(body), LARGEST).collect().await else {
        return refusal::status(&ApiError::too_large(LARGEST));
    };
    match serde_json::from_slice::<OperatorReport>(&body.to_bytes()) {
        Ok(report) => {
            let by = Author { user: info.user, program: info.user_agent };
            service.admin.note_report(&by, report);
            refusal::respond(StatusCode::OK, "application/json", "{}".into())
        }
        Err(error) => refusal::status(&ApiError::bad_request(format!("{error}: no report on controllers"))),
    }
}
