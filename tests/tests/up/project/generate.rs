//! `kubewright generate`: what is there, what has changed, and what is somebody's own.

use super::*;

/// KB-35, KB-40: the definition, the rights and the program are made of the code, where users of kubebuilder look for them.
/// OS-06.
#[test]
#[ignore = "needs the built command: cargo xtask test"]
fn kb_35_manifests_are_generated_from_the_types() {
    let folder = generated("whitelist", "plain,kustomize");
    let definition = &documents(&folder.read("config/crd/bases/sample.foo.bar_whitelists.yaml"))[0];
    assert_eq!(definition["apiVersion"], "apiextensions.k8s.io/v1");
    assert_eq!(definition["metadata"]["name"], "whitelists.sample.foo.bar");
    assert_eq!(definition["spec"]["versions"][0]["subresources"]["status"], serde_json::json!({}));
    same(documents(&folder.read("dist/install.yaml")), manifests("whitelist", &[]));
}

/// KB-40: rights come from what the controller watches and writes.
#[test]
#[ignore = "needs the built command: cargo xtask test"]
fn kb_40_rights_land_in_the_role() {
    let folder = generated("whitelist", "kustomize");
    let role = &documents(&folder.read("config/rbac/role.yaml"))[0];
    let rules = role["rules"].to_string();
    assert!(rules.contains("sample.foo.bar") && rules.contains("deployments"), "{rules}");
}

#[test]
#[ignore = "needs the built command: cargo xtask test"]
fn generating_again_changes_nothing_and_a_check_passes() {
    let folder = generated("whitelist", "plain,kustomize");
    let output = folder.0.display().to_string();
    let again = done(&operator("whitelist"), &["generate", "--output", &output]);
    assert!(again.ends_with(": 0 written\n") && again.lines().count() == 1, "{again}");
    done(&operator("whitelist"), &["generate", "--check", "--output", &output]);
}

/// KB-14 and "Beyond" 4 of that section: what was edited is never lost; what drifts fails a check, with how.
#[test]
#[ignore = "needs the built command: cargo xtask test"]
fn kb_14_what_somebody_wrote_is_not_overwritten_and_drift_is_told() {
    let folder = generated("whitelist", "kustomize");
    let output = folder.0.display().to_string();
    let generate = |flags: &[&str]| {
        let mut all = vec!["generate", "--format=kustomize", "--output", &output];
        all.extend(flags);
        ended(&operator("whitelist"), &all)
    };
    let manager = folder.read("config/manager/manager.yaml");
    fs::write(folder.path("config/manager/manager.yaml"), manager.replace("replicas: 1", "replicas: 2"))
        .expect("written");
    fs::write(folder.path("config/rbac/role.yaml"), "mine: true\n").expect("written");
    fs::remove_file(folder.path("config/crd/kustomization.yaml")).expect("removed");
    fs::copy(folder.path("config/manager/manager.yaml"), folder.path("config/old.yaml")).expect("copied");

    let checked = generate(&["--check"]);
    assert_eq!(checked.code, Some(1));
    for told in [
        "config/crd/kustomization.yaml is missing",
        "config/manager/manager.yaml differs:\n@@ line 18 @@\n-  replicas: 2\n+  replicas: 1\n",
        "config/old.yaml is no longer generated",
        "config/rbac/role.yaml differs",
        "run `kubewright generate`, and commit what it writes",
    ] {
        assert!(checked.errors.contains(told), "{told}: {}", checked.errors);
    }

    let refused = generate(&[]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.errors.contains("config/rbac/role.yaml: move them away"), "{}", refused.errors);
    assert_eq!(folder.read("config/rbac/role.yaml"), "mine: true\n");
    assert!(!folder.path("config/crd/kustomization.yaml").exists(), "nothing is written");

    let forced = generate(&["--force", "--prune"]);
    assert_eq!(forced.code, Some(0), "{}", forced.errors);
    assert!(forced.out.contains("config/old.yaml removed"), "{}", forced.out);
    assert_eq!(folder.read("config/manager/manager.yaml"), manager);
    assert_eq!(generate(&["--check"]).code, Some(0));
}

/// What `create version` made of a project: three versions, and a webhook that converts between them.
#[test]
#[ignore = "needs the built command: cargo xtask test"]
fn a_kind_in_three_versions_is_generated_with_its_conversion() {
    let folder = generated_of(&multigroup(), "plain,kustomize");
    let installed = documents(&folder.read("dist/install.yaml"));
    let named = |objects: &[Value]| {
        let found = objects.iter().find(|object| object["metadata"]["name"] == CAPTAINS);
        found.cloned().unwrap_or_else(|| panic!("no {CAPTAINS}: {objects:#?}"))
    };
    let definition = named(&installed);
    let versions = definition["spec"]["versions"].as_array().expect("versions");
    let mut told: Vec<_> = versions
        .iter()
        .map(|version| {
            (version["name"].as_str().unwrap_or_default(), &version["served"], &version["storage"])
        })
        .collect();
    told.sort_by_key(|(name, ..)| *name);
    let (yes, no) = (&Value::Bool(true), &Value::Bool(false));
    assert_eq!(told, [("v1", yes, yes), ("v1alpha1", yes, no), ("v1beta1", yes, no)]);

    let conversion = &definition["spec"]["conversion"];
    assert_eq!(conversion["strategy"], "Webhook", "{conversion:#}");
    let service = &conversion["webhook"]["clientConfig"]["service"];
    let is_it =
        |object: &&Value| object["kind"] == "Service" && object["metadata"]["name"] == service["name"];
    let served = installed.iter().find(is_it).unwrap_or_else(|| panic!("no such Service: {service}"));
    assert_eq!(served["metadata"]["namespace"], service["namespace"]);
    let file = folder.read("config/crd/bases/crew.example.com_captains.yaml");
    assert_eq!(named(&documents(&file))["spec"]["versions"], definition["spec"]["versions"]);
}
