//! The page docs/why.md has all causes.

use std::fmt::Write;
use std::path::Path;

use kubewright_why::Cause;

/// The part of the page that lists the causes: a table for each family.
fn tables() -> String {
    let mut text = String::new();
    let mut family = None;
    for cause in Cause::ALL {
        if family != Some(cause.family()) {
            family = Some(cause.family());
            let _ = write!(text, "\n### {}\n\n| cause | what it means |\n|---|---|\n", cause.family().name());
        }
        let _ = writeln!(text, "| `{}` | {} |", cause.name(), cause.describe());
    }
    text
}

#[test]
fn the_page_lists_each_cause() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/why.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let begin = page.find("<!-- causes:").expect("where the causes begin");
    let begin = begin + page[begin..].find('\n').expect("a line") + 1;
    let end = page.find("<!-- end of causes -->").expect("where they end");
    let wanted = format!("{}{}\n{}", &page[..begin], tables(), &page[end..]);
    if std::env::var("KUBEWRIGHT_GOLDEN").is_ok_and(|value| value == "write") {
        std::fs::write(&path, wanted).expect("the page is written");
    } else {
        assert!(page == wanted, "docs/why.md lacks a cause: KUBEWRIGHT_GOLDEN=write makes it anew");
    }
}

#[test]
fn names_of_causes_are_unlike() {
    let mut names: Vec<&str> = Cause::ALL.iter().map(|cause| cause.name()).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
    assert!(all >= 25);
}
