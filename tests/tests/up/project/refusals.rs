//! What commands say where they cannot do what was asked for: what is wrong, what to do, and a status.

use super::*;

fn refused(folder: &Path, arguments: &[&str], code: i32, told: &[&str]) {
    let ended = ended(folder, arguments);
    assert_eq!(ended.code, Some(code), "{arguments:?}: {ended:?}");
    for told in told {
        assert!(ended.errors.contains(told), "{arguments:?}: {told}: {}", ended.errors);
    }
}

/// KB-13.
#[test]
#[ignore = "needs the built command: cargo xtask test"]
fn kb_13_outside_of_a_project_every_command_says_what_a_project_is() {
    let folder = Folder::new("empty");
    for command in ["generate", "install", "uninstall", "run", "test"] {
        refused(
            &folder.0,
            &[command],
            2,
            &["there is no Cargo.toml in", "kubewright init", "--manifest-path"],
        );
    }
}

#[test]
#[ignore = "needs the built command: cargo xtask test"]
fn a_package_that_is_no_operator_or_has_several_programs_is_told() {
    let folder = Folder::new("packages");
    let package = |dependency: &str, programs: &[&str]| {
        fs::create_dir_all(folder.path("src/bin")).expect("a folder");
        fs::create_dir_all(folder.path("sdk/src")).expect("a folder");
        for program in programs {
            fs::write(folder.path(&format!("src/bin/{program}.rs")), "fn main() {}").expect("written");
        }
        fs::write(folder.path("sdk/src/lib.rs"), "").expect("written");
        let manifest = |name: &str, rest: &str| {
            format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{rest}")
        };
        fs::write(folder.path("sdk/Cargo.toml"), manifest(dependency, "")).expect("written");
        let rest = format!("[workspace]\n[dependencies]\n{dependency} = {{ path = \"sdk\" }}\n");
        fs::write(folder.path("Cargo.toml"), manifest("web", &rest)).expect("written");
    };
    package("other", &["a"]);
    refused(
        &folder.0,
        &["generate"],
        2,
        &["the package web is no operator: it does not depend on kubewright"],
    );
    package("kubewright", &["a", "b"]);
    refused(
        &folder.0,
        &["generate"],
        2,
        &["the package web has several programs: name one with --bin: a, b"],
    );
    refused(&folder.0, &["generate", "--bin=c"], 2, &["has no program c; its programs are: a, b"]);
    refused(
        &folder.0,
        &["generate", "--bin=a"],
        1,
        &["does not answer as an operator does", "operator().main()"],
    );
    fs::write(folder.path("src/bin/a.rs"), "fn main() { nothing }").expect("written");
    refused(&folder.0, &["generate", "--bin=a"], 1, &["a does not compile: see what cargo says above"]);
    let settings = "[package.metadata.kubewright.generate]\nfromat = [\"helm\"]\n";
    let manifest = fs::read_to_string(folder.path("Cargo.toml")).expect("read") + settings;
    fs::write(folder.path("Cargo.toml"), manifest).expect("written");
    refused(&folder.0, &["generate", "--bin=a"], 2, &["package.metadata.kubewright.generate", "fromat"]);
}

#[test]
#[ignore = "needs the built command: cargo xtask test"]
fn a_cluster_that_is_away_is_told_with_what_to_do() {
    let folder = Folder::new("away");
    let operator = operator("whitelist");
    refused(&operator, &["install"], 1, &["there is no cluster to work on", "--kubeconfig", "kubewright up"]);
    let kubeconfig = folder.path("kubeconfig");
    let text = "
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
";
    fs::write(&kubeconfig, text).expect("written");
    let kubeconfig = kubeconfig.display().to_string();
    for command in ["install", "uninstall", "run"] {
        refused(&operator, &[command, "--kubeconfig", &kubeconfig], 1, &["the API server cannot be reached"]);
    }
    let other = ["install", "--kubeconfig", &kubeconfig, "--context=other"];
    refused(&operator, &other, 1, &["the kubeconfig leads to no cluster", "other"]);
}

#[test]
#[ignore = "needs the built command: cargo xtask test"]
fn a_kubeconfig_of_somebody_else_is_not_overwritten() {
    let folder = Folder::new("foreign");
    let kubeconfig = folder.path("config");
    fs::write(&kubeconfig, "mine").expect("written");
    let path = kubeconfig.display().to_string();
    refused(
        &operator("whitelist"),
        &["run", "--write-kubeconfig", &path],
        1,
        &["was not written by kubewright"],
    );
    assert_eq!(folder.read("config"), "mine");
}

#[test]
#[ignore = "needs the built command: cargo xtask test"]
fn the_doctor_tells_what_is_missing_and_the_shells_what_there_is() {
    let told = done(&operator("whitelist"), &["doctor", "--output=json"]);
    let findings: Vec<Value> = serde_json::from_str(&told).expect("JSON");
    let of = |what: &str| findings.iter().find(|finding| finding["what"] == what).expect(what);
    assert_eq!(of("rustc")["state"], "ok");
    assert_eq!(of("SDK")["found"], "kubewright 0.1.0");
    assert_eq!(of("cluster")["state"], "warning", "there is none, and none is needed");
    assert!(of("cluster")["remedy"].as_str().is_some_and(|remedy| remedy.contains("kubewright run")));
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(done(&operator("whitelist"), &["completion", shell]).contains("uninstall"), "{shell}");
    }
    let version = done(&operator("whitelist"), &["version", "--output=json"]);
    let version: Value = serde_json::from_str(&version).expect("JSON");
    assert_eq!((&version["version"], &version["kubernetes"]), (&"0.1.0".into(), &"v1.37".into()));
}
