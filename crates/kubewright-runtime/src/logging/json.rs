//! Logs as JSON, one object in a line, with the names that controller-runtime's have (zap's production encoder): `level`,
//! `ts`, `msg`, and beside them the fields of the event and of the spans around it.

use std::{fmt, io::Write};

use kubewright_world::Clock;
use serde::{Serializer, ser::SerializeMap};
use serde_json::{Value, json};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    Layer,
    fmt::MakeWriter,
    layer::Context,
    registry::{LookupSpan, Scope},
};

/// Writes events as JSON.
pub(super) struct Json<W> {
    writer: W,
    clock: Clock,
}

impl<W> Json<W> {
    pub(super) fn new(writer: W, clock: Clock) -> Self {
        Self { writer, clock }
    }
}

/// Names and values, in the order in which they were told; a later value replaces an earlier one.
#[derive(Default)]
struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    fn put(&mut self, name: &'static str, value: Value) {
        match self.0.iter_mut().find(|(other, _)| *other == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| *other == name)?.1.as_str()
    }

    /// The object of a reconcile under the name of its kind, as controller-runtime's log constructor tells it.
    fn object(&self) -> Option<(&str, Value)> {
        let (kind, name) = (self.text("controllerKind")?, self.text("name")?);
        let object = match self.text("namespace") {
            None => json!({"name": name}),
            Some(namespace) => json!({"name": name, "namespace": namespace}),
        };
        Some((kind, object))
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field.name(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field.name(), value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put(field.name(), value.to_string().into());
    }
}

impl<S, W> Layer<S> for Json<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        for span in context.event_scope(event).into_iter().flat_map(Scope::from_root) {
            if let Some(of_span) = span.extensions().get::<Fields>() {
                of_span.0.iter().for_each(|(name, value)| fields.put(name, value.clone()));
            }
        }
        event.record(&mut fields);
        // A line that cannot be written is lost: there is nowhere to tell of it.
        if let Ok(mut line) = line(event, &fields, &self.clock) {
            line.push(b'\n');
            let _ = self.writer.make_writer_for(event.metadata()).write_all(&line);
        }
    }
}

fn line(event: &Event<'_>, fields: &Fields, clock: &Clock) -> serde_json::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut serializer = serde_json::Serializer::new(&mut line);
    let mut object = serializer.serialize_map(None)?;
    let level = match *event.metadata().level() {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    };
    object.serialize_entry("level", level)?;
    object.serialize_entry("ts", &clock.now().to_string())?;
    object.serialize_entry("logger", event.metadata().target())?;
    object.serialize_entry("msg", fields.text("message").unwrap_or_default())?;
    for (name, value) in fields.0.iter().filter(|(name, _)| *name != "message") {
        object.serialize_entry(name, value)?;
    }
    if let Some((kind, fields)) = fields.object() {
        object.serialize_entry(kind, &fields)?;
    }
    object.end()?;
    Ok(line)
}
