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

/// The commonest mistakes: the definition is not there yet, and a typo. Before it asks for a validation by the server, kubectl
/// looks for the kind in OpenAPI v3, and then in v2 as protobuf.
#[test]
#[ignore = "needs kubectl: cargo xtask test"]
fn a_kind_that_is_not_there_is_told_as_that() {
    let up = Up::start("no-such-kind", &[]);
    let missing = "apiVersion: web.example.org/v1alpha1\nkind: PageSet\nmetadata: {name: pages}\n";
    for (manifest, kind) in [
        (missing.to_owned(), "no matches for kind \"PageSet\" in version \"web.example.org/v1alpha1\""),
        (
            WEB.replace("kind: Deployment", "kind: Deploymnt"),
            "no matches for kind \"Deploymnt\" in version \"apps/v1\"",
        ),
    ] {
        let file = up.file("no-such-kind.yaml", &manifest);
        for command in ["create", "apply", "apply --server-side"] {
            let refused = up.try_kubectl(&format!("{command} -f {file}"));
            let told = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert!(!refused.status.success(), "{command}");
            assert!(
                told.contains(kind) && told.contains("ensure CRDs are installed first"),
                "{command}: {told}"
            );
        }
    }
}

/// WL-02, WL-03, WL-09, WL-15.
#[tokio::test]
#[ignore = "needs kubectl: cargo xtask test"]
async fn wl_02_the_sample_is_applied_gets_its_deployment_and_takes_it_along() {
    let up = Up::start("apply", &["--samples"]);
    up.eventually("get whitelists.sample.foo.bar -o name", |names| !names.is_empty()).await;
    let deleted = up.kubectl("delete whitelists.sample.foo.bar whitelist-sample");
    assert!(deleted.starts_with("whitelist.sample.foo.bar \"whitelist-sample\" deleted"), "{deleted}");
    up.eventually("get rs,pods -l deployment=whitelist-sample-deployment -o name", str::is_empty).await;

    let applied = up.apply(kubewright_whitelist::manifests::SAMPLE);
    assert_eq!(applied, "whitelist.sample.foo.bar/whitelist-sample created\n");
    let deployment = "get deploy --field-selector metadata.name=whitelist-sample-deployment -o wide";
    let wide = up.eventually(deployment, |table| table.contains("1/1")).await;
    let lines: Vec<Vec<&str>> = wide.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        lines[0],
        ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"],
        "{wide}"
    );
    assert_eq!(lines[1][..4], [DEPLOYMENT, "1/1", "1", "1"], "{wide}");
    assert_eq!(lines[1][5..], ["nginx", "nginx", "deployment=whitelist-sample-deployment"], "{wide}");

    let whitelist =
        up.eventually("get whitelists.sample.foo.bar whitelist-sample", |table| table.contains("true")).await;
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

/// KA, Beyond 3: with an image that nobody can pull the rollout runs out of time, three of four pods keep serving, and `rollout undo`
/// brings back what was there.
#[tokio::test]
#[ignore = "needs kubectl: cargo xtask test"]
async fn a_bad_image_keeps_the_old_pods_serving_and_is_undone() {
    let up = Up::start("undo", &[]);
    let _ = up.apply(
        &WEB.replace("spec:\n  selector", "spec:\n  replicas: 4\n  progressDeadlineSeconds: 2\n  selector"),
    );
    let done = "deployment \"web\" successfully rolled out\n";
    assert!(up.kubectl("rollout status deployment web --timeout=30s").ends_with(done));
    let sets = "get rs -l app=web -o jsonpath={.items[?(@.spec.replicas>0)].metadata.name}";
    let first = up.kubectl(sets);

    // What a registry says of such an image is told to the simulated nodes by the annotation.
    let waits = r#"{"kubewright.dev/waiting":"ImagePullBackOff"}"#;
    let containers = r#"[{"name":"nginx","image":"nginx:nope"}]"#;
    let template =
        format!(r#"{{"metadata":{{"annotations":{waits}}},"spec":{{"containers":{containers}}}}}"#);
    let patched = up.kubectl(&format!("patch deployment web -p {{\"spec\":{{\"template\":{template}}}}}"));
    assert_eq!(patched, "deployment.apps/web patched\n");
    let stuck = up.try_kubectl("rollout status deployment web --timeout=30s");
    let told = String::from_utf8_lossy(&stuck.stderr).into_owned();
    assert_eq!(told, "error: deployment \"web\" exceeded its progress deadline\n");
    let serving = "get deployment web -o jsonpath={.status.availableReplicas}/{.status.updatedReplicas}";
    assert_eq!(up.kubectl(serving), "3/2");
    let reason = "get deployment web -o jsonpath={.status.conditions[?(@.type==\"Progressing\")].status}/{.status.conditions[?(@.type==\"Progressing\")].reason}";
    assert_eq!(up.kubectl(reason), "False/ProgressDeadlineExceeded");

    assert_eq!(up.kubectl("rollout undo deployment web"), "deployment.apps/web rolled back\n");
    assert!(up.kubectl("rollout status deployment web --timeout=30s").ends_with(done));
    let images = "get pods -l app=web -o jsonpath={.items[*].spec.containers[*].image}";
    up.eventually(images, |images| images == "nginx nginx nginx nginx").await;
    assert_eq!(up.kubectl(sets), first, "the first set again, not a third one");
    let history = up.kubectl("rollout history deployment web");
    let revisions: Vec<&str> =
        history.lines().skip(2).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(revisions, ["2", "3"], "{history}");
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

/// TPR and CRDs, Beyond 3: by its category kubectl lists all kinds of an operator.
#[tokio::test]
#[ignore = "needs kubectl: cargo xtask test"]
async fn the_kinds_of_an_operator_are_listed_by_their_category() {
    let up = Up::start("categories", &["--samples"]);
    for (category, name) in [
        ("sample", "whitelist.sample.foo.bar/whitelist-sample"),
        ("police", "whitelist.police.foo.bar/whitelist-sample"),
        ("cnat", "at.cnat.study.jayground8/example-at"),
        ("cron", "crontab.alpha.ianlewis.org/backup"),
        ("app", "appservice.app.example.com/example-appservice"),
        ("cache", "memcached.cache.example.com/example-memcached"),
    ] {
        let get = format!("get {category} --all-namespaces -o name");
        up.eventually(&get, |names| names.lines().any(|line| line == name)).await;
    }
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

/// A kind whose objects must keep their sails within their masts.
const BOATS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.sea.example.com}
spec:
  group: sea.example.com
  scope: Namespaced
  names: {plural: boats, kind: Boat}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            description: How the boat is rigged.
            properties:
              masts: {type: integer, default: 1}
              sails: {type: integer}
            x-kubernetes-validations:
            - rule: self.sails <= 3 * self.masts
              messageExpression: \"'a boat with %d masts cannot carry %d sails'.format([self.masts, self.sails])\"
";

/// One of them.
const BOAT: &str = "
apiVersion: sea.example.com/v1
kind: Boat
metadata: {name: jolly}
spec: {sails: 2}
";

#[test]
#[ignore = "needs kubectl: cargo xtask test"]
fn what_is_applied_on_the_server_has_owners_and_conflicts() {
    let up = Up::start("server-side", &[]);
    let file = up.file("boats.yaml", BOATS);
    assert!(up.kubectl(&format!("apply --server-side -f {file}")).ends_with("serverside-applied\n"));
    let two = up.file("two.yaml", BOAT);
    let applied = up.kubectl(&format!("apply --server-side --field-manager=captain -f {two}"));
    assert_eq!(applied, "boat.sea.example.com/jolly serverside-applied\n");
    assert_eq!(up.kubectl("get boat jolly -o jsonpath={.spec.masts}/{.spec.sails}"), "1/2");

    let three = up.file("three.yaml", &BOAT.replace("sails: 2", "sails: 3"));
    let refused = up.try_kubectl(&format!("apply --server-side --field-manager=mate -f {three}"));
    let problem = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(problem.contains("conflict with \"captain\": .spec.sails"), "{problem}");
    let mate = format!("apply --server-side --field-manager=mate --force-conflicts -f {three}");
    assert_eq!(up.kubectl(&mate), "boat.sea.example.com/jolly serverside-applied\n");
    let managers =
        up.kubectl("get boat jolly --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}");
    assert!(managers.contains("mate"), "{managers}");
}

#[test]
#[ignore = "needs kubectl: cargo xtask test"]
fn rules_of_a_definition_hold_and_its_fields_are_explained() {
    let up = Up::start("rules", &[]);
    let _ = up.apply(BOATS);
    let file = up.file("boat.yaml", &BOAT.replace("sails: 2", "sails: 7"));
    let refused = up.try_kubectl(&format!("create -f {file}"));
    let problem = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(problem.contains("a boat with 1 masts cannot carry 7 sails"), "{problem}");
    let unknown = up.file("unknown.yaml", &BOAT.replace("sails: 2", "sail: 2"));
    let refused = up.try_kubectl(&format!("apply -f {unknown}"));
    let problem = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(problem.contains("strict decoding error: unknown field \"spec.sail\""), "{problem}");
    let explained = up.kubectl("explain boat.spec");
    assert!(explained.contains("How the boat is rigged."), "{explained}");
    assert!(explained.contains("masts\t<integer>"), "{explained}");
}

#[test]
#[ignore = "needs kubectl: cargo xtask test"]
fn a_difference_is_told_before_it_is_applied() {
    let up = Up::start("diff", &[]);
    let _ = up.apply(WEB);
    let file = up.file("changed.yaml", &WEB.replace("image: nginx", "image: httpd"));
    let different = up.try_kubectl(&format!("diff -f {file}"));
    let text = String::from_utf8_lossy(&different.stdout).into_owned();
    assert_eq!(different.status.code(), Some(1), "{text}");
    assert!(text.contains("+      - image: httpd") || text.contains("+        image: httpd"), "{text}");
    assert!(up.kubectl("get deploy web -o jsonpath={..image}").contains("nginx"), "nothing was changed");
}
