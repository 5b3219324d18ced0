//! The name server of the cluster: names of Services are answered from a [`Zone`], all others by the machine's own servers.

mod message;
mod resolvers;
mod server;

pub(crate) use self::server::Server;
