//! The command called by the names of kube-apiserver and etcd, as suites that start those two do.

mod pair;

use std::{
    fs,
    io::Read,
    net::{Ipv4Addr, TcpListener},
    process::Stdio,
};

use futures::{StreamExt, future::join_all};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Service};
use kube::{
    Api, Client,
    api::{DeleteParams, PostParams, WatchParams},
};
use kubewright_tests::needed;
use pair::{Folder, PATIENCE, Pair, free_port, program};
use serde_json::json;

#[tokio::test]
#[ignore = "needs the built command: cargo xtask test"]
async fn what_envtest_asks_for_is_there_when_it_is_healthy() {
    let pair = Pair::start("healthy", |_| {}).await;
    assert_eq!(pair.etcd("/health"), (200, r#"{"health":"true","reason":""}"#.to_owned()));
    for path in ["/healthz", "/readyz", "/livez"] {
        let asked = http::Request::get(path).body(Vec::new()).expect("a request");
        assert_eq!(pair.anonymous().request_text(asked).await.expect("an answer"), "ok", "{path}");
    }
    let admin = pair.admin();
    let namespaces: Api<Namespace> = Api::all(admin.clone());
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        namespaces.get(name).await.expect(name);
    }
    let service = Api::<Service>::default_namespaced(admin).get("kubernetes").await.expect("a service");
    let address = service.spec.and_then(|spec| spec.cluster_ip);
    assert_eq!(address.as_deref(), Some("10.0.0.1"), "of --service-cluster-ip-range");
}

#[tokio::test]
#[ignore = "needs the built command: cargo xtask test"]
async fn a_certificate_of_the_client_ca_says_who_a_client_is() {
    let pair = Pair::start("clients", |_| {}).await;
    let joe = pair.client("joe", &["shop"]);
    let refused = Api::<ConfigMap>::default_namespaced(joe).list(&Default::default()).await;
    let refused = refused.expect_err("joe may not").to_string();
    assert!(refused.contains(r#"User "joe" cannot list resource "configmaps""#), "{refused}");
    let listed = Api::<ConfigMap>::default_namespaced(pair.admin()).list(&Default::default()).await;
    listed.expect("system:masters may");
}

#[tokio::test]
#[ignore = "needs the built command: cargo xtask test"]
async fn a_file_says_who_is_asked_who_may_do_what_and_about_whom() {
    let folder = Folder::new("authorizers");
    let path = |name: &str| folder.0.join(name).display().to_string();
    let nobody = format!("https://127.0.0.1:{}", free_port());
    let kubeconfig = json!({
        "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": nobody}}], "users": [{"name": "a", "user": {}}],
    });
    let webhook = json!({
        "timeout": "1s", "failurePolicy": "Deny", "subjectAccessReviewVersion": "v1",
        "matchConditionSubjectAccessReviewVersion": "v1", "matchConditions": [{"expression": "'asked' in request.groups"}],
        "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": path("kubeconfig")},
    });
    let configuration = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration",
        "authorizers": [{"type": "RBAC", "name": "rbac"}, {"type": "Webhook", "name": "hook", "webhook": webhook}],
    });
    fs::write(path("kubeconfig"), kubeconfig.to_string()).expect("the folder is writable");
    fs::write(path("authorizers"), configuration.to_string()).expect("the folder is writable");
    let flag = format!("--authorization-config={}", path("authorizers"));
    let pair = Pair::start_authorizing("authorizers", &flag, |_| {}).await;
    let list =
        async |client: Client| Api::<ConfigMap>::default_namespaced(client).list(&Default::default()).await;
    list(pair.admin()).await.expect("system:masters may");
    for (group, code) in [("others", 403), ("asked", 500)] {
        let refused = list(pair.client("joe", &[group])).await.map(drop);
        assert!(
            matches!(&refused, Err(kube::Error::Api(status)) if status.code == code),
            "{group}: {refused:?}"
        );
    }
}

#[tokio::test]
#[ignore = "needs the built command: cargo xtask test"]
async fn a_signal_to_the_group_ends_both_at_once_and_leaves_no_file() {
    let mut pair = Pair::start("signal", |_| {}).await;
    let before = pair.folder.files();
    let watched = Api::<ConfigMap>::default_namespaced(pair.admin());
    let watch = watched.watch(&WatchParams::default(), "0").await.expect("a watch");
    let mut watch = Box::pin(watch);
    watched.create(&PostParams::default(), &config_map("seen")).await.expect("created");
    assert!(watch.next().await.is_some(), "the watch is open");

    for (program, status) in pair.terminate().await {
        let status = status.unwrap_or_else(|| panic!("{program} is still there"));
        assert_eq!(status.code(), Some(0), "{program}");
    }
    let rest = tokio::time::timeout(PATIENCE, watch.collect::<Vec<_>>()).await;
    assert!(rest.is_ok(), "the watch has ended with its server");
    assert_eq!(pair.folder.files(), before);
}

#[tokio::test]
#[ignore = "needs the built command: cargo xtask test"]
async fn where_there_is_no_certificate_one_is_made_and_kept() {
    let folder = Folder::new("made");
    let port = free_port();
    let arguments = [
        format!("--cert-dir={}", folder.0.join("certs").display()),
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
    ];
    let mut kept = Vec::new();
    for _ in 0..2 {
        let mut server = folder.spawn("kube-apiserver", &arguments, |_| {});
        let url = format!("https://127.0.0.1:{port}");
        let made =
            pair::eventually(async || fs::read_to_string(folder.0.join("certs/apiserver.crt")).ok()).await;
        let client = pair::client(&url, &made, None);
        pair::eventually(async || client.apiserver_version().await.ok()).await;
        kept.push(made);
        server.end().await;
    }
    assert_eq!(kept[0], kept[1], "the second one took what the first had made");
    assert_eq!(folder.files(), ["certs/apiserver.crt", "certs/apiserver.key", "etcd", "kube-apiserver"]);
}

#[tokio::test]
#[ignore = "needs the built command: cargo xtask test"]
async fn several_run_side_by_side() {
    let pairs = join_all((0..4).map(|_| Pair::start("parallel", |_| {}))).await;
    for (index, pair) in pairs.iter().enumerate() {
        let own = config_map(&format!("of-{index}"));
        let api = Api::<ConfigMap>::default_namespaced(pair.admin());
        api.create(&PostParams::default(), &own).await.expect("created");
    }
    for (index, pair) in pairs.iter().enumerate() {
        let api = Api::<ConfigMap>::default_namespaced(pair.admin());
        let all = api.list(&Default::default()).await.expect("a list");
        let names: Vec<_> = all.into_iter().filter_map(|map| map.metadata.name).collect();
        assert_eq!(names, [format!("of-{index}")]);
    }
}

#[tokio::test]
#[ignore = "needs the built command: cargo xtask test"]
async fn controllers_run_only_where_they_are_switched_on() {
    let off = Pair::start("off", |_| {}).await;
    let on = Pair::start("on", |server| {
        server.env("KUBEWRIGHT_CONTROLLERS", "garbagecollector,namespace");
    })
    .await;
    for pair in [&off, &on] {
        let api = Api::<ConfigMap>::default_namespaced(pair.admin());
        let owner = api.create(&PostParams::default(), &config_map("owner")).await.expect("created");
        let mut dependent = config_map("dependent");
        dependent.metadata.owner_references = kubewright_objects::from_value(json!([
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid}
        ]))
        .expect("owner references");
        api.create(&PostParams::default(), &dependent).await.expect("created");
        api.delete("owner", &DeleteParams::background()).await.expect("deleted");
        let namespaces = Api::<Namespace>::all(pair.admin());
        let shop =
            kubewright_objects::from_value(json!({"metadata": {"name": "shop"}})).expect("a namespace");
        namespaces.create(&PostParams::default(), &shop).await.expect("created");
        namespaces.delete("shop", &DeleteParams::default()).await.expect("deleted");
    }
    let gone = async |client: Client| {
        let dependent = Api::<ConfigMap>::default_namespaced(client.clone()).get_opt("dependent").await;
        let namespace = Api::<Namespace>::all(client).get_opt("shop").await;
        dependent.expect("an answer").is_none() && namespace.expect("an answer").is_none()
    };
    pair::eventually(async || gone(on.admin()).await.then_some(())).await;
    // What has not happened by now in the other one, where the same was done before, is not going to.
    let dependent = Api::<ConfigMap>::default_namespaced(off.admin()).get_opt("dependent").await;
    assert!(dependent.expect("an answer").is_some(), "nobody collects garbage");
    let shop = Api::<Namespace>::all(off.admin()).get("shop").await.expect("nobody finishes its deletion");
    assert_eq!(shop.status.and_then(|status| status.phase).as_deref(), Some("Terminating"));
}

#[tokio::test]
#[ignore = "needs the built command: cargo xtask test"]
async fn a_reader_that_goes_away_does_not_end_the_server() {
    let mut pair = Pair::start("pipe", |server| {
        server.env("RUST_LOG", "debug").stderr(Stdio::piped());
    })
    .await;
    drop(pair.apiserver.process.stderr.take());
    for _ in 0..3 {
        // Each request is logged, to nobody.
        pair.admin().apiserver_version().await.expect("it still answers");
    }
}

#[test]
#[ignore = "needs the built command: cargo xtask test"]
fn help_and_version_are_what_suites_look_for() {
    let folder = Folder::new("help");
    let told = |name: &str, argument: &str| {
        let output = program(&folder, name).arg(argument).output().expect("it starts");
        assert!(output.status.success(), "{name} {argument}");
        String::from_utf8(output.stdout).expect("text")
    };
    let starts =
        |help: &str, flag: &str| help.lines().any(|line| line.trim_start().split(' ').next() == Some(flag));
    let help = told("kube-apiserver", "--help");
    assert!(starts(&help, "--secure-port") && !help.contains("--insecure-port"), "{help}");
    assert!(starts(&told("etcd", "--help"), "--unsafe-no-fsync"));
    assert!(told("kube-apiserver", "--version").starts_with("Kubernetes v1.37."));
    assert!(told("etcd", "--version").starts_with("etcd Version: 3.6."));
}

#[tokio::test]
#[ignore = "needs the built command: cargo xtask test"]
async fn unknown_flags_are_told_once_and_do_no_harm() {
    let mut pair = Pair::start("unknown", |server| {
        server.args(["--no-such=1", "--no-such=2", "--also-none", "value", "--audit-log-path=/dev/null"]);
        server.stderr(Stdio::piped());
    })
    .await;
    let mut stderr = pair.apiserver.process.stderr.take().expect("it is piped");
    pair.terminate().await;
    let mut told = String::new();
    stderr.read_to_string(&mut told).expect("text");
    let warnings: Vec<&str> = told.lines().filter(|line| line.starts_with("Warning: ")).collect();
    assert_eq!(
        warnings,
        [
            "Warning: kube-apiserver has no flag --no-such: it is ignored",
            "Warning: kube-apiserver has no flag --also-none: it is ignored",
            "Warning: --audit-log-path is not supported: no audit log is written",
        ]
    );
}

#[test]
#[ignore = "needs the built command: cargo xtask test"]
fn what_cannot_be_followed_is_refused_with_one_line() {
    let folder = Folder::new("refused");
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = taken.local_addr().expect("its address").port();
    let refused = |name: &str, arguments: &[&str], variable: Option<(&str, &str)>| {
        let output = program(&folder, name).args(arguments).envs(variable).output().expect("it starts");
        assert_eq!(output.status.code(), Some(1), "{name} {arguments:?}");
        let told = String::from_utf8(output.stderr).expect("text");
        assert_eq!(told.lines().count(), 1, "{told}");
        told
    };
    let nowhere = ["--cert-dir=", "--bind-address=127.0.0.1"];
    for (more, variable, expected) in [
        ("--secure-port=abc", None, r#"Error: invalid argument "abc" for "--secure-port" flag"#),
        ("--secure-port=0", None, "Error: --secure-port 0 must be between 1 and 65535"),
        ("--client-ca-file=/no/such/file", None, "Error: --client-ca-file: /no/such/file: No such file"),
        (
            "--enable-admission-plugins=Nope",
            None,
            r#"Error: enable-admission-plugins plugin "Nope" is unknown"#,
        ),
        ("--service-cluster-ip-range=nonsense", None, "Error: --service-cluster-ip-range: "),
        ("--authorization-mode=Nope", None, r#"Error: authorization-mode "Nope" is not a valid mode"#),
        ("--authorization-config=/none-such", None, "Error: --authorization-config: /none-such: "),
        ("--v=0", Some(("KUBEWRIGHT_NODES", "many")), "Error: KUBEWRIGHT_NODES: "),
        (&format!("--secure-port={port}"), None, "Error: cannot listen on 127.0.0.1:"),
    ] {
        let told = refused("kube-apiserver", &[nowhere[0], nowhere[1], more], variable);
        assert!(told.starts_with(expected), "{told}");
    }
    let free = format!("--secure-port={}", free_port());
    let told = refused(
        "kube-apiserver",
        &[nowhere[0], nowhere[1], &free],
        Some(("KUBEWRIGHT_CONTROLLERS", "none-such")),
    );
    assert!(
        told.starts_with(r#"Error: KUBEWRIGHT_CONTROLLERS: there is no controller "none-such""#),
        "{told}"
    );

    let url = format!("--listen-client-urls=http://127.0.0.1:{port}");
    assert!(refused("etcd", &[&url], None).starts_with("Error: listen tcp 127.0.0.1:"));
    assert!(refused("etcd", &["--listen-client-urls=https://127.0.0.1:1"], None).contains("only http://"));
}

#[test]
#[ignore = "needs the built command: cargo xtask test"]
fn a_copy_and_a_subcommand_are_the_same_program() {
    let folder = Folder::new("copy");
    let copy = folder.0.join("copy/kube-apiserver.exe");
    fs::create_dir(folder.0.join("copy")).expect("a folder");
    fs::copy(needed("KUBEWRIGHT"), &copy).expect("a copy");
    let version = |command: &mut std::process::Command| {
        let output = command.arg("--version").output().expect("it starts");
        String::from_utf8(output.stdout).expect("text")
    };
    let own = version(&mut program(&folder, "kube-apiserver"));
    assert_eq!(version(&mut std::process::Command::new(&copy)), own);
    assert_eq!(version(std::process::Command::new(needed("KUBEWRIGHT")).arg("kube-apiserver")), own);
}

#[tokio::test]
#[ignore = "needs the built command: cargo xtask test"]
async fn who_takes_it_for_a_store_is_told_what_it_is() {
    let pair = Pair::start("store", |_| {}).await;
    let (status, body) = pair.etcd("/v3/kv/range");
    assert_eq!(status, 501);
    assert!(body.contains("kubewright stands here in the place of etcd"), "{body}");
    assert_eq!(pair.etcd("/version").0, 200);
    assert_eq!(pair.etcd("/readyz").0, 200);
}

fn config_map(name: &str) -> ConfigMap {
    kubewright_objects::from_value(json!({"metadata": {"name": name}})).expect("a ConfigMap")
}
