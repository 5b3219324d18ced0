//! Numbers as Go writes them.

/// A number as Go's `%g` and `%v` write it: the shortest digits, with an exponent below 1e-4 and from 1e6 on.
pub(crate) fn show_double(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let magnitude = number.abs();
    if magnitude != 0.0 && !(1e-4..1e6).contains(&magnitude) {
        let scientific = format!("{number:e}");
        let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    number.to_string()
}

#[cfg(test)]
mod tests {
    use super::show_double;

    #[test]
    fn numbers_are_written_as_go_writes_them() {
        for (number, written) in [
            (1.0, "1"),
            (0.1, "0.1"),
            (1e21, "1e+21"),
            (1_234_567.0, "1.234567e+06"),
            (100_000.0, "100000"),
            (1.5e-7, "1.5e-07"),
            (f64::INFINITY, "+Inf"),
            (-0.0, "-0"),
        ] {
            assert_eq!(show_double(number), written);
        }
    }
}
