//! Quantities such as `250m`, `1.5Gi` or `2e3` (`k8s.io/apimachinery/pkg/api/resource`): parsing, comparing, and the
//! one canonical way of writing each.

mod text;

use std::cmp::Ordering;

use serde_json::Value;

pub use text::canonical_text;

/// An amount, exact to the nano unit. What is smaller is rounded away from zero. What is larger than a 64-bit number
/// becomes the largest one, as in Kubernetes, but for decimal numbers of at most 18 digits: these have any power of ten.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    BinarySi,
    DecimalSi,
    DecimalExponent,
}

const UNIT: i128 = 1_000_000_000;
const LARGEST: i128 = i64::MAX as i128 * UNIT;
/// Where all amounts are alike here that Kubernetes still tells apart.
const BEYOND: i128 = 10_i128.pow(38);
/// How many digits a 64-bit number surely holds.
const FEW_DIGITS: usize = 18;
/// How many digits of a number matter: more are cut before the point (the amount is over the largest) and rounded
/// behind it.
const DIGITS: usize = 30;

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { nanos: 0, format: Format::DecimalSi };

    /// Reads a quantity: a signed decimal number and a suffix (`n u m k M G T P E`, `Ki` to `Ei`, or `e` and a number).
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return None;
        }
        let (scale, format) = Scale::of(suffix)?;
        let nanos = scale.nanos(whole.trim_start_matches('0'), fraction);
        Some(Self { nanos: if negative { -nanos } else { nanos }, format })
    }

    /// The quantity that a JSON value holds: a text, or a bare number.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text),
            Value::Number(number) => Self::parse(&number.to_string()),
            _ => None,
        }
    }

    /// Below, at, or above zero.
    pub fn sign(self) -> Ordering {
        self.nanos.cmp(&0)
    }

    /// The whole number, rounded away from zero (`Quantity.Value`).
    pub fn whole(self) -> i64 {
        i64::try_from(divide_up(self.nanos, UNIT)).unwrap_or(i64::MAX)
    }

    /// It as a number that messages show with six decimals.
    pub fn approximate(self) -> f64 {
        self.nanos as f64 / UNIT as f64
    }

    /// Rounded up (away from zero) to thousandths, the finest that lists of resources keep.
    pub fn in_thousandths(self) -> Self {
        const MILLI: i128 = UNIT / 1000;
        Self { nanos: divide_up(self.nanos, MILLI) * MILLI, ..self }
    }

    /// Whether it is a whole number.
    pub fn is_whole(self) -> bool {
        self.nanos % UNIT == 0
    }

    /// So many of something.
    pub fn count(number: usize) -> Self {
        Self {
            nanos: i128::try_from(number).unwrap_or(i128::MAX).saturating_mul(UNIT),
            format: Format::DecimalSi,
        }
    }

    /// The whole number that it is, or the next one away from zero.
    pub fn rounded_up(self) -> Self {
        Self { nanos: divide_up(self.nanos, UNIT) * UNIT, ..self }
    }

    /// How many whole ones it is, rounded away from zero.
    pub fn units(self) -> i128 {
        divide_up(self.nanos, UNIT)
    }

    /// How many thousandths it is, rounded away from zero.
    pub fn millis(self) -> i128 {
        divide_up(self.nanos, UNIT / 1000)
    }

    /// Whether it is a whole number of times another, which is not nothing.
    pub fn is_multiple_of(self, unit: Self) -> bool {
        unit.nanos != 0 && self.nanos % unit.nanos == 0
    }
}

/// Nothing takes over the way in which the other is written.
impl std::ops::Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let format = if self.nanos == 0 { other.format } else { self.format };
        Self { nanos: self.nanos.saturating_add(other.nanos), format }
    }
}

impl std::ops::Sub for Quantity {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        let format = if self.nanos == 0 { other.format } else { self.format };
        Self { nanos: self.nanos.saturating_sub(other.nanos), format }
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl std::fmt::Display for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        // What is small, or no whole number, is written with a decimal suffix (`CanonicalizeBytes`).
        let is_decimal = self.nanos.abs() < 1024 * UNIT || self.nanos % UNIT != 0;
        if self.format == Format::BinarySi && !is_decimal {
            let (mantissa, power) = factor_out(self.nanos / UNIT, 1024, 6);
            let suffix = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power];
            return write!(f, "{mantissa}{suffix}");
        }
        let most = if self.format == Format::DecimalExponent { 12 } else { 9 };
        let (mantissa, power) = factor_out(self.nanos, 1000, most);
        if self.format == Format::DecimalExponent {
            let exponent = 3 * i64::try_from(power).unwrap_or_default() - 9;
            return if exponent == 0 { write!(f, "{mantissa}") } else { write!(f, "{mantissa}e{exponent}") };
        }
        let suffix = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"][power];
        write!(f, "{mantissa}{suffix}")
    }
}

/// The value of a quantity such as `100m`, `2Gi` or `1e3` in billionths; `None` when the text is none.
pub fn billionths(text: &str) -> Option<i128> {
    Quantity::parse(text).map(|quantity| quantity.nanos)
}

/// The canonical text of a JSON value that holds a quantity; nothing when it holds none.
pub fn canonical(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => canonical_text(text).ok(),
        Value::Number(number) => canonical_text(&number.to_string()).ok(),
        _ => None,
    }
}

/// Divides by `base` as often as that leaves no rest, at most `limit` times.
fn factor_out(mut amount: i128, base: i128, limit: usize) -> (i128, usize) {
    let mut power = 0;
    while power < limit && amount != 0 && amount % base == 0 {
        amount /= base;
        power += 1;
    }
    (amount, power)
}

/// Division that rounds away from zero.
fn divide_up(amount: i128, by: i128) -> i128 {
    let quotient = amount / by;
    if amount % by == 0 { quotient } else { quotient + amount.signum() }
}

enum Scale {
    /// A power of 1024.
    Binary(u32),
    /// A power of 10.
    Decimal(i64),
}

impl Scale {
    fn of(suffix: &str) -> Option<(Self, Format)> {
        let decimal = |power| Some((Self::Decimal(power), Format::DecimalSi));
        let binary = |power| Some((Self::Binary(power), Format::BinarySi));
        match suffix {
            "n" => decimal(-9),
            "u" => decimal(-6),
            "m" => decimal(-3),
            "" => decimal(0),
            "k" => decimal(3),
            "M" => decimal(6),
            "G" => decimal(9),
            "T" => decimal(12),
            "P" => decimal(15),
            "E" => decimal(18),
            "Ki" => binary(1),
            "Mi" => binary(2),
            "Gi" => binary(3),
            "Ti" => binary(4),
            "Pi" => binary(5),
            "Ei" => binary(6),
            _ => {
                let exponent = suffix.strip_prefix(['e', 'E'])?;
                let power: i32 = exponent.parse().ok()?;
                Some((Self::Decimal(power.into()), Format::DecimalExponent))
            }
        }
    }

    /// The amount in nano units of a number, given by the digits before and behind its point.
    fn nanos(&self, whole: &str, fraction: &str) -> i128 {
        match *self {
            Self::Decimal(power) => decimal_nanos(whole, fraction, power),
            Self::Binary(power) => {
                let factor = 1024_i128.pow(power);
                if whole.len() > 19 {
                    return LARGEST;
                }
                let whole: i128 = whole.parse().unwrap_or_default();
                // More than 19 digits behind the point would not fit the product.
                let kept = &fraction[..fraction.len().min(19)];
                let numerator: i128 = kept.parse().unwrap_or_default();
                let scale = 10_i128.pow(u32::try_from(kept.len()).unwrap_or_default());
                let behind = numerator.checked_mul(factor).map_or(0, |amount| {
                    let units = amount / scale;
                    let rest = amount % scale;
                    units.saturating_mul(UNIT).saturating_add(divide_up(rest.saturating_mul(UNIT), scale))
                });
                whole.saturating_mul(factor).saturating_mul(UNIT).saturating_add(behind).min(LARGEST)
            }
        }
    }
}

/// `whole.fraction × 10^power` in nano units.
fn decimal_nanos(whole: &str, fraction: &str, power: i64) -> i128 {
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return 0;
    }
    // The amount is `digits × 10^shift` nano units.
    let behind = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    let shift = (power + 9).saturating_sub(behind);
    let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    let magnitude = length.saturating_add(shift);
    let largest = if whole.len() + fraction.len() <= FEW_DIGITS { BEYOND } else { LARGEST };
    if magnitude > 39 || (magnitude > 29 && largest == LARGEST) {
        return largest;
    }
    if magnitude <= 0 {
        return 1;
    }
    if shift >= 0 {
        let amount: i128 = digits.parse().unwrap_or(LARGEST);
        return amount.saturating_mul(10_i128.pow(u32::try_from(shift).unwrap_or_default())).min(largest);
    }
    let (kept, cut) = digits.split_at(usize::try_from(magnitude).unwrap_or(DIGITS).min(digits.len()));
    let amount: i128 = kept.parse().unwrap_or(LARGEST);
    let rest = cut.bytes().any(|digit| digit != b'0');
    (amount + i128::from(rest)).min(LARGEST)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_sum_that_is_no_whole_number_is_written_with_a_decimal_suffix() {
        let quantity = |text| Quantity::parse(text).expect("a quantity");
        assert_eq!((quantity("1Gi") + quantity("100m")).to_string(), "1073741824100m");
        assert_eq!((quantity("1Gi") + quantity("1Gi")).to_string(), "2Gi");
    }

    fn written(text: &str) -> String {
        Quantity::parse(text).map_or_else(|| "bad".to_owned(), |quantity| quantity.to_string())
    }

    #[test]
    fn a_quantity_has_one_canonical_form() {
        for (given, canonical) in [
            ("1000m", "1"),
            ("0.5Gi", "512Mi"),
            ("1024Ki", "1Mi"),
            ("0.1", "100m"),
            ("100m", "100m"),
            ("1.5", "1500m"),
            ("1e3", "1e3"),
            ("12E2", "1200"),
            ("1024", "1024"),
            ("1000", "1k"),
            ("0.5Ki", "512"),
            ("-1Gi", "-1Gi"),
            ("0", "0"),
            ("00.0Mi", "0"),
            ("1500Mi", "1500Mi"),
            ("0.0000000001", "1n"),
            ("5E", "5E"),
            ("99999999999999999999", "9223372036854775807"),
            ("1e20", "100e18"),
            ("1e22", "10e21"),
            ("1000E", "1000E"),
            ("1000000000000000000E", "9223372036854775807"),
            ("9Ei", "9223372036854775807"),
            ("+5", "5"),
            (".5", "500m"),
            ("1.", "1"),
        ] {
            assert_eq!(written(given), canonical, "{given}");
        }
    }

    #[test]
    fn every_form_is_read_in_billionths() {
        const ONE: i128 = 1_000_000_000;
        for (text, value) in [
            ("100m", ONE / 10),
            ("0.1", ONE / 10),
            ("2Gi", (2 << 30) * ONE),
            ("1.5Ki", 1536 * ONE),
            ("1e3", 1000 * ONE),
            ("1k", 1000 * ONE),
            ("-1", -ONE),
            ("1n", 1),
            ("0.1n", 1),
            ("99999999999999999999E", LARGEST),
            ("1e20", 100_000_000_000 * ONE * ONE),
            ("1e99", BEYOND),
        ] {
            assert_eq!(billionths(text), Some(value), "{text}");
        }
        for text in ["", "m", "1x", "1.2.3", "--1", "1e"] {
            assert_eq!(billionths(text), None, "{text}");
        }
    }

    #[test]
    fn a_text_that_is_no_quantity_is_refused() {
        for bad in ["", "-", "x", "1.2.3", "1 Gi", "1gi", "Gi", "1e", "1ee3", "--1", "1.5KiB"] {
            assert_eq!(written(bad), "bad", "{bad}");
        }
    }

    #[test]
    fn a_sum_is_written_as_its_first_part_unless_that_is_nothing() {
        let parse = |text| Quantity::parse(text).expect("a quantity");
        assert_eq!((parse("600Mi") + parse("600Mi")).to_string(), "1200Mi");
        assert_eq!((Quantity::ZERO + parse("1Gi")).to_string(), "1Gi");
        assert_eq!((parse("1") - parse("100m")).to_string(), "900m");
        assert_eq!(parse("1.1").rounded_up().to_string(), "2");
        assert_eq!(parse("0.0001").millis(), 1);
    }

    #[test]
    fn quantities_of_different_suffixes_compare_by_amount() {
        let parse = |text| Quantity::parse(text).map(|quantity| quantity.nanos);
        assert!(parse("1Gi") > parse("1G"));
        assert_eq!(parse("2"), parse("2000m"));
    }

    proptest! {
        #[test]
        fn writing_a_quantity_twice_changes_nothing(text in "[+-]?[0-9]{1,25}(\\.[0-9]{0,25})?(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e-?[0-9]{1,3})?") {
            let once = written(&text);
            prop_assert_eq!(written(&once), once);
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,40}") {
            let _ = Quantity::parse(&text);
        }
    }
}
