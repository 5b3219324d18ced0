//! What the SDK promises, shown against a small API server in memory, in virtual time.

mod cache;
mod failures;
mod harness;
mod reconciles;
mod server;
mod shutdown;
mod writes;
