//! Schedules against the library: what it (v3.0.1) says of them, told by a program in Go.

use jiff::Timestamp;
use proptest::prelude::*;

use super::{Schedule, zone};

/// A schedule, the zone that it is read in, a time, and when it is due next.
type Due = (&'static str, &'static str, &'static str, &'static [&'static str]);

#[rustfmt::skip]
const DUE: &[Due] = &[
    ("* * * * *", "UTC", "2026-01-01T00:00:00Z", &["2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"]),
    ("*/15 * * * *", "UTC", "2026-01-01T00:07:30Z", &["2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z", "2026-01-01T00:45:00Z"]),
    ("30 6-16/4 * * 1-5", "UTC", "2026-01-02T10:31:00Z", &["2026-01-02T14:30:00Z", "2026-01-05T06:30:00Z", "2026-01-05T10:30:00Z"]),
    ("0 0 1,15 * 3", "UTC", "2026-01-01T00:00:00Z", &["2026-01-07T00:00:00Z", "2026-01-14T00:00:00Z", "2026-01-15T00:00:00Z", "2026-01-21T00:00:00Z"]),
    ("0 0 1 * *", "UTC", "2026-01-31T00:00:00Z", &["2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"]),
    ("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", &["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]),
    ("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", &[]),
    ("59 23 31 2 *", "UTC", "2026-01-01T00:00:00Z", &[]),
    ("0 0 */2 * 1", "UTC", "2026-01-01T00:00:00Z", &["2026-01-03T00:00:00Z", "2026-01-05T00:00:00Z", "2026-01-07T00:00:00Z", "2026-01-09T00:00:00Z"]),
    ("0 0 */1 * 1", "UTC", "2026-01-01T00:00:00Z", &["2026-01-05T00:00:00Z", "2026-01-12T00:00:00Z", "2026-01-19T00:00:00Z"]),
    ("0 0 ? * mon-FRI", "UTC", "2026-01-02T12:00:00Z", &["2026-01-05T00:00:00Z", "2026-01-06T00:00:00Z"]),
    ("5/20 * * jun *", "UTC", "2026-01-01T00:00:00Z", &["2026-06-01T00:05:00Z", "2026-06-01T00:25:00Z", "2026-06-01T00:45:00Z"]),
    ("@hourly", "Asia/Kolkata", "2026-01-01T00:00:00Z", &["2026-01-01T00:30:00Z", "2026-01-01T01:30:00Z"]),
    ("@daily", "Asia/Kolkata", "2026-01-01T00:00:00Z", &["2026-01-01T18:30:00Z", "2026-01-02T18:30:00Z"]),
    ("@weekly", "UTC", "2026-01-01T00:00:00Z", &["2026-01-04T00:00:00Z", "2026-01-11T00:00:00Z"]),
    ("@yearly", "UTC", "2026-01-01T00:00:00Z", &["2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z"]),
    ("@every 1h30m", "UTC", "2026-01-01T00:00:00.5Z", &["2026-01-01T01:30:00Z", "2026-01-01T03:00:00Z"]),
    ("@every 300ms", "UTC", "2026-01-01T00:00:00.5Z", &["2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"]),
    ("30 2 * * *", "America/New_York", "2026-03-07T00:00:00Z", &["2026-03-07T07:30:00Z", "2026-03-09T06:30:00Z", "2026-03-10T06:30:00Z", "2026-03-11T06:30:00Z"]),
    ("0 3 * * *", "America/New_York", "2026-03-07T00:00:00Z", &["2026-03-07T08:00:00Z", "2026-03-08T07:00:00Z", "2026-03-09T07:00:00Z", "2026-03-10T07:00:00Z"]),
    ("0 * * * *", "America/New_York", "2026-03-08T05:30:00Z", &["2026-03-08T06:00:00Z", "2026-03-08T07:00:00Z", "2026-03-08T08:00:00Z", "2026-03-08T09:00:00Z"]),
    ("0 2 8 3 *", "America/New_York", "2026-01-01T00:00:00Z", &["2027-03-08T07:00:00Z", "2028-03-08T07:00:00Z"]),
    ("@daily", "America/New_York", "2026-03-07T00:00:00Z", &["2026-03-07T05:00:00Z", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z", "2026-03-10T04:00:00Z"]),
    ("30 1 * * *", "America/New_York", "2026-10-31T00:00:00Z", &["2026-10-31T05:30:00Z", "2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z", "2026-11-02T06:30:00Z"]),
    ("0 * * * *", "America/New_York", "2026-11-01T03:30:00Z", &["2026-11-01T04:00:00Z", "2026-11-01T05:00:00Z", "2026-11-01T06:00:00Z", "2026-11-01T07:00:00Z", "2026-11-01T08:00:00Z"]),
    ("@daily", "America/New_York", "2026-10-31T00:00:00Z", &["2026-10-31T04:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", "2026-11-03T05:00:00Z"]),
    ("0 2 * * *", "America/New_York", "2026-10-31T00:00:00Z", &["2026-10-31T06:00:00Z", "2026-11-01T07:00:00Z", "2026-11-02T07:00:00Z", "2026-11-03T07:00:00Z"]),
    ("@daily", "America/Sao_Paulo", "2018-11-02T12:00:00Z", &["2018-11-03T03:00:00Z", "2018-11-05T02:00:00Z", "2018-11-06T02:00:00Z", "2018-11-07T02:00:00Z"]),
    ("0 0 4 11 *", "America/Sao_Paulo", "2018-10-01T12:00:00Z", &["2019-11-04T03:00:00Z"]),
    ("30 0 * * *", "America/Sao_Paulo", "2018-11-02T12:00:00Z", &["2018-11-03T03:30:00Z", "2018-11-05T02:30:00Z", "2018-11-06T02:30:00Z", "2018-11-07T02:30:00Z"]),
    ("@daily", "America/Sao_Paulo", "2018-02-16T12:00:00Z", &["2018-02-17T02:00:00Z", "2018-02-18T03:00:00Z", "2018-02-19T03:00:00Z", "2018-02-20T03:00:00Z"]),
    ("30 23 * * *", "America/Sao_Paulo", "2018-02-16T12:00:00Z", &["2018-02-17T01:30:00Z", "2018-02-18T01:30:00Z", "2018-02-18T02:30:00Z", "2018-02-19T02:30:00Z"]),
    ("15 2 * * *", "Australia/Lord_Howe", "2026-04-03T12:00:00Z", &["2026-04-03T15:15:00Z", "2026-04-05T15:45:00Z", "2026-04-06T15:45:00Z", "2026-04-07T15:45:00Z"]),
    ("45 1 * * *", "Australia/Lord_Howe", "2026-04-03T12:00:00Z", &["2026-04-03T14:45:00Z", "2026-04-04T14:45:00Z", "2026-04-04T15:15:00Z", "2026-04-05T15:15:00Z"]),
    ("15 2 * * *", "Australia/Lord_Howe", "2026-10-02T12:00:00Z", &["2026-10-02T15:45:00Z", "2026-10-04T15:15:00Z", "2026-10-05T15:15:00Z", "2026-10-06T15:15:00Z"]),
    ("@hourly", "Australia/Lord_Howe", "2026-10-03T13:00:00Z", &["2026-10-03T13:30:00Z", "2026-10-03T14:30:00Z", "2026-10-03T16:00:00Z", "2026-10-03T17:00:00Z", "2026-10-03T18:00:00Z"]),
    ("@hourly", "Australia/Lord_Howe", "2026-04-04T13:00:00Z", &["2026-04-04T14:00:00Z", "2026-04-04T15:30:00Z", "2026-04-04T16:30:00Z", "2026-04-04T17:30:00Z", "2026-04-04T18:30:00Z"]),
    ("30 1 * * *", "Europe/London", "2026-03-28T00:00:00Z", &["2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z"]),
    ("30 1 * * *", "Europe/London", "2026-10-24T00:00:00Z", &["2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]),
    ("*/30 0-2 * * *", "Europe/London", "2026-10-24T23:00:00Z", &["2026-10-24T23:30:00Z", "2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z", "2026-10-25T02:30:00Z", "2026-10-26T00:00:00Z"]),
    ("@daily", "Pacific/Apia", "2011-12-28T12:00:00Z", &["2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z", "2012-01-01T10:00:00Z"]),
    ("TZ=Asia/Tokyo 0 9 * * *", "UTC", "2026-01-01T00:00:00Z", &["2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"]),
    ("CRON_TZ=Europe/Berlin  0 9 * * *", "UTC", "2026-01-01T00:00:00Z", &["2026-01-01T08:00:00Z", "2026-01-02T08:00:00Z"]),
    (", * * * *", "UTC", "2026-01-01T00:00:00Z", &[]),
    ("0 0 , * ,", "UTC", "2026-01-01T00:00:00Z", &[]),
];

#[rustfmt::skip]
const UNREADABLE: &[(&str, &str)] = &[
    ("", "empty spec string"),
    ("bad", "expected exactly 5 fields, found 1: [bad]"),
    ("@often", "unrecognized descriptor: @often"),
    ("@every x", "failed to parse duration @every x: time: invalid duration \"x\""),
    ("@every 1", "failed to parse duration @every 1: time: missing unit in duration \"1\""),
    ("@every 1y", "failed to parse duration @every 1y: time: unknown unit \"y\" in duration \"1y\""),
    ("60 * * * *", "end of range (60) above maximum (59): 60"),
    ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
    ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
    ("*/0 * * * *", "step of range should be a positive number: */0"),
    ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
    ("1/2/3 * * * *", "too many slashes: 1/2/3"),
    ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
    ("-1 * * * *", "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax"),
    ("1--2 * * * *", "too many hyphens: 1--2"),
    ("99999999999999999999 * * * *", "failed to parse int from 99999999999999999999: strconv.Atoi: parsing \"99999999999999999999\": value out of range"),
    ("TZ=UTC ", "expected exactly 5 fields, found 0: []"),
    ("TZ=Nowhere/Land * * * * *", "provided bad location Nowhere/Land: unknown time zone Nowhere/Land"),
    ("TZ=asia/tokyo * * * * *", "provided bad location asia/tokyo: unknown time zone asia/tokyo"),
    ("TZ=Asia/Tokyo @often", "unrecognized descriptor: @often"),
    ("* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]"),
    ("/5 * * * *", "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax"),
    ("\t* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
];

fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

#[test]
fn schedules_are_due_when_the_library_says_also_where_clocks_change() {
    for (text, name, from, expected) in DUE {
        let (schedule, zone) = (Schedule::parse(text).expect("a schedule"), zone(name).expect("a zone"));
        let mut at = time(from);
        for expected in *expected {
            at = schedule
                .next(at, &zone)
                .unwrap_or_else(|| panic!("{text} in {name} is never due after {at}"));
            assert_eq!(at, time(expected), "{text} in {name} from {from}");
        }
        if expected.is_empty() {
            assert_eq!(schedule.next(at, &zone), None, "{text}");
        }
    }
}

#[test]
fn what_cannot_be_read_is_told_in_the_words_of_the_library() {
    for (text, why) in UNREADABLE {
        assert_eq!(
            Schedule::parse(text).map(|_| ()).map_err(|error| error.to_string()),
            Err((*why).to_owned()),
            "{text:?}"
        );
    }
    let panics = "invalid schedule format: runtime error: slice bounds out of range [:-1]";
    assert_eq!(Schedule::parse("TZ=UTC").expect_err("no fields").to_string(), panics);
}

#[test]
fn a_day_that_a_zone_left_out_does_not_hold_up_the_search() {
    let (noon, apia) =
        (Schedule::parse("0 12 30 12 *").expect("a schedule"), zone("Pacific/Apia").expect("a zone"));
    assert_eq!(noon.next(time("2011-12-28T12:00:00Z"), &apia), Some(time("2012-12-29T22:00:00Z")));
}

fn field(low: u32, high: u32) -> impl Strategy<Value = String> {
    prop_oneof![
        Just("*".to_owned()),
        (low..=high).prop_map(|value| value.to_string()),
        (low..=high, low..=high).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        (low..=high, 1..9_u32).prop_map(|(from, step)| format!("{from}/{step}")),
    ]
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in ".{0,40}") {
        let _ = Schedule::parse(&text);
    }

    #[test]
    fn what_is_next_is_later_and_fits_the_fields(
        minute in field(0, 59), hour in field(0, 23), month in field(1, 12), weekday in field(0, 6),
        from in 1_500_000_000..1_900_000_000_i64,
    ) {
        let schedule = Schedule::parse(&format!("{minute} {hour} * {month} {weekday}")).expect("a schedule");
        let (from, utc) = (Timestamp::from_second(from).expect("a time"), jiff::tz::TimeZone::UTC);
        let next = schedule.next(from, &utc).expect("a time within five years");
        prop_assert!(next > from);
        prop_assert_eq!(next.as_second() % 60, 0);
        // The minute before is not due unless something else made it so: from there it is found again.
        let before = next - std::time::Duration::from_secs(1);
        prop_assert_eq!(schedule.next(before.max(from), &utc), Some(next));
    }
}
