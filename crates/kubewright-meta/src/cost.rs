//! What work costs, counted: a test says how the cost of walking an object grows, and no clock is asked.
//!
//! Whatever walks objects or schemas counts its steps here: one for each value (or pair of values) that it looks at. A
//! thread counts from the first time that it asks for the count, so only tests of the cost do. In a release build there is no
//! counter, and a step is nothing.

use serde_json::Value;

#[cfg(debug_assertions)]
thread_local! {
    /// Nothing on a thread that has not asked.
    static STEPS: std::cell::Cell<Option<u64>> = const { std::cell::Cell::new(None) };
}

/// One value was looked at.
#[inline]
pub fn step() {
    steps(1);
}

/// So many values, or bytes, were.
#[inline]
pub fn steps(count: usize) {
    #[cfg(debug_assertions)]
    STEPS.with(|steps| steps.set(steps.get().map(|counted| counted + count as u64)));
    #[cfg(not(debug_assertions))]
    let _ = count;
}

/// A copy of a value: a step for each value in it.
#[inline]
#[must_use]
pub fn copied(value: &Value) -> Value {
    #[cfg(debug_assertions)]
    if STEPS.get().is_some() {
        steps(size(value));
    }
    value.clone()
}

/// How many values there are in a value, itself among them.
#[cfg(debug_assertions)]
fn size(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(members) => members.values().map(size).sum::<usize>(),
        _ => 0,
    }
}

/// How many steps this thread has counted so far. It begins to when it is asked for the first time.
#[cfg(debug_assertions)]
#[must_use]
pub fn counted() -> u64 {
    let counted = STEPS.get().unwrap_or_default();
    STEPS.set(Some(counted));
    counted
}
