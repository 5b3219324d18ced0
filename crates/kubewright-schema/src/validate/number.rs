//! The checks of numbers: range of the type, multiples, bounds.

use serde_json::{Number, Value};

use super::super::node::{Bounds, Type};

/// What is wrong with a number.
pub(super) enum Mistake {
    /// The value, and the rest of the sentence.
    Value(Value, String),
    /// A sentence of its own.
    Whole(String),
    /// The value, and a sentence that names the path itself.
    Named(Value, String),
}

/// A number as Go has it: JSON numbers that are whole and fit are `int64`, the others `float64`.
#[derive(Clone, Copy)]
enum Go {
    Int(i64),
    Float(f64),
}

impl Go {
    fn of(number: &Number) -> Self {
        number.as_i64().map_or_else(|| Self::Float(number.as_f64().unwrap_or(f64::MAX)), Self::Int)
    }

    #[allow(clippy::cast_precision_loss)]
    fn float(self) -> f64 {
        match self {
            Self::Int(number) => number as f64,
            Self::Float(number) => number,
        }
    }

    fn json(self) -> Value {
        match self {
            Self::Int(number) => number.into(),
            Self::Float(number) => number.into(),
        }
    }
}

/// Checks a number against the type (when there is exactly one), its format and the bounds.
pub(super) fn check(
    kind: Option<Type>,
    format: Option<&str>,
    bounds: Option<&Bounds>,
    number: &Number,
    path: &str,
) -> Vec<Mistake> {
    let range = |number: Go, who: &str| out_of_range(kind, format, number, who, path).map(Mistake::Whole);
    let value = Go::of(number);
    let mut found: Vec<Mistake> = range(value, "Checked").into_iter().collect();
    let Some(bounds) = bounds else { return found };
    if let Some(factor) = &bounds.multiple_of {
        let factor = Go::of(factor);
        let alien = range(Go::Float(factor.float()), "MultipleOf");
        let native = alien.is_none();
        found.extend(alien);
        found.extend(multiple(value, factor, native, path));
    }
    let mut bound = |limit: &Option<Number>, who: &str, sides: Sides| {
        let Some(limit) = limit else { return };
        let limit = Go::of(limit);
        let alien = range(Go::Float(limit.float()), who);
        let native = alien.is_none();
        found.extend(alien);
        found.extend(beyond(value, limit, native, sides));
    };
    bound(&bounds.minimum, "Minimum boundary", Sides { least: true, exclusive: bounds.exclusive_minimum });
    bound(&bounds.maximum, "Maximum boundary", Sides { least: false, exclusive: bounds.exclusive_maximum });
    found
}

/// Which side of the limit is out of bounds, and whether the limit itself is.
#[derive(Clone, Copy)]
struct Sides {
    least: bool,
    exclusive: bool,
}

/// Whether Go takes a float for a whole number (`swag.IsFloat64AJSONInteger`).
pub(super) fn is_whole(number: f64) -> bool {
    const MOST: f64 = 9_007_199_254_740_991.0;
    if !number.is_finite() || number.abs() > MOST {
        return false;
    }
    let whole = number.trunc();
    let difference = (number - whole).abs();
    difference == 0.0 || (whole != 0.0 && difference / (number.abs() + whole.abs()) < 1e-9)
}

#[allow(clippy::cast_possible_truncation)]
fn out_of_range(
    kind: Option<Type>,
    format: Option<&str>,
    number: Go,
    who: &str,
    path: &str,
) -> Option<String> {
    let name = kind?.name();
    let fits = match (kind, format, number) {
        (Some(Type::Integer), Some("int32"), Go::Int(number)) => i32::try_from(number).is_ok(),
        (Some(Type::Integer), Some("int32"), Go::Float(number)) => {
            number.fract() == 0.0 && number.abs() <= f64::from(i32::MAX)
        }
        (Some(Type::Integer), _, Go::Float(number)) => {
            number.fract() == 0.0 && number.abs() < 9_223_372_036_854_775_807.0
        }
        (Some(Type::Number), Some("float"), number) => (number.float() as f32).is_finite(),
        _ => true,
    };
    let format = match (kind, format) {
        (Some(Type::Integer), Some(format @ ("int32" | "int64")))
        | (Some(Type::Number), Some(format @ ("float" | "double"))) => format!("with format {format}"),
        _ => "(default format)".to_owned(),
    };
    (!fits).then(|| format!("{who} value must be of type {name} {format} in {path}"))
}

#[allow(clippy::cast_possible_truncation)]
fn multiple(value: Go, factor: Go, native: bool, path: &str) -> Option<Mistake> {
    if let (Go::Int(value), true) = (value, native) {
        let factor = match factor {
            Go::Int(factor) => factor,
            Go::Float(factor) => factor as i64,
        };
        if factor <= 0 {
            return Some(not_positive(path, &factor.to_string(), factor.into()));
        }
        let broken = value % factor != 0;
        return broken.then(|| Mistake::Value(value.into(), format!("should be a multiple of {factor}")));
    }
    let factor = factor.float();
    if factor <= 0.0 {
        return Some(not_positive(path, &shown(factor), factor.into()));
    }
    let times = if factor < 1.0 { 1.0 / factor * value.float() } else { value.float() / factor };
    (!is_whole(times))
        .then(|| Mistake::Value(value.float().into(), format!("should be a multiple of {}", shown(factor))))
}

fn not_positive(path: &str, factor: &str, value: Value) -> Mistake {
    Mistake::Named(value, format!("factor MultipleOf declared for {path} must be positive: {factor}"))
}

#[allow(clippy::cast_possible_truncation)]
fn beyond(value: Go, limit: Go, native: bool, sides: Sides) -> Option<Mistake> {
    let (order, limit, value) = match (value, native) {
        (Go::Int(value), true) => {
            let limit = match limit {
                Go::Int(limit) => limit,
                Go::Float(limit) => limit as i64,
            };
            (Some(value.cmp(&limit)), limit.to_string(), Go::Int(value))
        }
        _ => (value.float().partial_cmp(&limit.float()), shown(limit.float()), Go::Float(value.float())),
    };
    let order = order?;
    let broken = match sides {
        Sides { least: true, exclusive: false } => order.is_lt(),
        Sides { least: true, exclusive: true } => order.is_le(),
        Sides { least: false, exclusive: false } => order.is_gt(),
        Sides { least: false, exclusive: true } => order.is_ge(),
    };
    let words = match sides {
        Sides { least: true, exclusive: false } => "greater than or equal to",
        Sides { least: true, exclusive: true } => "greater than",
        Sides { least: false, exclusive: false } => "less than or equal to",
        Sides { least: false, exclusive: true } => "less than",
    };
    broken.then(|| Mistake::Value(value.json(), format!("should be {words} {limit}")))
}

/// A float as Go prints it: with an exponent from 21 digits on, and below a ten-thousandth.
fn shown(number: f64) -> String {
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e21).contains(&size) {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    number.to_string()
}

#[cfg(test)]
mod tests {
    use super::{is_whole, shown};

    #[test]
    fn floats_are_shown_as_go_shows_them() {
        for (number, text) in [
            (10.0, "10"),
            (2.5, "2.5"),
            (1e21, "1e+21"),
            (1.5e-7, "1.5e-07"),
            (0.0, "0"),
            (1e20, "100000000000000000000"),
        ] {
            assert_eq!(shown(number), text);
        }
    }

    #[test]
    fn whole_numbers_are_exact_up_to_two_to_the_53() {
        assert!(is_whole(5.0) && is_whole(-3.0) && is_whole(0.0));
        assert!(!is_whole(1.5) && !is_whole(1e30) && !is_whole(f64::NAN) && !is_whole(0.5));
    }
}
