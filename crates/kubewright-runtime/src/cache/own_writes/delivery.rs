//! Who gets a change.

use std::sync::Arc;

use super::{Author, Change};
use crate::Key;

/// A change on its way to those who follow the objects of a kind.
#[derive(Debug)]
pub(crate) struct Delivery<K: ?Sized> {
    pub(crate) change: Change<K>,
    pub(crate) recipients: Recipients,
    /// It is the creation of an object that was there before.
    pub(crate) is_initial: bool,
}

/// Who gets a change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Recipients {
    /// Everybody but these authors, from whom it is withheld.
    AllExcept(Vec<Arc<Author>>),
    /// This author, from whom it was withheld: it was not, or not alone, its own. All others have it.
    Only(Arc<Author>),
}

impl<K: ?Sized> Delivery<K> {
    pub(crate) fn new(change: Change<K>, recipients: Recipients) -> Self {
        Self { change, recipients, is_initial: false }
    }

    pub(crate) fn to_all(change: Change<K>) -> Self {
        Self::new(change, Recipients::AllExcept(Vec::new()))
    }

    /// Whether those who get every change have it already.
    pub(crate) fn is_repeated(&self) -> bool {
        matches!(self.recipients, Recipients::Only(_))
    }

    /// Whether a controller gets it for this key that does not get what its own reconcile of the key wrote.
    pub(crate) fn is_for(&self, controller: &str, key: &Key) -> bool {
        let is = |author: &Arc<Author>| author.key == *key && *author.controller == *controller;
        match &self.recipients {
            Recipients::AllExcept(authors) => !authors.iter().any(is),
            Recipients::Only(author) => is(author),
        }
    }
}
