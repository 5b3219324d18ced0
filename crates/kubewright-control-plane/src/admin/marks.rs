//! What a test did to a cluster that is neither a write nor a request: faults that came and went, and time that was let pass.

use std::collections::VecDeque;

use jiff::Timestamp;
use kubewright_recording::Mark;

/// How many are kept.
const KEPT: usize = 4_096;

/// The last marks.
#[derive(Debug, Default)]
pub(super) struct Marks {
    kept: VecDeque<Mark>,
    forgotten: u64,
}

impl Marks {
    /// Notes one, such as `fault`.
    pub(super) fn add(&mut self, time: Timestamp, what: &str, note: String) {
        if self.kept.len() >= KEPT {
            self.kept.pop_front();
            self.forgotten += 1;
        }
        self.kept.push_back(Mark { time, what: what.to_owned(), note });
    }

    /// Those after the first `position` that are kept, and the position behind all.
    pub(super) fn since(&self, position: u64) -> (Vec<Mark>, u64) {
        let skipped = usize::try_from(position.saturating_sub(self.forgotten)).unwrap_or(usize::MAX);
        let marks = self.kept.iter().skip(skipped).cloned().collect();
        (marks, self.forgotten + self.kept.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mark_is_given_once_and_the_oldest_are_forgotten() {
        let mut marks = Marks::default();
        for number in 0..KEPT + 2 {
            marks.add(Timestamp::UNIX_EPOCH, "clock", number.to_string());
        }
        let (all, position) = marks.since(0);
        assert_eq!((all.len(), &*all[0].note, position), (KEPT, "2", KEPT as u64 + 2));
        assert_eq!(marks.since(position).0, []);
        marks.add(Timestamp::UNIX_EPOCH, "fault", "one".to_owned());
        assert_eq!(marks.since(position).0.len(), 1);
    }
}
