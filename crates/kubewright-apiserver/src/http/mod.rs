//! The edge: the API server as a tower service ([`ApiServer`]), what turns HTTP into calls of the engine, and the TLS
//! listener around it.

pub mod body;
mod connect;
mod connection;
mod dispatch;
pub(crate) mod in_flight;
pub mod incoming;
pub(crate) mod json;
mod length;
pub mod listener;
pub mod negotiate;
mod places;
pub mod protobuf;
pub mod request;
mod respond;
mod response_body;
pub(crate) mod rope;
mod sending;
mod service;
mod settings;
pub(crate) mod shape;
mod shares;
mod stream;
mod subresources;
mod system;
mod upgrade;
mod visitors;
mod websocket;
pub(crate) mod yaml;

pub use response_body::{CutOff, ResponseBody};
pub use rope::WholeLines;
pub use service::{ApiServer, Config, WeakApiServer};
pub use settings::Settings;
