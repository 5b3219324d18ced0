//! The edge: the API server as a tower service ([`ApiServer`]), what turns HTTP into calls of the engine, and the TLS
//! listener around it.

mod aggregation;
mod components;
mod connect;
mod connection;
mod dispatch;
pub(crate) mod in_flight;
pub mod incoming;
mod length;
pub mod listener;
mod patch_words;
mod places;
mod respond;
mod response_body;
mod sending;
mod service;
mod settings;
mod shares;
mod stream;
mod subresources;
mod system;
mod upgrade;
mod visitors;
mod websocket;

pub use components::Components;
pub use response_body::{CutOff, ResponseBody};
pub use service::{ApiServer, Config, WeakApiServer};
pub use settings::Settings;
