//! How a program of an operator writes its logs.

mod json;

use std::io::IsTerminal;

use kubewright_world::Clock;
use tracing::Subscriber;
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    fmt::{self, MakeWriter},
    layer::SubscriberExt,
    registry::LookupSpan,
    util::SubscriberInitExt,
};

use crate::{Error, command::LogFormat};

/// Writes logs to standard error from now on.
pub(crate) fn init(format: LogFormat, level: &str) -> Result<(), Error> {
    let filter = EnvFilter::try_new(level)
        .map_err(|error| Error::Misconfigured(format!("the log level {level:?}: {error}")))?;
    Registry::default()
        .with(layer(format, std::io::stderr).with_filter(filter))
        .try_init()
        .map_err(|error| Error::Misconfigured(format!("logs: {error}")))
}

/// Writes each event with what its spans say: of a reconcile, the controller, the object and the id of the reconcile.
fn layer<S, W>(format: LogFormat, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    match format {
        LogFormat::Text => {
            fmt::layer().with_ansi(std::io::stderr().is_terminal()).with_writer(writer).boxed()
        }
        LogFormat::Json => json::Json::new(writer, Clock::system()).boxed(),
    }
}

#[cfg(test)]
mod tests {
    use std::{io, sync::Arc};

    use parking_lot::Mutex;
    use serde_json::{Value, json};

    use super::*;
    use crate::{Key, span::Spans};

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What is written when something is logged in a reconcile.
    fn written(format: LogFormat, key: &Key) -> String {
        let sink = Sink::default();
        let writer = sink.clone();
        let logs = Registry::default().with(layer(format, move || writer.clone()));
        tracing::subscriber::with_default(logs, || {
            let own = Some(("apps".to_owned(), "Deployment".to_owned()));
            let spans = Spans::new("web".into(), own, Clock::system());
            spans.reconcile(key).in_scope(|| tracing::warn!(replicas = 3, "scaled"));
        });
        let bytes = sink.0.lock().clone();
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn json_logs_have_controller_runtimes_fields() {
        let line = written(LogFormat::Json, &Key::namespaced("default", "x"));
        let line: Value = serde_json::from_str(&line).expect("one object in a line");
        for (field, value) in [
            ("level", json!("warn")),
            ("msg", json!("scaled")),
            ("replicas", json!(3)),
            ("controller", json!("web")),
            ("controllerGroup", json!("apps")),
            ("controllerKind", json!("Deployment")),
            ("Deployment", json!({"name": "x", "namespace": "default"})),
            ("namespace", json!("default")),
            ("name", json!("x")),
        ] {
            assert_eq!(line[field], value, "{line}");
        }
        assert_eq!(line["reconcileID"].as_str().map(str::len), Some(36));
        assert!(line["ts"].as_str().is_some_and(|ts| ts.parse::<jiff::Timestamp>().is_ok()), "{line}");
    }

    #[test]
    fn a_field_of_the_event_hides_that_of_its_span_and_errors_are_text() {
        let sink = Sink::default();
        let writer = sink.clone();
        let logs = Registry::default().with(layer(LogFormat::Json, move || writer.clone()));
        tracing::subscriber::with_default(logs, || {
            let span = tracing::info_span!("outer", controller = "span", late = tracing::field::Empty);
            span.record("late", 1.5);
            let error = io::Error::other("no \"route\"");
            span.in_scope(|| {
                tracing::error!(controller = "event", error = &error as &dyn std::error::Error, ok = true);
            });
        });
        let bytes = sink.0.lock().clone();
        let text = String::from_utf8(bytes).expect("text");
        assert_eq!(text.matches("controller").count(), 1, "{text}");
        let line: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(
            (&line["controller"], &line["late"], &line["ok"]),
            (&json!("event"), &json!(1.5), &json!(true))
        );
        assert_eq!((&line["error"], &line["level"]), (&json!("no \"route\""), &json!("error")));
    }

    #[test]
    fn text_logs_name_controller_and_object() {
        let line = written(LogFormat::Text, &Key::cluster("x"));
        for part in ["scaled", "replicas", "controller", "web", "controllerKind", "reconcileID"] {
            assert!(line.contains(part), "{line}");
        }
        assert!(!line.contains("namespace"), "{line}");
    }

    #[test]
    fn a_level_that_is_none_is_refused() {
        let refused = init(LogFormat::Text, "kube=loud").expect_err("no level").to_string();
        assert!(refused.starts_with("the log level \"kube=loud\": "), "{refused}");
    }
}
