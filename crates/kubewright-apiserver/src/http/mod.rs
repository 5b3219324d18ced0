//! The edge: the API server as a tower service ([`ApiServer`]), what turns HTTP into calls of the engine, and the TLS
//! listener around it.

pub mod authority;
pub mod body;
mod connect;
mod connection;
mod dispatch;
pub(crate) mod json;
pub mod listener;
pub mod negotiate;
pub mod protobuf;
pub mod request;
mod respond;
mod service;
pub(crate) mod shape;
mod subject;
mod subresources;
mod system;
pub mod tls;

pub use respond::ResponseBody;
pub use service::{ApiServer, Config};
