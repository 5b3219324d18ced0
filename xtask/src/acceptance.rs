//! `cargo xtask acceptance`: which test shows which promise (`acceptance/rows.txt`), as `docs/acceptance.md`.
//!
//! A test shows a row when its name says so (`wl_04_a_deleted_deployment_is_back_at_once`) or its documentation does
//! (`/// WL-02, WL-03.`).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::run::workspace;

const ROWS: &str = include_str!("acceptance/rows.txt");
const HEAD: &str = "# What was promised, and the test that shows it

The write-ups that this project started from, row by row. `cargo xtask acceptance` writes this page from the tests; a test
fails when a row has none, or when the page is not what the tests say.
";

/// A test, as the file that it is in (from the root of the workspace) and its name.
type Test = (PathBuf, String);

/// Writes the page.
pub(crate) fn write() -> Result<()> {
    fs::write(page(), render(&shown()?)).with_context(|| format!("cannot write {}", page().display()))
}

fn page() -> PathBuf {
    workspace().join("docs/acceptance.md")
}

/// The tests of the workspace, by the rows that they show.
fn shown() -> Result<BTreeMap<String, BTreeSet<Test>>> {
    let mut files = Vec::new();
    for folder in ["crates", "operators", "tests"] {
        sources(&workspace().join(folder), &mut files)?;
    }
    let mut shown: BTreeMap<String, BTreeSet<Test>> = BTreeMap::new();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let path = file.strip_prefix(workspace())?.to_owned();
        for (row, test) in tests(&text) {
            shown.entry(row).or_default().insert((path.clone(), test));
        }
    }
    Ok(shown)
}

/// The Rust files in a folder and the folders in it, but for what was built.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

/// Rows and the names of the tests in this text that show them.
fn tests(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let (mut documented, mut is_test) = (Vec::new(), false);
    for line in text.lines().map(str::trim) {
        if let Some(doc) = line.strip_prefix("///") {
            documented.extend(rows(doc));
        } else if line.starts_with("#[") {
            is_test |= line.contains("test]") || line.contains("test(");
        } else if let Some(name) = function(line) {
            if is_test {
                documented.extend(rows(&name.replace('_', "-").to_uppercase()));
                found.extend(documented.drain(..).map(|row| (row, name.to_owned())));
            }
            (documented, is_test) = (Vec::new(), false);
        } else if line.is_empty() || line.ends_with(';') || line.ends_with('{') || line.ends_with('}') {
            (documented, is_test) = (Vec::new(), false);
        }
    }
    found
}

/// The name of the function that is declared in this line.
fn function(line: &str) -> Option<&str> {
    let declared = ["fn ", "async fn "].iter().find_map(|start| line.strip_prefix(start))?;
    declared.split(['(', '<']).next()
}

/// The IDs in a text: two capitals, a hyphen and two digits, as a word.
fn rows(text: &str) -> Vec<String> {
    let is_row = |at: &usize| {
        let word = text.as_bytes().get(*at..at + 5);
        let ends = |at: Option<&u8>| at.is_none_or(|byte| !byte.is_ascii_alphanumeric());
        word.is_some_and(|word| {
            word[..2].iter().all(u8::is_ascii_uppercase)
                && word[2] == b'-'
                && word[3..].iter().all(u8::is_ascii_digit)
        }) && ends(text.as_bytes().get(at + 5))
            && ends(at.checked_sub(1).and_then(|before| text.as_bytes().get(before)))
    };
    (0..text.len()).filter(is_row).map(|at| text[at..at + 5].to_owned()).collect()
}

fn render(shown: &BTreeMap<String, BTreeSet<Test>>) -> String {
    let mut page = HEAD.to_owned();
    for line in ROWS.lines().filter(|line| !line.starts_with('#')) {
        if let Some(heading) = line.strip_prefix("== ") {
            let _ = write!(page, "\n## {heading}\n\n| | promise | shown by |\n|---|---|---|\n");
        } else if let Some((row, promise)) = line.split_once(' ') {
            let tests = shown.get(row).into_iter().flatten();
            let tests: Vec<String> =
                tests.map(|(file, test)| format!("[`{test}`](../{})", file.display())).collect();
            let _ = writeln!(page, "| {row} | {promise} | {} |", tests.join("<br>"));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_shown_by_a_name_or_by_documentation() {
        let text = "
            /// As WL-02 and (WL-03) say.
            #[tokio::test(start_paused = true)]
            async fn wl_04_it_is_back() {}

            /// Not a test: WL-05.
            fn helper() {}

            #[kubewright::test]
            async fn at_01_at_02_are_listed(cluster: Cluster) {}
        ";
        let found = |row: &str, test: &str| (row.to_owned(), test.to_owned());
        assert_eq!(
            tests(text),
            [
                found("WL-02", "wl_04_it_is_back"),
                found("WL-03", "wl_04_it_is_back"),
                found("WL-04", "wl_04_it_is_back"),
                found("AT-01", "at_01_at_02_are_listed"),
                found("AT-02", "at_01_at_02_are_listed"),
            ]
        );
    }

    #[test]
    fn every_row_has_a_test() {
        let shown = shown().expect("the workspace can be read");
        let rows = ROWS.lines().filter(|line| !line.starts_with(['#', '=']));
        let bare: Vec<&str> =
            rows.filter(|row| row.split(' ').next().is_none_or(|row| !shown.contains_key(row))).collect();
        assert_eq!(bare, [] as [&str; 0]);
    }

    #[test]
    fn the_page_is_what_the_tests_say() {
        let page = fs::read_to_string(page()).expect("docs/acceptance.md");
        assert!(page == render(&shown().expect("the workspace can be read")), "run `cargo xtask acceptance`");
    }
}
