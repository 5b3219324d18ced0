//! Quantities in thousandths, the unit that autoscaling counts in, and the way in which it writes them.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubewright_meta::quantity::billionths;

const THOUSANDTH: i128 = 1_000_000;

/// The thousandths of a quantity, rounded away from zero and kept in 64 bits (`Quantity.MilliValue`); nothing when the
/// text is none.
pub(super) fn milli(text: &str) -> Option<i64> {
    let amount = billionths(text)?;
    let rounded = amount / THOUSANDTH + amount.signum() * i128::from(amount % THOUSANDTH != 0);
    let bound = if amount < 0 { i64::MIN } else { i64::MAX };
    Some(i64::try_from(rounded).unwrap_or(bound))
}

/// The thousandths of a quantity of an object, whose quantities the API server has read.
pub(super) fn milli_of(quantity: &Quantity) -> i64 {
    milli(&quantity.0).unwrap_or_default()
}

/// A quantity as a number (`AsApproximateFloat64`).
pub(super) fn approximate(quantity: &Quantity) -> f64 {
    billionths(&quantity.0).unwrap_or_default() as f64 / 1e9
}

/// So many thousandths, as the API server writes them: with decimal suffixes.
pub(super) fn decimal(milli: i64) -> Quantity {
    let (amount, power) = factor_out(milli, 1000, 6);
    Quantity(format!("{amount}{}", ["m", "", "k", "M", "G", "T", "P"][power]))
}

/// So many thousandths of bytes, as the API server writes them: with binary suffixes where these say it exactly.
pub(super) fn binary(milli: i64) -> Quantity {
    let bytes = milli / 1000;
    let (amount, power) = factor_out(bytes, 1024, 6);
    if milli == 0 || milli % 1000 != 0 || power == 0 {
        return decimal(milli);
    }
    Quantity(format!("{amount}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power]))
}

/// Divides by `base` as often as that leaves no rest, at most `limit` times. Nothing counts as one whole.
fn factor_out(mut amount: i64, base: i64, limit: usize) -> (i64, usize) {
    if amount == 0 {
        return (0, 1);
    }
    let mut power = 0;
    while power < limit && amount % base == 0 {
        amount /= base;
        power += 1;
    }
    (amount, power)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_smaller_than_a_thousandth_counts_as_one() {
        assert_eq!(milli("100m"), Some(100));
        assert_eq!(milli("1500u"), Some(2));
        assert_eq!(milli("-1500u"), Some(-2));
        assert_eq!(milli("100Mi"), Some(104_857_600_000));
        assert_eq!(milli("9E"), Some(i64::MAX));
        assert_eq!(milli("much"), None);
    }

    #[test]
    fn amounts_are_written_as_the_api_server_does() {
        for (amount, text) in [(0, "0"), (400, "400m"), (1000, "1"), (35_500, "35500m"), (1_000_000, "1k")] {
            assert_eq!(decimal(amount).0, text);
        }
        for (amount, text) in [
            (0, "0"),
            (52_428_800_000, "50Mi"),
            (66_666_000_000, "66666k"),
            (133_518_677_333, "133518677333m"),
            (512_000, "512"),
        ] {
            assert_eq!(binary(amount).0, text);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_the_same(amount in any::<i64>()) {
            prop_assert_eq!(milli(&decimal(amount).0), Some(amount));
            prop_assert_eq!(milli(&binary(amount).0), Some(amount));
        }
    }
}
