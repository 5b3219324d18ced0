//! Which entries a list, a watch or a deletion of many is about: those that selectors name, as the version asked for has them.
//!
//! In Kubernetes each version of a custom kind has a cache of its own, which holds what was converted, and selectors look at
//! that. So they do here, but what tags tell is not converted first.

use std::sync::Arc;

use kubewright_kinds::{Kind, Summary, encode, unreadable};
use kubewright_meta::ApiError;
use kubewright_store::Entry;

use crate::engine::{Engine, convert};
use crate::request::ListOptions;

/// How many entries are converted at once where not all of them may be selected.
const BATCH: usize = 500;

/// What was found of a collection.
pub(crate) struct Selected {
    /// In the version asked for.
    pub entries: Vec<Arc<Entry<Summary>>>,
    /// Whether entries were looked at behind the last one.
    pub(super) looked_further: bool,
}

/// Takes from `entries` what the selectors name, at most `most` of it, converted to the version of `kind`.
///
/// # Errors
/// 500 for an entry of a version that its definition no longer has, or that its webhook does not convert, be it selected or
/// not: that cannot be known then.
pub(crate) async fn select<'a>(
    engine: &Engine,
    kind: &Kind,
    options: &ListOptions,
    entries: &mut (impl Iterator<Item = &'a Arc<Entry<Summary>>> + Send),
    most: usize,
) -> Result<Selected, ApiError> {
    let mut found = Vec::new();
    let mut looked_further = false;
    while found.len() < most {
        let (batch, unsure) = next_batch(kind, options, entries, most - found.len());
        if batch.is_empty() {
            break;
        }
        unreadable::check_list(kind, batch.iter().map(AsRef::as_ref))?;
        let viewed = convert::viewed_all(engine, kind, batch).await?;
        for view in viewed {
            if found.len() == most {
                looked_further = true;
                break;
            }
            if !unsure || options.matches(kind, &view) {
                found.push(encode::shown(kind, view));
            }
        }
    }
    Ok(Selected { entries: found, looked_further })
}

/// The next entries that are selected; or, where only a conversion will tell, that may be: then more than are `wanted`, as
/// conversions are dear one by one. Returns whether it is the latter.
fn next_batch<'a>(
    kind: &Kind,
    options: &ListOptions,
    entries: &mut (impl Iterator<Item = &'a Arc<Entry<Summary>>> + Send),
    wanted: usize,
) -> (Vec<Arc<Entry<Summary>>>, bool) {
    let mut batch = Vec::new();
    let mut unsure = false;
    for entry in entries {
        let foreseen = options.foresees(kind, entry);
        if foreseen == Some(false) {
            continue;
        }
        unsure |= foreseen.is_none();
        batch.push(Arc::clone(entry));
        if batch.len() >= if unsure { BATCH } else { wanted } {
            break;
        }
    }
    (batch, unsure)
}
