//! How a request gets to the cloud.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};

use super::Trust;

/// Why a request was not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreachable(pub String);

/// Something that carries requests to servers, and their answers back.
pub trait Transport: Send + Sync {
    /// Sends a request with an absolute URL, and waits for the whole of its answer.
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, Unreachable>>;
}

/// Where transports come from: the internet, or a cloud in this process.
pub trait Network: Send + Sync {
    /// A transport to servers that `trust` vouches for.
    ///
    /// # Errors
    /// When a certificate or key in it is none.
    fn transport(&self, trust: &Trust) -> Result<Arc<dyn Transport>, Unreachable>;
}
