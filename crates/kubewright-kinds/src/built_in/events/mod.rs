//! The group `events.k8s.io`.

pub mod event;

use super::BuiltIn;

/// Its kinds, in the order of discovery.
pub static KINDS: &[&BuiltIn] = &[&event::EVENT];
