//! Numbers that are given as a share of a whole (`GetScaledValueFromIntOrPercent` in
//! `k8s.io/apimachinery/pkg/util/intstr`).

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Which way a percentage is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// To the next larger number.
    Up,
    /// To the next smaller number.
    Down,
}

/// A number, or a percentage of `whole`. The API server lets nothing else through; what cannot be read counts as 0.
pub(crate) fn resolve(value: &IntOrString, whole: i32, rounding: Rounding) -> i32 {
    let percent = match value {
        IntOrString::Int(number) => return *number,
        IntOrString::String(text) => text.strip_suffix('%').and_then(|percent| percent.parse::<i32>().ok()),
    };
    let hundredths = i64::from(whole) * i64::from(percent.unwrap_or_default());
    let rounded = match rounding {
        Rounding::Up => (hundredths + 99).div_euclid(100),
        Rounding::Down => hundredths.div_euclid(100),
    };
    i32::try_from(rounded).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_rounded_as_asked_and_a_number_is_itself() {
        let percent = |text: &str| IntOrString::String(text.into());
        assert_eq!(resolve(&percent("25%"), 10, Rounding::Up), 3);
        assert_eq!(resolve(&percent("25%"), 10, Rounding::Down), 2);
        assert_eq!(resolve(&IntOrString::Int(7), 3, Rounding::Up), 7);
        assert_eq!(resolve(&percent("many"), 10, Rounding::Up), 0);
    }
}
