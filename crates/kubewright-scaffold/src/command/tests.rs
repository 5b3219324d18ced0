//! Commands as users give them, on a folder of the disk.

use std::{collections::BTreeMap, io};

use clap::Parser;
use proptest::prelude::*;

use super::*;
use crate::folder::tests::Scratch;

#[derive(Debug, Parser)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

/// Whoever gives these answers, and keeps the questions.
#[derive(Default)]
pub(super) struct Somebody {
    answers: Vec<bool>,
    lines: Vec<String>,
    pub(super) asked: Vec<String>,
}

impl Ask for Somebody {
    fn yes(&mut self, question: &str) -> io::Result<Option<bool>> {
        self.asked.push(question.to_owned());
        Ok((!self.answers.is_empty()).then(|| self.answers.remove(0)))
    }

    fn line(&mut self, question: &str) -> io::Result<Option<String>> {
        self.asked.push(question.to_owned());
        Ok((!self.lines.is_empty()).then(|| self.lines.remove(0)))
    }
}

/// What a command said, or why it was refused.
pub(super) fn run_by(scratch: &Scratch, line: &str, somebody: &mut Somebody) -> Result<String, Error> {
    run_around(scratch, line, somebody, &environment("0.1.0", 2018))
}

/// The same, in a year.
pub(super) fn run_in(scratch: &Scratch, line: &str, year: i16) -> Result<String, Error> {
    run_around(scratch, line, &mut Somebody::default(), &environment("0.1.0", year))
}

pub(super) fn environment(version: &str, year: i16) -> Environment {
    Environment { version: version.to_owned(), year, sdk: Source::Registry, rustfmt: None }
}

fn run_around(
    scratch: &Scratch,
    line: &str,
    somebody: &mut Somebody,
    around: &Environment,
) -> Result<String, Error> {
    let words = ["kubewright"].into_iter().chain(line.split_whitespace());
    let command = Line::try_parse_from(words).map_err(|error| Error::Usage(error.to_string()))?.command;
    let mut out = Vec::new();
    command.run(&Folder::new(scratch.path()), around, somebody, &mut out)?;
    Ok(String::from_utf8(out).expect("text"))
}

pub(super) fn run(scratch: &Scratch, line: &str) -> Result<String, Error> {
    run_by(scratch, line, &mut Somebody::default())
}

pub(super) fn ok(scratch: &Scratch, line: &str) -> String {
    run(scratch, line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// Asserts that a command is refused with a status and all of the words, and that it changes nothing.
pub(super) fn refused(scratch: &Scratch, line: &str, code: u8, words: &[&str]) {
    let before = scratch.files();
    let error = run(scratch, line).expect_err(line);
    assert_eq!(error.exit_code(), code, "{line}: {error}");
    for word in words {
        assert!(error.to_string().contains(word), "{line}: {word} is missing: {error}");
    }
    assert_eq!(scratch.files(), before, "{line}");
}

const INIT: &str = "init --domain foo.bar --owner TakanariKo --project-name sample";
const API: &str = "create api --group police --version v1beta1 --kind WhiteList";

fn begun(test: &str) -> Scratch {
    let scratch = Scratch::new(test);
    ok(&scratch, INIT);
    scratch
}

fn with_kind(test: &str) -> Scratch {
    let scratch = begun(test);
    ok(&scratch, API);
    scratch
}

const TYPES: &str = "src/kinds/police/whitelist/v1beta1.rs";
const CONTROLLER: &str = "src/kinds/police/whitelist/controller.rs";

#[test]
fn kb_03_init_says_what_it_writes_and_what_comes_next() {
    let scratch = Scratch::new("kb-03");
    let output = ok(&scratch, INIT);
    assert!(output.starts_with("Writing scaffold for you to edit...\nPROJECT\nCargo.toml\n"), "{output}");
    assert!(output.ends_with("Next: define a resource with:\n$ kubewright create api\n"), "{output}");
}

#[test]
fn kb_05_the_project_file_says_how_it_was_made() {
    let scratch = with_kind("kb-05");
    let text = &scratch.files()["PROJECT"];
    for line in
        ["version: \"1\"", "domain: foo.bar", "projectName: sample", "- group: police", "  kind: WhiteList"]
    {
        assert!(text.lines().any(|printed| printed == line), "{line} is missing: {text}");
    }
    let project = Project::parse(text).expect("readable");
    assert_eq!(project.text().expect("text"), *text);
}

#[test]
fn kb_06_heads_of_files_have_the_licence_and_the_owner_that_were_asked_for() {
    let head = |flags: &str| {
        let scratch = Scratch::new("kb-06");
        ok(&scratch, &format!("init --project-name sample {flags}"));
        ok(&scratch, API);
        let files = scratch.files();
        let rust: Vec<_> = files.iter().filter(|(path, _)| path.ends_with(".rs")).collect();
        let heads: Vec<String> = rust
            .iter()
            .map(|(_, text)| {
                text.lines().take_while(|line| line.starts_with("// ")).collect::<Vec<_>>().join("|")
            })
            .collect();
        assert!(heads.windows(2).all(|two| two[0] == two[1]), "{heads:?}");
        (heads[0].clone(), files["Cargo.toml"].contains("license = "))
    };
    let apache = "// SPDX-License-Identifier: Apache-2.0";
    assert_eq!(head("--owner TakanariKo"), (format!("// Copyright 2018 TakanariKo.|{apache}"), true));
    assert_eq!(head("--license apache2"), (apache.to_owned(), true));
    assert_eq!(head("--license none --owner Me"), ("// Copyright 2018 Me.".to_owned(), false));
    assert_eq!(head("--license none"), (String::new(), false));
}

#[test]
fn kb_07_a_project_is_not_initialized_twice() {
    refused(&begun("kb-07"), INIT, 1, &["already initialized", "nothing was changed"]);
}

/// KB-33.
#[test]
fn kb_08_the_prompts_are_those_that_users_know_and_the_files_are_told() {
    let scratch = begun("kb-08");
    let mut somebody = Somebody { answers: vec![true, true], ..Somebody::default() };
    let output = run_by(&scratch, API, &mut somebody).expect("made");
    assert_eq!(somebody.asked, ["Create Resource [y/n]", "Create Controller [y/n]"]);
    assert_eq!(
        output,
        "Writing scaffold for you to edit...\nPROJECT\nsrc/kinds.rs\ntests/it/main.rs\n\
         src/kinds/police/whitelist/v1beta1.rs\nsrc/kinds/police/whitelist/controller.rs\n\
         config/samples/police_v1beta1_whitelist.yaml\ntests/it/police_whitelist.rs\n\
         Next: implement your new API, and see that its tests pass with:\n$ cargo test\n"
    );
}

#[test]
fn kb_09_flags_answer_the_questions() {
    let scratch = begun("kb-09");
    let mut somebody = Somebody::default();
    run_by(
        &scratch,
        &format!("{API} --resource --controller --namespaced=false --example=false"),
        &mut somebody,
    )
    .expect("made");
    assert_eq!(somebody.asked, [""; 0]);
    let files = scratch.files();
    assert!(!files[TYPES].contains("namespaced,"), "{}", files[TYPES]);
    assert!(!files[CONTROLLER].contains("Deployment"), "{}", files[CONTROLLER]);
}

#[test]
fn kb_10_without_the_resource_only_the_controller_of_an_existing_kind_is_written() {
    let scratch = begun("kb-10");
    let mut somebody = Somebody { answers: vec![false, true], ..Somebody::default() };
    run_by(&scratch, "create api --group apps --version v1 --kind Deployment", &mut somebody).expect("made");
    let files = scratch.files();
    assert!(files["src/kinds/apps/deployment/controller.rs"].contains("for_kind::<Deployment>()"));
    assert!(!files.keys().any(|path| path.starts_with("config/")), "{files:?}");
    let other = "create api --group apps --version v1 --kind Deploymint --resource=false --controller";
    refused(&scratch, other, 1, &["no built-in kind Deploymint in apps/v1", "--resource"]);
    let example = "create api --group core --version v1 --kind Pod --resource=false --controller --example";
    refused(&scratch, example, 2, &["built-in kinds have no --example"]);
}

#[test]
fn kb_11_what_must_be_said_is_asked_for() {
    let scratch = begun("kb-11");
    refused(&scratch, "create api --version v1 --kind A", 2, &["Must specify --group"]);
    refused(&scratch, "create api --group a --kind A", 2, &["Must specify --version"]);
    refused(&scratch, "create api --group a --version v1", 2, &["Must specify --kind"]);
    refused(&scratch, "create webhook --group a --version v1 --kind A", 2, &["--defaulting"]);
    refused(&scratch, "create api --group Po-lice --version v1 --kind A", 2, &["group must be"]);
    refused(&scratch, "init --domain Foo", 2, &["domain must be"]);
}

#[test]
fn what_is_not_said_is_asked_where_somebody_is() {
    let scratch = begun("asked");
    let lines = ["police", "v1beta1", "WhiteList"].map(str::to_owned).to_vec();
    let mut somebody = Somebody { answers: vec![true, false], lines, ..Somebody::default() };
    run_by(&scratch, "create api", &mut somebody).expect("made");
    assert_eq!(
        somebody.asked,
        ["Group", "Version", "Kind", "Create Resource [y/n]", "Create Controller [y/n]"]
    );
    assert!(scratch.files().contains_key(TYPES));

    let mut somebody = Somebody { lines: vec!["v1".to_owned()], ..Somebody::default() };
    run_by(&scratch, "create version --group police --kind WhiteList", &mut somebody).expect("made");
    assert_eq!(somebody.asked, ["Version"]);
}

#[test]
fn until_there_is_a_release_a_project_is_told_where_the_sdk_is() {
    let init = |source: Source| {
        let scratch = Scratch::new("source");
        let around = Environment { sdk: source, ..environment("0.1.0", 2018) };
        let output = run_around(&scratch, INIT, &mut Somebody::default(), &around).expect("made");
        (output, scratch.files()["Cargo.toml"].clone())
    };
    let (output, manifest) = init(Source::Checkout("/opt/kubewright".into()));
    assert!(manifest.contains("kubewright = { path = \"/opt/kubewright/crates/kubewright\" }"), "{manifest}");
    assert!(output.contains("0.1.0 is not released: the SDK is that of /opt/kubewright. "), "{output}");
    assert!(output.contains("\n$ kubewright upgrade --sdk URL#REVISION\nNext: "), "{output}");

    let (output, manifest) = init(Source::Unknown);
    assert!(manifest.contains("kubewright = { version = \"0.1.0\" }"), "{manifest}");
    assert!(output.contains("cargo will not find the SDK before you say where it is"), "{output}");
    assert!(!init(Source::Registry).0.contains("released"));
}

#[test]
fn kb_13_in_no_project_nothing_is_created() {
    let scratch = Scratch::new("kb-13-command");
    refused(&scratch, API, 1, &["Command must be run from a directory containing PROJECT"]);
}

#[test]
fn kb_14_what_was_edited_is_not_overwritten() {
    let scratch = begun("kb-14");
    scratch.put(TYPES, "// mine\n");
    refused(&scratch, API, 1, &[TYPES, "already exists"]);
}

#[test]
fn kb_34_an_api_is_made_once_unless_by_force() {
    let scratch = with_kind("kb-34");
    refused(&scratch, API, 1, &["API resource already exists"]);
    let other = API.replace("v1beta1", "v1");
    refused(&scratch, &other, 1, &["API resource already exists in v1beta1", "create version"]);
    scratch.put(CONTROLLER, "// mine\n");
    let output = ok(&scratch, &format!("{API} --force"));
    assert!(output.contains("Overwritten:\n") && output.contains("\n-// mine\n"), "{output}");
    assert!(scratch.files()[CONTROLLER].contains("impl Reconciler"));
}

#[test]
fn what_would_be_the_same_to_kubernetes_or_to_rust_is_refused() {
    let scratch = with_kind("alike");
    let of = |group: &str, kind: &str| format!("create api --group {group} --version v1 --kind {kind}");
    refused(&scratch, &of("police", "Whitelist"), 1, &["API resource already exists"]);
    refused(
        &scratch,
        &(of("police", "Other") + " --plural whitelists"),
        1,
        &["the plural whitelists already"],
    );
    ok(&scratch, &of("a-b", "One"));
    refused(&scratch, &of("a.b", "Two"), 1, &["its module would be that of group a-b"]);
    refused(&scratch, &of("police", "Option"), 2, &["choose another"]);
}

#[test]
fn a_dry_run_shows_the_diff_and_changes_nothing() {
    let scratch = begun("dry");
    let before = scratch.files();
    let output = ok(&scratch, &format!("{API} --dry-run"));
    assert_eq!(scratch.files(), before);
    assert!(output.starts_with("would change PROJECT\nwould change src/kinds.rs\n"), "{output}");
    assert!(output.contains("\n--- a/src/kinds.rs\n+++ b/src/kinds.rs\n"), "{output}");
    assert!(output.contains("\n+pub mod police {\n"), "{output}");
}

#[test]
fn what_was_added_to_the_registry_by_hand_stays() {
    let scratch = begun("by-hand");
    let edited =
        scratch.files()["src/kinds.rs"].replace("//! The kinds", "//! (Read by us.)\n//!\n//! The kinds");
    scratch.put("src/kinds.rs", &edited);
    ok(&scratch, API);
    let kinds = &scratch.files()["src/kinds.rs"];
    assert!(kinds.contains("(Read by us.)") && kinds.contains("pub mod whitelist"), "{kinds}");
}

#[test]
fn a_readme_and_dot_files_that_were_there_stay() {
    let scratch = Scratch::new("readme");
    scratch.put("README.md", "mine");
    let output = ok(&scratch, INIT);
    assert!(output.contains("README.md was there and stays as it is\n"), "{output}");
    assert_eq!(scratch.files()["README.md"], "mine");
}

#[test]
fn the_sdk_comes_from_where_it_is_said_to() {
    for (flag, expected) in [
        ("", "kubewright = { version = \"0.1.0\" }"),
        ("--sdk 0.2", "kubewright = { version = \"0.2\" }"),
        ("--sdk .sdk", "kubewright = { path = \".sdk\" }"),
        ("--sdk .checkout", "kubewright = { path = \".checkout/crates/kubewright\" }"),
        ("--sdk https://example.com/k.git", "kubewright = { git = \"https://example.com/k.git\" }"),
        ("--sdk https://example.com/k.git#ab1", "git = \"https://example.com/k.git\", rev = \"ab1\" }"),
    ] {
        let scratch = Scratch::new("sdk");
        for folder in [".sdk", ".checkout/crates/kubewright"] {
            scratch.put(&format!("{folder}/Cargo.toml"), "[package]\nname = \"kubewright\"\n");
        }
        ok(&scratch, &format!("{INIT} {flag}"));
        let manifest = &scratch.files()["Cargo.toml"];
        assert!(manifest.contains(expected), "{flag}: {manifest}");
    }
    refused(&Scratch::new("sdk"), &format!("{INIT} --sdk a\"b"), 2, &["--sdk must be"]);
    refused(
        &Scratch::new("sdk"),
        &format!("{INIT} --sdk ../nothing"),
        2,
        &["the crate kubewright is not there"],
    );
}

#[test]
fn webhooks_are_added_once_to_kinds_that_are_there() {
    let scratch = with_kind("webhooks");
    let of =
        |flags: &str| format!("create webhook --group police --version v1beta1 --kind WhiteList {flags}");
    ok(&scratch, &of("--defaulting --programmatic-validation"));
    let kinds = &scratch.files()["src/kinds.rs"];
    assert!(kinds.contains("police::whitelist::validation::webhook()"), "{kinds}");
    refused(&scratch, &of("--defaulting"), 1, &["webhook resource already exists"]);
    refused(&scratch, &of("--conversion"), 1, &["one version"]);
    refused(&scratch, &of("--defaulting").replace("WhiteList", "Other"), 1, &["there is no Other"]);
    refused(
        &scratch,
        &of("--defaulting").replace("v1beta1", "v2"),
        1,
        &["the version that is stored, v1beta1"],
    );
}

#[test]
fn hub_and_spokes_are_said_and_wrong_ones_are_refused() {
    let scratch = with_kind("hub");
    let of = |flags: &str| format!("create webhook --group police --kind WhiteList --conversion {flags}");
    refused(&scratch, &of("--hub v1beta1"), 1, &["one version", "create version"]);
    ok(&scratch, "create version --group police --version v1 --kind WhiteList --hub");
    ok(&scratch, "create version --group police --version v2 --kind WhiteList");

    for flags in
        ["--hub v1", "--version v1", "--hub v1 --spoke v2,v1beta1", "--version v1 --hub v1 --spoke v2"]
    {
        let output = ok(&scratch, &of(flags));
        let there = "nothing to write: WhiteList is converted between its hub v1 and v1beta1, v2 already\n";
        assert_eq!(output, there, "{flags}");
    }
    refused(&scratch, &of("--hub v2"), 1, &["v2 is not the hub of WhiteList: v1 is", "create version --hub"]);
    refused(&scratch, &of("--hub v3"), 1, &["no version v3, only v1beta1, v1, v2"]);
    refused(&scratch, &of("--hub v1 --spoke v1"), 1, &["v1 is the hub", "cannot be a spoke"]);
    refused(&scratch, &of("--hub v1 --spoke v3"), 1, &["no version v3 besides its hub v1"]);
    refused(&scratch, &of("--hub v1 --spoke one"), 2, &["version must"]);
    refused(&scratch, &of("--hub v1 --version v2"), 2, &["--version v2 and --hub v1 have to be the same"]);
    let alone = "create webhook --group police --version v1 --kind WhiteList --defaulting";
    refused(&scratch, &format!("{alone} --hub v1"), 2, &["--conversion"]);
    let output = ok(&scratch, &format!("{alone} --conversion --hub v1"));
    assert!(output.contains("/defaulting.rs\n"), "{output}");
}

#[test]
fn a_version_is_a_copy_of_what_the_user_has_made_of_the_stored_one() {
    let scratch = with_kind("version");
    let edited = scratch.files()[TYPES].replace("pub foo: Option<String>", "pub bar: Option<String>");
    scratch.put(TYPES, &edited);
    ok(&scratch, "create version --group police --version v1 --kind WhiteList --hub");
    let files = scratch.files();
    assert!(files["src/kinds/police/whitelist/v1.rs"].contains("pub bar: Option<String>"));
    let conversion = &files["src/kinds/police/whitelist/conversion_v1beta1_v1.rs"];
    assert!(conversion.contains("v1::WhiteListSpec { bar: old.spec.bar }"), "{conversion}");
    assert!(files["src/kinds.rs"].contains("pub use self::v1::*;"));
    assert!(files["config/samples/police_v1_whitelist.yaml"].starts_with("apiVersion: police.foo.bar/v1\n"));
    let again = "create version --group police --version v1 --kind WhiteList";
    refused(&scratch, again, 1, &["WhiteList has the version v1"]);
}

#[test]
fn a_definition_of_somebody_else_becomes_types_that_are_not_installed() {
    let scratch = begun("import");
    scratch.put("crd.yaml", include_str!("../../tests/certificate.yaml"));
    let output = ok(&scratch, "import crd crd.yaml");
    assert!(
        output.contains("--group cert-manager.io --version v1 --kind Certificate --resource=false"),
        "{output}"
    );
    ok(
        &scratch,
        "create api --group cert-manager.io --version v1 --kind Certificate --resource=false --controller",
    );
    let files = scratch.files();
    let kinds = &files["src/kinds.rs"];
    assert!(kinds.contains("controller(cert_manager_io::certificate::controller::controller)"), "{kinds}");
    assert!(!kinds.contains("definition::<"), "{kinds}");
    check(&files);
    refused(&scratch, "import crd crd.yaml", 1, &["API resource already exists"]);
    refused(&scratch, "import crd none.yaml", 1, &["cannot read none.yaml"]);
    refused(&scratch, "import crd PROJECT", 1, &["PROJECT: it must have one CustomResourceDefinition"]);
}

#[test]
fn a_project_that_cannot_be_used_is_told_with_why() {
    for (text, why) in [
        ("version: \"3\"\nlayout:\n- go.kubebuilder.io/v4\n", "its layout is \"3\""),
        ("nonsense", "it has no version of a layout"),
        ("version: \"1\"\ncliVersion: 0.1.0\n", "PROJECT cannot be used"),
        ("version: \"1\"\ncliVersion: a\n", "its cliVersion \"a\" is no version"),
    ] {
        let scratch = Scratch::new("project");
        scratch.put("PROJECT", text);
        refused(&scratch, API, 1, &[why]);
    }
    let scratch = with_kind("project");
    let text = scratch.files()["PROJECT"].clone();
    for (from, to, why) in [
        ("hub: v1beta1", "hub: v2", "its hub v2 is none of its versions"),
        ("kind: WhiteList", "kind: whiteList", "Kind must be camelcase"),
        ("domain: foo.bar", "domain: foo.bar\nsurprise: 1", "surprise"),
    ] {
        scratch.put("PROJECT", &text.replace(from, to));
        refused(&scratch, "create api --group a --version v1 --kind A", 1, &[why]);
    }
}

#[test]
fn a_machine_that_refuses_is_told_with_the_remedy() {
    let error = Error::io("make the folder", "x")(io::ErrorKind::PermissionDenied.into());
    assert!(error.to_string().contains("(make it writable, and run the command again)"), "{error}");
    assert_eq!(error.exit_code(), 1);
}

/// What every project has to be: all of its Rust is Rust, nothing is left to fill in, and `PROJECT` says what is there.
pub(super) fn check(files: &BTreeMap<String, String>) {
    for (path, text) in files {
        if path.ends_with(".rs")
            && let Err(error) = syn::parse_file(text)
        {
            panic!("{path}: {error}\n{text}");
        }
        assert!(
            !text
                .split_whitespace()
                .any(|word| word.len() > 2 && word.starts_with('@') && word.ends_with('@')),
            "{path}: {text}"
        );
    }
    Project::parse(&files["PROJECT"]).expect("a project");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Whatever kinds are asked for, what comes is Rust, and the same request is refused the second time.
    #[test]
    fn whatever_is_made_is_rust(
        group in "[a-z0-9]{1,8}([-.][a-z0-9]{1,4})?",
        kind in "[A-Z][a-zA-Z0-9]{0,12}",
        flags in prop::sample::subsequence(vec!["--namespaced=false", "--example=false", "--controller"], 0..=3),
        version in "v[1-9](alpha[1-9]|beta[1-9])?",
    ) {
        let scratch = begun("any");
        let line = format!("create api --group {group} --version {version} --kind {kind} {}", flags.join(" "));
        if run(&scratch, &line).is_ok() {
            check(&scratch.files());
            prop_assert!(run(&scratch, &line).is_err());
            ok(&scratch, &format!("create version --group {group} --version v99 --kind {kind}"));
            ok(&scratch, &format!("create version --group {group} --version v100 --kind {kind} --hub"));
            ok(&scratch, &format!("create webhook --group {group} --version v100 --kind {kind} --defaulting --validation --conversion"));
            check(&scratch.files());
        }
    }
}

const DELETE: &str = "delete api --group police --kind WhiteList";

#[test]
fn what_create_api_wrote_delete_api_takes_away() {
    let scratch = begun("delete-api");
    ok(&scratch, "create api --group police --version v1 --kind Robber");
    let before = scratch.files();
    ok(&scratch, API);
    assert_ne!(scratch.files(), before);
    let told = ok(&scratch, &format!("{DELETE} --dry-run"));
    assert!(told.contains(&format!("would remove {CONTROLLER}\n")), "{told}");
    let told = ok(&scratch, DELETE);
    assert!(told.starts_with("Removing WhiteList of group police...\n"), "{told}");
    assert!(told.contains(&format!("{CONTROLLER} removed\n")), "{told}");
    assert_eq!(scratch.files(), before, "the other kind stays, and the record is as it was");
    ok(&scratch, API);
}

#[test]
fn a_kind_with_versions_and_webhooks_goes_whole() {
    let scratch = begun("delete-api-whole");
    let before = scratch.files();
    ok(&scratch, API);
    ok(
        &scratch,
        "create webhook --group police --version v1beta1 --kind WhiteList --defaulting --programmatic-validation",
    );
    ok(&scratch, "create version --group police --version v1 --kind WhiteList");
    // What was copied from the user's is the user's.
    refused(&scratch, DELETE, 1, &["there is work of yours in", "--force --dry-run"]);
    ok(&scratch, &format!("{DELETE} --force"));
    let files: Vec<_> = scratch.files().into_keys().filter(|path| !before.contains_key(path)).collect();
    assert_eq!(files, Vec::<String>::new());
}

#[test]
fn what_somebody_edited_is_not_removed_unless_they_say_so() {
    let scratch = with_kind("delete-api-edited");
    scratch.put(CONTROLLER, "// mine\n");
    scratch.put("src/kinds/police/whitelist/plan.rs", "// mine, too\n");
    refused(&scratch, DELETE, 1, &[CONTROLLER, "src/kinds/police/whitelist/plan.rs", "nothing was changed"]);
    let told = ok(&scratch, &format!("{DELETE} --force"));
    assert!(told.contains("Overwritten:") && told.contains("-// mine, too"), "{told}");
    assert!(!scratch.files().keys().any(|path| path.contains("whitelist")));
}

#[test]
fn a_kind_that_is_not_there_is_not_removed() {
    let scratch = with_kind("delete-api-absent");
    refused(
        &scratch,
        "delete api --group police --kind Robber",
        1,
        &["there is no API resource Robber of group police (there is: WhiteList of group police)"],
    );
    refused(&scratch, "delete api --kind WhiteList", 2, &["Must specify --group"]);
}

#[test]
fn a_controller_that_is_given_something_stays_so_when_a_kind_is_added() {
    let scratch = with_kind("given");
    let kinds = scratch.files()["src/kinds.rs"].clone();
    let given = "operator.controller(move || police::whitelist::controller::controller(bank.clone()));";
    let edited = kinds
        .replace("register(mut operator: Operator)", "register(mut operator: Operator, bank: Bank)")
        .replace("operator.controller(police::whitelist::controller::controller);", given);
    assert!(edited.contains(given) && edited.contains("bank: Bank"), "{kinds}");
    scratch.put("src/kinds.rs", &edited);
    ok(&scratch, "create api --group police --version v1 --kind Warden --resource --controller");
    let kinds = &scratch.files()["src/kinds.rs"];
    assert!(kinds.contains(given) && kinds.contains("bank: Bank"), "{kinds}");
    assert!(
        kinds.contains("operator = operator.controller(police::warden::controller::controller);"),
        "{kinds}"
    );
    ok(&scratch, "delete api --group police --kind Warden");
    assert_eq!(scratch.files()["src/kinds.rs"], edited);
}
