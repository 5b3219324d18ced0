//! Sets of completion indexes as a status writes them, `0-3,5,7,8` (`pkg/controller/job/indexed_job_utils.go`).

use std::fmt;

/// Completion indexes: ranges in order, none touching the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes(Vec<Range>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Range {
    first: u32,
    last: u32,
}

impl Indexes {
    /// Reads those below `completions`; what is no range is left out.
    pub(super) fn parse(text: &str, completions: u32) -> Self {
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            let last = last.min(completions.checked_sub(1)?);
            (first <= last).then_some(Range { first, last })
        };
        Self::of(text.split(',').filter_map(range).collect())
    }

    fn of(mut ranges: Vec<Range>) -> Self {
        ranges.sort_unstable();
        let mut merged: Vec<Range> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match merged.last_mut() {
                Some(before) if range.first <= before.last.saturating_add(1) => {
                    before.last = before.last.max(range.last);
                }
                _ => merged.push(range),
            }
        }
        Self(merged)
    }

    /// These and those.
    pub(super) fn union(&self, other: &Self) -> Self {
        Self::of(self.0.iter().chain(&other.0).copied().collect())
    }

    /// How many there are.
    pub(super) fn count(&self) -> u32 {
        self.0.iter().map(|range| range.last - range.first + 1).sum()
    }

    pub(super) fn contains(&self, index: u32) -> bool {
        let at = self.0.partition_point(|range| range.last < index);
        self.0.get(at).is_some_and(|range| range.first <= index)
    }

    /// How many are in both.
    pub(super) fn overlap(&self, other: &Self) -> u32 {
        let both = |a: &Range, b: &Range| (a.last.min(b.last) + 1).saturating_sub(a.first.max(b.first));
        self.0.iter().map(|range| other.0.iter().map(|with| both(range, with)).sum::<u32>()).sum()
    }

    /// The lowest `count` indexes below `completions` that are not among these.
    pub(super) fn missing(&self, count: usize, completions: u32) -> Vec<u32> {
        let mut starts = vec![0];
        starts.extend(self.0.iter().map(|range| range.last.saturating_add(1)));
        let ends = self.0.iter().map(|range| range.first.min(completions)).chain([completions]);
        starts.into_iter().zip(ends).flat_map(|(start, end)| start..end).take(count).collect()
    }
}

impl FromIterator<u32> for Indexes {
    fn from_iter<I: IntoIterator<Item = u32>>(indexes: I) -> Self {
        Self::of(indexes.into_iter().map(|index| Range { first: index, last: index }).collect())
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Range { first, last }) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::btree_set;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_neighbours_are_written_apart_and_more_as_a_range() {
        let text = |indexes: &[u32]| indexes.iter().copied().collect::<Indexes>().to_string();
        assert_eq!(text(&[3, 1, 2, 5, 8, 7]), "1-3,5,7,8");
        assert_eq!(text(&[]), "");
    }

    #[test]
    fn what_is_out_of_bounds_or_no_number_is_left_out() {
        assert_eq!(Indexes::parse("0,x,2-9,12", 6).to_string(), "0,2-5");
        assert_eq!(Indexes::parse("0-4", 0), Indexes::default());
    }

    proptest! {
        #[test]
        fn they_are_a_set(a in btree_set(0..60_u32, 0..30), b in btree_set(0..60_u32, 0..30), count in 0..70_usize) {
            let (left, right): (Indexes, Indexes) = (a.iter().copied().collect(), b.iter().copied().collect());
            let both: BTreeSet<_> = a.union(&b).copied().collect();
            let union = left.union(&right);
            prop_assert_eq!(&union, &both.iter().copied().collect());
            prop_assert_eq!(union.count() as usize, both.len());
            prop_assert_eq!(left.overlap(&right) as usize, a.intersection(&b).count());
            prop_assert_eq!(&Indexes::parse(&union.to_string(), 60), &union);
            prop_assert!((0..61).all(|index| union.contains(index) == both.contains(&index)));
            let missing: Vec<_> = (0..60).filter(|index| !both.contains(index)).take(count).collect();
            prop_assert_eq!(union.missing(count, 60), missing);
        }
    }
}
