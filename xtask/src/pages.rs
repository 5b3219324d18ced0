//! What the pages of `docs` and ARCHITECTURE.md name is there: the files that they link to, the sources that they speak of, and the
//! tests that keep the invariants of `docs/design`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{run::workspace, words::rust_files};

/// The pages below a folder.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// A page without what is in its fences, which is not its own text.
fn prose(page: &Path) -> String {
    let text = fs::read_to_string(page).expect("a page");
    let parts = text.split("\n```").enumerate().filter(|(index, _)| index % 2 == 0);
    parts.map(|(_, part)| part).collect::<Vec<_>>().join("\n\n")
}

/// What stands between two marks, each time.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(begin) {
        let Some((inner, behind)) = after.split_once(end) else { break };
        found.push(inner);
        rest = behind;
    }
    found
}

/// The tests of a sentence such as "Kept by `one` (`a/b.rs`), `other` (`c.rs`).", each with its file.
fn keepers(text: &str) -> Vec<(String, String)> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut found = Vec::new();
    for sentence in text.split("Kept by ").skip(1) {
        let mut rest = sentence;
        while let Some((name, after)) = rest.strip_prefix('`').and_then(|rest| rest.split_once("` (`"))
            && let Some((file, after)) = after.split_once("`)")
        {
            found.push((name.to_owned(), file.to_owned()));
            rest = after.strip_prefix(", ").or_else(|| after.strip_prefix(" and ")).unwrap_or_default();
        }
    }
    found
}

/// All Rust files of the workspace.
fn sources() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in ["crates", "operators", "tests", "benches", "xtask", "docs"] {
        rust_files(&workspace().join(folder), &mut files);
    }
    files
}

/// The pages about the inside: ARCHITECTURE.md and those of `docs/design`.
fn inside() -> Vec<PathBuf> {
    let mut all = vec![workspace().join("ARCHITECTURE.md")];
    pages(&workspace().join("docs/design"), &mut all);
    all
}

/// What a heading is called in links to it, as GitHub and mdBook call it.
fn anchor(heading: &str) -> String {
    let heading = heading.trim().to_lowercase();
    let kept = heading.chars().filter(|one| one.is_alphanumeric() || matches!(one, ' ' | '-' | '_'));
    kept.map(|one| if one == ' ' { '-' } else { one }).collect()
}

/// Whether a page has a heading that is called so.
fn has_heading(page: &Path, name: &str) -> bool {
    let text = prose(page);
    let mut headings = text.lines().filter(|line| line.starts_with('#'));
    headings.any(|line| anchor(line.trim_start_matches('#')) == name)
}

#[test]
fn what_pages_link_to_is_there() {
    let mut all = Vec::new();
    pages(&workspace().join("docs"), &mut all);
    let others = [
        "ARCHITECTURE.md",
        "BENCHMARKS.md",
        "CONTRIBUTING.md",
        "README.md",
        "ROADMAP.md",
        "SECURITY.md",
        "examples/README.md",
    ];
    all.extend(others.map(|page| workspace().join(page)));
    let (mut missing, mut links, mut anchors) = (Vec::new(), 0, 0);
    for page in all {
        let text = prose(&page);
        for link in between(&text, "](", ")") {
            let (target, heading) = link.split_once('#').unwrap_or((link, ""));
            if target.contains("://") {
                continue;
            }
            links += 1;
            let linked =
                if target.is_empty() { page.clone() } else { page.parent().expect("a folder").join(target) };
            let is_page = linked.extension().is_some_and(|extension| extension == "md");
            anchors += usize::from(is_page && !heading.is_empty());
            if !linked.exists() || (is_page && !heading.is_empty() && !has_heading(&linked, heading)) {
                missing.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert_eq!(missing, [] as [String; 0]);
    assert!(links > 50, "only {links} links were found");
    assert!(anchors > 50, "only {anchors} links to headings were found");
}

#[test]
fn there_are_twenty_short_examples_and_the_table_has_each() {
    let folder = workspace().join("examples");
    let table = fs::read_to_string(folder.join("README.md")).expect("a table");
    let program = fs::read_to_string(folder.join("main.rs")).expect("a test program");
    let mut files = Vec::new();
    rust_files(&folder, &mut files);
    files.retain(|file| !file.ends_with("main.rs"));
    files.sort();
    assert_eq!(files.len(), 20);
    for (index, file) in files.iter().enumerate() {
        let name = file.strip_prefix(&folder).expect("a file of the folder").display().to_string();
        let number = format!("{:02}", index + 1);
        assert!(name.starts_with(&format!("{number}_")), "{name} is not number {number}");
        assert!(
            table.contains(&format!("| {number} | [{name}]({name}) | ")),
            "the table has no row of {name}"
        );
        assert!(program.contains(&format!("#[path = \"{name}\"]")), "{name} is not run");
        let text = fs::read_to_string(file).expect("an example");
        let lines = text.lines().count();
        assert!(lines <= 60, "{name} has {lines} lines");
        let said = text.lines().take_while(|line| line.starts_with("//!")).collect::<String>();
        let pages = between(&said, "`docs/", "`");
        assert!(!pages.is_empty(), "{name} names no page at its beginning");
        for page in pages {
            assert!(workspace().join("docs").join(page).exists(), "{name}: there is no docs/{page}");
        }
        assert!(text.contains("#[kubewright::test") || text.contains("#[tokio::test"), "{name} has no test");
    }
}

#[test]
fn the_code_of_patterns_is_that_of_examples() {
    let page = fs::read_to_string(workspace().join("docs/patterns.md")).expect("a page");
    let mut files = Vec::new();
    rust_files(&workspace().join("examples"), &mut files);
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let examples: String =
        files.iter().map(|file| flat(&fs::read_to_string(file).expect("an example")) + "\n").collect();
    let blocks = between(&page, "```rust\n", "```");
    assert!(blocks.len() > 5, "only {} blocks were found", blocks.len());
    for block in blocks {
        assert!(examples.contains(&flat(block)), "no example has these lines:\n{block}");
    }
}

#[test]
fn every_page_is_in_the_book() {
    let docs = workspace().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).expect("a summary");
    let named = between(&summary, "](", ")");
    let mut all = Vec::new();
    pages(&docs, &mut all);
    let path = |page: &PathBuf| page.strip_prefix(&docs).expect("a page of docs").display().to_string();
    let left_out: Vec<String> = all.iter().map(path).filter(|page| !named.contains(&page.as_str())).collect();
    assert_eq!(left_out, ["SUMMARY.md"]);
    assert_eq!(all.len(), named.len() + 1, "a page is there twice");
}

#[test]
fn what_keeps_an_invariant_is_a_test_in_the_file_that_is_named() {
    let text = "**I1.** So it is. Kept by\n`one` (`a/b.rs`), `two` (`c.rs`) and `three` (`d.rs`). Kept by `four` (`e.rs`).";
    assert_eq!(
        keepers(text).iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["one", "two", "three", "four"]
    );
    let sources = sources();
    let (mut wrong, mut tests) = (Vec::new(), 0);
    for page in inside() {
        let text = prose(&page);
        for (name, file) in keepers(&text) {
            tests += 1;
            let says = |path: &&PathBuf| {
                path.ends_with(&file)
                    && fs::read_to_string(path).expect("a file").contains(&format!("fn {name}("))
            };
            if sources.iter().find(says).is_none() {
                wrong.push(format!("{}: there is no `fn {name}` in {file}", page.display()));
            }
        }
        let is_invariant = |part: &&str| {
            let number = part.trim_start().strip_prefix("**I");
            number.is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
        };
        let loose = text.split("\n\n").filter(is_invariant).filter(|part| keepers(part).is_empty());
        wrong.extend(loose.map(|part| format!("{}: no test keeps {part:.60}", page.display())));
    }
    assert_eq!(wrong, [] as [String; 0]);
    assert!(tests > 40, "only {tests} tests were found");
}

#[test]
fn each_row_of_the_parity_tables_names_a_test_that_is_there_or_a_reason() {
    let page = prose(&workspace().join("docs/parity.md"));
    let sources = sources();
    let is_there = |name: &str, file: &str| {
        let says =
            |path: &PathBuf| fs::read_to_string(path).expect("a file").contains(&format!("fn {name}("));
        sources.iter().any(|path| path.ends_with(file) && says(path))
    };
    let (mut wrong, mut rows) = (Vec::new(), 0);
    for row in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| row ")) {
        rows += 1;
        let shown = row.trim_end_matches(" |").rsplit_once(" | ").map_or("", |(_, cell)| cell);
        // `test` (`file.rs`)
        let tests: Vec<_> =
            between(shown, "`", "`)").into_iter().filter_map(|test| test.split_once("` (`")).collect();
        let missing = tests.iter().filter(|(name, file)| !is_there(name, file));
        wrong.extend(missing.map(|(name, file)| format!("there is no `fn {name}` in {file}")));
        if tests.is_empty() && !shown.contains("Reason: ") {
            wrong.push(format!("neither a test nor a reason: {row}"));
        }
    }
    assert_eq!(wrong, [] as [String; 0]);
    assert!(rows > 60, "only {rows} rows were found");
}

/// A file is named by the end of its path (`verbs/create.rs`), so that a room may move to another crate.
#[test]
fn sources_that_are_spoken_of_are_there() {
    let sources = sources();
    let (mut missing, mut names) = (Vec::new(), 0);
    for page in inside() {
        let text = prose(&page);
        for name in between(&text, "`", "`").into_iter().filter(|name| name.ends_with(".rs")) {
            names += 1;
            if !sources.iter().any(|source| source.ends_with(name)) {
                missing.push(format!("{}: {name}", page.display()));
            }
        }
    }
    assert_eq!(missing, [] as [String; 0]);
    assert!(names > 60, "only {names} files were found");
}
