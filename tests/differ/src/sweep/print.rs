//! What the sweep found: a cause is a kind, a place of it, and how the answers differ there.

use std::collections::BTreeMap;

use crate::compare::Difference;
use crate::fold::shape_of;

/// How much of two texts tells how they differ, from where they do.
const EXCERPT: usize = 60;

/// Causes, by how answers differ, and then by kind and place.
#[derive(Debug, Default)]
pub(crate) struct Causes {
    by_shape: BTreeMap<String, BTreeMap<String, Cause>>,
}

#[derive(Debug)]
struct Cause {
    times: usize,
    request: String,
    first: Difference,
}

impl Causes {
    pub(crate) fn add(&mut self, kind: &str, spot: &str, request: &str, difference: &Difference) {
        let causes = self.by_shape.entry(shape_of(&from_where_they_differ(difference))).or_default();
        let cause = causes.entry(format!("{kind} {spot}")).or_insert_with(|| Cause {
            times: 0,
            request: request.to_owned(),
            first: difference.clone(),
        });
        cause.times += 1;
    }

    pub(crate) fn len(&self) -> usize {
        self.by_shape.values().map(BTreeMap::len).sum()
    }

    /// Those that differ alike together, the most frequent first; of each sort the first request.
    pub(crate) fn print(&self) {
        let mut all: Vec<_> = self.by_shape.iter().collect();
        all.sort_by_key(|(_, causes)| std::cmp::Reverse(causes.len()));
        for (shape, causes) in all {
            println!("\n{shape}");
            let places: Vec<String> =
                causes.iter().map(|(place, cause)| format!("{place} ({} ×)", cause.times)).collect();
            println!("  {}", places.join(", "));
            if let Some(cause) = causes.values().min_by_key(|cause| cause.request.len()) {
                println!(
                    "  {}\n    reference  {}\n    ours       {}",
                    cause.request, cause.first.reference, cause.first.ours
                );
            }
        }
    }
}

/// The difference without what both texts begin with. The statuses of answers stay.
fn from_where_they_differ(difference: &Difference) -> Difference {
    if difference.path == "status" {
        return difference.clone();
    }
    let (left, right) = (&difference.reference, &difference.ours);
    let same = left.chars().zip(right.chars()).take_while(|(left, right)| left == right).count();
    let begin: Vec<char> = left.chars().take(same).collect();
    let word = begin.iter().rposition(|one| one.is_whitespace()).map_or(0, |at| at + 1);
    let rest = |text: &str| text.chars().skip(word).take(EXCERPT).collect::<String>();
    Difference { path: difference.path.clone(), reference: rest(left), ours: rest(right) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_a_kind_and_a_place_and_how_they_differ_whatever_the_index_and_the_number() {
        let mut causes = Causes::default();
        let found = |path: &str, ours: &str| Difference {
            path: path.to_owned(),
            reference: "422 must be 1".to_owned(),
            ours: ours.to_owned(),
        };
        causes.add("Pod", "spec.containers", "POST", &found("body.a.0", "201"));
        causes.add("Pod", "spec.containers", "POST", &found("body.a.1", "200"));
        assert_eq!(causes.len(), 1);
        causes.add("Pod", "spec.volumes", "POST", &found("body.a.1", "200"));
        causes.add("Job", "spec.containers", "POST", &found("body.a.1", "none"));
        assert_eq!(causes.len(), 3);
    }

    #[test]
    fn what_both_say_alike_does_not_tell_how_they_differ() {
        let found = |begin: &str| Difference {
            path: "body.message".to_owned(),
            reference: format!("{begin} must be less"),
            ours: format!("{begin} must be more"),
        };
        let mut causes = Causes::default();
        causes.add("Pod", "spec", "POST", &found("one"));
        causes.add("Pod", "spec", "POST", &found("quite another"));
        assert_eq!(causes.len(), 1);
    }
}
