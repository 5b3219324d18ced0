use super::*;

fn parse(table: &Table, arguments: &[&str]) -> Result<Flags, FlagError> {
    Flags::parse(table, arguments.iter().map(OsString::from))
}

fn apiserver(arguments: &[&str]) -> Flags {
    parse(&KUBE_APISERVER, arguments).expect("a command line of kube-apiserver")
}

fn etcd(arguments: &[&str]) -> Flags {
    parse(&ETCD, arguments).expect("a command line of etcd")
}

/// Nothing of what a caller passes may be unknown.
fn all_known(flags: &Flags) {
    assert_eq!(flags.unknown(), &[] as &[String]);
}

/// Captured from controller-runtime v0.24.1's envtest.
#[test]
fn the_command_lines_of_envtest_are_read() {
    let flags = apiserver(&[
        "--allow-privileged=true",
        "--authorization-mode=RBAC",
        "--bind-address=127.0.0.1",
        "--cert-dir=/tmp/k8s_test_framework_1",
        "--client-ca-file=/tmp/k8s_test_framework_1/client-cert-auth-ca.crt",
        "--disable-admission-plugins=ServiceAccount",
        "--etcd-servers=http://127.0.0.1:33001",
        "--secure-port=33003",
        "--service-account-issuer=https://127.0.0.1:33003/",
        "--service-account-key-file=/tmp/k8s_test_framework_1/sa-signer.crt",
        "--service-account-signing-key-file=/tmp/k8s_test_framework_1/sa-signer.key",
        "--service-cluster-ip-range=10.0.0.0/24",
    ]);
    all_known(&flags);
    assert_eq!(flags.last("bind-address"), Some("127.0.0.1"));
    assert_eq!(flags.number("secure-port"), Some(33003));
    assert_eq!(flags.switch("allow-privileged"), Some(true));
    assert_eq!(flags.list("disable-admission-plugins"), Some(vec!["ServiceAccount"]));

    let flags = etcd(&[
        "--advertise-client-urls=http://127.0.0.1:33001",
        "--data-dir=/tmp/k8s_test_framework_2",
        "--listen-client-urls=http://127.0.0.1:33001",
        "--listen-peer-urls=http://127.0.0.1:33002",
        "--unsafe-no-fsync=true",
    ]);
    all_known(&flags);
    assert_eq!(flags.text("listen-client-urls"), Some("http://127.0.0.1:33001"));
}

/// controller-runtime's `Configure().Append/Set/Enable/Disable` render as repeated flags and bare ones.
#[test]
fn what_a_suite_adds_to_envtest_is_read() {
    let flags = apiserver(&[
        "--disable-admission-plugins=",
        "--enable-priority-and-fairness=false",
        "--service-account-issuer=https://one",
        "--service-account-issuer=https://two",
        "--feature-gates=A=true,B=false",
        "--feature-gates=C=true",
        "--profiling",
        "--authorization-mode=RBAC,Webhook",
    ]);
    all_known(&flags);
    assert_eq!(flags.list("disable-admission-plugins"), Some(vec![]), "given, and empty");
    assert_eq!(flags.list("enable-admission-plugins"), None, "not given");
    assert_eq!(flags.text("disable-admission-plugins"), None);
    assert_eq!(flags.all("service-account-issuer"), ["https://one", "https://two"]);
    assert_eq!(flags.list("feature-gates"), Some(vec!["A=true", "B=false", "C=true"]));
    assert_eq!(flags.list("authorization-mode"), Some(vec!["RBAC", "Webhook"]));
    assert_eq!(flags.switch("profiling"), Some(true));
    assert_eq!(flags.switch("enable-priority-and-fairness"), Some(false));
}

/// fabric8's `KubeAPIServerProcess` and `EtcdProcess` (and jenvtest, which they come from): values behind a space, a
/// repeated issuer whose second value is a file, a bare switch at the end, single dashes.
#[test]
fn the_command_lines_of_fabric8_are_read() {
    let flags = apiserver(&[
        "--cert-dir",
        "/home/me/.kubeapitest",
        "--secure-port",
        "33003",
        "--etcd-servers",
        "http://0.0.0.0:33001",
        "--authorization-mode",
        "RBAC",
        "--service-account-issuer",
        "https://localhost",
        "--service-account-signing-key-file",
        "/home/me/.kubeapitest/apiserver.key",
        "--service-account-signing-key-file",
        "/home/me/.kubeapitest/apiserver.key",
        "--service-account-key-file",
        "/home/me/.kubeapitest/apiserver.key",
        "--service-account-issuer",
        "/home/me/.kubeapitest/apiserver.crt",
        "--disable-admission-plugins",
        "ServiceAccount",
        "--client-ca-file",
        "/home/me/.kubeapitest/client.crt",
        "--service-cluster-ip-range",
        "10.0.0.0/24",
        "--allow-privileged",
    ]);
    all_known(&flags);
    assert_eq!(flags.number("secure-port"), Some(33003));
    assert_eq!(
        flags.all("service-account-issuer"),
        ["https://localhost", "/home/me/.kubeapitest/apiserver.crt"]
    );
    assert_eq!(flags.last("service-account-signing-key-file"), Some("/home/me/.kubeapitest/apiserver.key"));
    assert_eq!(flags.switch("allow-privileged"), Some(true));

    let flags = etcd(&[
        "-data-dir",
        "/tmp/etcddata1",
        "-wal-dir",
        "/tmp/etcdwal1",
        "--listen-client-urls",
        "http://0.0.0.0:33001",
        "--advertise-client-urls",
        "http://0.0.0.0:33001",
        "--initial-cluster",
        "default=http://localhost:33002",
        "--initial-advertise-peer-urls",
        "http://localhost:33002",
        "--listen-peer-urls",
        "http://localhost:33002",
    ]);
    all_known(&flags);
    assert_eq!(flags.last("data-dir"), Some("/tmp/etcddata1"));
    assert_eq!(flags.last("initial-cluster"), Some("default=http://localhost:33002"));
}

/// kwokctl with `--runtime binary` (`pkg/kwokctl/components/kube_apiserver.go` and `etcd.go`).
#[test]
fn the_command_lines_of_kwokctl_are_read() {
    let flags = apiserver(&[
        "--etcd-prefix=/registry",
        "--allow-privileged=true",
        "--admission-control=",
        "--runtime-config=api/legacy=false,api/alpha=false",
        "--feature-gates=A=true",
        "--max-requests-inflight=0",
        "--max-mutating-requests-inflight=0",
        "--enable-priority-and-fairness=false",
        "--etcd-servers=http://127.0.0.1:2379",
        "--authorization-mode=Node,RBAC",
        "--bind-address=0.0.0.0",
        "--secure-port=6443",
        "--tls-cert-file=/kwok/pki/admin.crt",
        "--tls-private-key-file=/kwok/pki/admin.key",
        "--client-ca-file=/kwok/pki/ca.crt",
        "--service-account-key-file=/kwok/pki/admin.key",
        "--service-account-signing-key-file=/kwok/pki/admin.key",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        "--proxy-client-key-file=/kwok/pki/admin.key",
        "--proxy-client-cert-file=/kwok/pki/admin.crt",
        "--requestheader-client-ca-file=/kwok/pki/ca.crt",
        "--requestheader-allowed-names=",
        "--endpoint-reconciler-type=none",
        "--tracing-config-file=/kwok/tracing.yaml",
        "--v=4",
    ]);
    all_known(&flags);
    assert_eq!(flags.list("admission-control"), Some(vec![]));
    assert_eq!(flags.list("authorization-mode"), Some(vec!["Node", "RBAC"]));
    assert_eq!(flags.number("max-requests-inflight"), Some(0));
    assert_eq!(flags.number("v"), Some(4));

    all_known(&etcd(&[
        "--name=node0",
        "--initial-advertise-peer-urls=http://127.0.0.1:2380",
        "--listen-peer-urls=http://127.0.0.1:2380",
        "--advertise-client-urls=http://127.0.0.1:2379",
        "--listen-client-urls=http://127.0.0.1:2379",
        "--initial-cluster=node0=http://127.0.0.1:2380",
        "--auto-compaction-retention=1",
        "--quota-backend-bytes=8589934592",
        "--data-dir=/kwok/etcd",
    ]));
}

#[test]
fn every_way_to_write_a_flag_means_the_same() {
    for arguments in [
        &["--secure-port=1"] as &[&str],
        &["--secure-port", "1"],
        &["-secure-port", "1"],
        &["-secure-port=1"],
        &["--secure_port=1"],
        &["--secure-port=7", "--secure-port", "1"],
    ] {
        assert_eq!(apiserver(arguments).number("secure-port"), Some(1), "{arguments:?}");
    }
    for arguments in [&["-v2"] as &[&str], &["-v", "2"], &["-v=2"], &["--v=2"], &["--v", "2"]] {
        assert_eq!(apiserver(arguments).number("v"), Some(2), "{arguments:?}");
    }
    assert_eq!(apiserver(&["--cert-dir", "-odd"]).last("cert-dir"), Some("-odd"), "a value may have dashes");
}

#[test]
fn an_unknown_flag_takes_the_next_word_only_if_that_is_no_flag() {
    let flags =
        apiserver(&["--no-such", "value", "--also-none", "--secure-port=1", "--no-such=again", "--last"]);
    assert_eq!(flags.unknown(), ["no-such", "also-none", "last"]);
    assert_eq!(flags.number("secure-port"), Some(1));
    assert_eq!(flags.last("no-such"), None);
}

#[test]
fn what_cannot_be_followed_is_refused_in_the_words_of_pflag() {
    for (arguments, expected) in [
        (&["--secure-port"] as &[&str], "flag needs an argument: --secure-port"),
        (
            &["--secure-port=abc"],
            r#"invalid argument "abc" for "--secure-port" flag: strconv.ParseInt: parsing "abc": invalid syntax"#,
        ),
        (
            &["--allow-privileged=maybe"],
            r#"invalid argument "maybe" for "--allow-privileged" flag: strconv.ParseBool: parsing "maybe": invalid syntax"#,
        ),
        (
            &["--bind-address", "foo"],
            r#"invalid argument "foo" for "--bind-address" flag: failed to parse IP: "foo""#,
        ),
        (&["foo"], r#""kube-apiserver" does not take any arguments, got ["foo"]"#),
        (&["--allow-privileged", "false"], r#""kube-apiserver" does not take any arguments, got ["false"]"#),
        (&["--"], r#""kube-apiserver" does not take any arguments, got ["--"]"#),
        (&[""], r#""kube-apiserver" does not take any arguments, got [""]"#),
    ] {
        let refused = parse(&KUBE_APISERVER, arguments).expect_err("refused").to_string();
        assert_eq!(refused, expected, "{arguments:?}");
    }
    assert!(parse(&ETCD, &["--snapshot-count=many"]).is_err());
}

#[test]
fn no_flag_is_in_a_table_twice() {
    for table in [KUBE_APISERVER, ETCD] {
        let names: Vec<&str> = table.all().into_iter().map(|(name, _)| name).collect();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
    }
}

proptest::proptest! {
    #[test]
    fn any_command_line_is_read_or_refused(words in proptest::collection::vec("(-{0,3}[a-z_=v0-9-]{0,9}|.{0,9})", 0..6)) {
        let _ = Flags::parse(&KUBE_APISERVER, words.iter().map(OsString::from));
        let _ = Flags::parse(&ETCD, words.into_iter().map(OsString::from));
    }
}
