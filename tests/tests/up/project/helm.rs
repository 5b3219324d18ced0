//! Charts as Helm renders them: by Helm's own library (tests/helm-go).

use super::*;

/// A chart of an operator, rendered into the operator's own namespace.
fn rendered(folder: &Folder, name: &str, values: &str) -> Vec<Value> {
    let chart = folder.path("dist/chart").display().to_string();
    let output =
        Command::new(needed("HELM")).args([&chart, name, &format!("{name}-system"), values]).output();
    let ended = Ended::from(output.expect("it starts"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut objects = documents(&ended.out);
    for object in &mut objects {
        let Some(Value::Object(metadata)) = object.get_mut("metadata") else { continue };
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.remove("helm.sh/resource-policy");
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
    objects
}

/// What a chart is to give: Helm makes the namespace itself.
fn wanted(name: &str, flags: &[&str]) -> Vec<Value> {
    let objects = manifests(name, flags).into_iter();
    objects.filter(|object| object["kind"] != "Namespace").collect()
}

fn names_of(objects: &[Value], what: &str) -> Vec<String> {
    let all = objects.iter().filter(|object| object["kind"] == what);
    all.map(|object| object["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
#[ignore = "needs Go: cargo xtask test"]
fn a_chart_gives_what_manifests_prints() {
    for name in ["whitelist", "image-police"] {
        let folder = generated(name, "helm");
        same(rendered(&folder, name, "{}"), wanted(name, &[]));
    }
}

/// The command calls `helm template`; what answers here is Helm's library.
#[test]
#[ignore = "needs Go: cargo xtask test"]
fn a_diff_renders_charts() {
    let folder = generated("whitelist", "helm");
    let script = format!(
        "#!/bin/sh\n[ \"$1 $3 $4\" = 'template --include-crds --kube-version' ] && exec '{}' \"$6\" \"$2\" default '{{}}'\n",
        needed("HELM").display()
    );
    let tool = folder.path("tools/helm");
    fs::create_dir_all(folder.path("tools")).expect("a folder");
    fs::write(&tool, script).expect("written");
    fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("made runnable");
    let line = format!("'{}' run", needed("KUBEWRIGHT").with_file_name("whitelist").display());
    let mut diff = kubewright(&folder.0, &["diff", "--exit-code", "--manifests", "dist/chart"]);
    diff.args(["--old", &line, "--new", &line]).arg("-f").arg(operator("whitelist").join("config/samples"));
    let path = env::var("PATH").unwrap_or_default();
    diff.env("PATH", format!("{}:{path}", folder.path("tools").display()));
    let ended = Ended::from(diff.output().expect("it runs"));
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""), "{ended:?}");
}

#[test]
#[ignore = "needs Go: cargo xtask test"]
fn values_of_a_chart_switch_its_parts() {
    let folder = generated("image-police", "helm");
    let with = |values: &str| rendered(&folder, "image-police", values);
    same(
        with("certManager: {enable: true}"),
        wanted("image-police", &["--webhook-certificate=cert-manager"]),
    );
    let arguments = |objects: &[Value]| -> String {
        let program = objects.iter().find(|object| object["kind"] == "Deployment").expect("a Deployment");
        program["spec"]["template"]["spec"]["containers"][0]["args"].to_string()
    };

    let without = with("webhook: {enable: false}");
    assert!(arguments(&without).contains("--webhook-bind-address=0"));
    assert!(names_of(&without, "ValidatingWebhookConfiguration").is_empty());
    assert_eq!(names_of(&without, "Service"), ["image-police-metrics"]);

    let without = with("metrics: {enable: false}\nprometheus: {enable: true}");
    assert!(arguments(&without).contains("--metrics-bind-address=0"));
    assert_eq!(names_of(&without, "Service"), ["image-police-webhook"]);
    assert!(names_of(&without, "ServiceMonitor").is_empty());
    assert!(names_of(&without, "PrometheusRule").is_empty());

    let more = with(
        "prometheus: {enable: true}\ngrafana: {enable: true}\nnetworkPolicy: {enable: true}\nrbac: {helpers: {enable: true}}",
    );
    assert_eq!(names_of(&more, "NetworkPolicy").len(), 2);
    assert_eq!(names_of(&more, "ServiceMonitor"), ["image-police-metrics-monitor"]);
    assert_eq!(names_of(&more, "PrometheusRule"), ["image-police-alerts"]);
    assert!(names_of(&more, "ConfigMap").contains(&"image-police-dashboard".to_owned()));
    assert!(names_of(&more, "ClusterRole").contains(&"image-police-whitelist-editor".to_owned()));

    let bare = with("rbac: {enable: false}\ncrd: {enable: false}");
    assert!(
        names_of(&bare, "ClusterRole").is_empty() && names_of(&bare, "CustomResourceDefinition").is_empty()
    );
}

#[test]
#[ignore = "needs Go: cargo xtask test"]
fn values_of_the_manager_reach_its_deployment() {
    let folder = generated("whitelist", "helm");
    let values = "
manager:
  replicas: 3
  image: {repository: r.example:5000/w, digest: 'sha256:ab', pullPolicy: Never}
  args: ['--leader-elect', '--namespace={{ .Release.Namespace }}']
  env: [{name: A, value: b}]
  resources: {limits: {cpu: 1}}
  tolerations: [{key: gpu, operator: Exists}]
  nodeSelector: {disk: ssd}
  priorityClassName: high
  extraVolumes: [{name: v, emptyDir: {}}]
  extraVolumeMounts: [{name: v, mountPath: /v}]
";
    let objects = rendered(&folder, "whitelist", values);
    let spec = &objects.iter().find(|object| object["kind"] == "Deployment").expect("a Deployment")["spec"];
    let pod = &spec["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(spec["replicas"], 3);
    assert_eq!(container["image"], "r.example:5000/w@sha256:ab");
    assert_eq!(container["imagePullPolicy"], "Never");
    assert!(container["args"].to_string().contains("--namespace=whitelist-system"));
    assert_eq!(container["env"][0]["value"], "b");
    assert_eq!(container["resources"]["limits"]["cpu"], 1);
    assert_eq!(container["volumeMounts"][0]["mountPath"], "/v");
    assert_eq!((&pod["volumes"][0]["name"], &pod["priorityClassName"]), (&"v".into(), &"high".into()));
    assert_eq!((&pod["tolerations"][0]["key"], &pod["nodeSelector"]["disk"]), (&"gpu".into(), &"ssd".into()));
}
