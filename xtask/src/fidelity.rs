//! The table of what is served (README.md, "Fidelity"): each row that promises something names the tests that hold it, in
//! `tests/fidelity.tsv` (how the row begins, a tab, and the names of tests).

use std::{collections::BTreeSet, fs};

use crate::{run::workspace, words::rust_files};

/// What a row promises, and how its answer begins.
struct Row {
    subject: String,
    answer: String,
}

/// The rows of the first table below the heading; those of parts, which have no answer, are left out.
fn rows(readme: &str) -> Vec<Row> {
    let (_, section) = readme.split_once("\n## Fidelity\n").expect("the section");
    let section = section.split("\n### ").next().unwrap_or(section);
    let table = section.lines().filter(|line| line.starts_with('|'));
    let cells = table.filter_map(|line| line.trim_matches('|').rsplit_once(" | "));
    cells
        .map(|(subject, answer)| Row { subject: subject.trim().to_owned(), answer: answer.trim().to_owned() })
        .filter(|row| !row.answer.is_empty())
        .collect()
}

/// How rows begin, each with its tests.
fn tests_of_rows() -> Vec<(String, Vec<String>)> {
    let table = fs::read_to_string(workspace().join("tests/fidelity.tsv")).expect("the table of tests");
    let lines = table.lines().map(|line| line.split_once('\t').expect("a tab"));
    lines.map(|(row, tests)| (row.to_owned(), tests.split(' ').map(str::to_owned).collect())).collect()
}

/// The names of all functions of the project.
fn functions() -> BTreeSet<String> {
    let mut files = Vec::new();
    for folder in ["crates", "operators", "tests"] {
        rust_files(&workspace().join(folder), &mut files);
    }
    let texts = files.iter().map(|file| fs::read_to_string(file).expect("a text"));
    let mut names = BTreeSet::new();
    for text in texts {
        names.extend(text.split("fn ").skip(1).filter_map(|rest| Some(rest.split_once('(')?.0.to_owned())));
    }
    names
}

#[test]
fn each_promise_of_the_fidelity_table_names_tests_that_are_there() {
    let readme = fs::read_to_string(workspace().join("README.md")).expect("the README");
    let (rows, tests, functions) = (rows(&readme), tests_of_rows(), functions());
    assert!(rows.len() > 40, "the table is read");
    for Row { subject, answer } in &rows {
        let named = tests.iter().filter(|(row, _)| subject.starts_with(row.as_str())).count();
        let promises = answer != "no" && !answer.starts_with("no;") && !answer.starts_with("no,");
        assert_eq!(named, usize::from(promises), "{subject} | {answer}");
    }
    for (row, tests) in &tests {
        assert!(rows.iter().any(|known| known.subject.starts_with(row.as_str())), "no such row: {row}");
        for test in tests {
            assert!(functions.contains(test), "{row}: there is no test {test}");
        }
    }
}
