//! Text, borrowed where it can be.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Text of an expression: a part of what was bound, or made by the expression.
#[derive(Clone)]
pub enum Text<'a> {
    /// Borrowed.
    Borrowed(&'a str),
    /// Made while evaluating.
    Shared(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Shared(text) => text,
        }
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Text::Shared(text.into())
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Text::Borrowed(text)
    }
}
