//! The names of faults that a test may choose from.

/// What `faults(...)` takes.
pub(crate) const NAMES: &[&str] = &[
    "clock_skew",
    "conflict",
    "crash",
    "drop_watch",
    "duplicate",
    "error",
    "evict",
    "expire_watch",
    "latency",
    "lost_leader",
    "node_gone",
    "restart",
    "stale_watch",
    "throttle",
    "timeout",
    "webhook_down",
];
