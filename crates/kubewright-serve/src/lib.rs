//! What serves anything here: the API server, an operator's webhooks, its metrics and health, and what else listens.
//!
//! - [`Listener`] accepts connections within a [`ConnectionLimit`], and ends them gracefully;
//! - [`connection`] has what connections share: a handshake in time, the end between two requests, plain HTTP/1.1;
//! - [`tls`] is the certificate that a server shows and the configuration of TLS around it;
//! - [`files`] reads certificates that somebody else renews;
//! - [`authority`] issues certificates;
//! - [`unverified`] is TLS to whoever listens;
//! - `signals` ask a program to end.
//!
//! Nothing here knows Kubernetes, nor what is served.

pub mod authority;
pub mod connection;
pub mod der;
pub mod files;
pub mod listener;
#[cfg(unix)]
pub mod signals;
pub mod tls;
pub mod unverified;

pub use listener::{ConnectionLimit, Listener, MaxConnections};
