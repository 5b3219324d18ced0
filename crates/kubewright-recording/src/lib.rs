//! The format of recordings: what was written in a cluster, and who asked for what, in one file.
//!
//! A file is eight bytes that say what it is, and blocks. The first block has the [`Header`], each other one [`Record`]s as
//! JSON, compressed. In front of each block stands how long it is and which revisions and times are in it ([`Span`]), so that
//! what is not wanted is passed over. A block is written whole: who reads while it is written sees the whole blocks, and what
//! a program that was ended has left of a block is cut off ([`Writer::append`]). docs/recordings.md has it byte by byte.
//!
//! Nothing here reads a clock, opens a file or knows a kind but Secret, whose data the [`Redactor`] hashes.

mod at;
mod block;
mod reader;
mod record;
mod redact;
#[cfg(test)]
mod tests;
mod writer;

pub use at::{At, BadAt, Limit};
pub use block::Span;
pub use reader::{BadRecording, Block, Reader, is_recording};
pub use record::{Author, Did, Header, Mark, Reconcile, Record, Request, Write};
pub use redact::{BadPath, FieldPath, Redactor};
pub use writer::Writer;
