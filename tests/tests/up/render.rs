//! `kubewright render` and `diff` on an operator in Go (`tests/envtest-go/press`), with its webhooks and with golden files, and on
//! our own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kubewright_tests::needed;

#[test]
#[ignore = "needs Go and the built command: cargo xtask test"]
fn golden_files_of_samples_are_written_and_a_program_that_makes_something_else_fails() {
    let folder = std::env::temp_dir().join(format!("kubewright-golden-press-{}", std::process::id()));
    let config = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("envtest-go/press/config");
    let render = |options: &[&str], program: &[&str]| -> Output {
        let mut command = Command::new(needed("KUBEWRIGHT"));
        command.arg("render").arg("-f").arg(config.join("samples")).arg("--manifests").arg(&config);
        command.arg("--golden").arg(&folder).args(options).arg("--").arg(needed("PRESS")).args(program);
        command.output().expect("it runs")
    };
    let said = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();

    let missing = render(&[], &[]);
    assert!(
        missing.status.code() == Some(1) && said(&missing).contains("page.yaml: is missing"),
        "{missing:?}"
    );
    let written = render(&["--write"], &[]);
    let golden = std::fs::read_to_string(folder.join("page.yaml"));
    let same = render(&[], &[]);
    let bug = render(&[], &["--bug", "missing-owner"]);
    let _ = std::fs::remove_dir_all(&folder);

    assert!(written.status.success(), "{written:?}");
    let golden = golden.expect("it is written");
    assert!(golden.contains("# configmaps/hello-page -n default"), "{golden}");
    assert!(same.status.success() && same.stdout.is_empty(), "{same:?}");
    assert_eq!(bug.status.code(), Some(1), "{bug:?}");
    let told = said(&bug);
    assert!(told.contains("page.yaml: differs") && told.contains("-  ownerReferences:"), "{told}");
}

/// A folder that is gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kubewright-render-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    /// A page of this text, without a footer.
    fn page(&self, text: &str) -> PathBuf {
        let path = self.0.join(format!("{text}.yaml"));
        let page = format!(
            "apiVersion: press.example/v1\nkind: Page\nmetadata: {{name: p}}\nspec: {{text: {text}}}\n"
        );
        std::fs::write(&path, page).expect("written");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn press() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("envtest-go/press")
}

/// What a command makes of a page, with the configurations of the press's webhooks.
fn admitted(command: &str, page: &Path, options: &[&str]) -> Output {
    let press = press();
    let mut all = Command::new(needed("KUBEWRIGHT"));
    all.arg(command).arg("-f").arg(page).arg("--manifests").arg(press.join("config"));
    all.arg("--manifests").arg(press.join("admission")).args(options);
    all.output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
#[ignore = "needs Go and the built command: cargo xtask test"]
fn what_a_programs_webhooks_fill_in_is_in_what_is_rendered_and_what_they_refuse_is_an_error() {
    let folder = Folder::new("webhooks");
    let program = needed("PRESS").display().to_string();
    let with = ["--", &program, "--webhook-port={webhook-port}"];
    let filled = admitted("render", &folder.page("Hello"), &with);
    assert!(filled.status.success(), "{filled:?}");
    assert!(text(&filled.stdout).contains("footer: set by the press"), "{filled:?}");
    assert!(!text(&filled.stderr).contains("left out"), "{filled:?}");

    let refused = admitted("render", &folder.page("unprintable"), &with);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let why = text(&refused.stderr);
    assert!(
        why.contains("page.press.example/p") && why.contains("the press cannot print this text"),
        "{why}"
    );
}

#[test]
#[ignore = "needs Go and the built command: cargo xtask test"]
fn webhooks_of_which_nobody_says_where_they_are_served_are_left_out_and_those_that_are_not_served_an_error() {
    let folder = Folder::new("unserved");
    let (program, page) = (needed("PRESS").display().to_string(), folder.page("Hello"));
    let unsaid = admitted("render", &page, &["--", &program]);
    let warned = text(&unsaid.stderr);
    assert!(unsaid.status.success() && !text(&unsaid.stdout).contains("footer"), "{unsaid:?}");
    assert!(warned.contains("2 webhook configurations are left out"), "{warned}");
    assert!(warned.contains("{webhook-port}") && warned.contains("--webhook-port"), "{warned}");

    let unserved = admitted("render", &page, &["--webhook-port", "1", "--timeout", "3", "--", &program]);
    assert_eq!(unserved.status.code(), Some(1), "{unserved:?}");
    let why = text(&unserved.stderr);
    assert!(why.contains("the program serves no webhooks on 127.0.0.1:1"), "{why}");
    assert!(why.contains("write {webhook-port} into the program's arguments"), "{why}");
}

#[test]
#[ignore = "needs Go and the built command: cargo xtask test"]
fn a_diff_calls_the_webhooks_of_either_program() {
    let folder = Folder::new("diff");
    let (program, page) = (needed("PRESS").display().to_string(), folder.page("Hello"));
    let with = format!("'{program}' --webhook-port={{webhook-port}}");
    let both = admitted("diff", &page, &["--exit-code", "--old", &with, "--new", &with]);
    assert!(both.status.success() && both.stdout.is_empty(), "{both:?}");
    let one = admitted("diff", &page, &["--exit-code", "--old", &program, "--new", &with]);
    assert_eq!(one.status.code(), Some(1), "{one:?}");
    assert!(text(&one.stdout).contains("+  footer: set by the press"), "{one:?}");
    assert!(
        text(&one.stderr).starts_with("warning: --old: 2 webhook configurations are left out"),
        "{one:?}"
    );
}

/// Our operators that make something of their samples at once: their folders, and their programs.
const OPERATORS: [(&str, &str); 3] =
    [("app-service", "app-service"), ("memcached", "memcached-operator"), ("whitelist", "whitelist")];

/// Written by `kubewright render --golden golden --write` in the folder of each.
#[test]
#[ignore = "needs the built command: cargo xtask test"]
fn our_operators_make_of_their_samples_what_their_golden_files_say() {
    let kubewright = needed("KUBEWRIGHT");
    let operators = PathBuf::from(env!("CARGO_MANIFEST_DIR")).with_file_name("operators");
    for (folder, program) in OPERATORS {
        let (folder, program) = (operators.join(folder), kubewright.with_file_name(program));
        let manifests = std::env::temp_dir()
            .join(format!("{}-{}.yaml", folder.display(), std::process::id()).replace('/', "-"));
        let printed = Command::new(&program).arg("manifests").output().expect("its manifests");
        std::fs::write(&manifests, printed.stdout).expect("a temporary file");
        let mut render = Command::new(&kubewright);
        render.arg("render").arg("-f").arg(folder.join("config/samples")).arg("--manifests").arg(&manifests);
        let same = render.arg("--golden").arg(folder.join("golden")).arg("--").arg(&program).output();
        let _ = std::fs::remove_file(&manifests);
        let same = same.expect("it runs");
        let told = String::from_utf8_lossy(&same.stdout);
        assert!(
            same.status.success(),
            "{}: {told}{}",
            folder.display(),
            String::from_utf8_lossy(&same.stderr)
        );
    }
}
