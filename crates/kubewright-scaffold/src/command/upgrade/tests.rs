//! Projects of an older scaffold, upgraded. `tests/first` is what the first scaffold there was wrote for the write-up's command
//! lines, with 0.0.1 as its version.

use std::{fs, path::Path};

use proptest::prelude::*;

use crate::{
    Error,
    apply::tests::killed_after,
    command::tests::{Somebody, check, environment, ok, refused, run},
    folder::tests::Scratch,
    record::RECORD,
};

const CONTROLLER: &str = "src/kinds/police/whitelist/controller.rs";
const TYPES: &str = "src/kinds/police/whitelist/v1beta1.rs";

/// The project as the first scaffold wrote it.
fn first(test: &str) -> Scratch {
    let scratch = Scratch::new(test);
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/first");
    for (path, text) in crate::Folder::new(fixture).below("").expect("a fixture") {
        scratch.put(&path, &text);
        scratch.put(&format!("{RECORD}/{path}"), &text);
    }
    scratch
}

/// What a scaffold of today writes for the same command lines.
fn today(test: &str) -> Scratch {
    let scratch = Scratch::new(test);
    for line in [
        "init --domain foo.bar --owner TakanariKo --project-name foo-bar",
        "create api --group police --version v1beta1 --kind WhiteList",
    ] {
        super::super::tests::run_in(&scratch, line, 2026).expect("made");
    }
    scratch
}

fn edit(scratch: &Scratch, path: &str, from: &str, to: &str) {
    let text = scratch.files()[path].clone();
    assert!(text.contains(from), "{path}: {text}");
    scratch.put(path, &text.replacen(from, to, 1));
}

#[test]
fn a_project_of_the_first_scaffold_becomes_what_it_would_be_today() {
    let scratch = first("first");
    let output = ok(&scratch, "upgrade");
    assert_eq!(
        output,
        format!(
            "Upgrading what was scaffolded to kubewright 0.1.0...\nPROJECT\nCargo.toml\nsrc/kinds.rs\nREADME.md\n{TYPES}\n{CONTROLLER}\n\
             tests/it/police_whitelist.rs\n\
             Next: see what has changed, and that the tests pass with:\n$ cargo test\n"
        )
    );
    assert_eq!(scratch.files(), today("today").files());
    let output = ok(&scratch, "upgrade");
    assert_eq!(output, "nothing to do: the project is as kubewright 0.1.0 makes it\n");
    assert_eq!(scratch.files(), today("again").files());
}

#[test]
fn what_its_user_has_done_stays() {
    let scratch = first("edited");
    edit(&scratch, TYPES, "pub foo: Option<String>", "pub colour: Option<String>");
    edit(&scratch, CONTROLLER, "image: Some(\"nginx\"", "image: Some(\"httpd\"");
    edit(
        &scratch,
        "Cargo.toml",
        "kubewright = { version = \"0.0.1\" }",
        "kubewright = { version = \"0.0.1\", features = [\"x\"] }",
    );
    edit(
        &scratch,
        "Cargo.toml",
        "features = [\"testing\"] }\n",
        "features = [\"testing\"] }\nproptest = \"1\"\n",
    );
    scratch.put("README.md", "Mine.\n");
    scratch.put("src/plan.rs", "//! Mine.\n");
    fs::remove_file(scratch.path().join("rustfmt.toml")).expect("removed");
    fs::remove_file(scratch.path().join("tests/it/police_whitelist.rs")).expect("removed");

    let output = ok(&scratch, "upgrade");
    assert!(output.contains("tests/it/police_whitelist.rs was removed by you and stays away\n"), "{output}");
    assert!(
        output.contains("README.md stays as you have made it; this version changes it, too\n"),
        "{output}"
    );
    let files = scratch.files();
    assert!(
        files[TYPES].contains("pub colour") && files[TYPES].contains("name = \"Age\",\n"),
        "{}",
        files[TYPES]
    );
    assert!(
        files[CONTROLLER].contains("httpd") && files[CONTROLLER].contains("let is_ready = ready >= pods;")
    );
    let manifest = &files["Cargo.toml"];
    for line in [
        "kubewright = { version = \"0.1.0\", features = [\"x\"] }\n",
        "kubewright = { version = \"0.1.0\", features = [\"testing\"] }\nproptest = \"1\"\n",
        "[[bin]]\nname = \"foo-bar\"\n",
    ] {
        assert!(manifest.contains(line), "{line}: {manifest}");
    }
    assert_eq!((&*files["README.md"], &*files["src/plan.rs"]), ("Mine.\n", "//! Mine.\n"));
    assert!(!files.contains_key("rustfmt.toml") && !files.contains_key("tests/it/police_whitelist.rs"));
    assert!(ok(&scratch, "upgrade").starts_with("nothing to do"));
}

/// A file in which user and scaffold have changed the same lines.
fn in_conflict(test: &str) -> Scratch {
    let scratch = first(test);
    edit(&scratch, CONTROLLER, "            ready: ready >= 1,\n", "            ready: ready >= 2,\n");
    scratch
}

/// What the example's reconcile does with an object.
fn body(controller: &str) -> &str {
    let begin = controller.find("        // Creates it, or puts right").expect("a beginning");
    let end = controller.find("        Ok(Outcome::Done)\n").expect("an end");
    &controller[begin..end]
}

#[test]
fn a_conflict_is_told_with_the_lines_and_nothing_changes() {
    let scratch = in_conflict("conflict");
    let words =
        [CONTROLLER, "nothing was changed", "--conflicts", "\n+        let is_ready = ready >= pods;\n"];
    refused(&scratch, "upgrade", 1, &words);
    refused(&scratch, "upgrade --dry-run", 1, &words);
    let error = run(&scratch, "upgrade").expect_err("refused").to_string();
    assert!(!error.contains(TYPES), "what can be merged is no conflict: {error}");

    // Done by hand, it is none any more.
    let by_hand = format!("{}        let _mine = 2;\n", body(&today("by-hand").files()[CONTROLLER]));
    let text = scratch.files()[CONTROLLER].clone();
    let text = text.replace(body(&text), &by_hand);
    scratch.put(CONTROLLER, &text);
    ok(&scratch, "upgrade");
    let upgraded = scratch.files()[CONTROLLER].clone();
    assert!(upgraded.contains(&by_hand), "{upgraded}");
    // What was not done by hand is.
    assert!(upgraded.contains("        spec: DeploymentSpec {\n"), "{upgraded}");
    assert!(ok(&scratch, "upgrade").starts_with("nothing to do"));
}

#[test]
fn on_request_both_are_written_between_marks_that_have_to_be_settled() {
    let scratch = in_conflict("marks");
    let error = run(&scratch, "upgrade --conflicts").expect_err("a conflict");
    assert_eq!(error.exit_code(), 1);
    assert!(
        error.to_string().starts_with(&format!("there are conflicts in {CONTROLLER} (choose")),
        "{error}"
    );
    let marked = scratch.files()[CONTROLLER].clone();
    let begin = marked.find("<<<<<<< yours\n").expect("a mark");
    let end = marked.find("=======\n").expect("a mark") + "=======\n".len();
    assert!(marked[begin..end].contains("            ready: ready >= 2,\n"), "{marked}");
    assert!(marked[end..].contains("\n>>>>>>> kubewright 0.1.0\n"), "{marked}");
    assert!(
        scratch.files()["PROJECT"].contains("cliVersion: \"0.1.0\"")
            || scratch.files()["PROJECT"].contains("cliVersion: 0.1.0")
    );

    refused(&scratch, "upgrade", 1, &["an earlier upgrade left conflicts", CONTROLLER]);
    let settled = format!("{}{}", &marked[..begin], &marked[end..]).replace(">>>>>>> kubewright 0.1.0\n", "");
    scratch.put(CONTROLLER, &settled);
    assert!(ok(&scratch, "upgrade").starts_with("nothing to do"));
    check(&scratch.files());
}

#[test]
fn what_would_change_is_shown_as_a_diff() {
    let scratch = first("dry");
    let before = scratch.files();
    let output = ok(&scratch, "upgrade --dry-run");
    assert_eq!(scratch.files(), before);
    assert!(output.starts_with("would change PROJECT\nwould change Cargo.toml\n"), "{output}");
    assert!(
        output.contains("\n-cliVersion: 0.0.1\n")
            && output.contains("\n+    operator = operator.controller("),
        "{output}"
    );
    assert!(!output.contains(RECORD), "{output}");
}

/// Killed between any two steps, a project is the old or the upgraded one when the next command has looked at it.
#[test]
fn killed_at_any_step_it_is_old_or_upgraded() {
    let before = in_conflict("before").files();
    let after = {
        let scratch = in_conflict("after");
        let _ = run(&scratch, "upgrade --conflicts");
        scratch.files()
    };
    let upgrade = super::Upgrade { sdk: None, conflicts: true, dry_run: false };
    let (mut old, mut new) = (0, 0);
    for done in 0.. {
        let scratch = in_conflict("killed");
        let folder = crate::Folder::new(scratch.path());
        let planned = upgrade.plan(&folder, &environment("0.1.0", 2026)).expect("a plan");
        let more = killed_after(scratch.path(), &planned.changes, done);
        let left = scratch.files();
        assert!(left == before || left == after, "killed after {done}: {left:?}");
        if left == before {
            old += 1;
        } else {
            new += 1;
        }
        if !more {
            break;
        }
    }
    assert!(old > 10 && new > 10, "{old} {new}");
}

#[test]
fn a_file_that_is_no_longer_scaffolded_goes_unless_it_was_edited() {
    let scratch = first("dropped");
    for path in ["Makefile", "hack/edited.sh"] {
        scratch.put(path, "as it was\n");
        scratch.put(&format!("{RECORD}/{path}"), "as it was\n");
    }
    scratch.put("hack/edited.sh", "mine\n");
    let output = ok(&scratch, "upgrade");
    assert!(output.contains("\nMakefile is no longer needed, and was removed\n"), "{output}");
    assert!(
        output.contains("hack/edited.sh is no longer scaffolded; you have changed it, and it stays\n"),
        "{output}"
    );
    let files = scratch.files();
    assert!(!files.contains_key("Makefile") && files["hack/edited.sh"] == "mine\n");
    assert!(ok(&scratch, "upgrade").starts_with("nothing to do"));
}

#[test]
fn a_file_that_is_new_in_the_scaffold_is_written_unless_there_is_one() {
    let scratch = first("new");
    for path in ["rustfmt.toml", ".ci/run", "src/main.rs"] {
        fs::remove_file(scratch.path().join(RECORD).join(path)).expect("removed");
    }
    fs::remove_file(scratch.path().join("rustfmt.toml")).expect("removed");
    scratch.put("src/main.rs", "fn main() {}\n");
    let output = ok(&scratch, "upgrade");
    assert!(output.contains("\nrustfmt.toml\n"), "{output}");
    assert!(
        output.contains("src/main.rs is yours and stays as it is; this version would write it, too\n"),
        "{output}"
    );
    assert_eq!(scratch.files()["src/main.rs"], "fn main() {}\n");
}

#[test]
fn the_sdk_is_raised_with_it_or_as_is_said() {
    let scratch = first("sdk");
    ok(&scratch, "upgrade --sdk https://example.com/k.git#ab1");
    let files = scratch.files();
    assert!(files["Cargo.toml"].contains(
        "kubewright = { git = \"https://example.com/k.git\", rev = \"ab1\", features = [\"testing\"] }"
    ));
    assert!(files["PROJECT"].contains("rev: ab1"), "{}", files["PROJECT"]);
    // A repository is not left for a version.
    assert!(ok(&scratch, "upgrade").starts_with("nothing to do"));

    let scratch = first("sdk-elsewhere");
    let manifest = scratch.files()["Cargo.toml"]
        .replace("kubewright = { version = \"0.0.1\"", "kubewright = { workspace = true");
    scratch.put("Cargo.toml", &manifest);
    let output = ok(&scratch, "upgrade");
    assert!(
        output.contains("Cargo.toml does not say where the SDK comes from as it was scaffolded"),
        "{output}"
    );
    assert!(
        scratch.files()["Cargo.toml"].contains("kubewright = { workspace = true, features = [\"testing\"] }")
    );
}

#[test]
fn what_cannot_be_upgraded_is_told_with_why() {
    refused(&Scratch::new("none"), "upgrade", 1, &["directory containing PROJECT", "kubewright init"]);

    let scratch = today("newer");
    edit(&scratch, "PROJECT", "cliVersion: \"0.1.0\"", "cliVersion: 0.2.0-rc.1\nsomething: new");
    let words = ["written by kubewright 0.2.0-rc.1, and this is 0.1.0", "take that version"];
    refused(&scratch, "upgrade", 1, &words);
    refused(&scratch, "create api --group a --version v1 --kind A", 1, &words);

    let scratch = today("edited");
    edit(&scratch, "PROJECT", "kind: WhiteList", "kind: [");
    refused(&scratch, "upgrade", 1, &["PROJECT cannot be used"]);

    let scratch = first("no-record");
    fs::remove_dir_all(scratch.path().join(RECORD)).expect("removed");
    refused(&scratch, "upgrade", 1, &[RECORD, "what kubewright 0.0.1 wrote", "version control"]);
}

#[test]
fn a_record_that_is_lost_is_written_anew_by_the_version_that_wrote_the_project() {
    let scratch = today("lost");
    let whole = scratch.files();
    fs::remove_dir_all(scratch.path().join(RECORD)).expect("removed");
    edit(&scratch, CONTROLLER, "nginx", "httpd");
    ok(&scratch, "upgrade");
    let mut files = scratch.files();
    assert!(files[CONTROLLER].contains("httpd"));
    files.insert(CONTROLLER.to_owned(), whole[CONTROLLER].clone());
    assert_eq!(files, whole);
}

/// A newer command goes on with the files that it keeps from what the older one wrote.
#[test]
fn a_kind_is_added_to_an_older_project() {
    let scratch = first("add");
    edit(&scratch, "src/kinds.rs", "//! The kinds", "//! (Read by us.)\n//!\n//! The kinds");
    ok(&scratch, "create api --group police --version v1 --kind Prison");
    let kinds = scratch.files()["src/kinds.rs"].clone();
    assert!(
        kinds.contains("(Read by us.)") && kinds.contains("operator.controller(police::prison"),
        "{kinds}"
    );
    ok(&scratch, "upgrade");
    assert!(scratch.files()[CONTROLLER].contains("let is_ready = ready >= pods;"));
    check(&scratch.files());
}

fn upgraded(scratch: &Scratch) -> Result<(), Error> {
    run(scratch, "upgrade --conflicts").map(|_| ())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Wherever a user has put a line, it is there afterwards.
    #[test]
    fn no_line_of_the_users_is_lost(file in 0..12_usize, at in 0..40_usize, line in "// mine [a-z]{1,8}") {
        let scratch = first("kept");
        let files: Vec<(String, String)> =
            scratch.files().into_iter().filter(|(path, _)| !path.starts_with(RECORD) && path != "PROJECT").collect();
        let (path, text) = &files[file % files.len()];
        let mut lines: Vec<&str> = text.lines().collect();
        lines.insert(at.min(lines.len()), &line);
        scratch.put(path, &(lines.join("\n") + "\n"));
        let result = upgraded(&scratch);
        let after = scratch.files()[path].clone();
        prop_assert!(after.lines().any(|kept| kept == line), "{after}");
        prop_assert_eq!(result.is_err(), after.contains("<<<<<<<"));
        prop_assert!(after.lines().count() >= today("kept").files()[path].lines().count());
    }
}

#[test]
fn nobody_is_asked() {
    let mut somebody = Somebody::default();
    super::super::tests::run_by(&first("asked"), "upgrade", &mut somebody).expect("upgraded");
    assert_eq!(somebody.asked, [""; 0]);
}
