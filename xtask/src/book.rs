//! `cargo xtask book`: the pages of `docs` as a book with a search.

use std::{
    fs,
    path::{Component, Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{
    run::{run, target, workspace},
    tools,
};

/// Where what is not in the book is read.
const REPOSITORY: &str = "https://github.com/kubewright/kubewright";

/// Builds it into `target/book/html`, or says why it is not built.
///
/// # Errors
/// When mdBook refuses a page.
pub(crate) fn build_where_it_can_be() -> Result<()> {
    match tools::mdbook() {
        Ok(mdbook) => build_with(&mdbook),
        Err(error) => {
            eprintln!("== the book WAS NOT BUILT: mdBook cannot be installed: {error:#}");
            Ok(())
        }
    }
}

/// Builds it into `target/book/html`.
///
/// # Errors
/// When mdBook cannot be had, or refuses a page.
pub(crate) fn build() -> Result<()> {
    build_with(&tools::mdbook()?)
}

fn build_with(mdbook: &Path) -> Result<()> {
    let (source, html) = (target().join("book/source"), target().join("book/html"));
    if source.exists() {
        fs::remove_dir_all(&source)?;
    }
    take_pages(Path::new("docs"), &source)?;
    run(Command::new(mdbook).arg("build").arg(&source).arg("--dest-dir").arg(&html))
}

/// Takes the pages of a folder of the workspace, with links that lead somewhere in the book or in the repository.
fn take_pages(folder: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(workspace().join(folder)).with_context(|| format!("{}", folder.display()))? {
        let entry = entry?;
        let (path, to) = (folder.join(entry.file_name()), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            take_pages(&path, &to)?;
        } else if is_page(&path) {
            let text = fs::read_to_string(entry.path())?;
            fs::write(to, linked(&text, &path, |path| workspace().join(path).is_dir()))?;
        } else if path.extension().is_some_and(|extension| extension == "toml") && folder == Path::new("docs")
        {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

/// Whether a path of the workspace is a page of the book.
fn is_page(path: &Path) -> bool {
    path.starts_with("docs") && path.extension().is_some_and(|extension| extension == "md")
}

/// A page whose links to what is not in the book lead into the repository.
fn linked(text: &str, page: &Path, is_folder: impl Fn(&Path) -> bool) -> String {
    let mut parts = text.split("](");
    let mut written = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        written.push_str("](");
        match part.split_once(')') {
            Some((link, rest)) => {
                written.push_str(&outward(link, page, &is_folder));
                written.push(')');
                written.push_str(rest);
            }
            None => written.push_str(part),
        }
    }
    written
}

fn outward(link: &str, page: &Path, is_folder: impl Fn(&Path) -> bool) -> String {
    let (target, anchor) = link.split_at(link.find('#').unwrap_or(link.len()));
    if target.is_empty() || target.contains("://") || target.contains(char::is_whitespace) {
        return link.to_owned();
    }
    let path = resolved(page.parent().unwrap_or(Path::new("")), target);
    if is_page(&path) {
        return link.to_owned();
    }
    let shown = if is_folder(&path) { "tree" } else { "blob" };
    format!("{REPOSITORY}/{shown}/main/{}{anchor}", path.display())
}

/// What a relative path means in a folder.
fn resolved(folder: &Path, target: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in folder.join(target).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_what_is_not_in_the_book_lead_into_the_repository() {
        let of = |text: &str| {
            linked(text, Path::new("docs/design/store.md"), |path| path == Path::new("tests/golden"))
        };
        for same in [
            "[a](cache.md)",
            "[a](../faq.md#who)",
            "[a](#here)",
            "[a](https://kube.rs/x)",
            "a](b c)",
            "no](end",
        ] {
            assert_eq!(of(same), same);
        }
        assert_eq!(
            of(
                "See [it](../../README.md#fidelity), [them](../../tests/golden) and [code](../first-operator/src/lib.rs)."
            ),
            format!(
                "See [it]({REPOSITORY}/blob/main/README.md#fidelity), [them]({REPOSITORY}/tree/main/tests/golden) and \
                 [code]({REPOSITORY}/blob/main/docs/first-operator/src/lib.rs)."
            )
        );
    }
}
