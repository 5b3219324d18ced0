//! The live view: a page on loopback that shows what happens in a cluster, or what has happened in a recording.
//!
//! [`View`] is what is shown, [`Server`] the port on which it is. The page (`page/`: HTML, CSS and JavaScript without a build) is in the
//! program. It is there for anyone on this machine and says nothing; all data takes the token of the [link](Server::link),
//! which a browser keeps to itself, as it stands after the `#`.
//!
//! What the page gets are pure functions of the writes: a row for each, an object as lines with who owns
//! them, its changes. The page makes the tree of any moment of the rows by itself, so that a look at the past
//! costs the cluster nothing; a program that draws for a terminal takes the same rows by [`View::since`] and makes the
//! same tree by [`tree`].

mod answer;
mod api;
mod assets;
mod besides;
mod change;
mod fields;
mod history;
mod row;
mod rows;
mod secrets;
mod server;
mod state;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tree;
mod view;

pub use besides::ReconcileRow;
pub use row::Row;
pub use rows::Since;
pub use server::Server;
pub use state::State;
pub use tree::{Node, tree};
pub use view::View;
