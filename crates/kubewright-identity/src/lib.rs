//! Who is it, and may they: what an API server knows of its clients, and of the servers that it asks itself.
//!
//! Users and what proves who they are ([`authn`]), what they may do ([`authz`]), which certificates are believed ([`trust`]),
//! and the client that calls webhooks ([`webhook`]).
//! Objects are read from snapshots of the store, whatever is stored beside them. No kind is known here, and no engine.

pub mod authn;
pub mod authz;
pub mod trust;
pub mod webhook;
