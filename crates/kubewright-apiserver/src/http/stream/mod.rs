//! Streams between clients and what runs in pods: sessions with processes, and connections to ports, over WebSocket and over
//! SPDY.

mod channels;
mod life;
mod negotiate;
mod pipe;
mod port_forward;
mod remote_command;
mod spdy;
mod status;
#[cfg(test)]
mod tests;

pub(super) use life::FAREWELL;
pub(super) use negotiate::{Forwarding, Sessions};
pub(super) use port_forward::Ports;
pub(super) use remote_command::Purpose;
