//! Quantities such as `250m`, `1.5Gi` or `2e3` (`k8s.io/apimachinery/pkg/api/resource`): parsing, comparing, and the
//! one canonical way of writing each.

mod text;

use std::cmp::Ordering;

use serde_json::Value;

use text::{Family, Parts, Unit};
pub use text::{canonical_text, check};

/// An amount, exact to the nano unit. What is smaller is rounded away from zero. What has a binary suffix and is larger
/// than a 64-bit number becomes the largest one, as in Kubernetes. All amounts over 10^29 are alike.
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
/// Where all amounts are alike here that Kubernetes still tells apart.
const BEYOND: i128 = 10_i128.pow(38);

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { nanos: 0, format: Format::DecimalSi };

    /// Reads a quantity: a signed decimal number and a suffix (`n u m k M G T P E`, `Ki` to `Ei`, or `e` and a number).
    /// No digit at all is zero, as in Kubernetes.
    pub fn parse(text: &str) -> Option<Self> {
        let parts = Parts::of(text).ok()?;
        let (nanos, format) = match Unit::of(parts.suffix).ok()? {
            Unit::Binary(power) => {
                let nanos = text::binary_nanos(parts.whole, parts.fraction, power);
                (i128::try_from(nanos).unwrap_or(BEYOND), Format::BinarySi)
            }
            Unit::Decimal(power, family) => {
                let format = match family {
                    Family::Suffix => Format::DecimalSi,
                    Family::Exponent => Format::DecimalExponent,
                };
                (decimal_nanos(parts.whole, parts.fraction, power), format)
            }
        };
        Some(Self { nanos: if parts.negative { -nanos } else { nanos }, format })
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
    if magnitude > 39 {
        return BEYOND;
    }
    if magnitude <= 0 {
        return 1;
    }
    if shift >= 0 {
        let amount: i128 = digits.parse().unwrap_or(BEYOND);
        return amount.saturating_mul(10_i128.pow(u32::try_from(shift).unwrap_or_default())).min(BEYOND);
    }
    let (kept, cut) = digits.split_at(usize::try_from(magnitude).unwrap_or(usize::MAX).min(digits.len()));
    let amount: i128 = kept.parse().unwrap_or(BEYOND);
    let rest = cut.bytes().any(|digit| digit != b'0');
    amount.saturating_add(rest.into()).min(BEYOND)
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
            ("99999999999999999999", "99999999999999999999"),
            ("1e20", "100e18"),
            ("1e22", "10e21"),
            ("1000E", "1000E"),
            ("1000000000000000.1M", "1000000000000000100k"),
            ("1000000000000000100k", "1000000000000000100k"),
            ("9Ei", "9223372036854775807"),
            ("+5", "5"),
            (".5", "500m"),
            ("1.", "1"),
            (".", "0"),
            ("m", "0"),
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
            ("99999999999999999999E", BEYOND),
            ("99999999999Ei", i128::from(i64::MAX) * ONE),
            ("1e20", 100_000_000_000 * ONE * ONE),
            ("1e99", BEYOND),
        ] {
            assert_eq!(billionths(text), Some(value), "{text}");
        }
        for text in ["", "1x", "1.2.3", "--1", "1e"] {
            assert_eq!(billionths(text), None, "{text}");
        }
    }

    #[test]
    fn a_text_that_is_no_quantity_is_refused() {
        for bad in ["", "x", "1.2.3", "1 Gi", "1gi", "1e", "1ee3", "--1", "1.5KiB"] {
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
        fn what_is_written_is_read_as_the_same_amount(text in "[+-]?[0-9]{1,25}(\\.[0-9]{0,25})?(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e-?[0-9]{1,3})?") {
            let quantity = Quantity::parse(&text).expect("a quantity");
            prop_assert_eq!(Quantity::parse(&quantity.to_string()), Some(quantity));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,40}") {
            let _ = Quantity::parse(&text);
        }
    }
}
