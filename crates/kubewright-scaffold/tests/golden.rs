//! The projects in `tests/projects` are what these command lines make, byte for byte. As members of the workspace they are
//! compiled and their tests run, too.
//!
//! `KUBEWRIGHT_GOLDEN=write cargo test -p kubewright-scaffold --test golden` writes them anew.

use std::{
    collections::BTreeMap,
    env, fs, io,
    path::{Path, PathBuf},
    process,
    sync::Mutex,
};

use clap::Parser;
use kubewright_scaffold::{Ask, Command, Environment, Folder, Source};

/// A folder of its own, removed at its end.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

struct Nobody;

impl Ask for Nobody {
    fn yes(&mut self, _: &str) -> io::Result<Option<bool>> {
        Ok(None)
    }

    fn line(&mut self, _: &str) -> io::Result<Option<String>> {
        Ok(None)
    }
}

/// Where a project has what was scaffolded. It is the same once more, so it is not in `tests/projects`.
const RECORD: &str = ".kubewright/scaffold";

/// A process that begins has for a moment what others have open: the lock of a command too, which it would seem to hold.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn run(folder: &Path, line: &str) -> String {
    run_with(folder, line, "rustfmt")
}

fn run_with(folder: &Path, line: &str, rustfmt: &str) -> String {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let command = match Line::try_parse_from(line.split_whitespace()) {
        Ok(line) => line.command,
        Err(error) => panic!("{line}: {error}"),
    };
    let around = Environment {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        year: 2026,
        sdk: Source::Registry,
        rustfmt: Some(rustfmt.into()),
    };
    let mut output = Vec::new();
    let result = command.run(&Folder::new(folder), &around, &mut Nobody, &mut output);
    result.unwrap_or_else(|error| panic!("{line}: {error}"));
    String::from_utf8(output).expect("text")
}

/// What was just made is as this version makes it: with its record, and with one that is made anew when it is lost.
fn is_up_to_date(folder: &Path) {
    let output =
        format!("nothing to do: the project is as kubewright {} makes it\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(run(folder, "kubewright upgrade"), output);
    let record = files(&folder.join(RECORD));
    // Rust is in the record as it was before rustfmt.
    for (path, text) in record.iter().filter(|(path, _)| !path.ends_with(".rs")) {
        assert_eq!(fs::read_to_string(folder.join(path)).ok().as_ref(), Some(text), "{path}");
    }
    fs::remove_dir_all(folder.join(".kubewright")).expect("removed");
    assert_eq!(run(folder, "kubewright upgrade"), output);
    assert_eq!(files(&folder.join(RECORD)), record);
}

/// All files of a folder with their texts, and whether they are programs.
fn files(root: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for entry in entries {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).expect("inside").display().to_string();
                files.insert(name, fs::read_to_string(&path).expect("text"));
            }
        }
    }
    files
}

/// Where the project `project` is.
fn committed(project: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/projects").join(project)
}

/// Runs the lines in a folder called `folder`, and compares what is there then with `tests/projects/<project>`.
fn golden(project: &str, folder: &str, lines: &[&str]) {
    golden_with(project, folder, lines, &BTreeMap::new());
}

/// The same, where somebody has put files of their own into the project once it has begun.
fn golden_with(project: &str, folder: &str, lines: &[&str], own: &BTreeMap<String, String>) {
    let committed = committed(project);
    if env::var("KUBEWRIGHT_GOLDEN").is_ok_and(|wish| wish == "write") {
        let _ = fs::remove_dir_all(&committed);
        fs::create_dir_all(&committed).expect("a folder");
        let scratch = scaffolded(project, folder, lines, own);
        for (name, text) in files(&scratch.0.join("tests/projects").join(folder)) {
            let path = committed.join(&name);
            put(&path, &text);
            let mode = fs::metadata(scratch.0.join("tests/projects").join(folder).join(&name))
                .expect("there")
                .permissions();
            fs::set_permissions(&path, mode).expect("set");
        }
        return;
    }
    let scratch = scaffolded(project, folder, lines, own);
    let (made, kept) = (files(&scratch.0.join("tests/projects").join(folder)), files(&committed));
    let remedy = "KUBEWRIGHT_GOLDEN=write cargo test -p kubewright-scaffold --test golden";
    assert_eq!(made.keys().collect::<Vec<_>>(), kept.keys().collect::<Vec<_>>(), "{remedy}");
    for (name, text) in made {
        assert_eq!(text, kept[&name], "tests/projects/{project}/{name} is not what is scaffolded: {remedy}");
    }
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, text).expect("written");
}

fn scaffolded(project: &str, folder: &str, lines: &[&str], own: &BTreeMap<String, String>) -> Scratch {
    let scratch = env::temp_dir().join(format!("kubewright-golden-{project}-{}", std::process::id()));
    // As far below the checkout as the project is.
    let path = scratch.join("tests/projects").join(folder);
    fs::create_dir_all(&path).expect("a folder");
    put(&scratch.join("crates/kubewright/Cargo.toml"), "[package]\nname = \"kubewright\"\n");
    let scratch = Scratch(scratch);
    for (index, line) in lines.iter().enumerate() {
        run(&path, line);
        let own = own.iter().filter(|_| index == 0);
        own.for_each(|(name, text)| put(&path.join(name), text));
    }
    is_up_to_date(&path);
    fs::remove_dir_all(path.join(".kubewright")).expect("removed");
    scratch
}

/// KB-03, KB-06, KB-08, KB-15, KB-18, KB-31: the write-up's own command lines, in the folder that it makes.
/// KB-04, OS-01, OS-05.
#[test]
fn kb_08_the_whitelist_of_the_write_up() {
    golden(
        "whitelist",
        "foo.bar",
        &[
            "kubebuilder init --domain foo.bar --license apache2 --owner TakanariKo --sdk ../../../crates/kubewright",
            "kubebuilder create api --group police --version v1beta1 --kind WhiteList",
        ],
    );
}

/// Two groups, webhooks, three versions with conversions, and a hub that moves.
#[test]
fn two_groups_with_webhooks_and_three_versions() {
    golden(
        "multigroup",
        "multigroup",
        &[
            "kubewright init --domain example.com --license mit --owner Example --sdk ../../../crates/kubewright",
            "kubewright create api --group crew --version v1alpha1 --kind Captain --example=false",
            "kubewright create webhook --group crew --version v1alpha1 --kind Captain --defaulting",
            "kubewright create webhook --group crew --version v1alpha1 --kind Captain --programmatic-validation",
            "kubewright create version --group crew --version v1beta1 --kind Captain",
            "kubewright create version --group crew --version v1 --kind Captain --hub",
            "kubewright create webhook --group crew --version v1 --kind Captain --conversion --spoke v1alpha1,v1beta1",
            "kubewright create api --group ship --version v1 --kind Frigate --controller=false",
            "kubewright create api --group sea-creatures --version v1 --kind Captain --plural captains --example=false",
        ],
    );
}

/// KB-09.
#[test]
fn kb_09_a_kind_in_no_namespace() {
    golden(
        "cluster-scoped",
        "cluster-scoped",
        &[
            "kubewright init --domain example.com --license mit --sdk ../../../crates/kubewright",
            "kubewright create api --group fleet --version v1 --kind Harbour --namespaced=false --resource --controller",
        ],
    );
}

/// KB-10.
/// OS-04.
#[test]
fn kb_10_built_in_kinds_are_watched_without_an_example() {
    golden(
        "builtin",
        "builtin",
        &[
            "kubewright init --domain example.com --license mit --sdk ../../../crates/kubewright",
            "kubewright create api --group apps --version v1 --kind Deployment --controller --resource=false",
            "kubewright create api --group core --version v1 --kind Pod --controller --resource=false",
        ],
    );
}

/// kubebuilder's plugin deploy-image.
/// OS-02.
#[test]
fn an_image_is_deployed_in_a_size() {
    golden(
        "deploy-image",
        "deploy-image",
        &[
            "kubewright init --domain example.com --license mit --sdk ../../../crates/kubewright",
            "kubewright create api --group cache --version v1alpha1 --kind Memcached --image memcached:1.6 --image-port 11211 --run-as-user 1001",
        ],
    );
}

/// Definitions of others become types, whose own definitions are compared with them (`tests/definitions.rs` there).
#[test]
fn definitions_of_others_are_imported() {
    let is_own = |name: &String| name.starts_with("crds/") || name == "tests/definitions.rs";
    let own = files(&committed("imported")).into_iter().filter(|(name, _)| is_own(name)).collect();
    golden_with(
        "imported",
        "imported",
        &[
            "kubewright init --domain example.com --license mit --sdk ../../../crates/kubewright",
            "kubewright import crd crds/certificates.yaml",
            "kubewright import crd crds/routes.yaml",
            "kubewright import crd crds/workflows.yaml",
            "kubewright import crd crds/postgresqls.yaml",
            "kubewright create api --group db.example.com --version v1 --kind Postgresql --resource=false --controller",
            "kubewright create api --group certs.example.com --version v1 --kind Certificate --resource=false --controller",
        ],
        &own,
    );
}

/// Whatever kinds are called, `cargo fmt --check` of `.ci/run` finds nothing.
#[test]
fn what_is_scaffolded_is_formatted() {
    for (group, kind) in [("a", "At"), ("platform", "ClusterSecretStoreOfAllThatThereAre"), ("x.y-z", "Type")]
    {
        let api = |version: &str, flags: &str| {
            format!("kubewright create {flags} --group {group} --version {version} --kind {kind}")
        };
        let lines = [
            "kubewright init --domain policies.example.com --owner Me --project-name sample".to_owned(),
            api("v1beta1", "api"),
            api("v1beta1", "webhook --defaulting --programmatic-validation"),
            api("v1", "version --hub"),
            api("v2", "version --hub"),
            format!("kubewright create api --group other --version v1 --kind {kind} --example=false"),
            format!(
                "kubewright create api --group third --version v1 --kind {kind} --image nginx --image-port 80"
            ),
            "kubewright create api --group core --version v1 --kind Pod --resource=false".to_owned(),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let scratch = scaffolded(&format!("formatted-{kind}"), "sample", &lines, &BTreeMap::new());
        let mut rustfmt = process::Command::new("rustfmt");
        rustfmt.args(["--check", "--edition", "2024", "src/lib.rs", "src/main.rs", "tests/it/main.rs"]);
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let output = rustfmt
            .current_dir(scratch.0.join("tests/projects/sample"))
            .output()
            .expect("rustfmt is installed");
        let printed =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{printed}");
    }
}

/// A folder for a test, in one that has settings of its own for rustfmt.
fn nested(test: &str) -> (Scratch, PathBuf) {
    let scratch = Scratch(env::temp_dir().join(format!("kubewright-golden-{test}-{}", process::id())));
    put(&scratch.0.join("rustfmt.toml"), "tab_spaces = 2\n");
    let folder = scratch.0.join("sample");
    fs::create_dir_all(&folder).expect("a folder");
    (scratch, folder)
}

const INIT: &str = "kubewright init --domain example.com --license none --project-name sample";
const API: &str = "kubewright create api --group fleet --version v1 --kind Harbour";
const CONTROLLER: &str = "src/kinds/fleet/harbour/controller.rs";

fn text(folder: &Path, path: &str) -> String {
    fs::read_to_string(folder.join(path)).expect("a file")
}

#[test]
fn a_project_is_formatted_by_its_own_settings_from_its_first_file_on() {
    let (_scratch, folder) = nested("settings");
    run(&folder, INIT);
    assert!(text(&folder, "src/lib.rs").contains("\n    kinds::register("));
    put(&folder.join("rustfmt.toml"), "tab_spaces = 3\n");
    run(&folder, API);
    assert!(text(&folder, CONTROLLER).contains("\n   Controller::new("));
}

/// What is merged is formatted alike on both sides: that the user's settings are others now is no change of the file.
#[test]
fn a_kept_file_that_its_user_has_formatted_otherwise_is_gone_on_with() {
    let (_scratch, folder) = nested("merged");
    run(&folder, INIT);
    run(&folder, API);
    put(&folder.join("rustfmt.toml"), "tab_spaces = 8\n");
    let kinds = text(&folder, "src/kinds.rs")
        .replace("    ", "        ")
        .replace("//! The kinds", "//! Mine.\n//! The kinds");
    put(&folder.join("src/kinds.rs"), &kinds);
    run(&folder, "kubewright create api --group fleet --version v1 --kind Ship");
    let kinds = text(&folder, "src/kinds.rs");
    assert!(kinds.contains("//! Mine.\n") && kinds.contains("        pub mod ship {\n"), "{kinds}");
    assert!(!kinds.contains("\n    pub mod"), "{kinds}");
}

#[test]
fn without_rustfmt_what_is_written_is_rust_and_the_user_is_told() {
    let (_scratch, folder) = nested("without");
    let output = run_with(&folder, INIT, "/nowhere/rustfmt");
    let note = "What is new is not formatted: /nowhere/rustfmt was not found (rustup component add rustfmt; then cargo fmt)\n";
    assert!(output.contains(note), "{output}");
    let output = run_with(&folder, API, "/nowhere/rustfmt");
    assert!(output.contains(note), "{output}");
    for (path, text) in files(&folder) {
        assert!(!path.ends_with(".rs") || syn::parse_file(&text).is_ok(), "{path}: {text}");
    }
    // Whatever is there to format it later, nothing has to be done for that, and the next kind comes beside.
    assert!(run(&folder, "kubewright upgrade").starts_with("nothing to do"));
    run(&folder, "kubewright create api --group fleet --version v1 --kind Ship");
    assert!(text(&folder, "src/kinds.rs").contains("\n    pub mod harbour {\n"));
    assert!(run_with(&folder, "kubewright upgrade", "/nowhere/rustfmt").starts_with("nothing to do"));
}

#[test]
fn what_rustfmt_refuses_stays_as_it_is_and_why_is_told() {
    let (_scratch, folder) = nested("refused");
    run(&folder, INIT);
    put(&folder.join("rustfmt.toml"), "tab_spaces = \"many\"\n");
    let output = run(&folder, API);
    assert!(output.contains("What is new is not formatted: rustfmt: "), "{output}");
    assert!(syn::parse_file(&text(&folder, CONTROLLER)).is_ok());
}
