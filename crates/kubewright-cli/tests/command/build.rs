//! `kubewright build` as a user runs it, on a small package.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use kubewright_image::{Reference, Store, testing::Folder};

use super::assert_refused;

/// A package without dependencies, which is built in no time.
fn package(folder: &Folder, name: &str, main: &str) -> PathBuf {
    let package = folder.path().join(name);
    fs::create_dir_all(package.join("src")).expect("made");
    let manifest = "[package]\nname = \"tiny\"\nversion = \"1.2.3\"\nedition = \"2024\"\nlicense = \"MIT\"\n\n[workspace]\n";
    fs::write(package.join("Cargo.toml"), manifest).expect("written");
    fs::write(package.join("src/main.rs"), main).expect("written");
    package
}

fn build(package: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubewright"));
    command.arg("build").args(arguments).current_dir(package);
    for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_TARGET_DIR", "SOURCE_DATE_EPOCH", "CARGO"]
    {
        command.env_remove(variable);
    }
    command.env("KUBEWRIGHT_IMAGES", package.join("images"));
    command.output().expect("kubewright runs")
}

fn built(package: &Path, arguments: &[&str]) -> String {
    let output = build(package, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The program says where it was compiled: its file, and the folder of its package.
const MAIN: &str =
    r#"fn main() { println!("{} {:?}", file!(), std::panic::catch_unwind(|| panic!("{}", file!()))); }"#;

#[test]
fn the_same_source_gives_the_same_image_in_whatever_folder_and_it_is_loaded_and_written() {
    let folder = Folder::new("cli-build");
    let packages = ["here", "some/where else"].map(|name| package(&folder, name, MAIN));
    let said = packages.each_ref().map(|package| built(package, &["--load", "--output", "tiny.tar"]));
    assert_eq!(said[0], said[1], "digest and size are the same");
    let archives = packages.each_ref().map(|package| fs::read(package.join("tiny.tar")).expect("written"));
    assert!(archives[0] == archives[1]);
    let lines: Vec<&str> = said[0].lines().map(|line| &line[..9]).collect();
    assert_eq!(lines, ["Image    ", "Digest   ", "Image ID ", "Size     ", "Wrote    ", "Loaded   "]);
    assert!(said[0].starts_with("Image    tiny:1.2.3\n"), "{}", said[0]);
    let store = Store::open(&packages[0].join("images")).expect("a store");
    let image = store.get(&Reference::parse("tiny:1.2.3").expect("a name")).expect("read").expect("loaded");
    assert_eq!(image.config.entrypoint, ["/usr/local/bin/tiny"]);
    assert_eq!(image.config.labels["org.opencontainers.image.licenses"], "MIT");
    let program = store.root(&image).expect("unpacked").join("usr/local/bin/tiny");
    let ran = Command::new(program).output().expect("it needs no libraries");
    assert!(String::from_utf8_lossy(&ran.stdout).starts_with("src/main.rs "), "{ran:?}");
}

#[test]
fn a_program_that_does_not_compile_is_told_by_cargo() {
    let folder = Folder::new("cli-build-broken");
    let output = build(&package(&folder, "broken", "fn main() { no_such_thing() }"), &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("no_such_thing")
            && errors.ends_with("error: cargo build failed; it said why above\n"),
        "{errors}"
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn what_cannot_be_built_is_refused_with_the_remedy() {
    let folder = Folder::new("cli-build-refused");
    let empty = folder.path().join("empty");
    fs::create_dir_all(&empty).expect("made");
    assert_refused(&build(&empty, &[]), 2, &["no Cargo.toml in", "kubewright init"]);
    let package = package(&folder, "package", MAIN);
    assert_refused(
        &build(&package, &["--platform", "linux/s390x"]),
        1,
        &["rustup target add s390x-unknown-linux-musl"],
    );
    assert_refused(
        &build(&package, &["--platform", "plan9/amd64"]),
        2,
        &["it is one of linux/386, linux/amd64"],
    );
    assert_refused(
        &build(&package, &["--bin", "other"]),
        2,
        &["has no program other; its programs are: tiny"],
    );
    assert_refused(&build(&package, &["--tag", "Bad:Name:"]), 2, &["invalid reference format"]);
    assert_refused(&build(&package, &["--push"]), 2, &["--tag <REF>"]);
}
