//! `format`: text with values put in (cel-go's ext/formatting.go, version 1, in the locale en_US).

use std::fmt;

use super::conversions::string_of;
use super::show_double;
use crate::value::{Map, Value};

/// What is wrong with a format or what was given to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FormatError(pub(crate) String);

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A clause of a format, such as `%.2f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clause {
    String,
    Decimal,
    Fixed(usize),
    Scientific(usize),
    Binary,
    Hex { upper: bool },
    Octal,
}

impl Clause {
    /// What it takes.
    pub(crate) fn rule(self) -> &'static str {
        match self {
            Clause::String => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and \
                 timestamps"
            }
            Clause::Decimal => "decimal clause can only be used on integers",
            Clause::Fixed(_) => "fixed-point clause can only be used on doubles",
            Clause::Scientific(_) => "scientific clause can only be used on doubles",
            Clause::Binary => "only integers and bools can be formatted as binary",
            Clause::Hex { .. } => "only integers, byte buffers, and strings can be formatted as hex",
            Clause::Octal => "octal clause can only be used on integers",
        }
    }
}

/// Makes the text of an argument.
pub(crate) trait Formatter {
    /// How many arguments there are.
    fn arguments(&self) -> usize;

    /// The text of the argument with this index.
    fn format(&mut self, index: usize, clause: Clause) -> Result<String, FormatError>;
}

/// The number of digits behind the point, if a format does not say it.
const DEFAULT_PRECISION: usize = 6;
/// The most digits behind the point: more than any number has.
const MAX_PRECISION: usize = 1_000;

/// Puts arguments into a format.
pub(crate) fn format_string(format: &str, arguments: &mut impl Formatter) -> Result<String, FormatError> {
    let mut made = String::with_capacity(format.len());
    let mut index = 0;
    let mut rest = format;
    while let Some(start) = rest.find('%') {
        made.push_str(&rest[..start]);
        rest = &rest[start + 1..];
        if let Some(behind) = rest.strip_prefix('%') {
            made.push('%');
            rest = behind;
            continue;
        }
        if index >= arguments.arguments() {
            return Err(FormatError(format!("index {index} out of range")));
        }
        if rest.is_empty() {
            return Err(FormatError("unexpected end of string".to_owned()));
        }
        let (clause, behind) = parse_clause(rest)
            .map_err(|FormatError(why)| FormatError(format!("could not parse formatting clause: {why}")))?;
        let text = arguments
            .format(index, clause)
            .map_err(|FormatError(why)| FormatError(format!("error during formatting: {why}")))?;
        made.push_str(&text);
        rest = behind;
        index += 1;
    }
    made.push_str(rest);
    Ok(made)
}

fn parse_clause(text: &str) -> Result<(Clause, &str), FormatError> {
    let (precision, text) = parse_precision(text)
        .map_err(|FormatError(why)| FormatError(format!("error while parsing precision: {why}")))?;
    let mut characters = text.chars();
    let clause = match characters.next() {
        Some('s') => Clause::String,
        Some('d') => Clause::Decimal,
        Some('f') => Clause::Fixed(precision.unwrap_or(DEFAULT_PRECISION)),
        Some('e') => Clause::Scientific(precision.unwrap_or(DEFAULT_PRECISION)),
        Some('b') => Clause::Binary,
        Some('x') => Clause::Hex { upper: false },
        Some('X') => Clause::Hex { upper: true },
        Some('o') => Clause::Octal,
        Some(other) => return Err(FormatError(format!("unrecognized formatting clause \"{other}\""))),
        None => return Err(FormatError("could not find end of precision specifier".to_owned())),
    };
    Ok((clause, characters.as_str()))
}

fn parse_precision(text: &str) -> Result<(Option<usize>, &str), FormatError> {
    let Some(behind) = text.strip_prefix('.') else { return Ok((None, text)) };
    let end = behind
        .find(|character: char| !character.is_ascii_digit())
        .ok_or_else(|| FormatError("could not find end of precision specifier".to_owned()))?;
    let (digits, rest) = behind.split_at(end);
    let precision = digits.parse::<usize>().map_err(|_| {
        let why = format!(
            "error while converting precision to integer: strconv.Atoi: parsing \"{digits}\": invalid syntax"
        );
        FormatError(why)
    })?;
    Ok((Some(precision.min(MAX_PRECISION)), rest))
}

struct Values<'v, 'a>(&'v [Value<'a>]);

impl Formatter for Values<'_, '_> {
    fn arguments(&self) -> usize {
        self.0.len()
    }

    fn format(&mut self, index: usize, clause: Clause) -> Result<String, FormatError> {
        let value = &self.0[index];
        let made = match (clause, value) {
            (Clause::String, _) => return format_text(value),
            (Clause::Decimal, Value::Int(number)) => Some(number.to_string()),
            (Clause::Decimal, Value::Uint(number)) => Some(number.to_string()),
            (Clause::Fixed(precision), _) => double_of(value).map(|number| format_fixed(number, precision)),
            (Clause::Scientific(width), _) => double_of(value).map(|number| format_scientific(number, width)),
            (Clause::Binary, Value::Int(number)) => {
                Some(signed(*number, |magnitude| format!("{magnitude:b}")))
            }
            (Clause::Binary, Value::Uint(number)) => Some(format!("{number:b}")),
            (Clause::Binary, Value::Bool(truth)) => Some(u8::from(*truth).to_string()),
            (Clause::Hex { upper }, _) => {
                format_hex(value).map(|made| if upper { made.to_uppercase() } else { made })
            }
            (Clause::Octal, Value::Int(number)) => {
                Some(signed(*number, |magnitude| format!("{magnitude:o}")))
            }
            (Clause::Octal, Value::Uint(number)) => Some(format!("{number:o}")),
            _ => None,
        };
        made.ok_or_else(|| wrong(clause, value))
    }
}

fn signed(number: i64, show: fn(u64) -> String) -> String {
    format!("{}{}", if number < 0 { "-" } else { "" }, show(number.unsigned_abs()))
}

/// Puts values into a format.
pub(super) fn format_values(format: &str, values: &[Value<'_>]) -> Result<String, FormatError> {
    format_string(format, &mut Values(values))
}

fn wrong(clause: Clause, value: &Value<'_>) -> FormatError {
    FormatError(format!("{}, was given {}", clause.rule(), value.runtime_type().name()))
}

/// What the clauses for doubles take: doubles, and the names of those that are no numbers.
fn double_of(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(number) => Some(*number),
        Value::String(name) => match &**name {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn special(number: f64) -> Option<String> {
    if number.is_nan() {
        return Some("NaN".to_owned());
    }
    number.is_infinite().then(|| if number > 0.0 { "∞" } else { "-∞" }.to_owned())
}

/// With commas between thousands.
fn format_fixed(number: f64, precision: usize) -> String {
    if let Some(special) = special(number) {
        return special;
    }
    let plain = format!("{:.precision$}", number.abs());
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let mut grouped = String::with_capacity(plain.len() + whole.len() / 3 + 1);
    if number.is_sign_negative() {
        grouped.push('-');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if !fraction.is_empty() {
        grouped.push('.');
        grouped.push_str(fraction);
    }
    grouped
}

/// As English writes it: `1.500000×10⁰³`. What the clause says is taken for the width, as cel-go does it.
fn format_scientific(number: f64, width: usize) -> String {
    if let Some(special) = special(number) {
        return special;
    }
    let plain = format!("{number:.DEFAULT_PRECISION$e}");
    let (digits, exponent) = plain.split_once('e').unwrap_or((&plain, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ("⁻", exponent),
        None => ("", exponent),
    };
    let raised: String = format!("{exponent:0>2}")
        .chars()
        .map(|digit| {
            ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit.to_digit(10).unwrap_or(0) as usize]
        })
        .collect();
    let written = format!("{digits}×10{sign}{raised}");
    format!("{written:>width$}")
}

fn format_hex(value: &Value<'_>) -> Option<String> {
    let of_bytes = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    Some(match value {
        Value::String(text) => of_bytes(text.as_bytes()),
        Value::Bytes(bytes) => of_bytes(bytes),
        Value::Int(number) => signed(*number, |magnitude| format!("{magnitude:x}")),
        Value::Uint(number) => format!("{number:x}"),
        _ => return None,
    })
}

fn format_text(value: &Value<'_>) -> Result<String, FormatError> {
    match value {
        Value::List(list) => {
            let mut items = Vec::with_capacity(list.len());
            for item in list.iter() {
                items.push(format_inner(&item.map_err(|error| FormatError(error.to_string()))?)?);
            }
            Ok(format!("[{}]", items.join(", ")))
        }
        Value::Map(map) => format_map(map),
        Value::Null => Ok("null".to_owned()),
        Value::Object(_) | Value::Optional(_) | Value::Opaque(_) | Value::Hidden(_) => {
            Err(wrong(Clause::String, value))
        }
        other => string_of(other).map_err(|error| FormatError(error.to_string())),
    }
}

fn format_map(map: &Map<'_>) -> Result<String, FormatError> {
    let failed = |error: crate::error::EvaluationError| FormatError(error.to_string());
    let mut entries = Vec::with_capacity(map.len());
    for key in map.keys() {
        let Some(value) = map.get(&key).map_err(failed)? else { continue };
        entries.push(format!("{}:{}", format_inner(&key)?, format_inner(&value)?));
    }
    entries.sort();
    Ok(format!("{{{}}}", entries.join(", ")))
}

/// A value inside a list or map.
fn format_inner(value: &Value<'_>) -> Result<String, FormatError> {
    Ok(match value {
        Value::String(text) => format!("{:?}", &**text),
        Value::Bytes(bytes) => format!("b{:?}", String::from_utf8_lossy(bytes)),
        Value::Timestamp(time) => format!("timestamp(\"{time}\")"),
        Value::Duration(span) => format!("duration(\"{span}\")"),
        Value::Double(number) if number.is_finite() => format!("{number:.6}"),
        Value::Double(number) => format!("{:?}", show_double(*number)),
        Value::Object(_) | Value::Optional(_) | Value::Opaque(_) | Value::Hidden(_) => {
            return Err(FormatError(format!("no formatting function for {}", value.runtime_type().name())));
        }
        other => format_text(other)?,
    })
}
