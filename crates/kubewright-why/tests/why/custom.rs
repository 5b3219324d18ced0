//! custom.
