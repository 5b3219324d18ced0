//! The tutorials (`docs/tutorials`), done as their reader does them: every command is run, every file is written, and what
//! the commands say is compared with what the page says.
//!
//! Each needs the built command and kubectl: `cargo xtask test` runs them.

mod page;
mod shell;

use std::{fs, os::unix::fs::symlink, path::Path};

use kubewright_tests::needed;
use snapbox::{Data, filter::NormalizeToExpected};
use tokio::sync::Mutex;

use self::{
    page::{Block, Command, read},
    shell::{Patience, Shell},
};

/// One page at a time: they build in one folder, and what they wait for is to be theirs.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// Does what the page says, in a folder with a checkout of Kubewright in it, and compares.
async fn follow(tutorial: &str) {
    let _alone = ONE_AT_A_TIME.lock().await;
    let checkout =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the workspace is there");
    let page = checkout.join("docs/tutorials").join(tutorial);
    let blocks = read(&fs::read_to_string(&page).expect("the page is there")).expect("the page can be read");
    let folder = std::env::temp_dir().join(format!("kubewright-{tutorial}-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a temporary folder");
    symlink(&checkout, folder.join("kubewright")).expect("a link to the checkout");
    share_what_is_built(&folder);
    let kubewright = needed("KUBEWRIGHT");
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a folder of the target").to_owned();
    let lock = checkout.join("Cargo.lock");
    let mut shell = Shell::new(&folder, &[kubewright, needed("KUBECTL")], built, lock);
    for block in blocks {
        match block {
            Block::File { name, text } => shell.write(&name, &text),
            Block::Commands(commands) => {
                for command in &commands {
                    compare(&page, command, &mut shell).await;
                }
            }
        }
    }
    drop(shell);
    fs::remove_dir_all(&folder).expect("the folder can be removed");
}

/// Has cargo build dependencies as the workspace does, so that most of them are there already; the crates of the SDK, which each
/// page builds, without optimisation.
fn share_what_is_built(folder: &Path) {
    let mut config =
        "[profile.dev]\ndebug = 0\n[profile.dev.package.\"*\"]\ndebug = false\nopt-level = 1\n".to_owned();
    let crates = [
        "kubewright",
        "kubewright-meta",
        "kubewright-objects",
        "kubewright-runtime",
        "kubewright-serve",
        "kubewright-world",
    ];
    for package in crates {
        config += &format!("[profile.dev.package.{package}]\ndebug = false\nopt-level = 0\n");
    }
    fs::create_dir_all(folder.join(".cargo")).expect("a folder");
    fs::write(folder.join(".cargo/config.toml"), config).expect("the configuration is written");
}

/// Runs a command and compares what it says; one that is to be tried again, until it says it.
async fn compare(page: &Path, command: &Command, shell: &mut Shell) {
    let patience = Patience::default();
    let mut told = shell.run(command).await;
    while command.again && !is_as_expected(&told, &command.expected) && patience.is_left_after_a_pause().await
    {
        told = shell.run(command).await;
    }
    let place = format!("{}:{}", page.display(), command.line);
    assert!(
        is_as_expected(&told, &command.expected),
        "{place}\n$ {}\n--- the page says\n{}\n--- it said\n{told}",
        command.text,
        command.expected
    );
}

/// `[..]` stands for anything in a line, a line `...` for any lines.
fn is_as_expected(told: &str, expected: &str) -> bool {
    let expected = Data::text(expected);
    let told = NormalizeToExpected::new().redact().normalize(Data::text(told), &expected);
    told == expected
}

/// KB-01, KB-02, KB-16, KB-17, KB-19, KB-30, KB-41, KB-42, OS-09, OS-10: the story of the first write-up.
#[tokio::test]
#[ignore = "needs kubectl and the built command: cargo xtask test"]
async fn the_white_list_tutorial_works_as_it_is_written() {
    follow("whitelist.md").await;
}

/// KB-31, KB-33, KB-36, KB-37, KB-38, KB-39, KB-40, KB-41, KB-42, AT-02, AT-03, AT-04, AT-06, AT-07, AT-08, AT-10, AT-11, AT-12,
/// AT-13, AT-15, AT-16, AT-17, OS-09: the story of the second write-up.
#[tokio::test]
#[ignore = "needs kubectl and the built command: cargo xtask test"]
async fn the_at_tutorial_works_as_it_is_written() {
    follow("at.md").await;
}
