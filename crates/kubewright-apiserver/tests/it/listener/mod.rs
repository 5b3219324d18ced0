//! The HTTPS listener over real sockets on the loopback: what it serves, what it refuses, how it ends.

mod client;
mod end;
mod places;
mod refuse;
mod serve;
mod server;
