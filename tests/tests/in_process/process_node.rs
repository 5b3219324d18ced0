//! The kubelet of this machine's node, with containers that live in virtual time.

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, ContainerStatus, Event, Node, Pod, PodCondition};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kubewright_cluster::authz::Mode;
use kubewright_cluster::{Cluster, ProcessSettings, User};
use kubewright_kubelet::{MAX_PODS, ProcessNode, Settings};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

use crate::fake_runtime::Fake;

/// A cluster with a node of this machine, whose runtime is a fake.
struct Machine {
    cluster: Cluster,
    fake: Fake,
    folder: PathBuf,
    stop: CancellationToken,
}

impl Machine {
    /// With commands of this machine in place of images.
    async fn start(test: &str) -> Self {
        Self::with(test, true).await
    }

    async fn with(test: &str, host_access: bool) -> Self {
        let folder = std::env::temp_dir().join(format!("kubewright-{test}-{}", std::process::id()));
        let cluster = Cluster::builder().nodes(0).authorization(vec![Mode::Node, Mode::Rbac]).start();
        let cluster = cluster.await.expect("a cluster");
        let fake = Fake::new(cluster.world().clock);
        let mut machine = Self { cluster, fake, folder, stop: CancellationToken::new() };
        machine.start_kubelet(host_access).await;
        machine
    }

    async fn start_kubelet(&mut self, host_access: bool) {
        let settings = Settings {
            name: "here".to_owned(),
            client: self
                .cluster
                .client_as(User::new("system:node:here", ["system:nodes", "system:authenticated"])),
            world: self.cluster.world().clone(),
            runtime: Arc::new(self.fake.clone()),
            images: None,
            folder: self.folder.clone(),
            api_server: ([127, 0, 0, 1], 6443).into(),
            cluster_domain: "cluster.local".to_owned(),
            cluster_dns: Vec::new(),
            host_access,
            max_pods: MAX_PODS,
            resets: None,
        };
        self.stop = CancellationToken::new();
        let (_, run) = ProcessNode::start(settings, self.stop.clone()).await.expect("a node");
        tokio::spawn(run);
        // Taints go when the node is ready.
        self.cluster.settle().await;
    }

    fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.cluster.client())
    }

    async fn create(&self, name: &str, spec: Value) -> Pod {
        let mut spec = spec;
        spec["nodeName"] = json!("here");
        spec["automountServiceAccountToken"] = json!(false);
        for list in ["initContainers", "containers"] {
            for container in spec[list].as_array_mut().into_iter().flatten() {
                container["image"] = json!("tool");
            }
        }
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        let pod = kubewright_objects::from_value(pod).expect("a pod");
        let pod = self.pods().create(&PostParams::default(), &pod).await.expect("it is created");
        // Whole seconds from here on are seconds of the pod.
        self.cluster.settle().await;
        pod
    }

    async fn pod(&self, name: &str) -> Pod {
        self.pods().get(name).await.expect("the pod is there")
    }

    async fn container(&self, pod: &str, name: &str) -> ContainerStatus {
        let status = self.pod(pod).await.status.expect("a status");
        let all =
            [status.container_statuses, status.init_container_statuses, status.ephemeral_container_statuses];
        let mut all = all.into_iter().flatten().flatten();
        all.find(|status| status.name == name).expect("its container has a status")
    }

    async fn phase(&self, pod: &str) -> String {
        self.pod(pod).await.status.and_then(|status| status.phase).unwrap_or_default()
    }

    async fn condition(&self, pod: &str, kind: &str) -> PodCondition {
        let conditions = self.pod(pod).await.status.and_then(|status| status.conditions).unwrap_or_default();
        conditions.into_iter().find(|condition| condition.type_ == kind).expect("the condition is there")
    }

    /// `reason: message` of all events of the kubelet about a pod.
    async fn events(&self, pod: &str) -> Vec<String> {
        let events: Api<Event> = Api::default_namespaced(self.cluster.client());
        let params = ListParams::default().fields(&format!("involvedObject.name={pod}"));
        let mut events = events.list(&params).await.expect("events").items;
        events.sort_by_key(|event| event.first_timestamp.clone().map(|time| time.0));
        let kubelets = |event: &Event| event.reporting_component.as_deref() == Some("kubelet");
        let told = |event: &Event| {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            format!("{}: {}", text(&event.reason), text(&event.message))
        };
        events.iter().filter(|event| kubelets(event)).map(told).collect()
    }

    async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    async fn delete(&self, name: &str) {
        let _ = self.pods().delete(name, &DeleteParams::default()).await.expect("it is deleted");
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.stop.cancel();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn waiting(status: &ContainerStatus) -> (String, String) {
    let waiting = status.state.clone().and_then(|state| state.waiting).expect("it waits");
    (waiting.reason.unwrap_or_default(), waiting.message.unwrap_or_default())
}

fn ended(status: &ContainerStatus) -> (i32, String) {
    let ended = status.state.clone().and_then(|state| state.terminated).expect("it has ended");
    (ended.exit_code, ended.reason.unwrap_or_default())
}

/// The journal, with times from the first entry on.
fn since_first(journal: &[String]) -> Vec<String> {
    let time =
        |entry: &str| entry.split(' ').next().and_then(|time| time.parse::<i64>().ok()).unwrap_or_default();
    let first = journal.first().map(|entry| time(entry)).unwrap_or_default();
    journal
        .iter()
        .map(|entry| format!("{} {}", time(entry) - first, entry.split_once(' ').unwrap_or_default().1))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn the_node_tells_of_this_machine_and_its_lease_is_kept() {
    let machine = Machine::start("node").await;
    let nodes: Api<Node> = Api::all(machine.cluster.client());
    machine.pass(600).await;
    let node = nodes.get("here").await.expect("the node is there");
    let status = node.status.expect("a status");
    let ready = status.conditions.iter().flatten().find(|condition| condition.type_ == "Ready");
    let ready = ready.expect("it says whether it is ready");
    assert_eq!((ready.status.as_str(), ready.reason.as_deref()), ("True", Some("KubeletReady")));
    let info = status.node_info.expect("it says what it is");
    assert!(info.container_runtime_version.starts_with("kubewright://"), "{info:?}");
    assert_eq!(status.capacity.expect("room")["pods"].0, "110");
    assert_eq!(node.spec.and_then(|spec| spec.taints), None, "its lease was renewed in time");
}

#[tokio::test(start_paused = true)]
async fn a_pod_runs_is_ready_and_has_an_address_of_its_own() {
    let machine = Machine::start("runs").await;
    let pod = machine.create("p", json!({"containers": [{"name": "c", "command": ["sleep", "1000"]}]})).await;
    let status = machine.pod("p").await.status.expect("a status");
    assert_eq!(status.phase.as_deref(), Some("Running"));
    let address: std::net::Ipv4Addr = status.pod_ip.expect("an address").parse().expect("an address");
    assert!(address.octets()[0] == 127 && address.octets()[1] & 0xc0 == 64, "{address}");
    assert_eq!(status.host_ip.as_deref(), Some("127.64.0.1"));
    let container = machine.container("p", "c").await;
    assert!(container.ready && container.started == Some(true), "{container:?}");
    assert_eq!(container.container_id, pod.metadata.uid.map(|uid| format!("kubewright://{uid}_c_0")),);
    for kind in ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"] {
        let condition = machine.condition("p", kind).await;
        assert_eq!((condition.status.as_str(), condition.reason), ("True", None), "{kind}");
    }
    let events = machine.events("p").await;
    assert_eq!(events[1..], ["Created: Container created", "Started: Container started"], "{events:?}");
    assert!(events[0].starts_with("Pulled: Container image \"tool\""), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_work_is_done_has_succeeded() {
    let machine = Machine::start("done").await;
    let command = json!(["sleep", "5", "say", "all is well", "exit", "0"]);
    machine
        .create("p", json!({"restartPolicy": "Never", "containers": [{"name": "c", "command": command}]}))
        .await;
    machine.pass(6).await;
    assert_eq!(machine.phase("p").await, "Succeeded");
    let container = machine.container("p", "c").await;
    assert_eq!(ended(&container), (0, "Completed".to_owned()));
    let message = container.state.and_then(|state| state.terminated).and_then(|ended| ended.message);
    assert_eq!(message.as_deref(), Some("all is well"));
    let ready = machine.condition("p", "Ready").await;
    assert_eq!((ready.status.as_str(), ready.reason.as_deref()), ("False", Some("PodCompleted")));
    assert_eq!(machine.condition("p", "PodReadyToStartContainers").await.status, "False");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_failed_for_good_says_so() {
    let machine = Machine::start("failed").await;
    let spec = json!({"restartPolicy": "Never", "containers": [
        {"name": "a", "command": ["exit", "3"]}, {"name": "b", "command": ["exit", "0"]}]});
    machine.create("p", spec).await;
    assert_eq!(machine.phase("p").await, "Failed");
    assert_eq!(ended(&machine.container("p", "a").await), (3, "Error".to_owned()));
    let ready = machine.condition("p", "Ready").await;
    assert_eq!(ready.reason.as_deref(), Some("PodFailed"));
}

#[tokio::test(start_paused = true)]
async fn a_container_that_crashes_is_started_again_after_ever_longer_waits() {
    let machine = Machine::start("crashes").await;
    let pod = machine.create("p", json!({"containers": [{"name": "c", "command": ["exit", "1"]}]})).await;
    let uid = pod.metadata.uid.expect("a uid");
    machine.pass(2).await;
    let container = machine.container("p", "c").await;
    let message = format!("back-off 10s restarting failed container=c pod=p_default({uid})");
    assert_eq!(waiting(&container), ("CrashLoopBackOff".to_owned(), message));
    assert_eq!(container.restart_count, 1);
    let last = container.last_state.and_then(|state| state.terminated).expect("its last run has ended");
    assert_eq!((last.exit_code, last.reason.as_deref()), (1, Some("Error")));
    assert_eq!(machine.phase("p").await, "Running");
    machine.pass(200).await;
    let starts: Vec<_> = since_first(&machine.fake.journal())
        .into_iter()
        .filter(|entry| entry.ends_with("starts"))
        .map(|entry| entry.split(' ').next().unwrap_or_default().parse::<u64>().expect("a time"))
        .collect();
    assert_eq!(starts, [0, 0, 10, 30, 70, 150]);
    let events = machine.events("p").await;
    let told = format!("BackOff: Back-off restarting failed container c in pod p_default({uid})");
    assert!(events.contains(&told), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_program_that_is_not_there_is_a_start_error() {
    let machine = Machine::start("absent").await;
    machine
        .create("p", json!({"restartPolicy": "Never", "containers": [{"name": "c", "command": ["missing"]}]}))
        .await;
    let container = machine.container("p", "c").await;
    assert_eq!(ended(&container), (128, "StartError".to_owned()));
    assert_eq!(machine.phase("p").await, "Failed");
    let events = machine.events("p").await;
    let told = "Failed: Error: exec: \"missing\": executable file not found in $PATH".to_owned();
    assert!(events.contains(&told), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_container_that_does_not_live_is_ended_and_started_again() {
    let machine = Machine::start("liveness").await;
    machine.fake.answer("check", 1, "not well", Duration::ZERO);
    let probe = json!({"exec": {"command": ["check"]}, "periodSeconds": 5, "failureThreshold": 2,
        "initialDelaySeconds": 10, "terminationGracePeriodSeconds": 3});
    machine
        .create(
            "p",
            json!({"containers": [
        {"name": "c", "command": ["ignore", "sleep", "1000"], "livenessProbe": probe}]}),
        )
        .await;
    machine.pass(20).await;
    let journal = since_first(&machine.fake.journal());
    assert_eq!(journal[..5], ["0 c starts", "15 c gets 15", "18 c gets 9", "18 c ends 137", "18 c starts"]);
    let events = machine.events("p").await;
    assert!(events.contains(&"Unhealthy: Liveness probe failed: not well".to_owned()), "{events:?}");
    let told = "Killing: Container c failed liveness probe, will be restarted".to_owned();
    assert!(events.contains(&told), "{events:?}");
    assert_eq!(machine.container("p", "c").await.restart_count, 1);
}

#[tokio::test(start_paused = true)]
async fn a_container_is_ready_when_its_probe_says_so_and_no_longer_when_it_does_not() {
    let machine = Machine::start("readiness").await;
    machine.fake.answer("check", 1, "", Duration::ZERO);
    let probe = json!({"exec": {"command": ["check"]}, "periodSeconds": 2, "failureThreshold": 3});
    machine
        .create(
            "p",
            json!({"containers": [{"name": "c", "command": ["sleep", "1000"], "readinessProbe": probe}]}),
        )
        .await;
    let ready = machine.condition("p", "Ready").await;
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_deref(), ready.message.as_deref()),
        ("False", Some("ContainersNotReady"), Some("containers with unready status: [c]"))
    );
    machine.fake.answer("check", 0, "", Duration::ZERO);
    machine.pass(3).await;
    assert_eq!(machine.condition("p", "Ready").await.status, "True");
    machine.fake.answer("check", 0, "", Duration::from_secs(60));
    machine.pass(10).await;
    assert_eq!(machine.condition("p", "Ready").await.status, "False", "too late is not ready");
    let events = machine.events("p").await;
    let told =
        "Unhealthy: Readiness probe failed: command timed out: \"check\" timed out after 1s".to_owned();
    assert!(events.contains(&told), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn other_probes_wait_until_the_container_has_started() {
    let machine = Machine::start("startup").await;
    machine.fake.answer("started", 1, "", Duration::ZERO);
    machine.fake.answer("alive", 1, "", Duration::ZERO);
    let startup = json!({"exec": {"command": ["started"]}, "periodSeconds": 5, "failureThreshold": 30});
    let liveness = json!({"exec": {"command": ["alive"]}, "periodSeconds": 1, "failureThreshold": 1});
    machine
        .create(
            "p",
            json!({"containers": [{"name": "c", "command": ["sleep", "1000"],
        "startupProbe": startup, "livenessProbe": liveness}]}),
        )
        .await;
    machine.pass(10).await;
    let container = machine.container("p", "c").await;
    assert_eq!((container.started, container.ready, container.restart_count), (Some(false), false, 0));
    machine.fake.answer("alive", 0, "", Duration::ZERO);
    machine.fake.answer("started", 0, "", Duration::ZERO);
    machine.pass(7).await;
    let container = machine.container("p", "c").await;
    assert_eq!((container.started, container.ready, container.restart_count), (Some(true), true, 0));
}

#[tokio::test(start_paused = true)]
async fn a_readiness_gate_holds_the_pod_and_not_its_containers() {
    let machine = Machine::start("gates").await;
    machine
        .create(
            "p",
            json!({"readinessGates": [{"conditionType": "shop/open"}],
        "containers": [{"name": "c", "command": ["sleep", "1000"]}]}),
        )
        .await;
    let ready = machine.condition("p", "Ready").await;
    assert_eq!(ready.reason.as_deref(), Some("ReadinessGatesNotReady"));
    let told = "corresponding condition of pod readiness gate \"shop/open\" does not exist.";
    assert_eq!(ready.message.as_deref(), Some(told));
    assert_eq!(machine.condition("p", "ContainersReady").await.status, "True");
    let open = json!({"status": {"conditions": [{"type": "shop/open", "status": "True"}]}});
    let patched = machine.pods().patch_status("p", &PatchParams::default(), &Patch::Strategic(open)).await;
    patched.expect("the condition is set");
    machine.cluster.settle().await;
    let ready = machine.condition("p", "Ready").await;
    assert_eq!((ready.status.as_str(), ready.reason, ready.message), ("True", None, None));
    assert_eq!(machine.condition("p", "shop/open").await.status, "True", "it is left alone");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_has_its_grace_period_and_is_gone_when_its_containers_are() {
    let machine = Machine::start("deleted").await;
    machine
        .create(
            "p",
            json!({"terminationGracePeriodSeconds": 20, "containers": [
        {"name": "polite", "command": ["sleep", "1000"]}, {"name": "stubborn", "command": ["ignore"]}]}),
        )
        .await;
    machine.delete("p").await;
    machine.pass(10).await;
    assert_eq!(ended(&machine.container("p", "polite").await), (143, "Error".to_owned()));
    machine.pass(11).await;
    assert!(machine.pods().get_opt("p").await.expect("an answer").is_none(), "it is gone");
    let journal = machine.fake.journal();
    let from_signal = since_first(&journal[2..]);
    assert_eq!(
        from_signal,
        [
            "0 polite gets 15",
            "0 stubborn gets 15",
            "0 polite ends 143",
            "20 stubborn gets 9",
            "20 stubborn ends 137"
        ]
    );
    let events = machine.events("p").await;
    assert!(events.contains(&"Killing: Stopping container polite".to_owned()), "{events:?}");
    assert!(
        !machine.folder.join("pods").read_dir().is_ok_and(|mut pods| pods.next().is_some()),
        "nothing is left"
    );
}

#[tokio::test(start_paused = true)]
async fn a_second_deletion_shortens_the_grace_period() {
    let machine = Machine::start("sooner").await;
    machine
        .create(
            "p",
            json!({"terminationGracePeriodSeconds": 300, "containers": [
        {"name": "stubborn", "command": ["ignore"]}]}),
        )
        .await;
    machine.delete("p").await;
    machine.pass(10).await;
    let _ =
        machine.pods().delete("p", &DeleteParams::default().grace_period(12)).await.expect("it is deleted");
    machine.pass(5).await;
    assert!(machine.pods().get_opt("p").await.expect("an answer").is_none(), "it is gone");
}

#[tokio::test(start_paused = true)]
async fn a_pre_stop_hook_runs_before_the_signal_within_the_grace_period() {
    let machine = Machine::start("pre-stop").await;
    let hook = |seconds: u64| json!({"preStop": {"sleep": {"seconds": seconds}}});
    machine.create("p", json!({"terminationGracePeriodSeconds": 30, "containers": [
        {"name": "a", "command": ["sleep", "1000"], "lifecycle": hook(7)},
        {"name": "b", "command": ["sleep", "1000"], "lifecycle": {"preStop": {"exec": {"command": ["bye"]}}}},
    ]})).await;
    machine.fake.answer("bye", 1, "secret", Duration::from_secs(2));
    machine.delete("p").await;
    machine.pass(40).await;
    let journal = machine.fake.journal();
    assert_eq!(since_first(&journal[2..]), ["0 b gets 15", "0 b ends 143", "5 a gets 15", "5 a ends 143"]);
    let events = machine.events("p").await;
    assert!(events.contains(&"FailedPreStopHook: PreStopHook failed".to_owned()), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_container_whose_post_start_hook_fails_is_ended() {
    let machine = Machine::start("post-start").await;
    machine.fake.answer("hello", 1, "no", Duration::from_secs(3));
    let pod = machine
        .create(
            "p",
            json!({"containers": [{"name": "c", "command": ["sleep", "1000"],
        "lifecycle": {"postStart": {"exec": {"command": ["hello"]}}}}]}),
        )
        .await;
    let uid = pod.metadata.uid.expect("a uid");
    assert_eq!(waiting(&machine.container("p", "c").await).0, "ContainerCreating");
    machine.pass(10).await;
    assert_eq!(machine.fake.journal().iter().filter(|entry| entry.ends_with("c ends 143")).count(), 2);
    let events = machine.events("p").await;
    assert!(events.contains(&"FailedPostStartHook: PostStartHook failed".to_owned()), "{events:?}");
    assert!(events.contains(&"Killing: FailedPostStartHook".to_owned()), "{events:?}");
    let container = machine.container("p", "c").await;
    let (reason, message) = waiting(&container);
    assert_eq!(reason, "CrashLoopBackOff");
    assert!(message.ends_with(&format!("pod=p_default({uid})")), "{message}");
}

#[tokio::test(start_paused = true)]
async fn sidecars_start_first_and_end_last() {
    let machine = Machine::start("sidecars").await;
    machine
        .create(
            "p",
            json!({
                "restartPolicy": "Never",
                "initContainers": [
                    {"name": "one", "restartPolicy": "Always", "command": ["sleep", "1000"]},
                    {"name": "init", "command": ["sleep", "2", "exit", "0"]},
                    {"name": "two", "restartPolicy": "Always", "command": ["sleep", "1000"]},
                ],
                "containers": [{"name": "main", "command": ["sleep", "5", "exit", "0"]}],
            }),
        )
        .await;
    machine.pass(15).await;
    assert_eq!(
        since_first(&machine.fake.journal()),
        [
            "0 one starts",
            "0 init starts",
            "2 init ends 0",
            "2 two starts",
            "2 main starts",
            "7 main ends 0",
            "7 two gets 15",
            "7 two ends 143",
            "7 one gets 15",
            "7 one ends 143",
        ]
    );
    assert_eq!(machine.phase("p").await, "Succeeded");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_active_for_too_long_fails() {
    let machine = Machine::start("deadline").await;
    machine
        .create(
            "p",
            json!({"activeDeadlineSeconds": 30, "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "c", "command": ["sleep", "1000"]}]}),
        )
        .await;
    machine.pass(35).await;
    let status = machine.pod("p").await.status.expect("a status");
    assert_eq!(
        (status.phase.as_deref(), status.reason.as_deref()),
        (Some("Failed"), Some("DeadlineExceeded"))
    );
    assert_eq!(
        status.message.as_deref(),
        Some("Pod was active on the node longer than the specified deadline")
    );
}

#[tokio::test(start_paused = true)]
async fn an_image_that_is_not_there_is_not_pulled_and_the_message_says_what_to_do() {
    let machine = Machine::with("image", false).await;
    machine.create("p", json!({"containers": [{"name": "c", "command": ["exit", "0"]}]})).await;
    let (reason, message) = waiting(&machine.container("p", "c").await);
    assert_eq!(reason, "ErrImagePull");
    assert!(message.contains("kubewright image load"), "{message}");
    machine.pass(4).await;
    let (reason, message) = waiting(&machine.container("p", "c").await);
    assert_eq!(reason, "ImagePullBackOff");
    assert!(message.starts_with("Back-off pulling image \"tool\": ErrImagePull: "), "{message}");
    assert_eq!(machine.phase("p").await, "Pending");
    let events = machine.events("p").await;
    assert!(events.contains(&"Failed: Error: ErrImagePull".to_owned()), "{events:?}");
    assert!(events.contains(&"BackOff: Back-off pulling image \"tool\"".to_owned()), "{events:?}");

    machine
        .create(
            "never",
            json!({"containers": [
        {"name": "c", "command": ["exit", "0"], "imagePullPolicy": "Never"}]}),
        )
        .await;
    assert_eq!(
        waiting(&machine.container("never", "c").await),
        (
            "ErrImageNeverPull".to_owned(),
            "Container image \"tool\" is not present with pull policy of Never".to_owned()
        )
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_container_needs_and_is_not_there_is_waited_for() {
    let machine = Machine::start("needs").await;
    let env = json!([{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "later", "key": "a"}}}]);
    machine
        .create("p", json!({"containers": [{"name": "c", "command": ["sleep", "1000"], "env": env}]}))
        .await;
    assert_eq!(
        waiting(&machine.container("p", "c").await),
        ("CreateContainerConfigError".to_owned(), "configmap \"later\" not found".to_owned())
    );
    let map: ConfigMap =
        kubewright_objects::from_value(json!({"metadata": {"name": "later"}, "data": {"a": "b"}}))
            .expect("a map");
    let maps: Api<ConfigMap> = Api::default_namespaced(machine.cluster.client());
    maps.create(&PostParams::default(), &map).await.expect("it is created");
    machine.pass(12).await;
    assert_eq!(machine.phase("p").await, "Running");
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_cannot_be_made_holds_the_pod() {
    let machine = Machine::start("volume").await;
    machine
        .create(
            "p",
            json!({
                "volumes": [{"name": "v", "configMap": {"name": "later"}}],
                "containers": [{"name": "c", "command": ["sleep", "1000"],
                    "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
            }),
        )
        .await;
    assert_eq!(waiting(&machine.container("p", "c").await).0, "ContainerCreating");
    assert_eq!(machine.condition("p", "PodReadyToStartContainers").await.status, "False");
    let events = machine.events("p").await;
    assert!(
        events.contains(
            &"FailedMount: MountVolume.SetUp failed for volume \"v\" : configmap \"later\" not found"
                .to_owned()
        ),
        "{events:?}"
    );
    let map: ConfigMap =
        kubewright_objects::from_value(json!({"metadata": {"name": "later"}})).expect("a map");
    let maps: Api<ConfigMap> = Api::default_namespaced(machine.cluster.client());
    maps.create(&PostParams::default(), &map).await.expect("it is created");
    machine.pass(125).await;
    assert_eq!(machine.phase("p").await, "Running");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_does_not_fit_is_rejected() {
    let machine = Machine::start("admission").await;
    machine
        .create(
            "p",
            json!({"containers": [
        {"name": "c", "command": ["exit", "0"], "resources": {"requests": {"cpu": "100k"}}}]}),
        )
        .await;
    let status = machine.pod("p").await.status.expect("a status");
    assert_eq!((status.phase.as_deref(), status.reason.as_deref()), (Some("Failed"), Some("OutOfcpu")));
    let message = status.message.expect("it says why");
    assert!(
        message.starts_with(
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 100000000, used: 0"
        ),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_ephemeral_container_joins_a_running_pod() {
    let machine = Machine::start("ephemeral").await;
    machine.create("p", json!({"containers": [{"name": "c", "command": ["sleep", "1000"]}]})).await;
    let mut pod = machine.pod("p").await;
    let container = json!([{"name": "debug", "image": "tool", "command": ["exit", "4"]}]);
    pod.spec.as_mut().expect("a spec").ephemeral_containers =
        kubewright_objects::from_value(container).expect("a container");
    let pods = machine.pods();
    pods.replace_ephemeral_containers("p", &PostParams::default(), &pod).await.expect("it is added");
    machine.cluster.settle().await;
    assert_eq!(ended(&machine.container("p", "debug").await), (4, "Error".to_owned()));
    machine.pass(60).await;
    assert_eq!(machine.phase("p").await, "Running");
    assert_eq!(machine.fake.journal().len(), 3, "it is not started again");
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_that_starts_again_finds_its_containers_gone() {
    let mut machine = Machine::start("again").await;
    let container = json!([{"name": "c", "command": ["sleep", "1000"]}]);
    machine.create("always", json!({"containers": container})).await;
    machine.create("never", json!({"restartPolicy": "Never", "containers": container})).await;
    machine.stop.cancel();
    machine.pass(5).await;
    assert_eq!(machine.fake.journal().iter().filter(|entry| entry.ends_with("c ends 143")).count(), 2);
    machine.start_kubelet(true).await;

    assert_eq!(machine.phase("never").await, "Failed");
    assert_eq!(ended(&machine.container("never", "c").await), (137, "ContainerStatusUnknown".to_owned()));
    assert_eq!(machine.phase("always").await, "Running");
    let container = machine.container("always", "c").await;
    assert_eq!(container.restart_count, 1);
    let last = container.last_state.and_then(|state| state.terminated).expect("its last run has ended");
    assert_eq!(last.reason.as_deref(), Some("ContainerStatusUnknown"));
}

#[tokio::test(start_paused = true)]
async fn a_restart_rule_of_a_container_overrides_the_policy_of_its_pod() {
    let machine = Machine::start("rules").await;
    let rules = json!([{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]);
    machine
        .create(
            "p",
            json!({"restartPolicy": "Never", "containers": [
        {"name": "c", "command": ["exit", "42"], "restartPolicy": "Never", "restartPolicyRules": rules},
        {"name": "d", "command": ["exit", "41"], "restartPolicy": "Never", "restartPolicyRules": rules}]}),
        )
        .await;
    assert_eq!(machine.container("p", "c").await.restart_count, 1);
    assert_eq!(machine.container("p", "d").await.restart_count, 0);
    assert_eq!(machine.phase("p").await, "Running");
}

#[tokio::test(start_paused = true)]
async fn the_scheduler_places_pods_on_the_node_of_this_machine() {
    let folder = std::env::temp_dir().join(format!("kubewright-placed-{}", std::process::id()));
    let fake = Fake::new(kubewright_world::Clock::simulated());
    let settings = ProcessSettings {
        name: Some("here".to_owned()),
        runtime: Arc::new(fake.clone()),
        images: None,
        folder: folder.clone(),
        host_access: true,
    };
    let cluster = Cluster::builder().nodes(0).process_node(settings).start().await.expect("a cluster");
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let pod = json!({"metadata": {"name": "p"}, "spec": {"automountServiceAccountToken": false, "containers": [
        {"name": "c", "image": "tool", "command": ["sleep", "1000"]}]}});
    let pod = kubewright_objects::from_value(pod).expect("a pod");
    cluster.settle().await;
    pods.create(&PostParams::default(), &pod).await.expect("it is created");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let pod = pods.get("p").await.expect("it is there");
    assert_eq!(pod.spec.and_then(|spec| spec.node_name).as_deref(), Some("here"));
    assert_eq!(pod.status.and_then(|status| status.phase).as_deref(), Some("Running"));
    cluster.stop().await;
    assert!(fake.journal().last().is_some_and(|entry| entry.ends_with("c ends 143")), "{:?}", fake.journal());
    let _ = std::fs::remove_dir_all(folder);
}
