//! Flow schemas and priority levels.

use serde_json::{Value, json};

use super::age::age;
use super::column::{NAME, text as column};
use super::printer::Printer;
use super::value::{at, cells, items, number, text};

/// Prints flow schemas.
pub const SCHEMAS: Printer = Printer::new(
    &[
        NAME,
        column("PriorityLevel"),
        column("MatchingPrecedence"),
        column("DistinguisherMethod"),
        column("Age"),
        column("MissingPL"),
    ],
    |schema, now| {
        let dangling =
            items(schema, "/status/conditions").iter().find(|one| text(one, "/type") == "Dangling");
        let method = if at(schema, "/spec/distinguisherMethod").is_some() {
            text(schema, "/spec/distinguisherMethod/type")
        } else {
            "<none>"
        };
        cells![
            text(schema, "/metadata/name"),
            text(schema, "/spec/priorityLevelConfiguration/name"),
            number(schema, "/spec/matchingPrecedence"),
            method,
            age(schema, now),
            dangling.map_or("?", |condition| text(condition, "/status")),
        ]
    },
);

/// Prints priority levels.
pub const LEVELS: Printer = Printer::new(
    &[
        NAME,
        column("Type"),
        column("NominalConcurrencyShares"),
        column("Queues"),
        column("HandSize"),
        column("QueueLengthLimit"),
        column("Age"),
    ],
    |level, now| {
        let within = |part: &str, field: &str| match at(level, part) {
            Some(part) => json!(number(part, field)),
            None => Value::from("<none>"),
        };
        let queuing = |field| within("/spec/limited/limitResponse/queuing", field);
        cells![
            text(level, "/metadata/name"),
            text(level, "/spec/type"),
            within("/spec/limited", "/nominalConcurrencyShares"),
            queuing("/queues"),
            queuing("/handSize"),
            queuing("/queueLengthLimit"),
            age(level, now),
        ]
    },
);
