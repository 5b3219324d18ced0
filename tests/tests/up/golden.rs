//! Conversations recorded from a real Kubernetes v1.36.3 (the API, and what its controllers do), and what v1.35.4 and v1.37.2
//! answered otherwise, held again with `kubewright up --kubernetes-version`.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
};

use kubewright_tests::{Up, needed};

/// The heading in the README of the conversations that are known to differ.
const DIFFERING: &str = "### Recorded conversations that differ";

/// Conversations that disturb others: this one has an object that cannot be read for a while, and as long as it has, of no
/// namespace it can be said that nothing is left in it.
const ALONE: [&str; 1] = ["storage-version-change"];

/// The recordings of a folder below `tests/golden`, and the `up` that they are held with.
struct Recorded {
    folder: &'static str,
    arguments: &'static [&'static str],
}

const API: Recorded = Recorded { folder: "recorded", arguments: &["--nodes", "0"] };
/// What was recorded of a kube-apiserver on which nobody migrates stored objects.
const UNMIGRATED: [&str; 2] = ["--controllers", "*,-storage-version-migrator-controller"];
const CONTROLLERS: Recorded = Recorded { folder: "recorded-ctl", arguments: &["--nodes", "2"] };

/// The version that all recordings are of. What another one answers otherwise stands in a folder beside them, such as
/// `recorded-1.37`.
const RECORDED: &str = "1.36";

/// Set to `all` where the other versions hold all conversations, and not only those in which they differ (`cargo xtask golden`).
const EXTENT: &str = "KUBEWRIGHT_GOLDEN";

#[test]
#[ignore = "needs Python: cargo xtask test"]
fn recorded_conversations_go_as_with_kube_apiserver_or_the_fidelity_table_says_why_not() {
    API.replay(RECORDED);
}

#[test]
#[ignore = "needs Python: cargo xtask test"]
fn controllers_do_as_those_of_kubernetes_or_the_fidelity_table_says_why_not() {
    CONTROLLERS.replay(RECORDED);
}

#[test]
#[ignore = "needs Python: cargo xtask test"]
fn what_v1_35_answers_otherwise_is_answered_so() {
    API.replay("1.35");
}

#[test]
#[ignore = "needs Python: cargo xtask test"]
fn what_v1_37_answers_otherwise_is_answered_so() {
    API.replay("1.37");
}

#[test]
#[ignore = "needs Python: cargo xtask test"]
fn what_controllers_of_v1_35_do_otherwise_is_done_so() {
    CONTROLLERS.replay("1.35");
}

#[test]
#[ignore = "needs Python: cargo xtask test"]
fn what_controllers_of_v1_37_do_otherwise_is_done_so() {
    CONTROLLERS.replay("1.37");
}

impl Recorded {
    /// A conversation goes as it went with that version of Kubernetes, or the README says that it does not, and why.
    fn replay(&self, version: &str) {
        let variant = golden().join(format!("{}-{version}", self.folder));
        let mut files = recordings(&golden().join(self.folder));
        if version != RECORDED {
            let is_all = std::env::var(EXTENT).is_ok_and(|extent| extent == "all");
            files.retain(|file| match of_variant(&variant, file) {
                Some(differs) => differs.get("absent").is_none(),
                None => is_all,
            });
            // Those of this version alone.
            let own = if variant.is_dir() { recordings(&variant) } else { Vec::new() };
            files.extend(own.into_iter().filter(|file| of(file)["steps"].is_array()));
        }
        assert!(!files.is_empty(), "nothing is recorded of v{version}");
        let unmigrated: &[&str] = if version == RECORDED { &[] } else { &UNMIGRATED };
        let arguments = [self.arguments, unmigrated, &["--kubernetes-version", version]].concat();
        let up = Up::start(&format!("{}-{version}", self.folder), &arguments);
        let (alone, together): (Vec<_>, Vec<_>) = files.iter().partition(|file| ALONE.contains(&name(file)));
        let told = [alone, together].map(|files| hold(&up, &variant, &files)).concat();
        let failed: BTreeSet<&str> = told.lines().filter_map(|line| line.strip_prefix("FAIL ")).collect();

        let readme = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("README.md");
        let readme = std::fs::read_to_string(readme).expect("the README");
        let mut listed = differing(&readme, version);
        listed.retain(|listed| files.iter().any(|file| name(file) == *listed));
        assert_eq!(failed, listed, "what failed with v{version}, and what the README lists\n{told}");
    }
}

/// The files in the areas of a folder.
fn recordings(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = entries(folder).iter().flat_map(|area| entries(area)).collect();
    files.sort();
    files
}

fn of(file: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(file).expect("a recording");
    serde_json::from_str(&text).expect("JSON")
}

/// Holds the conversations of the controllers with an API server on which somebody acts; gives those that go otherwise, and what is
/// told of them. Some of them look after a second or two, and on a busy machine one process may not have had its turn since the
/// other's: what fails is held once more.
pub(crate) fn hold_those_of_controllers(up: &Up) -> (BTreeSet<String>, String) {
    let (mut files, mut told) = (recordings(&golden().join(CONTROLLERS.folder)), String::new());
    let variant = golden().join(format!("{}-{RECORDED}", CONTROLLERS.folder));
    for _ in 0..2 {
        told = hold(up, &variant, &files.iter().collect::<Vec<_>>());
        files.retain(|file| told.lines().any(|line| line.strip_prefix("FAIL ") == Some(name(file))));
    }
    (files.iter().map(|file| name(file).to_owned()).collect(), told)
}

/// What a version has of a recording otherwise: a file of the same area and name.
fn of_variant(variant: &Path, file: &Path) -> Option<serde_json::Value> {
    let area = file.parent()?.file_name()?;
    let differing = variant.join(area).join(file.file_name()?);
    differing.is_file().then(|| of(&differing))
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder of recordings");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

/// The name of a recording.
fn name(file: &Path) -> &str {
    file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}

/// Holds these conversations with it; what is told of them.
fn hold(up: &Up, variant: &Path, files: &[&PathBuf]) -> String {
    if files.is_empty() {
        return String::new();
    }
    let replay = Command::new(needed("PYTHON"))
        .arg(golden().join("golden.py"))
        .args(["replay", "--jobs", "4", "--kubeconfig"])
        .arg(up.kubeconfig())
        .arg("--variant")
        .arg(variant)
        .args(files)
        .output()
        .expect("Python starts");
    let told = String::from_utf8_lossy(&replay.stdout).into_owned();
    let ended = told.lines().last().is_some_and(|last| last.contains(" passed, "));
    assert!(ended, "{told}\n{}", String::from_utf8_lossy(&replay.stderr));
    told
}

/// The names in the first column of the table below the heading, of the rows whose second has the version.
fn differing<'a>(readme: &'a str, version: &str) -> BTreeSet<&'a str> {
    let section = readme.split_once(DIFFERING).expect("the README has the section").1;
    let rows = section.lines().skip(1).take_while(|line| !line.starts_with('#'));
    let recordings = rows.filter_map(|row| {
        let mut cells = row.strip_prefix("| `")?.split(" | ");
        let (names, versions) = (cells.next()?, cells.next()?);
        versions.split(", ").any(|one| one == version).then_some(names)
    });
    recordings.flat_map(|names| names.split(", ")).map(|name| name.trim_matches('`')).collect()
}
