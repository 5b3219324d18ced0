//! The API as clients see it, in this process and over sockets. One program: each more is a linked copy of the server.

mod admission;
mod aggregation;
mod bad_input;
mod custom_objects;
mod definitions;
mod deleting;
mod kinds_of_versions;
mod listener;
mod objects;
mod older_versions;
mod protobuf;
mod reading;
mod serving;
mod subresources;
mod support;
mod views;
mod writing;
