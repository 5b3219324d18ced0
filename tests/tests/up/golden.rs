//! Conversations recorded from a real Kubernetes v1.36.3 (the API, and what its controllers do), held again with
//! `kubewright up`.

use std::{collections::BTreeSet, path::Path, process::Command};

use kubewright_tests::{Up, needed};

/// The heading in the README of the conversations that are known to differ.
const DIFFERING: &str = "### Recorded conversations that differ";

/// The recordings of a folder below `tests/golden`, and the `up` that they are held with.
struct Recorded {
    folder: &'static str,
    arguments: &'static [&'static str],
}

const API: Recorded = Recorded { folder: "recorded", arguments: &["--nodes", "0"] };
const CONTROLLERS: Recorded = Recorded { folder: "recorded-ctl", arguments: &["--nodes", "2"] };

#[test]
#[ignore = "needs Python: cargo xtask test"]
fn recorded_conversations_go_as_with_kube_apiserver_or_the_fidelity_table_says_why_not() {
    API.replay();
}

#[test]
#[ignore = "needs Python: cargo xtask test"]
fn controllers_do_as_those_of_kubernetes_or_the_fidelity_table_says_why_not() {
    CONTROLLERS.replay();
}

impl Recorded {
    /// A conversation goes as it went with Kubernetes, or the README says that it does not, and why.
    fn replay(&self) {
        let up = Up::start(self.folder, self.arguments);
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
        let replay = Command::new(needed("PYTHON"))
            .arg(golden.join("golden.py"))
            .args(["replay", "--jobs", "4", "--kubeconfig"])
            .arg(up.kubeconfig())
            .arg(golden.join(self.folder))
            .output()
            .expect("Python starts");
        let told = String::from_utf8_lossy(&replay.stdout);
        let replayed = told.lines().last().unwrap_or_default();
        assert!(replayed.contains(" passed, "), "{told}\n{}", String::from_utf8_lossy(&replay.stderr));

        let failed: BTreeSet<&str> = told.lines().filter_map(|line| line.strip_prefix("FAIL ")).collect();
        let readme = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("README.md");
        let readme = std::fs::read_to_string(readme).expect("the README");
        assert_eq!(failed, self.differing(&readme), "what failed, and what the README lists\n{told}");
    }

    /// Of the recordings that the README lists as differing those that are in this folder.
    fn differing<'a>(&self, readme: &'a str) -> BTreeSet<&'a str> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(self.folder);
        let areas = std::fs::read_dir(folder).expect("recordings").map(|area| area.expect("a folder").path());
        let areas: Vec<_> = areas.collect();
        let is_here = |name: &&str| areas.iter().any(|area| area.join(format!("{name}.json")).exists());
        differing(readme).into_iter().filter(is_here).collect()
    }
}

/// The names in the first column of the table below the heading.
fn differing(readme: &str) -> BTreeSet<&str> {
    let section = readme.split_once(DIFFERING).expect("the README has the section").1;
    let rows = section.lines().skip(1).take_while(|line| !line.starts_with('#'));
    let recordings = rows.filter_map(|row| row.strip_prefix("| `")?.split_once(" |"));
    recordings.flat_map(|(names, _)| names.split(", ")).map(|name| name.trim_matches('`')).collect()
}
