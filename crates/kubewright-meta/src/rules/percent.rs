//! Numbers that may also be shares in percent (`IntOrString`), as rollouts and disruption budgets have them.

use super::at::At;
use super::errors::{Errors, NOT_NEGATIVE};
use crate::text;

/// The share that a text such as `25%` names.
pub fn share(at: &At<'_>) -> Option<i64> {
    let digits = at.text().strip_suffix('%')?;
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| digits.parse().unwrap_or(i64::MAX))
}

/// The whole number that it stands for where a share counts as its number (`getIntOrPercentValue`).
pub fn amount(at: &At<'_>) -> i64 {
    at.number().or_else(|| share(at)).or_else(|| at.text().parse().ok()).unwrap_or_default()
}

/// A number that is not negative, or a share (`ValidatePositiveIntOrPercent`).
pub fn check(at: &At<'_>, errors: &mut Errors) {
    match at.number() {
        Some(number) if number < 0 => errors.invalid(at, NOT_NEGATIVE),
        Some(_) => {}
        None => errors.text(at, text::percent),
    }
}

/// A share of at most the whole (`IsNotMoreThan100Percent`).
pub fn check_at_most_all(at: &At<'_>, errors: &mut Errors) {
    if share(at).is_some_and(|share| share > 100) {
        errors.invalid(at, "must not be greater than 100%");
    }
}
