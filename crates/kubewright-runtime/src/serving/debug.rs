//! What an operator serves of its own beside `/metrics`.

use std::{collections::BTreeMap, panic::AssertUnwindSafe, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use http::{Response, StatusCode, request::Parts};

use super::endpoint::{HttpResponse, text};

/// Where such paths are; who may read `/metrics` need not be who may read these.
const BELOW: &str = "/debug/";

/// The paths that are taken.
const OURS: [&str; 2] = ["/debug/reconciles", "/debug/loglevel"];

type Handler = Arc<dyn Fn(Parts) -> BoxFuture<'static, Response<Vec<u8>>> + Send + Sync>;

/// Handlers by their paths.
#[derive(Clone, Default)]
pub(crate) struct DebugHandlers(BTreeMap<String, Handler>);

impl DebugHandlers {
    /// Adds one; what is wrong with its path.
    pub(crate) fn add<F, R>(&mut self, path: String, handler: F) -> Result<(), String>
    where
        F: Fn(Parts) -> R + Send + Sync + 'static,
        R: Future<Output = Response<Vec<u8>>> + Send + 'static,
    {
        if !path.starts_with(BELOW) || path.contains(['?', '#', '*']) {
            return Err(format!("a debug handler's path is one below {BELOW}, and {path:?} is not"));
        }
        if OURS.contains(&&*path) || self.0.contains_key(&path) {
            return Err(format!("there is a handler of {path} already"));
        }
        self.0.insert(path, Arc::new(move |request| handler(request).boxed()));
        Ok(())
    }

    /// The answer to a request, if there is a handler of its path. One that panics loses this answer alone.
    pub(super) async fn answer(&self, request: &Parts) -> Option<HttpResponse> {
        let path = request.uri.path();
        let handler = self.0.get(path)?;
        let answer = async { handler(request.clone()).await };
        let Ok(answer) = AssertUnwindSafe(answer).catch_unwind().await else {
            tracing::error!(path, "a debug handler panicked");
            return Some(text(StatusCode::INTERNAL_SERVER_ERROR, "the handler panicked\n"));
        };
        Some(answer.map(Into::into))
    }
}
