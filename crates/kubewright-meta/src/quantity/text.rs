//! The text of a quantity as Kubernetes writes it back: what decoding an object does to it.

/// The regular expression that the message quotes. The rule itself is [`Parts::of`].
const MALFORMED: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const BAD_SUFFIX: &str = "unable to parse quantity's suffix";
const NO_NUMBER: &str = "unable to parse numeric part of quantity";

const DECIMAL: [(&str, i64); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// Nothing is finer than a billionth.
const FINEST: i64 = -9;
const NANOS: u128 = 1_000_000_000;

/// The text as Kubernetes writes it back: no precision is lost down to a billionth (finer amounts are rounded up), no
/// fraction is written, and the suffix is as large as possible, of the family that the author chose.
///
/// # Errors
/// Text that is no quantity, in Kubernetes' words.
pub fn canonical_text(text: &str) -> Result<String, &'static str> {
    let text = text.trim();
    let (parts, unit) = read(text)?;
    if parts.is_kept(&unit) {
        return Ok(text.to_owned());
    }
    let (digits, exponent, family) = match unit {
        Unit::Binary(power) => match binary(parts.whole, parts.fraction, power) {
            Amount::Binary(text) => return Ok(signed(parts.negative, &text)),
            Amount::Nanos(nanos) => (nanos.to_string(), FINEST, Family::Suffix),
        },
        Unit::Decimal(exponent, family) => {
            let places = i64::try_from(parts.fraction.len()).unwrap_or(i64::MAX);
            (format!("{}{}", parts.whole, parts.fraction), exponent.saturating_sub(places), family)
        }
    };
    Ok(signed(parts.negative, &decimal(&digits, exponent, family)))
}

/// Whether a text is a quantity, as it stands.
///
/// # Errors
/// What is wrong with it, in Kubernetes' words.
pub fn check(text: &str) -> Result<(), &'static str> {
    read(text).map(drop)
}

fn read(text: &str) -> Result<(Parts<'_>, Unit), &'static str> {
    let parts = Parts::of(text)?;
    let unit = Unit::of(parts.suffix)?;
    // Where 64 bits may be too few Kubernetes asks for digits; else none is zero.
    let is_great = match unit {
        Unit::Binary(power) => power >= 50,
        Unit::Decimal(exponent, _) => exponent < FINEST,
    };
    if is_great && !text[..text.len() - parts.suffix.len()].contains(|one: char| one.is_ascii_digit()) {
        return Err(NO_NUMBER);
    }
    Ok((parts, unit))
}

/// Sign, digits before and after the point, suffix.
pub(super) struct Parts<'a> {
    pub(super) negative: bool,
    pub(super) whole: &'a str,
    pub(super) fraction: &'a str,
    pub(super) suffix: &'a str,
}

impl<'a> Parts<'a> {
    pub(super) fn of(text: &'a str) -> Result<Self, &'static str> {
        if text.is_empty() {
            return Err(MALFORMED);
        }
        let (negative, rest) = match text.as_bytes()[0] {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (whole, rest) = split_digits(rest.trim_start_matches('0'));
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        let letters = suffix.trim_start_matches(|one| "eEinumkKMGTP".contains(one));
        let number = letters.strip_prefix(['-', '+']).unwrap_or(letters);
        if !number.bytes().all(|one| one.is_ascii_digit()) {
            return Err(MALFORMED);
        }
        Ok(Self { negative, whole, fraction, suffix })
    }

    /// Kubernetes keeps the text of small numbers that look canonical already, such as `1.500`.
    fn is_kept(&self, unit: &Unit) -> bool {
        let digits = self.whole.len() + self.fraction.len();
        match unit {
            Unit::Binary(power) => {
                let room = 14_usize.checked_sub(self.whole.len() + (*power as usize) * 3 / 10);
                let odd = self.whole.parse::<u64>().is_ok_and(|value| value & 7 != 0);
                self.fraction.is_empty() && room.is_some() && odd
            }
            Unit::Decimal(exponent, _) => {
                let scale = exponent.saturating_sub(i64::try_from(self.fraction.len()).unwrap_or(i64::MAX));
                let zeros = |text: &str| text.bytes().rev().take_while(|one| *one == b'0').count();
                let trailing = match zeros(self.fraction) {
                    some if some == self.fraction.len() => some + zeros(self.whole),
                    some => some,
                };
                digits <= 18 && scale >= FINEST && scale % 3 == 0 && trailing < 3 && !self.whole.is_empty()
            }
        }
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// What the suffix says.
pub(super) enum Unit {
    /// Times this power of two.
    Binary(u32),
    /// Times this power of ten.
    Decimal(i64, Family),
}

/// How a power of ten is written.
#[derive(Clone, Copy)]
pub(super) enum Family {
    Suffix,
    Exponent,
}

impl Unit {
    pub(super) fn of(suffix: &str) -> Result<Self, &'static str> {
        if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
            return Ok(Self::Decimal(*exponent, Family::Suffix));
        }
        if let Some((_, power)) = BINARY.iter().find(|(name, _)| *name == suffix) {
            return Ok(Self::Binary(*power));
        }
        let exponent = suffix.strip_prefix(['e', 'E']).ok_or(BAD_SUFFIX)?;
        let exponent: i32 = exponent.parse().map_err(|_| BAD_SUFFIX)?;
        Ok(Self::Decimal(exponent.into(), Family::Exponent))
    }
}

enum Amount {
    /// Written with a binary suffix.
    Binary(String),
    /// Too small or too fine for one.
    Nanos(u128),
}

/// An amount with a binary suffix, in the form in which it is written.
fn binary(whole: &str, fraction: &str, power: u32) -> Amount {
    let nanos = binary_nanos(whole, fraction, power);
    if nanos < 1024 * NANOS || !nanos.is_multiple_of(NANOS) {
        return Amount::Nanos(nanos);
    }
    let mut amount = nanos / NANOS;
    let mut suffix = "";
    for (name, _) in BINARY {
        if !amount.is_multiple_of(1024) {
            break;
        }
        amount /= 1024;
        suffix = name;
    }
    Amount::Binary(format!("{amount}{suffix}"))
}

/// `whole.fraction × 2^power` in billionths, rounded up. What is over 2^63 - 1 is cut down to it, as in Kubernetes for
/// amounts with a binary suffix alone.
pub(super) fn binary_nanos(whole: &str, fraction: &str, power: u32) -> u128 {
    const MOST: u128 = (i64::MAX as u128) * NANOS;
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().unwrap_or(MOST) };
    // What is behind the point, digit by digit: no number of bits would hold any number of them.
    let mut rest: Vec<u128> = fraction.bytes().map(|digit| u128::from(digit - b'0')).collect();
    let mut behind = times(&mut rest, 1 << power) * NANOS;
    behind += times(&mut rest, NANOS);
    let finer = u128::from(rest.iter().any(|digit| *digit != 0));
    whole.saturating_mul(1 << power).saturating_mul(NANOS).saturating_add(behind + finer).min(MOST)
}

/// Multiplies the digits behind a point, and returns what comes to stand before it.
fn times(digits: &mut [u128], factor: u128) -> u128 {
    digits.iter_mut().rev().fold(0, |carried, digit| {
        let product = *digit * factor + carried;
        *digit = product % 10;
        product / 10
    })
}

/// `digits` times ten to the `exponent`.
fn decimal(digits: &str, mut exponent: i64, family: Family) -> String {
    let mut digits = digits.trim_start_matches('0').to_owned();
    if exponent < FINEST && !digits.is_empty() {
        let cut = usize::try_from(FINEST.saturating_sub(exponent)).unwrap_or(usize::MAX);
        digits = round_up(&digits, cut);
        exponent = FINEST;
    }
    if digits.is_empty() {
        return "0".to_owned();
    }
    while digits.ends_with('0') {
        digits.pop();
        exponent += 1;
    }
    for _ in 0..exponent.rem_euclid(3) {
        digits.push('0');
        exponent -= 1;
    }
    match family {
        Family::Exponent if exponent == 0 => digits,
        Family::Exponent => format!("{digits}e{exponent}"),
        Family::Suffix => {
            for _ in 18..exponent {
                digits.push('0');
            }
            let suffix =
                DECIMAL.iter().find(|(_, power)| *power == exponent.min(18)).map_or("", |(name, _)| name);
            format!("{digits}{suffix}")
        }
    }
}

/// The digits without the last `cut`, plus one where something is lost.
fn round_up(digits: &str, cut: usize) -> String {
    let (kept, lost) = digits.split_at(digits.len().saturating_sub(cut));
    if lost.bytes().all(|one| one == b'0') {
        return kept.to_owned();
    }
    let mut kept = kept.as_bytes().to_vec();
    for digit in kept.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return String::from_utf8_lossy(&kept).into_owned();
        }
        *digit = b'0';
    }
    format!("1{}", String::from_utf8_lossy(&kept))
}

fn signed(negative: bool, text: &str) -> String {
    if negative && text != "0" { format!("-{text}") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::quantity::Quantity;

    #[test]
    fn quantities_are_written_in_canonical_form() {
        for (given, written) in [
            ("0", "0"),
            ("0.5", "500m"),
            ("1.5", "1500m"),
            ("1000m", "1"),
            ("100m", "100m"),
            ("1024", "1024"),
            ("1000", "1k"),
            ("0.0001m", "100n"),
            ("0.1n", "1n"),
            ("9.99999999999", "10"),
            ("1024Mi", "1Gi"),
            ("1Gi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Mi", "512Ki"),
            ("0.5Ki", "512"),
            ("0.0001Ki", "102400u"),
            ("1e3", "1e3"),
            ("1E3", "1E3"),
            ("12e2", "1200"),
            ("5G", "5G"),
            ("-1000m", "-1"),
            ("-0", "0"),
            (" 2 ", "2"),
            ("99999Ei", "9223372036854775807"),
            ("99999999999999999999", "99999999999999999999"),
            ("0.4904405049509794259Ei", "565439404888224983319099447n"),
            ("2.5210059429760020001914610Pi", "2838400356346382123965589n"),
            ("1.500", "1.500"),
            (".", "0"),
            ("-Ki", "0"),
            ("1000E", "1000E"),
        ] {
            assert_eq!(canonical_text(given).as_deref(), Ok(written), "{given:?}");
        }
    }

    #[test]
    fn what_is_no_quantity_says_why() {
        for (given, why) in [
            ("", MALFORMED),
            ("a", MALFORMED),
            ("1 Gi", MALFORMED),
            ("1Gi5x", MALFORMED),
            ("1gi", MALFORMED),
            ("1Kii", BAD_SUFFIX),
            ("1e", BAD_SUFFIX),
            ("1.2.3", MALFORMED),
            ("true", MALFORMED),
        ] {
            assert_eq!(canonical_text(given), Err(why), "{given:?}");
        }
    }

    proptest! {
        /// A binary suffix that is lost to a whole number (`687.5Ki` is `704000`) makes a decimal one the second time.
        #[test]
        fn writing_keeps_the_amount_and_the_second_text_is_final(text in "[+-]?[0-9]{0,25}(\\.[0-9]{0,25})?(m|u|n|k|M|Ki|Gi|Ei|e[0-9]{1,2}|e-[0-9]{1,2})?") {
            if let Ok(once) = canonical_text(&text) {
                prop_assert_eq!(Quantity::parse(&once), Quantity::parse(&text), "{} became {}", text, once);
                let twice = canonical_text(&once).expect("what was written is read");
                prop_assert_eq!(canonical_text(&twice), Ok(twice.clone()), "{} became {}, then {}", text, once, twice);
            }
        }

        #[test]
        fn any_text_has_an_answer(text in ".*") {
            let _ = canonical_text(&text);
        }
    }
}
