//! What logs say of a reconcile: controller-runtime's fields.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use kubewright_world::Clock;
use ring::digest::{Context, SHA256};
use tracing::{Span, error_span, field};

use crate::{Key, Reasons};

/// Makes the spans of a controller's reconciles.
#[derive(Clone)]
pub(crate) struct Spans(Arc<Inner>);

struct Inner {
    controller: Arc<str>,
    /// Group and kind of the controller's own kind.
    own: Option<(String, String)>,
    clock: Clock,
    count: AtomicU64,
}

impl Spans {
    pub(crate) fn new(controller: Arc<str>, own: Option<(String, String)>, clock: Clock) -> Self {
        Self(Arc::new(Inner { controller, own, clock, count: AtomicU64::new(0) }))
    }

    /// The span of a reconcile of `key` for these reasons. It costs nothing when nobody looks.
    pub(crate) fn reconcile(&self, key: &Key, reasons: &Reasons) -> Span {
        // Of the highest level, so that it names the controller and the object whatever level is logged.
        let span = error_span!(
            "reconcile",
            controller = %self.0.controller,
            controllerGroup = field::Empty,
            controllerKind = field::Empty,
            cluster = field::Empty,
            namespace = field::Empty,
            name = key.name,
            reconcileID = field::Empty,
            reason = field::Empty,
        );
        if span.is_disabled() {
            return span;
        }
        if let Some((group, kind)) = &self.0.own {
            span.record("controllerGroup", group).record("controllerKind", kind);
        }
        if let Some(cluster) = &key.cluster {
            span.record("cluster", &**cluster);
        }
        if let Some(namespace) = &key.namespace {
            span.record("namespace", namespace);
        }
        span.record("reconcileID", field::display(self.id())).record("reason", field::display(reasons));
        span
    }

    /// Another one each time, also in another process. It takes nothing from the World's dice: what is logged is not to
    /// change what happens.
    fn id(&self) -> Id {
        let mut hash = Context::new(&SHA256);
        hash.update(self.0.controller.as_bytes());
        hash.update(&std::process::id().to_le_bytes());
        hash.update(&self.0.clock.now().as_nanosecond().to_le_bytes());
        hash.update(&self.0.count.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash.finish().as_ref()[..16]);
        Id(u128::from_be_bytes(bytes))
    }
}

/// Written as a UUID of version 8: of its maker's own making.
struct Id(u128);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = (self.0 & !(0xf << 76) & !(0b11 << 62)) | 8 << 76 | 0b10 << 62;
        let part = |shift: u32, digits: u32| (bits >> shift) & ((1 << (4 * digits)) - 1);
        let parts = [part(96, 8), part(80, 4), part(64, 4), part(48, 4), part(0, 12)];
        let [a, b, c, d, e] = parts;
        write!(f, "{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_looks_like_a_uuid() {
        assert_eq!(Id(0).to_string(), "00000000-0000-8000-8000-000000000000");
        assert_eq!(Id(u128::MAX).to_string(), "ffffffff-ffff-8fff-bfff-ffffffffffff");
    }

    #[tokio::test(start_paused = true)]
    async fn two_reconciles_at_the_same_time_have_two_ids() {
        let spans = Spans::new("web".into(), None, Clock::simulated());
        assert_ne!(spans.id().to_string(), spans.id().to_string());
    }
}
