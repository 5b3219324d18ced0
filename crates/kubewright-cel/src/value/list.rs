//! Lists: JSON arrays as they are, or values that an expression made.

use std::sync::Arc;

use serde_json::Value as Json;

use super::{Value, json, weight};
use crate::declaration::{DeclType, ListKind};
use crate::error::EvaluationError;

/// A list.
#[derive(Clone, Debug)]
pub struct List<'a> {
    pub(crate) items: Items<'a>,
    /// How items belong together, if a schema says so.
    pub(crate) kind: Option<&'a ListKind>,
}

/// The items of a list.
#[derive(Clone, Debug)]
pub(crate) enum Items<'a> {
    /// JSON, with what is declared about each item.
    Json(&'a [Json], Option<&'a DeclType>),
    /// Values, and how much there is in them.
    Values(Arc<Vec<Value<'a>>>, u64),
}

impl<'a> List<'a> {
    /// A list of values.
    #[must_use]
    pub fn new(values: Vec<Value<'a>>) -> Self {
        let weight = weight::sum(&values);
        Self { items: Items::Values(Arc::new(values), weight), kind: None }
    }

    /// How many items it has.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.items {
            Items::Json(items, _) => items.len(),
            Items::Values(values, _) => values.len(),
        }
    }

    /// Whether it has no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at the index, if there is one.
    ///
    /// # Errors
    ///
    /// If the item's JSON is not what it was declared to be.
    pub fn get(&self, index: usize) -> Option<Result<Value<'a>, EvaluationError>> {
        match &self.items {
            Items::Json(items, None) => items.get(index).map(|item| Ok(json::dynamic(item))),
            Items::Json(items, Some(declaration)) => {
                items.get(index).map(|item| json::declared(item, declaration))
            }
            Items::Values(values, _) => values.get(index).cloned().map(Ok),
        }
    }

    /// The items, in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Value<'a>, EvaluationError>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// The items.
    ///
    /// # Errors
    ///
    /// If one is not what it was declared to be.
    pub fn values(&self) -> Result<Vec<Value<'a>>, EvaluationError> {
        self.iter().collect()
    }
}
