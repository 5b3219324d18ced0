//! What the SDK promises, shown against a small API server in memory, in virtual time.

mod cache;
mod failures;
mod guards;
mod harness;
mod leader;
mod link;
mod operations;
mod parts;
mod probes;
mod reconciles;
mod scopes;
mod server;
mod shard;
mod shutdown;
mod sources;
mod storms;
mod workers;
mod writes;
