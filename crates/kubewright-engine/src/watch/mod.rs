//! Watches: a stream of JSON lines, one for each event of a collection that a selector names.
//!
//! A watch is a snapshot (where initial events are wanted) and then a cursor from the snapshot's revision on: no event is
//! lost or seen twice. It holds no buffer of its own: the cursor goes on when the client reads, by as many events as make a
//! piece, and large objects are shared by all that watch them. A client that is too slow for the store's ring is told
//! `410 Gone` and the stream ends.

mod selection;

use std::num::NonZeroUsize;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream};
use kubewright_codec::negotiate::{Encoding, Shape};
use kubewright_codec::protobuf;
use kubewright_codec::rope::{READ, Rope};
use kubewright_kinds::{Kind, Summary, encode, unreadable};
use kubewright_meta::ApiError;
use kubewright_store::{Cursor, Entry, Event, Gone, Revision};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::engine::{Engine, convert};
use crate::request::{Call, ListOptions};
use crate::shape::Shaper;
use crate::verbs::{not_in_the_future, select, too_old};
use selection::Selection;

/// How often a watch that allows bookmarks gets one, when there is something to say.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);
/// Events that a webhook converts in one call.
const BATCH: NonZeroUsize = NonZeroUsize::new(128).expect("it is not zero");
/// The annotation of the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// When a watch ends, whatever its client does.
pub struct Life {
    /// The shortest that it lasts when the client does not say (kube-apiserver's `--min-request-timeout`); it takes up to
    /// twice as long, at random, which spreads the reconnects of a large cluster.
    pub shortest: Duration,
    /// Ends it at once when it is cancelled.
    pub ended: CancellationToken,
    /// Held until what was there at its beginning is told: its place among the requests in flight.
    pub beginning: Option<Box<dyn Send>>,
}

impl Life {
    /// How long it lasts when the client does not say.
    fn length(&self, engine: &Engine) -> Duration {
        self.shortest + self.shortest.mul_f64(engine.world().dice.fraction())
    }
}

/// Opens a watch.
///
/// # Errors
/// 504 for a version that is not there yet. A version that is no longer kept is an event of the stream, as in Kubernetes.
pub async fn open(
    engine: &Arc<Engine>,
    call: Call<'_>,
    options: &ListOptions,
    shaper: Shaper,
    encoding: Encoding,
    mut life: Life,
) -> Result<impl Stream<Item = Bytes> + Send + use<>, ApiError> {
    let from_now = options.resource_version.is_none_or(|version| version == Revision(0));
    let initial = options.initial_events.unwrap_or(from_now);
    if let Some(asked) = options.resource_version.filter(|_| options.initial_events == Some(true)) {
        not_in_the_future(engine, call.kind, asked)?;
    }
    let snapshot = engine.snapshot();
    unreadable::check_cache(call.kind, snapshot.range(&call.kind.collection, "", None).map(AsRef::as_ref))?;
    let selection = Selection::new(call, options);
    let mut lines = Lines { shaper, encoding, out: Rope::default() };
    let after =
        if initial || from_now { snapshot.revision() } else { options.resource_version.unwrap_or_default() };
    let there: Vec<Arc<Entry<Summary>>> = match initial {
        true => {
            let mut entries = snapshot.range(&call.kind.collection, &selection.prefix, None);
            let found = select(engine, call.kind, options, &mut entries, usize::MAX).await;
            found.map_err(|error| unreadable::not_cached(call.kind, &error))?.entries
        }
        false => Vec::new(),
    };
    let cursor = match call.kind.custom.as_ref().map(|custom| custom.served_since) {
        // The history of a kind begins with its definition, as the watch cache of kube-apiserver does.
        Some(oldest) if after < oldest => Err(Gone { asked: after, oldest, newest: snapshot.revision() }),
        _ => engine.store().watch(&call.kind.collection, after),
    };
    let now = Instant::now();
    let is_over = options.timeout.is_some_and(|timeout| timeout.is_zero());
    let state = Watch {
        batch: if convert::asks_to_view(call.kind) { BATCH } else { NonZeroUsize::MIN },
        engine: Arc::downgrade(engine),
        selection,
        cursor: match cursor {
            // One that is over before it begins tells of nothing.
            _ if is_over => None,
            Ok(cursor) => Some(cursor),
            Err(gone) => {
                lines.error(&too_old(&gone));
                None
            }
        },
        lines,
        there: if is_over { Vec::new() } else { there }.into_iter(),
        has_begun: false,
        beginning: life.beginning.take(),
        initial_bookmark: initial && options.bookmarks && !is_over,
        told: after,
        bookmark: options.bookmarks.then(|| now + BOOKMARK_INTERVAL),
        deadline: now + options.timeout.unwrap_or_else(|| life.length(engine)),
        ended: life.ended,
    };
    Ok(stream::unfold(state, Watch::next))
}

struct Watch {
    /// Not held: a watch that nobody reads any more must not keep a store open.
    engine: Weak<Engine>,
    selection: Selection,
    /// What was there when the watch began, as far as it is still to be told.
    there: std::vec::IntoIter<Arc<Entry<Summary>>>,
    /// Whether a piece was told.
    has_begun: bool,
    /// Held until it is told.
    beginning: Option<Box<dyn Send>>,
    /// Whether a bookmark says that all of it was told.
    initial_bookmark: bool,
    /// `None` when the stream ends after what is still to be written.
    cursor: Option<Cursor<Summary>>,
    /// How many events are read at once.
    batch: NonZeroUsize,
    lines: Lines,
    /// The version that the client knows of.
    told: Revision,
    /// When the next bookmark is due.
    bookmark: Option<Instant>,
    deadline: Instant,
    ended: CancellationToken,
}

enum Step {
    Events(Vec<Arc<Event<Summary>>>),
    Bookmark,
    End,
}

impl Watch {
    async fn next(mut self) -> Option<(Bytes, Self)> {
        if self.has_begun && !self.there.as_slice().is_empty() {
            // Others have their turn between two pieces.
            tokio::task::yield_now().await;
        }
        self.has_begun = true;
        // The server's end comes before what there is to tell, but for an error that ends the stream.
        if self.cursor.is_some() && self.ended.is_cancelled() {
            return None;
        }
        loop {
            self.send_initial_events();
            // What comes later is told after all that was there.
            while self.there.as_slice().is_empty() && !self.lines.out.is_full() {
                let Some(events) = self.at_hand() else { break };
                self.show(events).await;
            }
            if let Some(bytes) = self.lines.out.take() {
                return Some((bytes, self));
            }
            match self.step().await? {
                Step::Events(events) => self.show(events).await,
                Step::Bookmark => self.bookmark(),
                Step::End => return None,
            }
        }
    }

    /// Events that nobody has to wait for.
    fn at_hand(&mut self) -> Option<Vec<Arc<Event<Summary>>>> {
        let events = self.cursor.as_mut()?.try_batch(self.batch);
        let events = events.unwrap_or_else(|gone| self.is_gone(&gone));
        Some(events).filter(|events| !events.is_empty())
    }

    /// Tells that the next event is no longer there, and that this is the end.
    fn is_gone(&mut self, gone: &Gone) -> Vec<Arc<Event<Summary>>> {
        self.lines.error(&too_old(gone));
        self.cursor = None;
        Vec::new()
    }

    async fn show(&mut self, events: Vec<Arc<Event<Summary>>>) {
        let Some(engine) = self.engine.upgrade() else {
            self.cursor = None;
            return;
        };
        self.selection.renew(&engine.kinds());
        // Ages are as of the event.
        self.lines.shaper.now = engine.world().clock.now();
        match convert::viewed_events(&engine, self.selection.kind(), events).await {
            Ok(events) => {
                for event in events {
                    self.told = event.entry.revision;
                    self.selection.show(&event, &mut self.lines);
                }
            }
            Err(error) => {
                self.lines.error(&error);
                self.cursor = None;
            }
        }
    }

    /// Tells what was there at the beginning, as much of it as makes a piece.
    fn send_initial_events(&mut self) {
        let mut read = 0;
        while !self.lines.out.is_full() && read < READ {
            let Some(entry) = self.there.next() else { break };
            read += entry.bytes.len();
            self.lines.entry("ADDED", self.selection.kind(), &entry);
        }
        if !self.there.as_slice().is_empty() {
            return;
        }
        if std::mem::take(&mut self.initial_bookmark) {
            self.lines.bookmark(self.told, true);
        }
        // Its memory, too: a watch lasts.
        self.there = Vec::new().into_iter();
        self.beginning = None;
    }

    /// Waits for what comes next; `None` at the end.
    async fn step(&mut self) -> Option<Step> {
        let cursor = self.cursor.as_mut()?;
        let bookmark = self.bookmark;
        let due = async {
            match bookmark {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let events = tokio::select! {
            biased;
            () = self.ended.cancelled() => return Some(Step::End),
            events = cursor.next_batch(self.batch) => events,
            () = tokio::time::sleep_until(self.deadline) => return Some(Step::End),
            () = due => return Some(Step::Bookmark),
        };
        match events {
            Ok(events) if events.is_empty() => Some(Step::End),
            Ok(events) => Some(Step::Events(events)),
            Err(gone) => Some(Step::Events(self.is_gone(&gone))),
        }
    }

    fn bookmark(&mut self) {
        self.bookmark = Some(Instant::now() + BOOKMARK_INTERVAL);
        let position = self.cursor.as_ref().map_or(self.told, Cursor::position);
        if position > self.told {
            self.told = position;
            self.lines.bookmark(position, false);
        }
    }
}

/// The events that are still to be written: lines of JSON, or frames of protobuf.
struct Lines {
    shaper: Shaper,
    encoding: Encoding,
    out: Rope,
}

impl Lines {
    /// An object as it is stored, in the version of `kind`.
    fn entry(&mut self, what: &str, kind: &Kind, entry: &Entry<Summary>) {
        if self.encoding == Encoding::Protobuf
            && self.shaper.shape == Shape::Object
            && let Some(message) = encode::message(kind, entry)
        {
            let object = protobuf::envelope(&kind.api_version(), &kind.kind, &message);
            return self.out.share(protobuf::encode_event(what, &object).into());
        }
        self.event(what, encode::object(kind, entry));
    }

    fn event(&mut self, what: &str, object: Bytes) {
        let object = self.shaper.event(object);
        self.line(what, object);
    }

    fn bookmark(&mut self, at: Revision, initial_events_end: bool) {
        let mut metadata = json!({"resourceVersion": at.0.to_string()});
        if initial_events_end {
            metadata["annotations"] = json!({INITIAL_EVENTS_END: "true"});
        }
        let object = self.shaper.bookmark(&metadata);
        self.line("BOOKMARK", object);
    }

    fn error(&mut self, error: &ApiError) {
        self.line("ERROR", error.to_status().to_string().into());
    }

    fn line(&mut self, what: &str, object: Bytes) {
        if self.encoding == Encoding::Protobuf {
            let object = protobuf::encode_text(&object).unwrap_or_default();
            return self.out.share(protobuf::encode_event(what, &object).into());
        }
        self.out.copy(b"{\"type\":\"");
        self.out.copy(what.as_bytes());
        self.out.copy(b"\",\"object\":");
        self.out.share(object);
        self.out.copy(b"}\n");
    }
}

/// The object of an event whose entry no longer carries what the client has to see: `value` under another version.
fn under_version(mut value: Value, version: Revision) -> Value {
    kubewright_meta::object::set_meta(&mut value, "resourceVersion", Some(version.0.to_string().into()));
    value
}
