//! How a program of an operator writes its logs. The program of an `Operator` does so by its flags; one with a `main` of its own calls
//! [`init`].

mod json;
mod level;

use std::{io::IsTerminal, sync::OnceLock};

use kubewright_world::Clock;
use tracing::Subscriber;
use tracing_subscriber::{
    Layer, Registry,
    fmt::{self, MakeWriter},
    layer::SubscriberExt,
    registry::LookupSpan,
    util::SubscriberInitExt,
};

pub(crate) use self::level::LogLevel;
use crate::Error;

/// How logs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "command", derive(clap::ValueEnum))]
#[non_exhaustive]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object in a line.
    Json,
}

/// A layer of the author's, under ours.
pub(crate) type OwnLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Writes logs to standard error from now on: what this `level` lets through (`info`, or for each module `info,kube=debug`). The endpoint of
/// metrics shows the level and changes it ([`serving`](crate::serving)).
///
/// # Errors
/// [`Error::Misconfigured`] when the level is none, or when the program has a subscriber already.
pub fn init(format: LogFormat, level: &str) -> Result<(), Error> {
    init_beside(Vec::new(), format, level)
}

/// Writes logs to standard error from now on, and hands everything to these layers too: the level is that of standard error alone.
pub(crate) fn init_beside(layers: Vec<OwnLayer>, format: LogFormat, level: &str) -> Result<(), Error> {
    let (filter, level) = LogLevel::new(level).map_err(Error::Misconfigured)?;
    Registry::default()
        .with(beside(layers))
        .with(layer(format, std::io::stderr).with_filter(filter))
        .try_init()
        .map_err(|error| Error::Misconfigured(format!("logs: {error}")))?;
    // Whose logs are written is decided once, and so is whose level this is.
    let _ = LEVEL.set(level);
    Ok(())
}

/// The level of the logs of this process: one, as its logs are.
static LEVEL: OnceLock<LogLevel> = OnceLock::new();

/// The level of the logs that are written to standard error; none where somebody else writes them.
pub(crate) fn level() -> Option<&'static LogLevel> {
    LEVEL.get()
}

/// Layers as one. None of them is no layer: an empty `Vec` would disable every event (tracing-subscriber's `Layer for Vec`).
fn beside(layers: Vec<OwnLayer>) -> Option<Vec<OwnLayer>> {
    (!layers.is_empty()).then_some(layers)
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
    use tracing_subscriber::EnvFilter;

    use super::*;
    use crate::{Key, Reason, Reasons, span::Spans};

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
        let logs = Registry::default().with(beside(Vec::new())).with(layer(format, move || writer.clone()));
        tracing::subscriber::with_default(logs, || {
            let own = Some(("apps".to_owned(), "Deployment".to_owned()));
            let spans = Spans::new("web".into(), own, Clock::system());
            let mut reasons = Reasons::default();
            reasons.push(Reason::Retry { failures: 2 });
            spans.reconcile(key, &reasons).in_scope(|| tracing::warn!(replicas = 3, "scaled"));
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
            ("reason", json!("retry after 2 failures")),
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
        let line = written(LogFormat::Text, &Key::cluster_scoped("x"));
        for part in ["scaled", "replicas", "controller", "web", "controllerKind", "reconcileID"] {
            assert!(line.contains(part), "{line}");
        }
        assert!(!line.contains("namespace"), "{line}");
    }

    #[test]
    fn a_warning_names_its_object_where_nothing_less_is_logged() {
        let sink = Sink::default();
        let writer = sink.clone();
        let logs = layer(LogFormat::Text, move || writer.clone()).with_filter(EnvFilter::new("error"));
        tracing::subscriber::with_default(Registry::default().with(logs), || {
            let spans = Spans::new("web".into(), None, Clock::system());
            let span = spans.reconcile(&Key::namespaced("shop", "page-1"), &Reasons::default());
            span.in_scope(|| tracing::error!("the reconcile panicked"));
        });
        let line = String::from_utf8(sink.0.lock().clone()).expect("text");
        for part in ["the reconcile panicked", "web", "shop", "page-1"] {
            assert_eq!(line.matches(part).count(), 1, "{line}");
        }
    }

    #[test]
    fn a_layer_of_its_own_gets_what_ours_gets() {
        let (own, ours) = (Sink::default(), Sink::default());
        let (to_own, to_ours) = (own.clone(), ours.clone());
        let layers: Vec<OwnLayer> = vec![layer(LogFormat::Json, move || to_own.clone())];
        let filtered = layer(LogFormat::Json, move || to_ours.clone()).with_filter(EnvFilter::new("warn"));
        tracing::subscriber::with_default(Registry::default().with(beside(layers)).with(filtered), || {
            tracing::debug!("low");
            tracing::warn!("high");
        });
        let text = |sink: &Sink| String::from_utf8(sink.0.lock().clone()).expect("text");
        assert!(text(&own).contains("low") && text(&own).contains("high"), "{}", text(&own));
        assert!(!text(&ours).contains("low") && text(&ours).contains("high"), "{}", text(&ours));
    }

    #[test]
    fn a_level_that_is_none_is_refused() {
        let refused = init(LogFormat::Text, "kube=loud").expect_err("no level").to_string();
        assert!(refused.starts_with("the log level \"kube=loud\": "), "{refused}");
    }
}
