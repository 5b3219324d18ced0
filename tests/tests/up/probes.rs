//! The SDK's exec probes against `kubewright up`: over TLS and a WebSocket, into processes of this machine.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::Api;
use kube::api::PostParams;
use kubewright_runtime::probes::{Command, Exec, Probes};
use kubewright_runtime::sources::Every;
use kubewright_runtime::{
    CancellationToken, Connect, Context, Controller, Error, Key, Manager, Metrics, Outcome, Reconciler, World,
};
use kubewright_tests::Up;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;

/// What each Pod is asked.
const QUESTIONS: [(&str, &str); 3] =
    [("well", "echo all is fine"), ("ill", "echo no disk >&2; exit 7"), ("hangs", "sleep 1000")];

/// Asks each Pod how it is, shows the answer as the condition `Healthy`, and notes when `well` was asked.
struct Doctor(Probes<Command>);

impl Reconciler for Doctor {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(pod) = ctx.get::<Pod>(key) else {
            self.0.forget(key);
            return Ok(Outcome::Done);
        };
        let question = QUESTIONS.iter().find(|(name, _)| *name == key.name);
        let is_running = pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        let (Some((_, script)), true) = (question, is_running) else { return Ok(Outcome::Done) };
        let command = ["sh", "-c", script].map(str::to_owned).into();
        self.0.observe(key, Command { pod: key.clone(), container: Some("main".to_owned()), command });
        if let Some(report) = self.0.report(key) {
            ctx.set_condition(&*pod, &report.condition("Healthy")).await?;
        }
        Ok(Outcome::Done)
    }
}

async fn condition(pods: &Api<Pod>, name: &str) -> Option<String> {
    let status = pods.get(name).await.expect("the pod is there").status?;
    let healthy = status.conditions?.into_iter().find(|one| one.type_ == "Healthy")?;
    Some(format!("{} {}", healthy.status, healthy.message.unwrap_or_default()))
}

#[tokio::test]
#[ignore = "needs a kubewright: cargo xtask test"]
async fn what_commands_in_processes_find_becomes_a_condition_and_one_that_hangs_holds_up_no_other() {
    // Commands of this machine: no image is needed.
    let up = Up::start("probes", &["--runtime", "process", "--allow-host-commands"]);
    let connect = Connect { kubeconfig: Some(up.kubeconfig()), ..Connect::default() };
    let (client, _) = connect.client(Metrics::new().requests()).await.expect("a client");
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
    while accounts.get_opt("default").await.expect("an answer").is_none() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for (name, _) in QUESTIONS {
        let pod = json!({"metadata": {"name": name}, "spec": {
            "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": false,
            "containers": [{"name": "main", "image": "the-machine", "command": ["sleep", "1000"]}],
        }});
        let pod = kubewright_objects::from_value(pod).expect("a pod");
        pods.create(&PostParams::default(), &pod).await.expect("it is created");
    }

    let (exec, asked) = (Exec::new(client.clone()), Arc::new(Mutex::new(0)));
    let (world, counts) = (World::real(), asked.clone());
    let every = Every::new(Duration::from_secs(1));
    let probes = Probes::new(&world, every, Duration::from_secs(4), move |command: Command| {
        *counts.lock() += usize::from(command.pod.name == "well");
        exec.run(command)
    });
    let mut manager = Manager::new(client, world);
    manager.add(Controller::new("doctor", Doctor(probes.clone())).for_kind::<Pod>().source(probes.keys()));
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));

    let began = Instant::now();
    let mut found = Vec::new();
    while found.len() < QUESTIONS.len() {
        if began.elapsed() > Duration::from_secs(60) {
            let namespaces =
                std::fs::read_to_string("/proc/sys/user/max_user_namespaces").unwrap_or_default();
            panic!(
                "after a minute there is only {found:?}; this machine allows {} namespaces",
                namespaces.trim()
            );
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        found.clear();
        for (name, _) in QUESTIONS {
            found.extend(condition(&pods, name).await);
        }
    }
    assert_eq!(found[0], "True all is fine");
    assert!(
        found[1].starts_with("False ") && found[1].contains("exit code 7") && found[1].ends_with(": no disk"),
        "{found:?}"
    );
    assert_eq!(found[2], "False no answer within 4s");
    assert!(*asked.lock() >= 3, "the one that hangs holds up no other: {}", asked.lock());

    stop.cancel();
    assert!(matches!(running.await, Ok(Ok(()))));
}
