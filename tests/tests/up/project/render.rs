//! `render`, `diff` and `why` as a process.

use super::*;

/// What the operator `whitelist` needs, in a folder of its own.
fn needed_objects() -> Folder {
    let folder = generated("whitelist", "plain");
    let program = needed("KUBEWRIGHT").with_file_name("whitelist");
    let output = Command::new(program).arg("manifests").output().expect("it was built to generate");
    fs::write(folder.path("needed.yaml"), output.stdout).expect("written");
    folder
}

#[test]
#[ignore = "needs the built command: cargo xtask test"]
fn what_an_operator_makes_is_printed_alike_and_does_not_differ_from_itself() {
    let folder = needed_objects();
    let manifests = folder.path("needed.yaml").display().to_string();
    let samples = operator("whitelist").join("config/samples").display().to_string();
    let program = needed("KUBEWRIGHT").with_file_name("whitelist").display().to_string();
    let given = ["-f", &samples, "--manifests", &manifests];
    let rendered = done(&folder.0, &[["render"].as_slice(), &given, &["--", &program, "run"]].concat());
    let [deployment] = documents(&rendered).try_into().expect("one object");
    assert_eq!(deployment["kind"], "Deployment", "{rendered}");
    assert!(deployment["metadata"]["uid"].is_null() && deployment["status"].is_null(), "{rendered}");
    let line = format!("{program} run");
    let both = ["--old", &line, "--new", &line, "--exit-code"];
    assert_eq!(done(&folder.0, &[["diff"].as_slice(), &given, &both].concat()), "");
}

#[test]
#[ignore = "needs the built command: cargo xtask test"]
fn a_program_that_ends_is_an_error_with_what_it_said() {
    let folder = needed_objects();
    let manifests = folder.path("needed.yaml").display().to_string();
    let samples = operator("whitelist").join("config/samples").display().to_string();
    let ended = ended(
        &folder.0,
        &["render", "-f", &samples, "--manifests", &manifests, "--", "sh", "-c", "echo no luck; exit 4"],
    );
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.errors.starts_with("error: program ended (exit status: 4)"), "{ended:?}");
    assert!(ended.errors.contains("no luck"), "{ended:?}");
}

/// The stored version is another than that of the sample: without the operator's conversion there is no object.
#[test]
#[ignore = "needs the built command: cargo xtask test"]
fn the_webhooks_and_conversions_of_a_project_are_called_without_a_word() {
    let render = |path: &str| ended(&multigroup(), &["render", "--rest", "1", "-f", path]);
    let sample = multigroup().join("config/samples/crew_v1alpha1_captain.yaml");
    let converted = render(&sample.display().to_string());
    assert_eq!(converted.code, Some(0), "{converted:?}");
    assert!(!converted.errors.contains("warning: "), "{converted:?}");

    let folder = Folder::new("render-webhooks");
    let forbidden = folder.path("forbidden.yaml");
    let text = fs::read_to_string(sample).expect("a sample").replace("captain-sample", "forbidden");
    fs::write(&forbidden, text).expect("written");
    let refused = render(&forbidden.display().to_string());
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.errors.contains("is an example"), "{refused:?}");
}

#[test]
#[ignore = "needs the built command: cargo xtask test"]
fn an_object_that_is_named_wrongly_is_refused() {
    let folder = Folder::new("why");
    let ended = ended(&folder.0, &["why", "web"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.errors.starts_with("error: object \"web\" has no name"), "{ended:?}");
}
