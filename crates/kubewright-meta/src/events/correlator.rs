//! Which events are worth a write (`k8s.io/client-go/tools/record/events_cache.go`): one that happens again is counted,
//! many that differ in their note alone become one, and a source has only so many to tell of an object.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::{EventType, SpamFilter};

/// So many notes of one reason within [`COMBINED_WITHIN`] become one event.
const MOST_NOTES: usize = 10;
const COMBINED_WITHIN: Duration = Duration::from_secs(600);
/// How many of each are remembered.
const MOST: usize = 4096;

/// What happened to whom.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Happening {
    /// The object's uid, or what else tells it from others.
    pub object: String,
    /// The part of the object that it is about, such as a container; empty for the whole of it.
    pub field: String,
    /// What sort of event it is.
    pub event_type: EventType,
    /// Why, in one word.
    pub reason: String,
    /// What a person reads.
    pub note: String,
}

/// What to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Nothing: there was too much of it.
    Nothing,
    /// A new event.
    Create(Remembered),
    /// One more of an event that was written under this name.
    Count(Remembered),
}

/// An event that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// Where it is remembered: what happened, or of what happened without the note when many are combined.
    pub key: Happening,
    /// What it says.
    pub note: String,
    /// When it happened first.
    pub first: Timestamp,
    /// How often it has happened.
    pub count: i32,
    /// Its name; empty until it was written.
    pub name: String,
}

/// What has been told lately, and how much of it.
#[derive(Debug, Default)]
pub struct Correlator {
    /// How long after its last time what happens again is the same event; without it, for ever.
    same_within: Option<Duration>,
    notes: BTreeMap<Happening, (Timestamp, BTreeSet<String>)>,
    told: BTreeMap<Happening, (Timestamp, Remembered)>,
    spam: SpamFilter<(String, EventType)>,
}

impl Correlator {
    /// One for which what happens again after this time is a new event, as series of `events.k8s.io` have it.
    #[must_use]
    pub fn of_series(same_within: Duration) -> Self {
        Self { same_within: Some(same_within), ..Self::default() }
    }

    /// What to write of something that happens at `now`.
    pub fn observe(&mut self, happening: Happening, now: Timestamp) -> Write {
        let (key, note) = self.combine(happening, now);
        let is_over = |last: Timestamp| {
            self.same_within.is_some_and(|limit| now.duration_since(last).unsigned_abs() >= limit)
        };
        let seen = self.told.get(&key).filter(|(last, _)| !is_over(*last)).map(|(_, told)| told.clone());
        let (count, first) =
            seen.as_ref().map_or((1, now), |told| (told.count.saturating_add(1), told.first));
        let name = seen.map(|told| told.name).unwrap_or_default();
        let event = Remembered { key, note, first, count, name };
        self.remember(event.clone(), now);
        if !self.spam.take((event.key.object.clone(), event.key.event_type), now) {
            Write::Nothing
        } else if event.name.is_empty() {
            Write::Create(event)
        } else {
            Write::Count(event)
        }
    }

    /// Remembers under which name an event was written.
    pub fn remember(&mut self, event: Remembered, now: Timestamp) {
        if self.told.len() >= MOST && !self.told.contains_key(&event.key) {
            forget_older_half(&mut self.told, |(time, _)| *time);
        }
        self.told.insert(event.key.clone(), (now, event));
    }

    /// The key of the event and what it says: from the tenth note on, that it is combined from several.
    fn combine(&mut self, happening: Happening, now: Timestamp) -> (Happening, String) {
        let similar = Happening { note: String::new(), field: String::new(), ..happening.clone() };
        if self.notes.len() >= MOST && !self.notes.contains_key(&similar) {
            forget_older_half(&mut self.notes, |(time, _)| *time);
        }
        let (last, notes) = self.notes.entry(similar.clone()).or_insert_with(|| (now, BTreeSet::new()));
        if now.duration_since(*last).unsigned_abs() > COMBINED_WITHIN {
            notes.clear();
        }
        *last = now;
        notes.insert(happening.note.clone());
        if notes.len() < MOST_NOTES {
            let note = happening.note.clone();
            return (happening, note);
        }
        notes.pop_first();
        (similar, format!("(combined from similar events): {}", happening.note))
    }
}

/// Keeps what is newer than most.
fn forget_older_half<K: Ord, V>(map: &mut BTreeMap<K, V>, time: impl Fn(&V) -> Timestamp) {
    let mut times: Vec<_> = map.values().map(&time).collect();
    let middle = times.len() / 2;
    let (_, middle, _) = times.select_nth_unstable(middle);
    let middle = *middle;
    map.retain(|_, value| time(value) > middle);
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::constant(1_767_225_600, 0);

    fn happening(object: &str, note: &str) -> Happening {
        Happening {
            object: object.into(),
            field: String::new(),
            event_type: EventType::Normal,
            reason: "Created".into(),
            note: note.into(),
        }
    }

    /// Observes and writes; gives the note and the count.
    fn observe(
        correlator: &mut Correlator,
        object: &str,
        note: &str,
        now: Timestamp,
    ) -> Option<(String, i32)> {
        match correlator.observe(happening(object, note), now) {
            Write::Nothing => None,
            Write::Create(event) => {
                assert!(event.name.is_empty());
                let told = (event.note.clone(), event.count);
                correlator.remember(Remembered { name: format!("{object}.1"), ..event }, now);
                Some(told)
            }
            Write::Count(event) => Some((event.note, event.count)),
        }
    }

    #[test]
    fn what_happens_again_is_counted() {
        let mut correlator = Correlator::default();
        assert_eq!(observe(&mut correlator, "web", "a", NOW), Some(("a".into(), 1)));
        assert_eq!(observe(&mut correlator, "web", "a", NOW), Some(("a".into(), 2)));
        assert_eq!(observe(&mut correlator, "web", "b", NOW), Some(("b".into(), 1)));
        assert_eq!(observe(&mut correlator, "other", "a", NOW), Some(("a".into(), 1)));
    }

    #[test]
    fn a_series_that_is_over_begins_anew() {
        let mut correlator = Correlator::of_series(Duration::from_secs(360));
        let at = |seconds: u64| NOW + Duration::from_secs(seconds);
        assert_eq!(observe(&mut correlator, "web", "a", at(0)), Some(("a".into(), 1)));
        assert_eq!(observe(&mut correlator, "web", "a", at(359)), Some(("a".into(), 2)));
        assert_eq!(observe(&mut correlator, "web", "a", at(719)), Some(("a".into(), 1)));
    }

    #[test]
    fn the_tenth_note_of_one_reason_and_those_after_it_are_one_event() {
        let mut correlator = Correlator::default();
        let told: Vec<_> =
            (0..12).filter_map(|at| observe(&mut correlator, "web", &format!("pod {at}"), NOW)).collect();
        assert_eq!(told[8], ("pod 8".into(), 1));
        assert_eq!(told[9], ("(combined from similar events): pod 9".into(), 1));
        assert_eq!(told[11], ("(combined from similar events): pod 11".into(), 3));
        let later = NOW + Duration::from_secs(601);
        assert_eq!(observe(&mut correlator, "web", "pod 12", later), Some(("pod 12".into(), 1)));
    }

    #[test]
    fn after_twenty_five_events_there_is_one_in_five_minutes() {
        let mut correlator = Correlator::default();
        let told = (0..40).filter_map(|_| observe(&mut correlator, "web", "a", NOW)).count();
        assert_eq!(told, 25);
        let later = NOW + Duration::from_secs(300);
        assert_eq!(observe(&mut correlator, "web", "a", later), Some(("a".into(), 41)));
        assert_eq!(observe(&mut correlator, "web", "a", later), None);
        assert!(observe(&mut correlator, "other", "a", later).is_some());
    }

    #[test]
    fn only_so_many_are_remembered() {
        let mut correlator = Correlator::default();
        for at in 0..3 * MOST {
            let now = NOW + Duration::from_millis(u64::try_from(at).expect("small"));
            observe(&mut correlator, &format!("web-{at}"), "a", now);
        }
        assert!(correlator.told.len() <= MOST && correlator.notes.len() <= MOST);
        assert!(correlator.spam.len() <= MOST);
    }
}
