//! What is done to objects.

/// What a write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// The next state of an object, or of a part of it.
    Update,
    /// An object goes.
    Delete,
    /// Somebody is led to what is behind an object.
    Connect,
}
