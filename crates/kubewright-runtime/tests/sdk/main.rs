//! What the SDK promises, shown against a small API server in memory, in virtual time.

mod cache;
mod failures;
mod harness;
mod leader;
mod link;
mod operations;
mod reconciles;
mod server;
mod shard;
mod shutdown;
mod writes;
