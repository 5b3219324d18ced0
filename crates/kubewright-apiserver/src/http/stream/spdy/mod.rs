//! SPDY/3.1 as far as Kubernetes' clients speak it (`github.com/moby/spdystream`): streams with headers in one connection,
//! without flow control of their own, priorities or pushed streams.

mod connection;
mod dictionary;
pub(super) mod frame;
mod headers;

pub(super) use connection::{Stream, serve};
pub(super) use headers::Headers;

/// Why a connection of SPDY cannot go on.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The connection.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The client sends what is no SPDY.
    #[error("{0}")]
    Protocol(&'static str),
}
