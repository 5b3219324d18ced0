//! What is checked about literals once types are known (cel-go's cel/validator.go, ext/formatting.go).

use super::Checked;
use crate::error::Issue;

/// The issues with literals.
pub(super) fn check(_: &Checked) -> Vec<Issue> {
    Vec::new()
}
