//! Quantities (k8s.io/apiserver/pkg/cel/library/quantity.go), with the arithmetic of k8s.io/apimachinery's pkg/api/resource.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::Implementation;
use crate::error::EvaluationError;
use crate::value::{Opaque, Value};

type Outcome<'a> = Result<Value<'a>, EvaluationError>;

/// A quantity: a number, and how it was written.
#[derive(Clone, Debug)]
pub struct Quantity {
    amount: Amount,
    format: Format,
}

/// A number as Kubernetes holds it: which of the two shows where a whole number is asked for.
#[derive(Clone, Copy, Debug)]
enum Amount {
    /// This times a power of ten.
    Scaled(i64, i32),
    /// Billionths.
    Nanos(i128),
}

/// The suffixes that a quantity is written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// `Ki`, `Mi`
    Binary,
    /// `m`, `k`, `M`
    Decimal,
    /// `e3`
    Exponent,
}

const ONE: i128 = 1_000_000_000;
/// The largest number with a binary suffix.
const MAX_BINARY: i128 = i64::MAX as i128 * ONE;
/// The largest number that is counted in billionths. Kubernetes knows larger ones.
const MAX: i128 = i128::MAX / 10;
const SUFFIX: &str = "unable to parse quantity's suffix";

pub(super) fn find(overload: &str) -> Option<Implementation> {
    Some(match overload {
        "string_to_quantity" => |args| match args {
            [Value::String(text)] => Quantity::parse(text).map(made).map_err(EvaluationError::new),
            _ => no_overload(),
        },
        "is_quantity_string" => |args| match args {
            [Value::String(text)] => Ok(Value::Bool(Quantity::parse(text).is_ok())),
            _ => no_overload(),
        },
        "quantity_sign" => |args| of_one(args, |quantity| Ok(Value::Int(quantity.nanos().signum() as i64))),
        "quantity_is_integer" => {
            |args| of_one(args, |quantity| Ok(Value::Bool(quantity.integer().is_some())))
        }
        "quantity_get_int" => |args| {
            of_one(args, |quantity| match quantity.integer() {
                Some(whole) => Ok(Value::Int(whole)),
                None => Err(EvaluationError::new("cannot convert value to integer")),
            })
        },
        "quantity_get_float" => |args| of_one(args, |quantity| Ok(Value::Double(quantity.approximate()))),
        "quantity_compare_to" => |args| compare(args, |order| Value::Int(order as i64)),
        "quantity_is_greater_than" => |args| compare(args, |order| Value::Bool(order.is_gt())),
        "quantity_is_less_than" => |args| compare(args, |order| Value::Bool(order.is_lt())),
        "quantity_add" | "quantity_add_int" => |args| combine(args, 1),
        "quantity_sub" | "quantity_sub_int" => |args| combine(args, -1),
        _ => return None,
    })
}

fn no_overload<'a>() -> Outcome<'a> {
    Err(EvaluationError::no_such_overload())
}

fn made<'a>(quantity: Quantity) -> Value<'a> {
    Value::Opaque(Opaque::Quantity(Arc::new(quantity)))
}

fn of_one<'a>(args: &[Value<'a>], make: fn(&Quantity) -> Outcome<'a>) -> Outcome<'a> {
    match args {
        [Value::Opaque(Opaque::Quantity(quantity))] => make(quantity),
        _ => no_overload(),
    }
}

fn compare<'a>(args: &[Value<'a>], show: fn(Ordering) -> Value<'a>) -> Outcome<'a> {
    match args {
        [Value::Opaque(Opaque::Quantity(left)), Value::Opaque(Opaque::Quantity(right))] => {
            Ok(show(left.cmp(right)))
        }
        _ => no_overload(),
    }
}

fn combine<'a>(args: &[Value<'a>], sign: i64) -> Outcome<'a> {
    let (left, right) = match args {
        [Value::Opaque(Opaque::Quantity(left)), Value::Opaque(Opaque::Quantity(right))] => {
            (left, (**right).clone())
        }
        [Value::Opaque(Opaque::Quantity(left)), Value::Int(right)] => {
            (left, Quantity { amount: Amount::Scaled(*right, 0), format: Format::Exponent })
        }
        _ => return no_overload(),
    };
    let format = if left.nanos() == 0 { right.format } else { left.format };
    let amount = left.amount.plus(right.amount, sign).unwrap_or_else(|| {
        Amount::Nanos(left.nanos().saturating_add(right.nanos().saturating_mul(sign.into())).clamp(-MAX, MAX))
    });
    Ok(made(Quantity { amount, format }))
}

impl Amount {
    /// The sum, if both are scaled and it can be, too.
    fn plus(self, other: Self, sign: i64) -> Option<Self> {
        let (Amount::Scaled(left, left_scale), Amount::Scaled(right, right_scale)) = (self, other) else {
            return None;
        };
        let right = right.checked_mul(sign)?;
        if right == 0 {
            return Some(self);
        }
        if left == 0 {
            return Some(Amount::Scaled(right, right_scale));
        }
        let scale = left_scale.min(right_scale);
        let aligned =
            |value: i64, from: i32| 10_i64.checked_pow(u32::try_from(from - scale).ok()?)?.checked_mul(value);
        Some(Amount::Scaled(aligned(left, left_scale)?.checked_add(aligned(right, right_scale)?)?, scale))
    }
}

impl Quantity {
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        kubewright_meta::quantity::check(text)?;
        let (negative, unsigned) = match text.as_bytes()[0] {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let digits_end =
            |text: &str| text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
        let (whole, rest) = unsigned.split_at(digits_end(unsigned));
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(behind) => behind.split_at(digits_end(behind)),
            None => ("", rest),
        };
        let (base, exponent, format) = parse_suffix(suffix).ok_or(SUFFIX)?;
        let whole = whole.trim_start_matches('0');
        if let Some(amount) = scaled(negative, whole, fraction, base, exponent) {
            return Ok(Self { amount, format });
        }
        let mut nanos = value_of(whole, fraction, base, exponent);
        let mut format = format;
        if format == Format::Binary {
            nanos = nanos.min(MAX_BINARY);
            if nanos > 0 && nanos < ONE {
                format = Format::Decimal;
            }
        }
        Ok(Self { amount: Amount::Nanos(if negative { -nanos } else { nanos }), format })
    }

    fn nanos(&self) -> i128 {
        match self.amount {
            Amount::Nanos(nanos) => nanos,
            Amount::Scaled(value, scale) => {
                let power = u32::try_from(scale + 9).ok().and_then(|power| 10_i128.checked_pow(power));
                power.and_then(|power| power.checked_mul(value.into())).unwrap_or(MAX).clamp(-MAX, MAX)
            }
        }
    }

    /// The whole number that it is, if Kubernetes can tell.
    fn integer(&self) -> Option<i64> {
        match self.amount {
            Amount::Scaled(value, scale) => {
                10_i64.checked_pow(u32::try_from(scale).ok()?).and_then(|power| power.checked_mul(value))
            }
            Amount::Nanos(_) => None,
        }
    }

    fn approximate(&self) -> f64 {
        match self.amount {
            Amount::Scaled(value, 0) => value as f64,
            Amount::Scaled(value, scale) => value as f64 * 10_f64.powi(scale),
            Amount::Nanos(nanos) if nanos % ONE == 0 => (nanos / ONE) as f64,
            Amount::Nanos(nanos) => nanos as f64 * 1e-9,
        }
    }
}

/// The number with a power of ten, where Kubernetes holds it like that.
fn scaled(negative: bool, whole: &str, fraction: &str, base: u32, exponent: i32) -> Option<Amount> {
    let fraction_digits = i32::try_from(fraction.len()).ok()?;
    let whole_digits = i32::try_from(whole.len()).ok()?;
    let (precision, scale, multiplier) = if base == 10 {
        (18 - whole_digits - fraction_digits, exponent - fraction_digits, 1)
    } else if fraction.is_empty() {
        (14 - whole_digits - exponent * 3 / 10, 0, 1_i64.checked_shl(exponent.unsigned_abs())?)
    } else {
        return None;
    };
    if precision < 0 || scale < -9 {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    let value: i64 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    let value = value.checked_mul(multiplier)?;
    Some(Amount::Scaled(if negative { -value } else { value }, scale))
}

/// The base, its exponent, and the format that a suffix stands for.
fn parse_suffix(suffix: &str) -> Option<(u32, i32, Format)> {
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some(index) = binary.iter().position(|known| *known == suffix) {
        return Some((2, 10 * (i32::try_from(index).ok()? + 1), Format::Binary));
    }
    let decimal = [
        ("n", -9),
        ("u", -6),
        ("m", -3),
        ("", 0),
        ("k", 3),
        ("M", 6),
        ("G", 9),
        ("T", 12),
        ("P", 15),
        ("E", 18),
    ];
    if let Some((_, exponent)) = decimal.iter().find(|(known, _)| *known == suffix) {
        return Some((10, *exponent, Format::Decimal));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    Some((10, exponent.parse().ok()?, Format::Exponent))
}

/// The number in billionths: rounded up where it is finer, cut off where it is too large.
fn value_of(whole: &str, fraction: &str, base: u32, exponent: i32) -> i128 {
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return 0;
    }
    let scale = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    let (mut power, multiplier) = match base {
        2 => (9 - scale, 1_i128 << exponent),
        _ => (9 + i64::from(exponent) - scale, 1),
    };
    let mut kept = digits;
    let mut inexact = false;
    // What is far below a billionth only rounds up.
    while kept.len() > 30 && power < 0 {
        inexact |= !kept.ends_with('0');
        kept = &kept[..kept.len() - 1];
        power += 1;
    }
    let Some(mut value) = kept.parse::<i128>().ok().and_then(|value| value.checked_mul(multiplier)) else {
        return MAX;
    };
    while power > 0 {
        match value.checked_mul(10).filter(|value| *value <= MAX) {
            Some(larger) => value = larger,
            None => return MAX,
        }
        power -= 1;
    }
    while power < 0 {
        inexact |= value % 10 != 0;
        value /= 10;
        power += 1;
        if value == 0 {
            break;
        }
    }
    (value + i128::from(inexact)).min(MAX)
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos().cmp(&other.nanos())
    }
}

/// The canonical form: the largest suffix that leaves a whole number.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.nanos();
        if nanos == 0 {
            return f.write_str("0");
        }
        if self.format == Format::Binary && nanos % ONE == 0 && nanos.abs() >= 1024 * ONE {
            let mut value = nanos / ONE;
            let mut index = 0;
            while index < 6 && value % 1024 == 0 {
                value /= 1024;
                index += 1;
            }
            return write!(f, "{value}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][index]);
        }
        let mut value = nanos;
        let mut exponent = -9;
        while exponent < 18 && value % 1_000 == 0 {
            value /= 1_000;
            exponent += 3;
        }
        match (self.format, exponent) {
            (_, 0) => write!(f, "{value}"),
            (Format::Exponent, _) => write!(f, "{value}e{exponent}"),
            _ => {
                let suffixes = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
                write!(f, "{value}{}", suffixes[usize::try_from((exponent + 9) / 3).unwrap_or(3)])
            }
        }
    }
}
