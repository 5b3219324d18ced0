//! What kubectl makes of what is generated, installed and run.

use super::*;

/// What `kubectl kustomize` makes of a folder.
fn kustomized(folder: &Folder, path: &str) -> Vec<Value> {
    let output = Command::new(needed("KUBECTL")).arg("kustomize").arg(folder.path(path)).output();
    let ended = Ended::from(output.expect("kubectl starts"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    documents(&ended.out)
}

fn overlay(folder: &Folder, text: &str) {
    fs::create_dir_all(folder.path("overlay")).expect("a folder");
    fs::write(folder.path("overlay/kustomization.yaml"), text).expect("written");
}

/// KB-19.
#[test]
#[ignore = "needs kubectl: cargo xtask test"]
fn kb_19_kustomize_makes_of_the_tree_what_manifests_prints() {
    for name in ["whitelist", "image-police"] {
        let folder = generated(name, "kustomize");
        same(kustomized(&folder, "config/default"), manifests(name, &[]));
    }
}

#[test]
#[ignore = "needs kubectl: cargo xtask test"]
fn an_overlay_adds_what_is_optional() {
    let folder = generated("image-police", "kustomize");
    overlay(&folder, "resources:\n- ../config/default\ncomponents:\n- ../config/certmanager\n");
    same(kustomized(&folder, "overlay"), manifests("image-police", &["--webhook-certificate=cert-manager"]));
    overlay(
        &folder,
        "resources:\n- ../config/default\n- ../config/rbac/helpers\n- ../config/network-policy\n- ../config/prometheus\n\
         - ../config/grafana\n",
    );
    let mut more: Vec<String> = kustomized(&folder, "overlay")
        .iter()
        .filter(|object| !manifests("image-police", &[]).contains(object))
        .map(|object| format!("{} {}", object["kind"], object["metadata"]["name"]).replace('"', ""))
        .collect();
    more.sort();
    assert_eq!(
        more,
        [
            "ClusterRole image-police-clusterwhitelist-admin",
            "ClusterRole image-police-clusterwhitelist-editor",
            "ClusterRole image-police-clusterwhitelist-viewer",
            "ClusterRole image-police-whitelist-admin",
            "ClusterRole image-police-whitelist-editor",
            "ClusterRole image-police-whitelist-viewer",
            "ConfigMap image-police-dashboard",
            "NetworkPolicy image-police-allow-metrics-traffic",
            "NetworkPolicy image-police-allow-webhook-traffic",
            "PrometheusRule image-police-alerts",
            "ServiceMonitor image-police-metrics-monitor",
        ]
    );
}

/// Neither folder has a definition or a role in a file of its own: without kustomize the operator could not run.
#[test]
#[ignore = "needs kubectl: cargo xtask test"]
fn a_diff_renders_folders_of_kustomize() {
    let folder = generated("whitelist", "kustomize");
    overlay(&folder, "resources:\n- ../config/default\nnamespace: elsewhere\n");
    // The command looks for kubectl as a shell does.
    let tools = folder.path("tools");
    fs::create_dir_all(&tools).expect("a folder");
    std::os::unix::fs::symlink(needed("KUBECTL"), tools.join("kubectl")).expect("a link");
    let program = needed("KUBEWRIGHT").with_file_name("whitelist");
    let line = format!("'{}' run", program.display());
    let diff = |old: &str, new: &str| {
        let samples = operator("whitelist").join("config/samples");
        let mut command = kubewright(&folder.0, &["diff", "--exit-code", "--old", &line, "--new", &line]);
        command.arg("-f").arg(samples).args(["--old-manifests", old, "--new-manifests", new]);
        let path = env::var("PATH").unwrap_or_default();
        Ended::from(command.env("PATH", format!("{}:{path}", tools.display())).output().expect("it runs"))
    };
    let same = diff("config/default", "overlay");
    assert_eq!((same.code, same.out.as_str()), (Some(0), ""), "{same:?}");
    fs::write(folder.path("overlay/kustomization.yaml"), "resources: [nowhere]\n").expect("written");
    let broken = diff("config/default", "overlay");
    assert_eq!(broken.code, Some(1), "{broken:?}");
    assert!(broken.errors.contains("overlay: kubectl: "), "{broken:?}");
}

/// KB-16, KB-35, and "Beyond" 6: what is installed is served at once, and goes without a trace.
#[test]
#[ignore = "needs kubectl: cargo xtask test"]
fn kb_16_install_says_what_kubectl_apply_says_and_uninstall_leaves_nothing() {
    const DEFINITION: &str = "customresourcedefinition.apiextensions.k8s.io/whitelists.sample.foo.bar";
    let up = Up::start("install", &["--nodes", "0"]);
    let kubeconfig = up.kubeconfig().display().to_string();
    let project = |command: &str, more: &[&str]| {
        let mut all = vec![command, "--kubeconfig", &kubeconfig];
        all.extend(more);
        ended(&operator("whitelist"), &all)
    };
    assert_eq!(project("install", &[]).out, format!("{DEFINITION} created\n"));
    assert_eq!(project("install", &[]).out, format!("{DEFINITION} unchanged\n"));
    assert_eq!(up.kubectl("get whitelists.sample.foo.bar -A"), "");
    let written = up.kubectl("get crd whitelists.sample.foo.bar -o yaml --show-managed-fields");
    assert!(written.contains("manager: kubewright\n") && !written.contains("last-applied"), "{written}");

    let _ = up.kubectl("label crd whitelists.sample.foo.bar mine=yes");
    let patch = r#"patch crd whitelists.sample.foo.bar --type=json -p [{"op":"remove","path":"/spec/names/shortNames"}]"#;
    let _ = up.kubectl(patch);
    assert_eq!(project("install", &[]).out, format!("{DEFINITION} configured\n"));
    assert!(up.kubectl("get crd whitelists.sample.foo.bar -o jsonpath={.metadata.labels}").contains("mine"));

    let gone = project("uninstall", &[]);
    let told = "customresourcedefinition.apiextensions.k8s.io \"whitelists.sample.foo.bar\" deleted\n";
    assert_eq!((gone.code, gone.out.as_str()), (Some(0), told));
    assert_eq!(up.kubectl("get crd -o name"), "");
    let again = project("uninstall", &[]);
    assert_eq!(again.code, Some(1));
    assert!(again.errors.contains("not installed: whitelists.sample.foo.bar"), "{}", again.errors);
    assert_eq!(project("uninstall", &["--ignore-not-found"]).code, Some(0));
}

/// KB-17, OS-10: an operator outside of the cluster, on a control plane of its own, as its account; and both end cleanly.
#[tokio::test]
#[ignore = "needs kubectl: cargo xtask test"]
async fn kb_17_run_heals_a_sample_under_the_rights_that_ship_with_the_operator() {
    let folder = Folder::new("run");
    let kubeconfig = folder.path("kubeconfig").display().to_string();
    let running = Running::start("whitelist", &["--write-kubeconfig", &kubeconfig]);
    let said = running.lines.join("\n");
    assert!(said.contains("runs as system:serviceaccount:whitelist-system:whitelist"), "{said}");
    let kubectl = |arguments: &str| {
        let mut command = Command::new(needed("KUBECTL"));
        command.args(["--kubeconfig", &kubeconfig]).args(arguments.split_whitespace());
        Ended::from(command.output().expect("kubectl starts"))
    };
    let sample = operator("whitelist").join("config/samples/sample_v1beta1_whitelist.yaml");
    let applied = kubectl(&format!("apply -f {}", sample.display()));
    assert_eq!(applied.code, Some(0), "{applied:?}");
    let wait = "wait deployment/whitelist-sample-deployment --for=create --timeout=30s";
    assert_eq!(kubectl(wait).code, Some(0));
    assert_eq!(kubectl("delete deployment whitelist-sample-deployment --wait=true").code, Some(0));
    assert_eq!(kubectl(wait).code, Some(0), "it comes back");
    let managers = kubectl(
        "get deployment whitelist-sample-deployment -o jsonpath={.metadata.managedFields[*].manager}",
    );
    assert!(managers.out.contains("whitelist"), "{managers:?}");

    assert_eq!(running.interrupt(), Some(0));
    assert!(!folder.path("kubeconfig").exists(), "the cluster is gone, and so is the way to it");
}

/// Webhooks are served from this machine, also to a cluster that was there before; and nothing leads to them afterwards.
#[tokio::test]
#[ignore = "needs kubectl: cargo xtask test"]
async fn a_webhook_of_an_operator_on_this_machine_is_asked_and_forgotten_with_it() {
    const LIST: &str = "
apiVersion: police.foo.bar/v1beta1
kind: WhiteList
metadata: {name: only-nginx}
spec: {images: [{name: nginx, tags: [latest]}], enforcement: Deny, denyBy: Webhook}
";
    let up = Up::start("webhooks", &["--nodes", "0"]);
    let kubeconfig = up.kubeconfig().display().to_string();
    let running = Running::start("image-police", &["--kubeconfig", &kubeconfig]);
    let configurations = "get validatingwebhookconfigurations -o jsonpath={..url}";
    assert_eq!(up.kubectl(configurations), "https://127.0.0.1:9443/deny");
    let _ = up.apply(LIST);
    // The operator sees the list a moment after it was applied.
    let asked = async {
        loop {
            let output = up.try_kubectl("run evil --image=evil --dry-run=server");
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            if told.contains("admission webhook \"images.police.foo.bar\" denied the request") {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), asked).await.expect("the webhook is asked");

    assert_eq!(running.interrupt(), Some(0));
    assert_eq!(up.kubectl(configurations), "");
    assert!(up.kubectl("get crd -o name").contains("whitelists.police.foo.bar"), "what is installed stays");
}

/// The versions of `create version`, converted by the operator on this machine.
#[tokio::test]
#[ignore = "needs kubectl: cargo xtask test"]
async fn what_is_written_in_one_version_is_read_in_the_others_while_the_operator_runs_here() {
    let folder = Folder::new("run-conversion");
    let kubeconfig = folder.path("kubeconfig").display().to_string();
    let running = Running::of(&multigroup(), &["--write-kubeconfig", &kubeconfig]);
    let kubectl = |arguments: &str| {
        let mut command = Command::new(needed("KUBECTL"));
        command.args(["--kubeconfig", &kubeconfig]).args(arguments.split_whitespace());
        Ended::from(command.output().expect("kubectl starts"))
    };
    let url =
        kubectl(&format!("get crd {CAPTAINS} -o jsonpath={{.spec.conversion.webhook.clientConfig.url}}"));
    assert!(url.out.starts_with("https://127.0.0.1:"), "{url:?}");

    let sample = multigroup().join("config/samples/crew_v1alpha1_captain.yaml");
    let apply = format!("apply -f {}", sample.display());
    // Its webhooks answer a moment after it was started.
    let mut applied = kubectl(&apply);
    for _ in 0..300 {
        if applied.code == Some(0) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        applied = kubectl(&apply);
    }
    assert_eq!(applied.code, Some(0), "{applied:?}");
    for version in ["v1alpha1", "v1beta1", "v1"] {
        let read = kubectl(&format!(
            "get captains.{version}.crew.example.com captain-sample -o jsonpath={{.apiVersion}}={{.spec.foo}}"
        ));
        assert_eq!(read.out, format!("crew.example.com/{version}=bar"), "{read:?}");
    }
    let stored = kubectl(&format!("get crd {CAPTAINS} -o jsonpath={{.status.storedVersions}}"));
    assert_eq!(stored.out, "[\"v1\"]");
    assert_eq!(running.interrupt(), Some(0));
}
