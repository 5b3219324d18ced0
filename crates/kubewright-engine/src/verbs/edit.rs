//! Edits: what the server changes of an object by itself, or in a form of its own.

use kubewright_meta::ApiError;

use super::swap::{Step, View, swap};
use super::{Part, Written};
use crate::admission::Edit;
use crate::engine::Engine;
use crate::request::{Call, WriteOptions};

/// Changes the current object by a function of the server's own.
///
/// # Errors
/// 404, and what the function or the rules of the kind have against it.
pub async fn edit(
    engine: &Engine,
    call: Call<'_>,
    part: Part,
    dry_run: bool,
    edit: &Edit<'_>,
) -> Result<Written, ApiError> {
    let options = WriteOptions { dry_run, ..WriteOptions::default() };
    swap(engine, call, part, &Step::Edit(edit), &options, Vec::new()).await
}

/// The same, as a write of a manager, who owns what it changes.
///
/// # Errors
/// As [`edit`].
pub(super) async fn edit_as(
    engine: &Engine,
    call: Call<'_>,
    part: Part,
    manager: &str,
    edit: &Edit<'_>,
) -> Result<Written, ApiError> {
    let options = WriteOptions { manager: manager.to_owned(), ..WriteOptions::default() };
    swap(engine, call, part, &Step::Edit(edit), &options, Vec::new()).await
}

/// Changes the part of the current object that a view shows.
///
/// # Errors
/// 404, and what the view, admission or the rules of the kind have against it.
pub(super) async fn write_view(
    engine: &Engine,
    call: Call<'_>,
    view: &dyn View,
    options: &WriteOptions,
) -> Result<Written, ApiError> {
    swap(engine, call, Part::Main, &Step::View(view), options, Vec::new()).await
}
