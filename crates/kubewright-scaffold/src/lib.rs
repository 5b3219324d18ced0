//! Projects of operators: how they begin, and how kinds, versions and webhooks come into them.
//!
//! A [`Command`] is a request. What it would do to a project is a value, a [`ChangeSet`], which is computed from the
//! project's `PROJECT` and the files that are there. It can be shown as a diff, and is applied all at once: whoever is killed
//! half-way leaves the old state or the new one. A file that its user has edited is never overwritten.
//!
//! `docs/scaffold.md` says it for users.

mod apply;
mod begin;
mod built_in;
mod change;
mod command;
mod error;
mod folder;
mod import;
mod kind;
mod manifest;
pub mod names;
pub mod project;
mod record;
mod registry;
mod rendered;
mod rustfmt;
mod sdk;
mod templates;
mod version;

pub use change::{Change, ChangeSet, File, Found, Whose};
pub use command::{
    Ask, Command, Create, CreateApi, CreateVersion, CreateWebhook, Delete, DeleteApi, Environment, Import,
    ImportCrd, Init, Names, Planned, Source, Upgrade, WriteOptions,
};
pub use error::Error;
pub use folder::Folder;
pub use project::Project;
