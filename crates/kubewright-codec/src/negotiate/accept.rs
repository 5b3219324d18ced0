//! The `Accept` header, clause by clause (`github.com/munnerz/goautoneg`).

use std::cmp::Ordering;

/// One alternative of the header.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Clause<'a> {
    /// `application`.
    pub(super) kind: &'a str,
    /// `json`.
    pub(super) subtype: &'a str,
    quality: f32,
    parameters: &'a str,
}

impl<'a> Clause<'a> {
    /// The alternatives, best first: by quality, what is named before what is a wildcard, else as they stand there.
    /// (A quality of 0 forbids nothing.)
    pub(super) fn all(header: &'a str) -> Vec<Self> {
        let mut clauses: Vec<Self> = header.split(',').filter_map(Self::read).collect();
        clauses.sort_by(Self::order);
        clauses
    }

    fn read(text: &'a str) -> Option<Self> {
        let (media_type, parameters) = text.trim_matches(' ').split_once(';').unwrap_or((text, ""));
        let (kind, subtype) = match media_type.trim_matches(' ').split_once('/') {
            Some((_, subtype)) if subtype.is_empty() || subtype.contains('/') => return None,
            Some((kind, subtype)) => (kind.trim_matches(' '), subtype.trim_matches(' ')),
            None if media_type.trim_matches(' ') == "*" => ("*", "*"),
            None => return None,
        };
        let mut clause = Self { kind, subtype, quality: 1.0, parameters };
        if let Some((_, quality)) = clause.all_parameters().find(|(name, _)| *name == "q") {
            clause.quality = quality.parse().unwrap_or(0.0);
        }
        Some(clause)
    }

    fn order(&self, other: &Self) -> Ordering {
        let wild = |part: &str| part == "*";
        other
            .quality
            .total_cmp(&self.quality)
            .then_with(|| wild(self.kind).cmp(&wild(other.kind)))
            .then_with(|| wild(self.subtype).cmp(&wild(other.subtype)))
    }

    fn all_parameters(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.parameters.split(';').filter_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            (!value.is_empty() && !value.contains('='))
                .then_some((name.trim_matches(' '), value.trim_matches(' ')))
        })
    }

    /// Its parameters but the quality, in order.
    pub(super) fn parameters(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.all_parameters().filter(|(name, _)| *name != "q")
    }

    /// Whether it takes a media type.
    pub(super) fn takes(&self, kind: &str, subtype: &str) -> bool {
        match (self.kind, self.subtype) {
            ("*", "*") => true,
            (own, "*") => own == kind,
            (own, name) => own == kind && name == subtype,
        }
    }
}

/// Whether the header names one of the media types by itself, or `*/*`: what the router asks before all else
/// (`github.com/emicklei/go-restful`, `matchesAccept`).
pub(super) fn names_any(header: &str, media_types: &[&str]) -> bool {
    header.split(',').any(|clause| {
        let media_type = clause.split(';').next().unwrap_or_default().trim_matches(' ');
        media_type == "*/*" || media_types.contains(&media_type)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(header: &str) -> Vec<String> {
        Clause::all(header).iter().map(|clause| format!("{}/{}", clause.kind, clause.subtype)).collect()
    }

    #[test]
    fn the_best_comes_first() {
        assert_eq!(order("a/b;q=0.5,c/d;q=0.9"), ["c/d", "a/b"]);
        assert_eq!(order("*/*, a/*, a/b"), ["a/b", "a/*", "*/*"]);
        assert_eq!(order("a/b, c/d"), ["a/b", "c/d"]);
        assert_eq!(order("a/b;q=0, c/d;q=x"), ["a/b", "c/d"]);
    }

    #[test]
    fn what_is_no_media_type_is_passed_over() {
        assert_eq!(order("garbage, a/b/c, a/, , *, a/b;"), ["a/b", "*/*"]);
    }

    #[test]
    fn the_router_knows_no_partial_wildcards() {
        assert!(names_any("text/html, */*;q=0.1", &["application/json"]));
        assert!(names_any("application/json;as=Table", &["application/json"]));
        assert!(!names_any("application/*", &["application/json"]));
        assert!(!names_any("APPLICATION/JSON", &["application/json"]));
    }
}
