//! Adds up what `cargo test` says.

use std::fmt;

/// The numbers of all test programs together.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Summary {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Summary {
    /// Takes note of a line of `cargo test`'s output, if it is a result.
    pub(crate) fn read(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        for part in result.split([';', '.']) {
            let mut words = part.split_whitespace();
            let (Some(number), Some(word)) =
                (words.next().and_then(|word| word.parse::<u64>().ok()), words.next())
            else {
                continue;
            };
            match word {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }

    /// Adds the numbers of a run of tests that this summary counts as ignored.
    pub(crate) fn add_ignored_ones(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored = self.ignored.saturating_sub(other.passed + other.failed);
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} ignored", self.passed, self.failed, self.ignored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_results_of_all_test_programs_add_up() {
        let mut summary = Summary::default();
        for line in [
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 5 filtered out; finished in 1.21s",
            "test a::passed ... ok",
            "test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        ] {
            summary.read(line);
        }
        assert_eq!(summary, Summary { passed: 13, failed: 2, ignored: 1 });
        summary.add_ignored_ones(&Summary { passed: 1, failed: 0, ignored: 0 });
        assert_eq!(summary, Summary { passed: 14, failed: 2, ignored: 0 });
    }
}
