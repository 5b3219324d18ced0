//! `kubewright image` as a user runs it.

use std::{
    fs::{self, File},
    io::Write,
    process::{Command, Output, Stdio},
};

use kubewright_image::testing::{self, Folder, TestImage, TestLayer, gzip};
use serde_json::{Value, json};

use super::assert_refused;

/// What somebody does to the images in `images` of a folder, in that folder.
fn image(folder: &Folder) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubewright"));
    command.arg("image").current_dir(folder.path()).env("KUBEWRIGHT_IMAGES", "images");
    command
}

fn run(folder: &Folder, arguments: &[&str]) -> Output {
    image(folder).args(arguments).output().expect("kubewright runs")
}

/// What a command says that succeeds.
fn stdout(folder: &Folder, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout).expect("text")
}

fn built() -> TestImage {
    let layer = TestLayer::new().file("hello", 0o755, &[b'!'; 20_000]);
    TestImage::new(&[layer], &json!({"Cmd": ["/hello"], "Env": ["PATH=/"], "User": "1000"}))
}

#[test]
fn an_image_is_loaded_listed_inspected_and_removed() {
    let folder = Folder::new("cli-image");
    let (image, layout) = (built(), folder.path().join("layout"));
    fs::create_dir(&layout).expect("made");
    image.layout(&layout, &["hello", "registry.local:5000/team/hello:v1"]).expect("written");
    let id = image.id();
    assert_eq!(
        stdout(&folder, &["load", "layout"]),
        format!(
            "Loaded docker.io/library/hello:latest ({id})\nLoaded registry.local:5000/team/hello:v1 ({id})\n"
        )
    );
    let short = &id.hex()[..13];
    assert_eq!(
        stdout(&folder, &["list"]),
        format!(
            "IMAGE                            TAG      IMAGE ID        SIZE\n\
             docker.io/library/hello          latest   {short}   22.3kB\n\
             registry.local:5000/team/hello   v1       {short}   22.3kB\n"
        )
    );
    let inspected: Value = serde_json::from_str(&stdout(&folder, &["inspect", &short[..12]])).expect("JSON");
    assert_eq!(inspected["id"], id.to_string());
    assert_eq!(inspected["references"][0], "docker.io/library/hello:latest");
    assert_eq!(inspected["config"]["cmd"], json!(["/hello"]));
    assert_eq!(inspected["config"]["env"], json!(["PATH=/"]));
    assert_eq!(inspected["config"]["user"], "1000");
    assert_eq!(inspected["config"]["created"], "2026-01-02T03:04:05Z");

    let names = ["remove", "hello", "registry.local:5000/team/hello:v1"];
    assert_eq!(
        stdout(&folder, &names),
        format!(
            "Untagged docker.io/library/hello:latest\nUntagged registry.local:5000/team/hello:v1\nDeleted {id}\n"
        )
    );
    assert_eq!(stdout(&folder, &["list"]), "IMAGE   TAG   IMAGE ID   SIZE\n");
}

#[test]
fn what_docker_saves_comes_in_through_a_pipe_and_is_given_a_name() {
    let folder = Folder::new("cli-image-pipe");
    let load = || {
        let mut command = image(&folder);
        command.args(["load", "--name", "mine:v2", "-", "--image-store", "others"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("kubewright runs")
    };
    let mut loading = load();
    let saved = gzip(&built().docker_save(&["theirs:v1"]));
    loading.stdin.take().expect("piped").write_all(&saved).expect("read");
    let output = loading.wait_with_output().expect("it ends");
    let expected = format!("Loaded docker.io/library/mine:v2 ({})\n", built().id());
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    let listed = stdout(&folder, &["list", "--image-store", "others"]);
    assert!(listed.contains("docker.io/library/mine   v2 ") && !listed.contains("theirs"), "{listed}");
    assert_eq!(stdout(&folder, &["list"]).lines().count(), 1, "the other store has none");
}

#[test]
fn a_load_that_is_killed_leaves_a_store_that_works() {
    let folder = Folder::new("cli-image-killed");
    let saved = built().docker_save(&["hello"]);
    let mut loading =
        image(&folder).args(["load", "-"]).stdin(Stdio::piped()).spawn().expect("kubewright runs");
    let mut input = loading.stdin.take().expect("piped");
    // More than the pipe holds: when all of it is taken, the first of it is in the store's folder.
    let long = [saved[..saved.len() - 1024].to_vec(), saved.repeat(20)].concat();
    input.write_all(&long[..long.len() - 300]).expect("read");
    let incoming = || fs::read_dir(folder.path().join("images/incoming")).map_or(0, Iterator::count);
    assert_eq!(incoming(), 1);
    loading.kill().expect("killed");
    loading.wait().expect("it ends");
    drop(input);
    assert_eq!((incoming(), stdout(&folder, &["list"]).lines().count()), (1, 1));

    fs::write(folder.path().join("saved.tar"), &saved).expect("written");
    stdout(&folder, &["load", "saved.tar"]);
    assert_eq!((incoming(), stdout(&folder, &["list"]).lines().count()), (0, 2));
}

#[test]
fn an_image_without_a_name_is_listed_by_its_id() {
    let folder = Folder::new("cli-image-unnamed");
    fs::write(folder.path().join("saved.tar"), built().docker_save(&[])).expect("written");
    let id = built().id();
    let loaded = stdout(&folder, &["load", "saved.tar"]);
    assert!(loaded.starts_with(&format!("Loaded {id}")) && loaded.contains("--name"), "{loaded}");
    let listed = stdout(&folder, &["list"]);
    assert!(listed.lines().last().expect("a line").starts_with("<none>   <none>   "), "{listed}");
    assert_eq!(stdout(&folder, &["remove", &id.to_string()]), format!("Deleted {id}\n"));
}

#[test]
fn what_cannot_be_loaded_is_told_in_a_line() {
    let folder = Folder::new("cli-image-refused");
    let path = |name: &str| folder.path().join(name);
    fs::write(path("text"), "just text\n".repeat(100)).expect("written");
    fs::write(path("tar"), testing::archive(&[("README".into(), b"hello".to_vec())])).expect("written");
    fs::write(path("theirs"), built().built_for("vax").docker_save(&["a:b"])).expect("written");
    for (arguments, words) in [
        (&["load", "none"][..], &["cannot load none", "No such file"][..]),
        (&["load", "text"], &["cannot load text", "archive"]),
        (&["load", "tar"], &["oci-layout", "docker save"]),
        (&["load", "theirs"], &["built for linux/vax"]),
        (&["remove", "none"], &["no image \"none\"", "kubewright image list"]),
        (&["inspect", "none:v1"], &["no image \"none:v1\"", "kubewright image list"]),
        (&["inspect", "No Name"], &["\"No Name\" can be no name", "lowercase"]),
    ] {
        assert_refused(&run(&folder, arguments), 1, words);
    }
    File::create(path("images.file")).expect("made");
    assert_refused(
        &run(&folder, &["list", "--image-store", "images.file"]),
        1,
        &["images.file", "--image-store"],
    );
}

#[test]
fn names_that_are_none_are_usage_errors() {
    let folder = Folder::new("cli-image-usage");
    let digest = format!("app@sha256:{}", "0".repeat(64));
    for (arguments, words) in [
        (&["load", "--name", "App", "x"][..], &["--name", "must be lowercase"][..]),
        (&["load", "--name", &digest, "x"], &["--name", "a tag and no digest"]),
        (&["remove"], &["REF"]),
    ] {
        assert_refused(&run(&folder, arguments), 2, words);
    }
}
