//! The story of the WhiteList sample as its author told it, and the usual work, with kubectl on `kubewright up`.
//!
//! The tests need a kubectl: `cargo xtask test` finds or builds one and runs them.

use kubewright_tests::Up;

const DEPLOYMENT: &str = "whitelist-sample-deployment";
const IMAGES: &str = "get deploy whitelist-sample-deployment -o jsonpath={..image}";

/// A Deployment of one nginx.
const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: nginx, image: nginx}]}
";

/// A namespace with something in it.
const SHOP: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: prices, namespace: shop}
data: {apple: '1'}
";

/// WL-01.
#[test]
#[ignore = "needs kubectl: cargo xtask test"]
fn wl_01_there_are_no_deployments_before() {
    let up = Up::start("none", &[]);
    let output = up.try_kubectl("get deploy");
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "No resources found in default namespace.\n");
}

/// WL-02, WL-03, WL-09, WL-15.
#[tokio::test]
#[ignore = "needs kubectl: cargo xtask test"]
async fn wl_02_the_sample_is_applied_gets_its_deployment_and_takes_it_along() {
    let up = Up::start("apply", &["--samples"]);
    let deleted = up.kubectl("delete whitelist whitelist-sample");
    assert!(deleted.starts_with("whitelist.sample.foo.bar \"whitelist-sample\" deleted"), "{deleted}");
    up.eventually("get deploy,rs,pods -o name", str::is_empty).await;

    let applied = up.apply(kubewright_whitelist::manifests::SAMPLE);
    assert_eq!(applied, "whitelist.sample.foo.bar/whitelist-sample created\n");
    let wide = up.eventually("get deploy -o wide", |table| table.contains("1/1")).await;
    let lines: Vec<Vec<&str>> = wide.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        lines[0],
        ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"],
        "{wide}"
    );
    assert_eq!(lines[1][..4], [DEPLOYMENT, "1/1", "1", "1"], "{wide}");
    assert_eq!(lines[1][5..], ["nginx", "nginx", "deployment=whitelist-sample-deployment"], "{wide}");
    assert_eq!(lines.len(), 2, "{wide}");

    let whitelist = up.eventually("get wl whitelist-sample", |table| table.contains("true")).await;
    assert!(whitelist.starts_with("NAME"), "{whitelist}");
    assert!(whitelist.contains("READY") && whitelist.contains("AGE"), "{whitelist}");
}

/// WL-04.
#[tokio::test]
#[ignore = "needs kubectl: cargo xtask test"]
async fn wl_04_a_deleted_deployment_comes_back() {
    let up = Up::start("delete", &["--samples"]);
    let uid = "get deploy whitelist-sample-deployment -o jsonpath={.metadata.uid}";
    let before = up.eventually(uid, |uid| !uid.is_empty()).await;
    let deleted = up.kubectl("delete deployments whitelist-sample-deployment");
    assert!(deleted.starts_with("deployment.apps \"whitelist-sample-deployment\" deleted"), "{deleted}");
    up.eventually(uid, |uid| !uid.is_empty() && uid != before).await;
}

/// WL-06.
#[tokio::test]
#[ignore = "needs kubectl: cargo xtask test"]
async fn wl_06_a_changed_image_goes_back() {
    let up = Up::start("image", &["--samples"]);
    up.eventually(IMAGES, |images| images == "nginx").await;
    let set = up.kubectl("set image deployments whitelist-sample-deployment nginx=httpd");
    assert_eq!(set, "deployment.apps/whitelist-sample-deployment image updated\n");
    up.eventually(IMAGES, |images| images == "nginx").await;
    let events =
        up.eventually("get events -o jsonpath={..message}", |events| events.contains("Restored")).await;
    assert!(events.contains("httpd"), "{events}");
}

/// WL-07.
#[tokio::test]
#[ignore = "needs kubectl: cargo xtask test"]
async fn wl_07_a_scaled_or_restarted_deployment_goes_back() {
    let up = Up::start("scale", &["--samples"]);
    up.eventually(IMAGES, |images| images == "nginx").await;
    let scaled = up.kubectl("scale deployment whitelist-sample-deployment --replicas=4");
    assert_eq!(scaled, "deployment.apps/whitelist-sample-deployment scaled\n");
    let replicas = "get deploy whitelist-sample-deployment -o jsonpath={.spec.replicas}";
    up.eventually(replicas, |replicas| replicas == "1").await;

    let restarted = up.kubectl("rollout restart deployment whitelist-sample-deployment");
    assert_eq!(restarted, "deployment.apps/whitelist-sample-deployment restarted\n");
    let annotations =
        "get deploy whitelist-sample-deployment -o jsonpath={.spec.template.metadata.annotations}";
    up.eventually(annotations, str::is_empty).await;
}

#[tokio::test]
#[ignore = "needs kubectl: cargo xtask test"]
async fn a_deployment_is_rolled_out_scaled_and_changed() {
    let up = Up::start("rollout", &[]);
    assert_eq!(up.apply(WEB), "deployment.apps/web created\n");
    let done = "deployment \"web\" successfully rolled out\n";
    assert!(up.kubectl("rollout status deployment web --timeout=30s").ends_with(done));

    assert_eq!(up.kubectl("scale deployment web --replicas=3"), "deployment.apps/web scaled\n");
    assert!(up.kubectl("rollout status deployment web --timeout=30s").ends_with(done));
    let running = "get pods -l app=web -o jsonpath={.items[*].status.phase}";
    assert_eq!(up.kubectl(running), "Running Running Running");

    assert_eq!(up.kubectl("set image deployment web nginx=httpd"), "deployment.apps/web image updated\n");
    assert!(up.kubectl("rollout status deployment web --timeout=30s").ends_with(done));
    let images = "get pods -l app=web -o jsonpath={.items[*].spec.containers[*].image}";
    up.eventually(images, |images| images == "httpd httpd httpd").await;
}

#[test]
#[ignore = "needs kubectl: cargo xtask test"]
fn pods_are_watched_until_they_run() {
    let up = Up::start("watch", &[]);
    let _ = up.apply(WEB);
    let mut header = None;
    up.follow("get pods -w", |line| {
        header.get_or_insert_with(|| line.to_owned());
        line.starts_with("web-") && line.contains("1/1") && line.contains("Running")
    });
    let header = header.expect("a first line");
    assert_eq!(header.split_whitespace().collect::<Vec<_>>(), ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]);
}

#[test]
#[ignore = "needs kubectl: cargo xtask test"]
fn a_field_is_explained() {
    let up = Up::start("explain", &[]);
    let explained = up.kubectl("explain deployment.spec");
    assert!(explained.contains("GROUP:      apps\nKIND:       Deployment\nVERSION:    v1\n"), "{explained}");
    assert!(explained.contains("FIELD: spec <DeploymentSpec>"), "{explained}");
    assert!(explained.contains("replicas\t<integer>"), "{explained}");
    assert!(explained.contains("selector\t<LabelSelector> -required-"), "{explained}");
}

#[tokio::test]
#[ignore = "needs kubectl: cargo xtask test"]
async fn built_in_and_custom_kinds_are_listed_with_their_short_names() {
    let up = Up::start("resources", &["--samples"]);
    let is_row = |table: &str, row: [&str; 5]| table.lines().any(|line| line.split_whitespace().eq(row));
    let table = up
        .eventually("api-resources", |table| {
            is_row(table, ["whitelists", "wl", "sample.foo.bar/v1beta1", "true", "WhiteList"])
        })
        .await;
    assert!(is_row(&table, ["deployments", "deploy", "apps/v1", "true", "Deployment"]), "{table}");
    assert!(is_row(&table, ["nodes", "no", "v1", "false", "Node"]), "{table}");
}

#[test]
#[ignore = "needs kubectl: cargo xtask test"]
fn a_namespace_goes_with_all_that_is_in_it() {
    let up = Up::start("namespace", &[]);
    assert_eq!(up.apply(SHOP), "namespace/shop created\nconfigmap/prices created\n");
    let web = up.file("web.yaml", WEB);
    assert_eq!(up.kubectl(&format!("apply -n shop -f {web}")), "deployment.apps/web created\n");
    let deleted = up.kubectl("delete ns shop --timeout=30s");
    assert!(deleted.starts_with("namespace \"shop\" deleted"), "{deleted}");
    let gone = up.try_kubectl("get ns shop");
    let error = "Error from server (NotFound): namespaces \"shop\" not found\n";
    assert_eq!(String::from_utf8_lossy(&gone.stderr), error);
}

#[test]
#[ignore = "needs kubectl: cargo xtask test"]
fn the_operator_may_do_what_its_role_says_and_no_more() {
    let up = Up::start("can-i", &["--samples"]);
    let can = |what: &str| {
        let arguments = format!("auth can-i {what} --as system:serviceaccount:whitelist-system:whitelist");
        String::from_utf8_lossy(&up.try_kubectl(&arguments).stdout).trim().to_owned()
    };
    assert_eq!(can("create deployments"), "yes");
    assert_eq!(can("patch whitelists.sample.foo.bar --subresource=status"), "yes");
    assert_eq!(can("delete deployments"), "no");
    assert_eq!(can("get secrets"), "no");
}
