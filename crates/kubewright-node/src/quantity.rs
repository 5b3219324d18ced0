//! Kubernetes quantities as numbers (`apimachinery/pkg/api/resource`).

/// The value of a quantity such as `100m`, `2Gi` or `1e3` in billionths; `None` when it is none, or larger than any
/// machine. What is finer than a billionth is rounded up, as Kubernetes does.
#[must_use]
pub fn billionths(text: &str) -> Option<i128> {
    let digits_end =
        text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-'))).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits_end);
    let (negative, number) = match number.as_bytes().first()? {
        b'-' => (true, &number[1..]),
        b'+' => (false, &number[1..]),
        _ => (false, number),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = [whole, fraction].concat();
    if digits.is_empty() || digits.len() > 36 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let digits: i128 = digits.parse().ok()?;
    let (factor, exponent) = scale(suffix)?;
    let exponent = exponent + 9 - i32::try_from(fraction.len()).ok()?;
    let scaled = digits.checked_mul(factor)?;
    let value = if exponent >= 0 {
        scaled.checked_mul(10_i128.checked_pow(exponent.unsigned_abs())?)?
    } else {
        let divisor = 10_i128.checked_pow(exponent.unsigned_abs())?;
        scaled / divisor + i128::from(scaled % divisor != 0)
    };
    Some(if negative { -value } else { value })
}

/// The factor and power of ten that a suffix stands for.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    let binary = |power: u32| Some((1_i128 << (10 * power), 0));
    match suffix {
        "" => Some((1, 0)),
        "n" => Some((1, -9)),
        "u" => Some((1, -6)),
        "m" => Some((1, -3)),
        "k" => Some((1, 3)),
        "M" => Some((1, 6)),
        "G" => Some((1, 9)),
        "T" => Some((1, 12)),
        "P" => Some((1, 15)),
        "E" => Some((1, 18)),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        exponent => {
            let power: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            (-30..=30).contains(&power).then_some((1, power))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ONE: i128 = 1_000_000_000;

    #[test]
    fn every_form_is_read() {
        assert_eq!(billionths("100m"), Some(ONE / 10));
        assert_eq!(billionths("0.1"), Some(ONE / 10));
        assert_eq!(billionths("2Gi"), Some((2 << 30) * ONE));
        assert_eq!(billionths("1.5Ki"), Some(1536 * ONE));
        assert_eq!(billionths("1e3"), billionths("1k"));
        assert_eq!(billionths("-1"), Some(-ONE));
        assert_eq!(billionths("1n"), Some(1));
        assert_eq!(billionths("0.1n"), Some(1), "rounded up");
    }

    #[test]
    fn what_is_no_quantity_or_too_large_is_none() {
        for text in ["", "m", "1x", "1.2.3", "--1", "1e99", "1e", &"9".repeat(37), "99999999999999999999E"] {
            assert_eq!(billionths(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,40}", digits in "[0-9.+-]{0,40}[a-zA-Z]{0,3}") {
            let _ = (billionths(&text), billionths(&digits));
        }
    }
}
