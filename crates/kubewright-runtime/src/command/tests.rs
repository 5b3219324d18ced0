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

#[cfg(all(feature = "otel", feature = "webhook"))]
#[test]
fn the_reference_of_an_operators_program_is_what_it_takes() {
    /// The file of some operator.
    #[derive(Default, serde::Deserialize)]
    struct OwnFile {}
    let made_by = "cargo test -p kubewright-runtime --lib reference";
    let mut program =
        operator().config::<OwnFile>().own.augment(<super::Flags as clap::CommandFactory>::command());
    program.build();
    for name in ["run", "manifests"] {
        let command = program.find_subcommand(name).expect("a command");
        let tables = kubewright_reference::flag_tables(command);
        kubewright_reference::check_part("operator.md", name, made_by, &tables);
    }
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
fn a_further_cluster_gets_an_account_with_the_rights_that_are_needed_there() {
    let further = Installation { further_cluster: true, ..Installation::default() };
    let controller = || {
        Controller::new("web", Nothing)
            .for_kind::<Node>()
            .watches_in_each(|map: &ConfigMap| vec![Key::cluster_scoped(Key::of(map).name)])
            .writes_in_each::<ConfigMap>([Verb::Patch])
    };
    let objects =
        Operator::new("web", "1.2.3").controller(controller).manifests(&further).expect("manifests");
    let kinds: Vec<_> = objects.iter().map(|object| object.types.clone().unwrap_or_default().kind).collect();
    assert_eq!(kinds, ["Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"]);
    assert_eq!(
        objects[2].data["rules"],
        serde_json::json!([
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "patch", "watch"]},
        ])
    );
    let refused = operator().manifests(&further).expect_err("it works in one cluster").to_string();
    assert!(refused.contains("no controller says in_each_cluster or watches_in_each"), "{refused}");
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

struct Client(kube::Client);

impl Reconciler for Client {
    async fn reconcile(&self, _: &Context, _: &Key) -> Result<Outcome, Error> {
        self.0.apiserver_version().await?;
        Ok(Outcome::Done)
    }
}

fn listed(rights: &Rights) -> Vec<String> {
    rights.iter().map(|(resource, verbs)| format!("{resource} {verbs}")).collect()
}

#[test]
fn rights_of_a_controller_that_is_made_for_a_manager_are_among_them() {
    let operator = Operator::new("web", "1.2.3").controller_in(|manager| {
        let controller = Controller::new("late", Client(manager.client().clone())).for_kind::<ConfigMap>();
        controller.writes::<Node>([Verb::Patch])
    });
    let rights = listed(&operator.rights());
    assert!(rights.contains(&"nodes patch".to_owned()), "{rights:?}");
    assert!(rights.contains(&"configmaps list,watch".to_owned()), "{rights:?}");
    let roles = operator.yaml(&Installation { rights_only: true, ..Installation::default() }).expect("roles");
    assert!(roles.contains("- nodes\n"), "{roles}");
}

#[tokio::test]
async fn a_setup_is_done_for_managers_that_are_to_run_alone() {
    let count = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = count.clone();
    let operator = operator().setup(move |_| {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    });
    operator.manifests(&Installation::default()).expect("manifests");
    let nowhere = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        Err::<http::Response<kube::client::Body>, _>(Error::new("nobody asks"))
    });
    let client = kube::Client::new(nowhere, "default");
    let manager = crate::Manager::new(client, kubewright_world::World::real());
    operator.manager(manager, &Run::default()).expect("a manager");
    assert_eq!(count.load(std::sync::atomic::Ordering::Relaxed), 1);
}

#[test]
fn a_name_that_objects_cannot_have_is_refused() {
    for name in ["", "Web", "web_1", "-web", &"w".repeat(51)] {
        let refused = Operator::new(name, "1").manifests(&Installation::default());
        assert!(matches!(refused, Err(Error::Misconfigured(_))), "{name}");
    }
}

#[derive(clap::Args)]
struct Cloud {
    /// The region to work in
    #[arg(long, env = "WEB_TEST_REGION", default_value = "eu")]
    region: String,
}

/// A controller that is called like the region.
fn regional() -> Operator {
    Operator::new("web", "1.2.3").args::<Cloud>().controller_with(|settings| {
        let cloud: &Cloud = settings.args()?;
        Ok(Controller::new(cloud.region.clone(), Nothing).for_kind::<ConfigMap>())
    })
}

fn arguments(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

#[test]
fn flags_of_its_own_are_told_to_what_makes_its_controllers() {
    for (words, name) in [
        (&["web", "--region=us"][..], "us"),
        (&["web", "run", "--region=us", "--leader-elect"], "us"),
        (&["web", "run"], "eu"),
    ] {
        let operator = regional();
        operator.parse(arguments(words)).expect("arguments that make sense");
        assert_eq!(operator.controllers()[0].name, name, "{words:?}");
    }
    let help = regional().parse(arguments(&["web", "run", "--help"])).err().expect("help").to_string();
    assert!(help.contains("Options of this operator:") && help.contains("--region"), "{help}");
}

#[test]
fn deployed_flags_decide_rights_and_are_passed() {
    let operator = regional().deployed_with(["--region=us"]);
    assert_eq!(operator.controllers()[0].name, "us");
    let deployment =
        operator.manifests(&Installation::default()).expect("manifests").pop().expect("a Deployment");
    let args = &deployment.data["spec"]["template"]["spec"]["containers"][0]["args"];
    assert!(args.as_array().expect("a list").contains(&"--region=us".into()), "{args}");
    let refused = regional().deployed_with(["--planet=mars"]).manifests(&Installation::default());
    let refused = refused.expect_err("no such flag").to_string();
    assert!(
        refused.contains("the flags that it is deployed with") && refused.contains("--planet"),
        "{refused}"
    );
}

#[test]
fn a_flag_that_is_ours_already_is_an_error_that_names_it() {
    #[derive(clap::Args)]
    struct Mine {
        #[arg(long = "log-level")]
        _verbosity: Option<String>,
    }
    let operator = Operator::new("web", "1").args::<Mine>();
    let error = operator.manifests(&Installation::default()).expect_err("a clash").to_string();
    assert!(error.contains("--log-level"), "{error}");
}

#[test]
fn its_file_is_its_default_or_what_it_says_and_nothing_that_it_does_not_know() {
    #[derive(Default, serde::Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Config {
        size: u32,
    }
    let folder = std::env::temp_dir().join(format!("kubewright-config-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let told = |text: &str| {
        let file = folder.join("config.yaml");
        std::fs::write(&file, text).expect("a file");
        let operator = Operator::new("web", "1").config::<Config>();
        let words = [OsString::from("web"), "--config".into(), file.into()];
        operator.parse(words.to_vec()).map_err(|error| error.to_string())?;
        let size = operator.settings().expect("settings").config::<Config>().expect("declared").size;
        Ok::<u32, String>(size)
    };
    assert_eq!(told("size: 3"), Ok(3));
    let refused = told("sice: 3").expect_err("no such field");
    assert!(refused.contains("sice") && refused.contains("config.yaml"), "{refused}");
    std::fs::remove_dir_all(&folder).expect("removed");
    let operator = Operator::new("web", "1").config::<Config>();
    operator.parse(arguments(&["web"])).expect("no file");
    assert_eq!(operator.settings().expect("settings").config::<Config>().expect("declared").size, 0);
}

fn pod_of(operator: &Operator) -> Result<serde_json::Value, String> {
    let mut objects = operator.manifests(&Installation::default()).map_err(|error| error.to_string())?;
    Ok(objects.pop().expect("a Deployment").data["spec"]["template"]["spec"].take())
}

#[test]
fn os_09_the_pod_tells_the_program_who_it_is_and_where_to_look() {
    let pod = pod_of(&operator()).expect("a pod");
    let names: Vec<_> =
        pod["containers"][0]["env"].as_array().expect("variables").iter().map(|env| &env["name"]).collect();
    assert_eq!(names, ["POD_NAME", "POD_NAMESPACE", "OPERATOR_NAME", "WATCH_NAMESPACE"]);
    let installation = Installation { namespaces: vec!["b".into(), "a".into()], ..Installation::default() };
    let deployment = operator().manifests(&installation).expect("manifests").pop().expect("a Deployment");
    assert_eq!(deployment.data["spec"]["template"]["spec"]["containers"][0]["env"][3]["value"], "a,b");
}

#[test]
fn the_pod_is_shaped_but_what_the_operator_counts_on_stays() {
    use k8s_openapi::{api::core::v1::Container, apimachinery::pkg::api::resource::Quantity};
    let shaped = operator().pod(|pod| {
        let limits = pod.container.resources.get_or_insert_default().limits.get_or_insert_default();
        limits.insert("memory".into(), Quantity("512Mi".into()));
        pod.spec.containers.push(Container { name: "proxy".into(), ..Container::default() });
        pod.spec.priority_class_name = Some("high".into());
    });
    let pod = pod_of(&shaped).expect("a pod");
    assert_eq!(pod["containers"][0]["resources"]["limits"]["memory"], "512Mi");
    assert_eq!((&pod["containers"][1]["name"], &pod["priorityClassName"]), (&"proxy".into(), &"high".into()));

    let refused = |operator: Operator| pod_of(&operator).expect_err("refused");
    let account = refused(operator().pod(|pod| pod.spec.service_account_name = Some("default".into())));
    assert!(account.contains("spec.serviceAccountName has to stay \"web\""), "{account}");
    let open = refused(operator().pod(|pod| pod.container.security_context = None));
    assert!(open.contains("spec.containers[operator].securityContext"), "{open}");
    let silent = refused(operator().pod(|pod| pod.container.args = None));
    assert!(silent.contains("spec.containers[operator].args"), "{silent}");
    let twice = refused(operator().pod(|pod| {
        pod.spec.containers.push(Container { name: "operator".into(), ..Container::default() });
    }));
    assert!(twice.contains("two containers are called \"operator\""), "{twice}");
}

#[test]
fn a_sharded_operator_is_installed_with_a_ring_and_its_rights() {
    let installation = Installation { replicas: 3, ..Installation::default() };
    let objects = operator().sharded().manifests(&installation).expect("manifests");
    let deployment = &objects.last().expect("a Deployment").data["spec"];
    assert_eq!(deployment["replicas"], 3);
    let args = deployment["template"]["spec"]["containers"][0]["args"].to_string();
    assert!(args.contains("--shard") && !args.contains("--leader-elect"), "{args}");
    let role =
        objects.iter().find(|object| object.metadata.name.as_deref() == Some("web-leader")).expect("a Role");
    let rules = role.data["rules"].to_string();
    assert!(rules.contains("leases") && rules.contains("watch") && rules.contains("delete"), "{rules}");
    assert!(run(&["--shard"]).shard);
}
