//! What stands on the wire: how an API server reads what it is asked for and writes what it answers.
//!
//! Bodies in JSON, YAML and protobuf ([`body`], [`json`], [`yaml`], [`protobuf`]), as Go decodes them; which of them a client
//! wants ([`negotiate`]); what a URL names ([`request`]); bytes on their way ([`rope`]). All are functions of bytes. No
//! schema is known here, no kind, and no connection.

pub mod body;
pub mod json;
pub mod negotiate;
pub mod protobuf;
pub mod request;
pub mod rope;
pub mod yaml;
