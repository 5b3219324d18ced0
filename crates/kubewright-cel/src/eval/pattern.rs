//! Regular expressions: RE2's syntax, in linear time and bounded space.

use regex::{Regex, RegexBuilder};

use crate::pattern::translated;

/// The most bytes that a compiled pattern may take.
pub(super) const SIZE_LIMIT: usize = 1 << 20;

/// A compiled pattern, and how long its text was.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) regex: Regex,
    /// In code points; what matching costs depends on it.
    pub(crate) length: u64,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// What is wrong with it, as Go says it.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let mut builder = RegexBuilder::new(&translated(text)?);
        let regex = builder.size_limit(SIZE_LIMIT).dfa_size_limit(SIZE_LIMIT).build();
        let regex = regex.map_err(|_| format!("error parsing regexp: expression too large: `{text}`"))?;
        Ok(Self { regex, length: text.chars().count() as u64 })
    }
}

/// About how much work it is to compile a pattern, by its text alone, in characters: an upper bound, as if all that is repeated were
/// repeated one within the other; a class of Unicode counts for the many ranges that it has.
#[must_use]
pub fn pattern_size(text: &str) -> usize {
    const LEAST: usize = 200;
    const CLASS: usize = 200;
    let most = |rest: &str| rest.split('}').next()?.rsplit(',').find_map(|count| count.parse::<usize>().ok());
    let repeats = text.split('{').skip(1).filter_map(most).filter(|count| *count > 1);
    let classes = text.matches("\\p").chain(text.matches("\\P")).count();
    repeats.fold(LEAST + text.len() + classes * CLASS, usize::saturating_mul)
}
