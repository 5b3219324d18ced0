//! Events, as either group writes them.

use serde_json::Value;

use super::age::ago;
use super::column::{NAME, text as column};
use super::printer::Printer;
use super::value::{at, cells, number, text};

/// Prints events.
pub const EVENTS: Printer = Printer::new(
    &[
        column("Last Seen"),
        column("Type"),
        column("Reason"),
        column("Object"),
        column("Subobject").wide(),
        column("Source").wide(),
        column("Message"),
        column("First Seen").wide(),
        column("Count").wide(),
        NAME.wide(),
    ],
    |event, now| {
        let first = first_of(event, &["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"]);
        let last = first_of(event, &["/lastTimestamp", "/deprecatedLastTimestamp"]);
        let (last, count) = match at(event, "/series") {
            Some(series) => (text(series, "/lastObservedTime"), number(series, "/count")),
            None => (if last.is_empty() { first } else { last }, count(event)),
        };
        cells![
            ago(last, now),
            text(event, "/type"),
            text(event, "/reason"),
            object(event),
            first_of(event, &["/involvedObject/fieldPath", "/regarding/fieldPath"]),
            source(event),
            first_of(event, &["/message", "/note"]).trim(),
            ago(first, now),
            count,
            text(event, "/metadata/name"),
        ]
    },
);

/// The first text that is there: the groups name fields differently.
fn first_of<'a>(event: &'a Value, pointers: &[&str]) -> &'a str {
    pointers.iter().map(|pointer| text(event, pointer)).find(|text| !text.is_empty()).unwrap_or_default()
}

/// How often an event without a series was seen: once, unless it says otherwise.
fn count(event: &Value) -> i64 {
    number(event, "/count").max(number(event, "/deprecatedCount")).max(1)
}

fn object(event: &Value) -> String {
    let kind = first_of(event, &["/involvedObject/kind", "/regarding/kind"]).to_lowercase();
    match first_of(event, &["/involvedObject/name", "/regarding/name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn source(event: &Value) -> String {
    let component = first_of(
        event,
        &["/source/component", "/deprecatedSource/component", "/reportingComponent", "/reportingController"],
    );
    let instance = first_of(event, &["/source/host", "/deprecatedSource/host", "/reportingInstance"]);
    if instance.is_empty() { component.to_owned() } else { format!("{component}, {instance}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_groups_are_shown_alike() {
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        let core = json!({
            "metadata": {"name": "e"},
            "type": "Normal",
            "reason": "Pulled",
            "message": " done\n",
            "involvedObject": {"kind": "Pod", "name": "a", "fieldPath": "spec.containers{c}"},
            "source": {"component": "kubelet", "host": "n"},
            "firstTimestamp": "2026-01-01T00:00:00Z",
            "lastTimestamp": "2026-01-01T00:00:50Z",
            "count": 3,
        });
        let new = json!({
            "metadata": {"name": "e"},
            "type": "Normal",
            "reason": "Pulled",
            "note": "done",
            "regarding": {"kind": "Pod", "name": "a", "fieldPath": "spec.containers{c}"},
            "reportingController": "kubelet",
            "reportingInstance": "n",
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "series": {"count": 3, "lastObservedTime": "2026-01-01T00:00:50.000000Z"},
        });
        let row = cells![
            "10s",
            "Normal",
            "Pulled",
            "pod/a",
            "spec.containers{c}",
            "kubelet, n",
            "done",
            "60s",
            3,
            "e",
        ];
        assert_eq!((EVENTS.cells)(&core, now), row);
        assert_eq!((EVENTS.cells)(&new, now), row);
    }

    #[test]
    fn a_single_event_was_seen_once_when_it_began() {
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        let event = json!({"eventTime": "2026-01-01T00:00:00Z", "involvedObject": {"kind": "Node"}});
        let row = (EVENTS.cells)(&event, now);
        assert_eq!((&row[0], &row[3], &row[8]), (&json!("60s"), &json!("node"), &json!(1)));
    }
}
