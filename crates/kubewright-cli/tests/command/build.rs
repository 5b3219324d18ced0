//! `kubewright build` as a user runs it, on a small package.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use kubewright_image::{Reference, Source, Store, testing::Folder};

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
    command(package, arguments).output().expect("kubewright runs")
}

fn command(package: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubewright"));
    command.arg("build").args(arguments).current_dir(package);
    for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_TARGET_DIR", "SOURCE_DATE_EPOCH", "CARGO"]
    {
        command.env_remove(variable);
    }
    command.env("KUBEWRIGHT_IMAGES", package.join("images"));
    command
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
    assert_eq!(
        lines,
        ["Tests    ", "Image    ", "Digest   ", "Image ID ", "Size     ", "Wrote    ", "Loaded   "]
    );
    assert!(said[0].starts_with("Tests    passed\nImage    tiny:1.2.3\n"), "{}", said[0]);
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
            && errors
                .ends_with("error: the project's tests failed, so no image was made; they said why above\n"),
        "{errors}"
    );
    assert!(output.stdout.is_empty());
    let output = build(&folder.path().join("broken"), &["--skip-tests"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("no_such_thing")
            && errors.ends_with("error: cargo build failed; it said why above\n"),
        "{errors}"
    );
}

/// KB-19: build runs the tests first.
#[test]
fn kb_19_no_image_is_made_of_what_fails_its_tests_unless_they_are_left_out() {
    let folder = Folder::new("cli-build-tests");
    let main = "fn main() {}\n#[test]\nfn it_works() { assert!(false, \"it does not\") }\n";
    let package = package(&folder, "failing", main);
    let output = build(&package, &["--load"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*output.stdout), (Some(1), &b""[..]), "{errors}");
    assert!(
        errors.contains("it does not") && errors.contains("tests failed, so no image was made"),
        "{errors}"
    );
    assert!(!package.join("images").exists() && !package.join("target/kubewright").exists());
    let said = built(&package, &["--skip-tests"]);
    assert!(said.starts_with("Tests    left out (--skip-tests)\nImage    tiny:1.2.3\n"), "{said}");
}

/// What `deploy` takes: the image that was built last, and its layout.
fn last(package: &Path) -> (String, PathBuf) {
    let text = fs::read(package.join("target/kubewright/tiny/build.json")).expect("something was built");
    let last: serde_json::Value = serde_json::from_slice(&text).expect("it is whole");
    let text = |key: &str| last[key].as_str().expect("a text").to_owned();
    (text("name"), text("layout").into())
}

/// Whether a step is to be seen, of a build after this one.
type Look<'a> = dyn Fn(&(String, PathBuf)) -> bool + 'a;

/// Kills it as soon as there is something to see of what it does; or when it has ended.
#[test]
fn a_build_that_is_killed_leaves_the_old_image_or_the_new_one() {
    let folder = Folder::new("cli-build-killed");
    let package = package(&folder, "package", MAIN);
    let kept = package.join("target/kubewright/tiny");
    let images = kept.join("images");
    let count = |wanted: fn(&str) -> bool| {
        let names = fs::read_dir(&images).into_iter().flatten().flatten().map(|entry| entry.file_name());
        names.filter(|name| wanted(&name.to_string_lossy())).count()
    };
    let unfinished = || {
        fs::read_dir(&images)
            .into_iter()
            .flatten()
            .flatten()
            .find_map(|entry| entry.file_name().to_string_lossy().starts_with('.').then(|| entry.path()))
    };
    let steps: [(&str, &Look<'_>); 6] = [
        ("it begins", &|_| unfinished().is_some()),
        ("its layer is written", &|_| {
            unfinished().is_some_and(|path| path.join("blobs/sha256/layer").exists())
        }),
        ("its index is written", &|_| unfinished().is_some_and(|path| path.join("index.json").exists())),
        ("it is moved to its place", &|_| count(|name| !name.starts_with('.')) == 2),
        ("it is the last", &|old| last(&package).0 != old.0),
        ("the old one goes", &|old| !old.1.join("index.json").exists()),
    ];
    built(&package, &["--tag", "tiny:0"]);
    for (number, (step, is_done)) in steps.iter().enumerate() {
        let old = last(&package);
        let name = format!("tiny:{}", number + 1);
        let mut command = command(&package, &["--skip-tests", "--tag", &name]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        while !is_done(&old) && child.try_wait().expect("it is ours").is_none() {}
        child.kill().expect("killed");
        child.wait().expect("ended");
        let (found, layout) = last(&package);
        assert!(found == old.0 || found.ends_with(&name), "{step}: {found}");
        let store = Store::open(&folder.path().join(format!("store-{number}"))).expect("a store");
        let loaded =
            store.load(Source::Path(&layout), None).unwrap_or_else(|error| panic!("{step}: {error}"));
        assert_eq!(loaded[0].names[0].to_string(), found, "{step}");
    }
    built(&package, &["--skip-tests", "--tag", "tiny:end"]);
    assert_eq!((count(|_| true), last(&package).0.as_str()), (1, "docker.io/library/tiny:end"));
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
