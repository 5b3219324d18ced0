//! Adds up what `cargo test` says.

use std::fmt;

/// How much of what a test program says about its failures is kept, in lines.
const TOLD_OF_A_PROGRAM: usize = 200;

/// The numbers of all test programs together, and what they said about the tests that failed.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Summary {
    passed: u64,
    failed: u64,
    ignored: u64,
    failures: Vec<String>,
    /// How many lines of failures the program that speaks may still add; none: it does not speak of them.
    room: Option<usize>,
}

impl Summary {
    /// Takes note of a line of `cargo test`'s output, if it is a result.
    pub(crate) fn read(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return self.listen(line) };
        self.room = None;
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

    /// Adds what a run of tests gave that this summary counts as ignored.
    pub(crate) fn add_ignored_ones(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored = self.ignored.saturating_sub(other.passed + other.failed);
        self.failures.extend(other.failures);
    }

    /// What the programs said about the tests that failed, a line each.
    pub(crate) fn failures(&self) -> &[String] {
        &self.failures
    }

    /// Keeps a line if it is about failures: these stand between a line `failures:` and the program's result.
    fn listen(&mut self, line: &str) {
        if self.room.is_none() && line == "failures:" {
            self.room = Some(TOLD_OF_A_PROGRAM);
        }
        if let Some(room @ 1..) = &mut self.room {
            *room -= 1;
            self.failures.push(line.to_owned());
        }
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
        assert_eq!(summary.to_string(), "13 passed, 2 failed, 1 ignored");
        summary.add_ignored_ones(Summary { passed: 1, ..Summary::default() });
        assert_eq!(summary.to_string(), "14 passed, 2 failed, 0 ignored");
    }

    #[test]
    fn what_is_said_about_failures_is_kept() {
        let mut summary = Summary::default();
        for line in [
            "test a::passed ... ok",
            "failures:",
            "---- b::failed stdout ----",
            "it panicked",
            "failures:",
            "    b::failed",
            "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "running 0 tests",
        ] {
            summary.read(line);
        }
        assert_eq!(
            summary.failures(),
            ["failures:", "---- b::failed stdout ----", "it panicked", "failures:", "    b::failed"]
        );
    }
}
