//! `kubewright init`, `create` and `upgrade` as a user runs them.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Output},
};

use super::{Folder, assert_refused};

#[cfg(target_os = "linux")]
#[path = "terminal.rs"]
mod terminal;

const INIT: &str = "init --domain foo.bar --project-name sample";
const API: &str = "create api --group police --version v1beta1 --kind WhiteList";

fn kubewright(folder: &Folder, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubewright"));
    command.args(line.split_whitespace()).current_dir(&folder.0).output().expect("kubewright runs")
}

fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).expect("inside").display().to_string();
                files.insert(name, fs::read(path).expect("read"));
            }
        }
    }
    files
}

/// KB-08: without a terminal nothing is asked.
#[test]
fn without_a_terminal_a_kind_is_added_with_its_controller() {
    let folder = Folder::new("scaffold");
    assert!(kubewright(&folder, INIT).status.success());
    let output = kubewright(&folder, API);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(stdout.contains("\nsrc/kinds/police/whitelist/controller.rs\n"), "{stdout}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn kb_11_bad_usage_is_2_and_what_cannot_be_done_is_1() {
    let folder = Folder::new("scaffold-codes");
    assert_refused(&kubewright(&folder, API), 1, &["directory containing PROJECT", "kubewright init"]);
    assert!(kubewright(&folder, INIT).status.success());
    assert_refused(&kubewright(&folder, INIT), 1, &["already initialized"]);
    assert_refused(&kubewright(&folder, "create api --group a --version v1"), 2, &["Must specify --kind"]);
    assert_refused(&kubewright(&folder, "create api --grup a"), 2, &["--group"]);
}

/// Whenever a command is killed, the next one finds the project as it was or as it was to be.
#[test]
fn a_killed_command_leaves_the_old_or_the_new() {
    let whole = Folder::new("scaffold-whole");
    assert!(kubewright(&whole, INIT).status.success() && kubewright(&whole, API).status.success());
    let whole = files(&whole.0);
    for tenths in (0..200).step_by(8) {
        let folder = Folder::new(&format!("scaffold-killed-{tenths}"));
        assert!(kubewright(&folder, INIT).status.success());
        let mut killed = Command::new("timeout");
        killed.args(["-s", "KILL", &format!("0.{tenths:04}"), env!("CARGO_BIN_EXE_kubewright")]);
        killed.args(API.split_whitespace()).current_dir(&folder.0).output().expect("timeout runs");
        // Who is killed in the middle of a write still has the lock for a moment.
        let (next, errors) = loop {
            let next = kubewright(&folder, API);
            let errors = String::from_utf8_lossy(&next.stderr).into_owned();
            if !errors.contains("another kubewright is changing") {
                break (next, errors);
            }
        };
        assert!(
            next.status.success() || errors.contains("API resource already exists"),
            "{tenths}: {errors}"
        );
        assert_eq!(files(&folder.0), whole, "{tenths}");
    }
}

/// There is no release yet, so the SDK is that of the checkout that the command was built in; a project can go elsewhere.
#[test]
fn the_sdk_of_a_new_project_is_where_the_command_was_built() {
    let folder = Folder::new("scaffold-sdk");
    let stdout = kubewright(&folder, INIT);
    let stdout = String::from_utf8_lossy(&stdout.stdout).into_owned();
    let manifest = || fs::read_to_string(folder.0.join("Cargo.toml")).expect("written");
    let line =
        manifest().lines().find(|line| line.starts_with("kubewright = ")).expect("a dependency").to_owned();
    match line.strip_prefix("kubewright = { path = \"") {
        Some(path) => {
            let sdk = folder.0.join(path.trim_end_matches("\" }"));
            let text = fs::read_to_string(sdk.join("Cargo.toml")).expect("the SDK is there");
            assert!(text.contains("name = \"kubewright\"\n"), "{text}");
            assert!(stdout.contains("the SDK is that of "), "{stdout}");
        }
        // Built into a folder that is not below the checkout.
        None => {
            assert!(stdout.contains("cargo will not find the SDK before you say where it is"), "{stdout}");
        }
    }
    assert!(kubewright(&folder, "upgrade --sdk https://example.com/k.git#ab1").status.success());
    assert!(manifest().contains("kubewright = { git = \"https://example.com/k.git\", rev = \"ab1\" }"));
    let again = kubewright(&folder, "upgrade");
    assert!(String::from_utf8_lossy(&again.stdout).starts_with("nothing to do"), "{again:?}");
}

#[test]
fn an_upgrade_in_conflict_ends_with_1() {
    let folder = Folder::new("scaffold-conflict");
    assert!(kubewright(&folder, INIT).status.success());
    for (place, text) in [("", "pub mod mine;\n"), (".kubewright/scaffold/", "pub mod theirs;\n")] {
        let path = folder.0.join(place).join("src/lib.rs");
        let lib = fs::read_to_string(&path).expect("written");
        fs::write(&path, lib.replace("pub mod kinds;\n", text)).expect("written");
    }
    let refused = kubewright(&folder, "upgrade");
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("src/lib.rs; nothing was changed") && errors.contains("\n+pub mod kinds;\n"),
        "{errors}"
    );
    assert_refused(&kubewright(&folder, "upgrade --conflicts"), 1, &["there are conflicts in src/lib.rs"]);
}
