//! W3C trace context: requests say of which trace they are part.

use http::{HeaderName, HeaderValue, Request};
use opentelemetry::propagation::{Injector, TextMapPropagator};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Puts `traceparent` and `tracestate` of the current span on a request (<https://www.w3.org/TR/trace-context/>), so that the spans of a
/// kube-apiserver with tracing are part of the reconcile's trace. Where nobody traces, nothing is put on it.
pub fn with_trace_context<B>(mut request: Request<B>) -> Request<B> {
    let context = Span::current().context();
    TraceContextPropagator::new().inject_context(&context, &mut Headers(&mut request));
    request
}

struct Headers<'a, B>(&'a mut Request<B>);

impl<B> Injector for Headers<'_, B> {
    fn set(&mut self, key: &str, value: String) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(key), HeaderValue::try_from(value))
            && !value.is_empty()
        {
            self.0.headers_mut().insert(name, value);
        }
    }
}
