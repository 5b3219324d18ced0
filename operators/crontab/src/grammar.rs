//! What of schedules the schema of the kind can tell: a regular expression for cron's grammar.
//!
//! It lets nothing through that is not a schedule but ranges that end before they begin and durations that overflow; those
//! the operator finds.

/// What is said of a schedule that names a zone (`pkg/apis/batch/validation` in Kubernetes).
pub(crate) const NO_ZONE: &str = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
/// What is said of any other text.
pub(crate) const EXPLANATION: &str = "is no schedule: write five fields (minute 0-59, hour 0-23, day 1-31, month 1-12, day of the week 0-6), or @hourly, @daily, @weekly, @monthly, @yearly, @every 90m";

/// The rule, in CEL.
pub(crate) fn rule() -> String {
    format!("self.contains('TZ') || self.matches(r'{}')", pattern())
}

fn pattern() -> String {
    let fields = [
        list("[0-5]?[0-9]"),
        list("(?:[01]?[0-9]|2[0-3])"),
        list("(?:0?[1-9]|[12][0-9]|3[01])"),
        list("(?:0?[1-9]|1[0-2]|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))"),
        list("(?:0?[0-6]|(?i:sun|mon|tue|wed|thu|fri|sat))"),
    ];
    let words = "@(?:yearly|annually|monthly|weekly|daily|midnight|hourly)";
    let every = r"@every (?:[0-9]+(?:\.[0-9]+)?(?:h|m|s|ms))+";
    format!(r"^(?:{words}|{every}|\s*{}\s*)$", fields.join(r"\s+"))
}

/// One or more ranges of what `value` matches.
fn list(value: &str) -> String {
    let range = format!(r"(?:[*?]|{value}(?:-{value})?)(?:/0*[1-9][0-9]*)?");
    format!("{range}(?:,{range})*")
}

#[cfg(test)]
mod tests {
    use kubewright_schedule::Schedule;
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    fn matches(text: &str) -> bool {
        Regex::new(&pattern()).expect("a pattern").is_match(text)
    }

    /// CT-08, CT-11.
    #[test]
    fn ct_08_five_fields_and_words_are_schedules_and_other_texts_are_none() {
        for text in [
            "5 4 * * *",
            "@daily",
            "@hourly",
            "@weekly",
            "@monthly",
            "@yearly",
            "@every 1h",
            "@every 1h30m",
            "@every 1.5h",
            "*/15 * * * *",
            "30 6-16/4 * * 1-5",
            "0 0 1,15 * 3",
            "0 0 ? * mon-FRI",
            "5/20 * * jun *",
            " 0 0 * * *  ",
        ] {
            assert!(matches(text) && Schedule::parse(text).is_ok(), "{text}");
        }
        for text in [
            "",
            "bad",
            "@often",
            "@every x",
            "@every 1",
            "@Daily",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * 32 * *",
            "* * * 13 *",
            "* * * * 7",
            "*/0 * * * *",
            "1-2-3 * * * *",
            "* * * * * *",
            "* * * *",
            "-1 * * * *",
            "0 0 * * monday",
        ] {
            assert!(!matches(text), "{text}");
        }
    }

    proptest! {
        /// What gets through is a schedule, but for ranges that run backwards.
        #[test]
        fn what_matches_can_be_read(text in r"[0-9*/,?-]{1,6} [0-9*/,-]{1,5} [0-9*/,-]{1,5} ([0-9*/,-]{1,4}|[a-z]{3}) [0-6a-z*-]{1,4}") {
            if matches(&text) {
                match Schedule::parse(&text) {
                    Ok(_) => {}
                    Err(error) => prop_assert!(error.to_string().contains("beyond end of range"), "{}: {}", text, error),
                }
            }
        }

        #[test]
        fn numbers_in_order_match(minute in 0..60_u8, from in 0..24_u8, to in 0..24_u8, day in 1..32_u8, month in 1..13_u8, step in 1..9_u8) {
            let (from, to) = (from.min(to), from.max(to));
            let text = format!("{minute}/{step} {from}-{to} {day} {month} *");
            prop_assert!(matches(&text), "{}", text);
        }
    }
}
