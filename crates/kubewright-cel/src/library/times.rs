//! Parts of points and spans of time.

use super::Implementation;
use crate::error::EvaluationError;
use crate::value::{Civil, Timestamp, Value};

type Outcome<'a> = Result<Value<'a>, EvaluationError>;

pub(super) fn find(overload: &str) -> Option<Implementation> {
    Some(match overload {
        "timestamp_to_year" | "timestamp_to_year_with_tz" => |args| part(args, |civil, _| civil.year),
        "timestamp_to_month" | "timestamp_to_month_with_tz" => |args| part(args, |civil, _| civil.month - 1),
        "timestamp_to_day_of_year" | "timestamp_to_day_of_year_with_tz" => {
            |args| part(args, |civil, _| civil.day_of_year)
        }
        "timestamp_to_day_of_month" | "timestamp_to_day_of_month_with_tz" => {
            |args| part(args, |civil, _| civil.day - 1)
        }
        "timestamp_to_day_of_month_1_based" | "timestamp_to_day_of_month_1_based_with_tz" => {
            |args| part(args, |civil, _| civil.day)
        }
        "timestamp_to_day_of_week" | "timestamp_to_day_of_week_with_tz" => {
            |args| part(args, |civil, _| civil.weekday)
        }
        "timestamp_to_hours" | "timestamp_to_hours_with_tz" => |args| part(args, |civil, _| civil.hour),
        "timestamp_to_minutes" | "timestamp_to_minutes_with_tz" => |args| part(args, |civil, _| civil.minute),
        "timestamp_to_seconds" | "timestamp_to_seconds_tz" => |args| part(args, |civil, _| civil.second),
        "timestamp_to_milliseconds" | "timestamp_to_milliseconds_with_tz" => {
            |args| part(args, |_, time| i64::from(time.nanoseconds / 1_000_000))
        }
        "duration_to_hours" => |args| whole(args, 3_600_000_000_000),
        "duration_to_minutes" => |args| whole(args, 60_000_000_000),
        "duration_to_seconds" => |args| whole(args, 1_000_000_000),
        "duration_to_milliseconds" => |args| whole(args, 1_000_000),
        _ => return None,
    })
}

/// How many whole units a span has.
fn whole<'a>(args: &[Value<'a>], unit: i64) -> Outcome<'a> {
    match args {
        [Value::Duration(span)] => Ok(Value::Int(span.0 / unit)),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn part<'a>(args: &[Value<'a>], pick: fn(&Civil, Timestamp) -> i64) -> Outcome<'a> {
    let (time, offset) = match args {
        [Value::Timestamp(time)] => (*time, 0),
        [Value::Timestamp(time), Value::String(zone)] => (*time, offset_in(*time, zone)?),
        _ => return Err(EvaluationError::no_such_overload()),
    };
    Ok(Value::Int(pick(&time.civil(offset), time)))
}

/// The offset of a time zone from UTC, in seconds: one by name, or one like `-08:00`.
fn offset_in(time: Timestamp, zone: &str) -> Result<i64, EvaluationError> {
    let Some((hours, minutes)) = zone.split_once(':') else { return named_offset(time, zone) };
    let number = |text: &str| -> Result<i64, EvaluationError> {
        let invalid = || EvaluationError::new(format!("strconv.Atoi: parsing \"{text}\": invalid syntax"));
        text.parse::<i32>().map(i64::from).map_err(|_| invalid())
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let total = if zone.starts_with('-') { hours * 60 - minutes } else { hours * 60 + minutes };
    Ok(total * 60)
}

fn named_offset(time: Timestamp, zone: &str) -> Result<i64, EvaluationError> {
    if matches!(zone, "" | "UTC") {
        return Ok(0);
    }
    let unknown = || EvaluationError::new(format!("unknown time zone {zone}"));
    let zone = jiff::tz::TimeZone::get(zone).map_err(|_| unknown())?;
    let at = jiff::Timestamp::from_second(time.seconds).map_err(|_| unknown())?;
    Ok(i64::from(zone.to_offset(at).seconds()))
}
