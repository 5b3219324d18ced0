//! The conformance tests of a release, and what each needs.

use anyhow::{Context, Result};

const TESTS: &str = include_str!("classes.tsv");

/// What a test needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// An API server and controllers.
    Api,
    /// Simulated nodes.
    Simulated,
    /// A program that answers in a pod.
    Program,
    /// Containers as a kubelet runs them, and often their network.
    Containers,
}

impl Class {
    pub(super) const ALL: [Self; 4] = [Self::Api, Self::Simulated, Self::Program, Self::Containers];

    pub(super) fn of(letter: char) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.letter().starts_with(letter))
    }

    pub(super) fn letter(self) -> &'static str {
        match self {
            Self::Api => "A",
            Self::Simulated => "S",
            Self::Program => "P",
            Self::Containers => "X",
        }
    }

    /// What the page says of it.
    pub(super) fn needs(self) -> &'static str {
        match self {
            Self::Api => "an API server and controllers",
            Self::Simulated => "simulated nodes",
            Self::Program => "a program that answers in a pod",
            Self::Containers => "containers, often with a network of their own",
        }
    }

    /// Whether its pods run.
    pub(super) fn needs_programs(self) -> bool {
        matches!(self, Self::Program | Self::Containers)
    }
}

/// A test.
#[derive(Debug)]
pub(super) struct Test {
    pub(super) class: Class,
    /// As ginkgo calls it, with its labels.
    pub(super) name: String,
}

/// All tests, as they stand in the table.
///
/// # Errors
/// When a line of the table is none.
pub(super) fn all() -> Result<Vec<Test>> {
    let lines = TESTS.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let test = |line: &str| {
        let mut columns = line.split('\t');
        let class = columns.next()?.chars().next().and_then(Class::of)?;
        let name = columns.nth(1)?.to_owned();
        Some(Test { class, name })
    };
    lines.map(|line| test(line).with_context(|| format!("no line of classes.tsv: {line}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_has_a_class_and_stands_there_once() {
        let mut names: Vec<_> = all().expect("a table").into_iter().map(|test| test.name).collect();
        assert_eq!(names.len(), 446);
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 446);
    }
}
