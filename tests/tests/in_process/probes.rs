//! The SDK's exec probes, through the API server and a kubelet into containers that live in virtual time.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use kubewright_cluster::{Cluster, ProcessSettings};
use kubewright_runtime::probes::{Command, Exec, Probes};
use kubewright_runtime::sources::Every;
use kubewright_runtime::{CancellationToken, Context, Controller, Error, Key, Manager, Outcome, Reconciler};
use serde_json::json;

use crate::fake_runtime::Fake;

/// Asks each Pod how it is, and shows the answer as the condition `Healthy`.
struct Doctor(Probes<Command>);

impl Reconciler for Doctor {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(pod) = ctx.get::<Pod>(key) else {
            self.0.forget(key);
            return Ok(Outcome::Done);
        };
        if pod.status.as_ref().and_then(|status| status.phase.as_deref()) != Some("Running") {
            return Ok(Outcome::Done);
        }
        let command = vec!["how".to_owned(), key.name.clone()];
        self.0.observe(key, Command { pod: key.clone(), container: None, command });
        if let Some(report) = self.0.report(key) {
            ctx.set_condition(&*pod, &report.condition("Healthy")).await?;
        }
        Ok(Outcome::Done)
    }
}

async fn condition(pods: &Api<Pod>, name: &str) -> String {
    let status = pods.get(name).await.expect("the pod is there").status.expect("a status");
    let healthy = status.conditions.unwrap_or_default().into_iter().find(|one| one.type_ == "Healthy");
    let told = |one: k8s_openapi::api::core::v1::PodCondition| {
        format!("{} {}: {}", one.status, one.reason.unwrap_or_default(), one.message.unwrap_or_default())
    };
    healthy.map_or("nothing".to_owned(), told)
}

#[tokio::test(start_paused = true)]
async fn what_commands_in_pods_find_becomes_a_condition_and_one_that_hangs_holds_up_no_other() {
    let folder = std::env::temp_dir().join(format!("kubewright-exec-probes-{}", std::process::id()));
    let world = kubewright_runtime::World::simulated(1);
    let fake = Fake::new(world.clock);
    let node = ProcessSettings {
        name: Some("here".to_owned()),
        runtime: Arc::new(fake.clone()),
        images: None,
        folder: folder.clone(),
        host_access: true,
    };
    let cluster = Cluster::builder().world(world.clone()).nodes(0).process_node(node).start();
    let cluster = cluster.await.expect("a cluster");
    cluster.settle().await;
    fake.answer("how well", 0, "all is fine\n", Duration::ZERO);
    fake.answer("how ill", 7, "no disk\n", Duration::from_secs(2));
    fake.answer("how hangs", 0, "", Duration::from_secs(24 * 3600));

    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    for name in ["hangs", "ill", "well"] {
        let pod = json!({"metadata": {"name": name}, "spec": {
            "nodeName": "here", "automountServiceAccountToken": false,
            "containers": [{"name": "main", "image": "tool", "command": ["sleep", "1000000"]}],
        }});
        let pod = kubewright_objects::from_value(pod).expect("a pod");
        pods.create(&PostParams::default(), &pod).await.expect("it is created");
    }
    let exec = Exec::new(cluster.client());
    let every = Every::new(Duration::from_secs(30));
    let probes = Probes::new(&world, every, Duration::from_secs(5), move |command| exec.run(command));
    let mut manager = Manager::new(cluster.client(), world);
    manager.add(Controller::new("doctor", Doctor(probes.clone())).for_kind::<Pod>().source(probes.keys()));
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));

    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(condition(&pods, "well").await, "True ProbeSucceeded: all is fine");
    let ill = condition(&pods, "ill").await;
    assert!(
        ill.starts_with("False ProbeFailed: ") && ill.contains("exit code 7") && ill.ends_with(": no disk"),
        "{ill}"
    );
    assert_eq!(condition(&pods, "hangs").await, "False ProbeFailed: no answer within 5s");

    // The one goes on to hang, and the others are asked all the same.
    fake.answer("how well", 1, "on fire\n", Duration::ZERO);
    fake.answer("how ill", 0, "cured\n", Duration::ZERO);
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert!(condition(&pods, "well").await.ends_with(": on fire"));
    assert_eq!(condition(&pods, "ill").await, "True ProbeSucceeded: cured");
    assert_eq!(condition(&pods, "hangs").await, "False ProbeFailed: no answer within 5s");

    stop.cancel();
    assert!(matches!(running.await, Ok(Ok(()))));
    drop(cluster);
    let _ = std::fs::remove_dir_all(folder);
}
