//! The command line without a process, and what it installs.

use std::{ffi::OsString, time::Duration};

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Node},
};
use kube::api::DynamicObject;

use super::{Installation, LogFormat, Operator, Run, flags::Action};
use crate::{
    Context, Controller, Error, Key, Outcome, Reconciler,
    rbac::{Rights, Verb},
};

struct Nothing;

impl Reconciler for Nothing {
    async fn reconcile(&self, _: &Context, _: &Key) -> Result<Outcome, Error> {
        Ok(Outcome::Done)
    }
}

fn operator() -> Operator {
    let controller = || {
        Controller::new("web", Nothing)
            .for_kind::<ConfigMap>()
            .owns::<Deployment>()
            .reads::<Node>()
            .writes::<Deployment>([Verb::Create, Verb::Patch])
    };
    Operator::new("web", "1.2.3").controller(controller)
}

fn parse(arguments: &[&str]) -> Result<super::flags::Flags, String> {
    let arguments: Vec<OsString> = ["web"].iter().chain(arguments).map(OsString::from).collect();
    operator().parse(arguments).map_err(|error| error.to_string())
}

fn run(arguments: &[&str]) -> Run {
    let flags = parse(arguments).expect("arguments that make sense");
    match flags.action {
        Some(Action::Run(run)) => *run,
        None => flags.run,
        Some(_) => panic!("another command"),
    }
}

#[test]
fn without_a_command_it_runs_and_opens_no_port() {
    assert_eq!(run(&[]), Run::default());
    assert_eq!(run(&["run"]), Run::default());
}

#[test]
fn flags_say_what_controller_runtimes_say() {
    let run = run(&[
        "run",
        "--leader-elect",
        "--leader-elect-lease-duration=1m30s",
        "--metrics-bind-address",
        ":8443",
        "--metrics-secure=false",
        "--namespace=a,b",
        "--log-format=json",
    ]);
    assert!(run.leader_elect && !run.metrics_secure);
    assert_eq!(run.leader_elect_lease_duration, Duration::from_secs(90));
    assert_eq!((run.metrics_bind_address.as_str(), run.namespaces.len()), (":8443", 2));
    assert_eq!(run.log_format, LogFormat::Json);
}

#[test]
fn arguments_that_make_no_sense_are_refused_with_a_reason() {
    for (arguments, reason) in [
        (&["--graceful-shutdown-timeout=soon"][..], "write 15s or 1m30s"),
        (&["--graceful-shutdown-timeout=-1s"], "less than no time"),
        (&["--leader-elect=maybe"], "maybe"),
        (&["fly"], "fly"),
    ] {
        let message = parse(arguments).err().expect("refused");
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn the_help_says_what_the_program_does_and_names_every_group_of_flags() {
    let message = parse(&["run", "--help"]).err().expect("help");
    assert!(message.starts_with("Run the operator"), "{message}");
    for flag in ["--leader-elect", "--observe-rights", "--metrics-bind-address"] {
        assert!(message.contains(flag), "{flag}: {message}");
    }
    let message = parse(&["--help"]).err().expect("help");
    assert!(message.starts_with("Runs the operator, or says how to install it"), "{message}");
}

#[tokio::test]
async fn version_and_manifests_are_written_out() {
    let mut out = Vec::new();
    let flags = parse(&["version"]).expect("a command");
    operator().act(flags, &mut out).await.expect("written");
    assert_eq!(String::from_utf8(out).expect("text"), "web 1.2.3\n");
    let mut out = Vec::new();
    let flags = parse(&["manifests", "--image", "registry.example/web:9"]).expect("a command");
    operator().act(flags, &mut out).await.expect("written");
    let text = String::from_utf8(out).expect("text");
    assert!(text.starts_with("---\napiVersion: v1\nkind: Namespace\n"), "{text}");
    assert!(text.contains("image: registry.example/web:9"), "{text}");
    let documents: Vec<DynamicObject> = text
        .split("---\n")
        .filter(|document| !document.is_empty())
        .map(|document| serde_saphyr::from_str(document).expect("YAML"))
        .collect();
    assert_eq!(
        documents,
        operator()
            .manifests(&Installation {
                image: Some("registry.example/web:9".into()),
                ..Installation::default()
            })
            .expect("manifests")
    );
}

fn described(installation: &Installation) -> Vec<String> {
    let objects = operator().manifests(installation).expect("manifests");
    let describe = |object: &DynamicObject| {
        let kind = &object.types.as_ref().expect("a kind").kind;
        let namespace = object.metadata.namespace.as_ref().map(|name| format!("{name}/")).unwrap_or_default();
        format!("{kind} {namespace}{}", object.metadata.name.as_deref().expect("a name"))
    };
    objects.iter().map(describe).collect()
}

#[test]
fn what_is_installed_is_everything_in_an_order_that_can_be_applied() {
    assert_eq!(
        described(&Installation::default()),
        [
            "Namespace web-system",
            "ServiceAccount web-system/web",
            "ClusterRole web-operator",
            "ClusterRoleBinding web-operator",
            "Role web-system/web-leader",
            "RoleBinding web-system/web-leader",
            "ClusterRole web-metrics-auth",
            "ClusterRoleBinding web-metrics-auth",
            "ClusterRole web-metrics-reader",
            "Service web-system/web-metrics",
            "Deployment web-system/web",
        ]
    );
}

#[test]
fn kb_20_the_deployed_program_has_an_account_and_asks_for_what_it_takes() {
    let objects = operator().manifests(&Installation::default()).expect("manifests");
    let deployment = objects.last().expect("the Deployment");
    let pod = &deployment.data["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], "web");
    let resources = &pod["containers"][0]["resources"];
    assert!(
        resources["requests"]["cpu"].is_string() && resources["requests"]["memory"].is_string(),
        "{resources}"
    );
    assert!(resources["limits"]["memory"].is_string(), "{resources}");
}

#[test]
fn an_operator_of_two_namespaces_has_rights_on_objects_in_these_only() {
    let namespaces = vec!["b".to_owned(), "a".to_owned(), "a".to_owned()];
    let scoped = Installation { namespaces, rights_only: true, ..Installation::default() };
    let message = described(&scoped);
    assert_eq!(
        message[2..8],
        [
            "ClusterRole web-operator",
            "ClusterRoleBinding web-operator",
            "Role a/web-operator",
            "RoleBinding a/web-operator",
            "Role b/web-operator",
            "RoleBinding b/web-operator",
        ]
    );
    let objects = operator().manifests(&scoped).expect("manifests");
    assert_eq!(
        objects[2].data["rules"],
        serde_json::json!([
            {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]},
        ])
    );
}

#[test]
fn rights_are_what_is_watched_and_what_is_declared_and_no_more() {
    let message: Vec<String> =
        operator().rights().iter().map(|(resource, verbs)| format!("{resource} {verbs}")).collect();
    assert_eq!(
        message,
        [
            "configmaps get,list,watch",
            "configmaps/finalizers update",
            "nodes list,watch",
            "apps/deployments create,get,list,patch,watch",
            "events.k8s.io/events create,patch",
        ]
    );
    let mut more = Rights::default();
    more.add::<ConfigMap>([Verb::Delete]);
    let rights = operator().may(more).rights();
    assert_eq!(rights.iter().next(), Some(("configmaps".to_owned(), "delete,get,list,watch".to_owned())));
}

#[test]
fn a_name_that_objects_cannot_have_is_refused() {
    for name in ["", "Web", "web_1", "-web", &"w".repeat(51)] {
        let refused = Operator::new(name, "1").manifests(&Installation::default());
        assert!(matches!(refused, Err(Error::Misconfigured(_))), "{name}");
    }
}
