//! The blocks of a text in PEM, as Go's `pem.Decode` finds them.

use pem::Pem;

const BEGIN: &str = "-----BEGIN ";

/// The blocks, in their order. What is between them is passed over, and so is a block that is not well formed.
pub(super) fn of(text: &str) -> Vec<Pem> {
    let starts = text.match_indices(BEGIN).map(|(at, _)| at);
    let starts: Vec<usize> = starts.filter(|&at| at == 0 || text.as_bytes()[at - 1] == b'\n').collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let parts = starts.iter().zip(ends).filter_map(|(&start, end)| text.get(start..end));
    parts.filter_map(|part| pem::parse(part).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_among_other_text_and_bad_ones_are_passed_over() {
        let text = "hello\n-----BEGIN A-----\nAAAA\n-----END A-----\nmore\n-----BEGIN B-----\n%%\n-----END B-----\n\
            -----BEGIN C-----\nkey: value\n\nBBBB\n-----END C-----";
        let found: Vec<_> =
            of(text).iter().map(|one| (one.tag().to_owned(), one.headers().iter().count())).collect();
        assert_eq!(found, [("A".to_owned(), 0), ("C".to_owned(), 1)]);
        assert!(of("-----BEGIN A").is_empty() && of("").is_empty());
    }
}
