//! Pages of `docs/reference` that are made of the code. A test of the crate that owns the data makes the text, and
//! [`check_part`] compares it with the page that is committed; with `KUBEWRIGHT_GOLDEN=write` it is written.

mod command_line;
mod metrics;

use std::{
    env, fs,
    path::{Path, PathBuf},
};

pub use self::{
    command_line::{command_page, flag_tables},
    metrics::{Family, families, metric_table},
};

/// Holds one part of a page to what the code says: what stands between `<!-- begin PART -->` and `<!-- end PART -->`. `made_by` is the
/// cargo command that runs the test; the page's first line has it.
///
/// # Panics
/// When the part says something else or is not there, or the page cannot be read or written.
pub fn check_part(page: &str, part: &str, made_by: &str, text: &str) {
    let path = path(page);
    let whole = read(&path);
    let (begin, end) = (format!("<!-- begin {part} -->\n"), format!("<!-- end {part} -->"));
    let (before, rest) = whole.split_once(&begin).unwrap_or_else(|| panic!("{page} has no {begin}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("{page} has no {end}"));
    let first = whole.lines().next().unwrap_or_default();
    let says_how =
        first.starts_with("<!-- Generated") && first.contains(&format!("KUBEWRIGHT_GOLDEN=write {made_by}"));
    assert!(says_how, "{page}: its first line does not say that `{made_by}` makes a part of it");
    compare(&path, made_by, &format!("{before}{begin}\n{}\n\n{end}{after}", text.trim()));
}

fn compare(path: &Path, made_by: &str, text: &str) {
    if env::var("KUBEWRIGHT_GOLDEN").is_ok_and(|wanted| wanted == "write") {
        fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return;
    }
    let remedy = format!("{} is not what the code says: KUBEWRIGHT_GOLDEN=write {made_by}", path.display());
    let committed = read(path);
    let differs = committed.lines().zip(text.lines()).find(|(old, new)| old != new);
    if let Some((old, new)) = differs {
        panic!("{remedy}\n  the page: {old}\n  the code: {new}");
    }
    assert_eq!(committed.lines().count(), text.lines().count(), "{remedy}");
}

fn path(page: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(page)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A table.
#[must_use]
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let row = |cells: &[String]| format!("| {} |\n", cells.join(" | ")).replace("|  |", "| |");
    let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    let line = format!("{}|\n", "|---".repeat(head.len()));
    let rows: String = rows.iter().map(|cells| row(cells).replace("|  |", "| |")).collect();
    format!("{}{line}{rows}", row(&head))
}

/// Text in a cell of a table: what Markdown would take for something else is escaped, but for what stands in backticks.
#[must_use]
pub fn cell(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    let parts = text.split('`').enumerate().map(|(index, part)| match index % 2 {
        0 => part.replace('<', "&lt;").replace('*', "\\*").replace('_', "\\_"),
        _ => format!("`{part}`"),
    });
    parts.collect()
}

/// Text of code in a cell of a table.
#[must_use]
pub fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{}`", text.replace('|', "\\|")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_code_is_escaped() {
        assert_eq!(cell("`*` for all, <error>,\n  or a|b_c"), "`*` for all, &lt;error>, or a\\|b\\_c");
        assert_eq!(
            table(&["a", "b"], &[vec![code("x|y"), String::new()]]),
            "| a | b |\n|---|---|\n| `x\\|y` | |\n"
        );
    }
}
