//! The checks of numbers: range of the type, multiples, bounds.

use kubewright_meta::go;
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
        let factor = Go::of(factor).float();
        let alien = range(Go::Float(factor), "MultipleOf");
        let native = alien.is_none();
        found.extend(alien);
        found.extend(multiple(value, factor, native, path));
    }
    let mut bound = |limit: &Option<Number>, who: &str, sides: Sides| {
        let Some(limit) = limit else { return };
        let limit = Go::of(limit).float();
        let alien = range(Go::Float(limit), who);
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
            number.fract() == 0.0 && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number)
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

/// What Go makes of a float as an `int64`: of one that does not fit the least number.
#[allow(clippy::cast_possible_truncation)]
fn cut(number: f64) -> i64 {
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    if (-BEYOND..BEYOND).contains(&number) { number as i64 } else { i64::MIN }
}

fn multiple(value: Go, factor: f64, native: bool, path: &str) -> Option<Mistake> {
    if let (Go::Int(value), true) = (value, native) {
        let factor = cut(factor);
        if factor <= 0 {
            return Some(not_positive(path, &factor.to_string(), factor.into()));
        }
        let broken = value % factor != 0;
        return broken.then(|| Mistake::Value(value.into(), format!("should be a multiple of {factor}")));
    }
    if factor <= 0.0 {
        return Some(not_positive(path, &go::printed(factor), factor.into()));
    }
    let times = if factor < 1.0 { 1.0 / factor * value.float() } else { value.float() / factor };
    (!is_whole(times)).then(|| {
        Mistake::Value(value.float().into(), format!("should be a multiple of {}", go::printed(factor)))
    })
}

fn not_positive(path: &str, factor: &str, value: Value) -> Mistake {
    Mistake::Named(value, format!("factor MultipleOf declared for {path} must be positive: {factor}"))
}

fn beyond(value: Go, limit: f64, native: bool, sides: Sides) -> Option<Mistake> {
    let (order, limit, value) = match (value, native) {
        (Go::Int(value), true) => (Some(value.cmp(&cut(limit))), cut(limit).to_string(), Go::Int(value)),
        _ => (value.float().partial_cmp(&limit), go::printed(limit), Go::Float(value.float())),
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

#[cfg(test)]
mod tests {
    use super::{cut, is_whole};

    #[test]
    fn a_limit_beyond_64_bits_is_the_least_number_to_whole_ones() {
        assert_eq!([5.9, -5.9, 9.3e18, 1e300].map(cut), [5, -5, i64::MIN, i64::MIN]);
    }

    #[test]
    fn whole_numbers_are_exact_up_to_two_to_the_53() {
        assert!(is_whole(5.0) && is_whole(-3.0) && is_whole(0.0));
        assert!(!is_whole(1.5) && !is_whole(1e30) && !is_whole(f64::NAN) && !is_whole(0.5));
    }
}
