//! The next time that a schedule is due (`SpecSchedule.Next` in `spec.go` of the library).
//!
//! Where clocks are put forward or back the library's answer is a matter of how it gets there: it goes by calendar from
//! one day to the next, and by the hour from there on. So the same steps are taken here, on a clock that reads dates as
//! Go's `time` package does.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

use super::syntax::Fields;

const HOUR: i64 = 60 * 60;
/// How far ahead is looked.
const YEARS: i16 = 5;

impl Fields {
    /// The first time after `after` at which the clocks of `zone` show what the fields say.
    pub(super) fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let sets = [self.minutes, self.hours, self.months];
        if sets.iter().any(|values| values.is_empty()) {
            return None;
        }
        let second =
            Timestamp::from_second(after.as_second()).ok()?.checked_add(Duration::from_secs(1)).ok()?;
        let mut clock = Clock::at(second, zone)?;
        let last_year = clock.shows.year().checked_add(YEARS)?;
        // Whether the seconds and so on down from the field that is looked at are at their start already.
        let mut fresh = false;
        while clock.shows.year() <= last_year {
            if self.advance(&mut clock, &mut fresh)? {
                return Some(clock.time);
            }
        }
        None
    }

    /// Goes on to the next time that fits, field by field; false when a field has begun anew, so that those above it
    /// have to be looked at again.
    fn advance(&self, clock: &mut Clock<'_>, fresh: &mut bool) -> Option<bool> {
        while !self.months.contains(clock.shows.month()) {
            if !std::mem::replace(fresh, true) {
                clock.turn_to(clock.shows.date().first_of_month().into())?;
            }
            clock.next_month()?;
            if clock.shows.month() == 1 {
                return Some(false);
            }
        }
        while !self.is_day(clock.shows.date()) {
            if !std::mem::replace(fresh, true) {
                clock.turn_to(clock.shows.date().into())?;
            }
            clock.next_day()?;
            if clock.shows.day() == 1 {
                return Some(false);
            }
        }
        while !self.hours.contains(clock.shows.hour()) {
            if !std::mem::replace(fresh, true) {
                clock.turn_to(clock.shows.date().at(clock.shows.hour(), 0, 0, 0))?;
            }
            clock.wait(HOUR)?;
            if clock.shows.hour() == 0 {
                return Some(false);
            }
        }
        while !self.minutes.contains(clock.shows.minute()) {
            if !std::mem::replace(fresh, true) {
                clock.wait(-clock.time.as_second().rem_euclid(60))?;
            }
            clock.wait(60)?;
            if clock.shows.minute() == 0 {
                return Some(false);
            }
        }
        if clock.shows.second() != 0 {
            *fresh = true;
            clock.wait(i64::from(60 - clock.shows.second()))?;
            return Some(false);
        }
        Some(true)
    }

    /// Where both fields for days are given, one of them has to fit.
    fn is_day(&self, date: Date) -> bool {
        let day = self.days.contains(date.day());
        let weekday = self.weekdays.contains(date.weekday().to_sunday_zero_offset());
        if self.days.any || self.weekdays.any { day && weekday } else { day || weekday }
    }
}

/// A time, and what the clocks of a zone show then.
struct Clock<'a> {
    zone: &'a TimeZone,
    time: Timestamp,
    shows: DateTime,
}

impl<'a> Clock<'a> {
    fn at(time: Timestamp, zone: &'a TimeZone) -> Option<Self> {
        let mut clock = Self { zone, time, shows: DateTime::MIN };
        clock.go_to(time.as_second())?;
        Some(clock)
    }

    fn go_to(&mut self, second: i64) -> Option<()> {
        self.time = Timestamp::from_second(second).ok()?;
        self.shows = self.zone.to_datetime(self.time);
        Some(())
    }

    fn wait(&mut self, seconds: i64) -> Option<()> {
        self.go_to(self.time.as_second().checked_add(seconds)?)
    }

    /// Goes to where the clocks show this, as Go's `time.Date` does: where they never do or do twice, by the offset of
    /// one side of the change.
    fn turn_to(&mut self, shows: DateTime) -> Option<()> {
        let local = TimeZone::UTC.to_timestamp(shows).ok()?.as_second();
        let offset =
            |second| Some(i64::from(self.zone.to_offset(Timestamp::from_second(second).ok()?).seconds()));
        let second = local - offset(local - offset(local)?)?;
        self.go_to(second)
    }

    /// The same day and time of the next month, or what follows where that month has no such day.
    fn next_month(&mut self) -> Option<()> {
        let date = self.shows.date();
        let first = date.first_of_month().checked_add(jiff::Span::new().months(1)).ok()?;
        let same = first.checked_add(jiff::Span::new().days(date.day() - 1)).ok()?;
        self.turn_to(same.to_datetime(self.shows.time()))
    }

    /// Midnight of the next day, or the hour that stands for it where clocks are put forward at midnight.
    fn next_day(&mut self) -> Option<()> {
        let (before, tomorrow) = (self.time, self.shows.date().tomorrow().ok()?);
        self.turn_to(tomorrow.to_datetime(self.shows.time()))?;
        if self.time <= before {
            // A zone that leaves out a whole day; the library never gets past it.
            self.go_to(before.as_second().checked_add(24 * HOUR)?)?;
        }
        match i64::from(self.shows.hour()) {
            0 => Some(()),
            hour if hour > 12 => self.wait((24 - hour) * HOUR),
            hour => self.wait(-hour * HOUR),
        }
    }
}
