//! Pods that run as processes of this machine (`up --runtime process`), with kubectl.
//!
//! Their image is made of a static busybox: `cargo xtask test` finds or fetches one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Child;

use kubewright_tests::Up;
use serde_json::json;

use crate::images::Images;

fn start(test: &str, images: &Images, more: &[&str]) -> Up {
    let store = images.store().display().to_string();
    let mut arguments = vec!["--runtime", "process", "--image-store", &store];
    arguments.extend(more);
    Up::start(test, &arguments)
}

/// A pod of one container that runs this in a shell.
fn pod(name: &str, script: &str, more: &serde_json::Value) -> String {
    let mut spec = json!({"terminationGracePeriodSeconds": 1, "containers": [
        {"name": "c", "image": "busybox", "imagePullPolicy": "Never", "command": ["sh", "-c", script]}]});
    let fields = more.as_object().cloned().unwrap_or_default();
    for (field, value) in fields {
        match field.as_str() {
            "volumes" => spec["volumes"] = value,
            field => spec["containers"][0][field] = value,
        }
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": spec})
        .to_string()
}

#[tokio::test]
#[ignore = "needs kubectl and busybox: cargo xtask test"]
async fn a_job_of_a_loaded_image_echoes_and_is_complete() {
    let images = Images::with_busybox("job");
    let up = start("process-job", &images, &[]);
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "hello"}, "spec": {
        "template": {"spec": {"restartPolicy": "Never", "containers": [
            {"name": "c", "image": "busybox:latest", "imagePullPolicy": "IfNotPresent",
             "command": ["echo", "hello", "from", "busybox"]}]}}}});
    let _ = up.apply(&job.to_string());
    up.eventually("get job hello -o jsonpath={.status.succeeded}", |said| said == "1").await;
    assert_eq!(up.kubectl("logs job/hello"), "hello from busybox\n");
    let code = "get pods -o jsonpath={.items[0].status.containerStatuses[0].state.terminated.exitCode}";
    assert_eq!(up.kubectl(code), "0");
    let id = up.kubectl("get pods -o jsonpath={.items[0].status.containerStatuses[0].imageID}");
    assert!(id.contains("sha256:"), "{id}");
}

#[tokio::test]
#[ignore = "needs kubectl and busybox: cargo xtask test"]
async fn commands_and_ports_of_a_running_pod_are_reached() {
    let images = Images::with_busybox("exec");
    let up = start("process-exec", &images, &[]);
    // One that nobody has: pods have the machine's network, and operators in other tests listen at 8080 on all addresses.
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let script = format!("echo a page > /index.html; exec httpd -f -h / -p $IP:{port}");
    let env = json!([{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]);
    let probe = json!({"tcpSocket": {"port": port}, "periodSeconds": 1});
    let _ = up.apply(&pod("web", &script, &json!({"env": env, "readinessProbe": probe})));
    up.eventually("get pod web -o jsonpath={.status.containerStatuses[0].ready}", |ready| ready == "true")
        .await;
    assert_eq!(up.kubectl("exec web -- cat /index.html"), "a page\n");
    assert_eq!(up.kubectl("exec web -- hostname"), "web\n");
    let failed = up.try_kubectl("exec web -- cat /nothing");
    assert!(String::from_utf8_lossy(&failed.stderr).contains("exit code 1"), "{failed:?}");

    let mut forward = Ended(up.start_kubectl(&format!("port-forward pod/web :{port}")));
    let mut told = String::new();
    // Kept, as kubectl ends when it cannot tell of connections any more.
    let mut output = BufReader::new(forward.0.stdout.take().expect("it is piped"));
    output.read_line(&mut told).expect("a line");
    // "Forwarding from 127.0.0.1:40000 -> 8080": of the pod's port
    let address = told.split_whitespace().nth(2).expect("an address").to_owned();
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(b"GET /index.html HTTP/1.0\r\n\r\n").expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.ends_with("a page\n"), "{answer}");
    drop(output);
}

/// Ends a process when dropped.
pub(crate) struct Ended(pub(crate) Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
#[ignore = "needs kubectl and busybox: cargo xtask test"]
async fn a_pod_calls_the_api_server_as_its_service_account() {
    let images = Images::with_busybox("account");
    let up = start("process-account", &images, &["--allow-host-commands"]);
    let script = "cd /var/run/secrets/kubernetes.io/serviceaccount; \
        curl -sS --cacert ca.crt -H \"Authorization: Bearer $(cat token)\" \
        https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT/api/v1/namespaces/$(cat namespace)/pods";
    // Of this machine's commands: busybox speaks no TLS.
    let job = pod("caller", script, &json!({"image": "the-machine", "imagePullPolicy": "IfNotPresent"}));
    let _ = up.apply(&job.replace("\"spec\":{", "\"spec\":{\"restartPolicy\":\"Never\","));
    up.eventually("get pod caller -o jsonpath={.status.phase}", |phase| phase == "Succeeded").await;
    let answer = up.kubectl("logs caller");
    assert!(answer.contains("system:serviceaccount:default:default"), "{answer}");
    assert!(
        answer.contains("\"reason\": \"Forbidden\"") || answer.contains("\"reason\":\"Forbidden\""),
        "{answer}"
    );
}

#[tokio::test]
#[ignore = "needs kubectl and busybox: cargo xtask test"]
async fn a_crashing_container_backs_off_and_its_logs_are_told() {
    let images = Images::with_busybox("crash");
    let up = start("process-crash", &images, &[]);
    let _ = up.apply(&pod("crash", "echo one; echo two; exit 7", &json!({})));
    let reason = "get pod crash -o jsonpath={.status.containerStatuses[0].state.waiting.reason}";
    up.eventually(reason, |reason| reason == "CrashLoopBackOff").await;
    let code = "get pod crash -o jsonpath={.status.containerStatuses[0].lastState.terminated.exitCode}";
    assert_eq!(up.kubectl(code), "7");
    assert_eq!(up.kubectl("logs crash --previous"), "one\ntwo\n");
    assert_eq!(up.kubectl("logs crash --tail=1"), "two\n");
    let timed = up.kubectl("logs crash --timestamps");
    let first = timed.lines().next().and_then(|line| line.split_once(' ')).expect("a time and a text");
    assert!(first.0.parse::<jiff::Timestamp>().is_ok() && first.1 == "one", "{timed}");
    up.eventually("get events -o jsonpath={..reason}", |reasons| reasons.contains("BackOff")).await;
}

#[tokio::test]
#[ignore = "needs kubectl and busybox: cargo xtask test"]
async fn a_pod_that_is_not_ready_serves_nobody_until_it_is() {
    let images = Images::with_busybox("ready");
    let up = start("process-ready", &images, &[]);
    let probe = json!({"readinessProbe": {"exec": {"command": ["cat", "/ready"]}, "periodSeconds": 1}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    let _ = up.apply(&service.to_string());
    let _ = up.apply(&pod("web", "sleep 1000", &probe));
    up.eventually("get pod web -o jsonpath={.status.phase}", |phase| phase == "Running").await;
    let ready = "get endpointslices -l kubernetes.io/service-name=web -o jsonpath={.items[0].endpoints[0].conditions.ready}";
    up.eventually(ready, |ready| ready == "false").await;
    let message = "get events --field-selector reason=Unhealthy -o jsonpath={..message}";
    up.eventually(message, |message| message.contains("Readiness probe failed: cat: can't open '/ready'"))
        .await;
    let file = up.try_kubectl("exec web -- busybox touch /ready");
    assert!(file.status.success(), "{file:?}");
    up.eventually(ready, |ready| ready == "true").await;
}

#[tokio::test]
#[ignore = "needs kubectl and busybox: cargo xtask test"]
async fn a_service_leads_to_its_pods_by_its_address_and_by_its_name() {
    let images = Images::with_busybox("service");
    let up = start("process-service", &images, &[]);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"type": "NodePort", "selector": {"app": "web"}, "ports": [{"port": 8000, "targetPort": 8080}]}});
    let _ = up.apply(&service.to_string());
    let address = up.kubectl("get service web -o jsonpath={.spec.clusterIP}");
    assert!(address.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback()), "{address}");
    let node_port = up.kubectl("get service web -o jsonpath={.spec.ports[0].nodePort}");
    assert!(TcpStream::connect(format!("{address}:8000")).is_err(), "it has no endpoints");

    let script = "echo a page > /index.html; exec httpd -f -h / -p $KUBEWRIGHT_POD_ADDRESS:8080";
    let probe = json!({"readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1}});
    let _ = up.apply(&pod("web", script, &probe));
    let _ = up.apply(&pod("asks", "exec sleep 1000", &json!({})));
    up.eventually("get pod asks -o jsonpath={.status.phase}", |phase| phase == "Running").await;
    for address in [format!("{address}:8000"), format!("127.0.0.1:{node_port}")] {
        let ask = format!("exec asks -- busybox wget -qO- http://{address}/index.html");
        up.eventually(&ask, |said| said == "a page\n").await;
        assert!(TcpStream::connect(address).is_ok(), "programs of this machine reach it too");
    }

    // Where this machine lets port 53 be listened at.
    if TcpListener::bind("127.63.9.2:53").is_ok() {
        let settings = up.kubectl("exec asks -- cat /etc/resolv.conf");
        let searched = "search default.svc.cluster.local svc.cluster.local cluster.local";
        assert!(settings.starts_with(searched), "{settings}");
        let asked = up.kubectl("exec asks -- busybox nslookup web.default.svc.cluster.local");
        assert!(asked.contains(&format!("Address: {address}")), "{asked}");
    }

    let _ = up.kubectl("delete pod web");
    // The arguments of kubectl are split at spaces.
    let ask = format!(
        "exec asks -- sh -c busybox${{IFS}}wget${{IFS}}-qO-${{IFS}}http://{address}:8000/||echo${{IFS}}refused"
    );
    up.eventually(&ask, |said| said == "refused\n").await;
}

#[tokio::test]
#[ignore = "needs kubectl and busybox: cargo xtask test"]
async fn a_changed_config_map_is_seen_in_the_pod() {
    let images = Images::with_busybox("map");
    let up = start("process-map", &images, &[]);
    let map = |value: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": value}})
            .to_string()
    };
    let _ = up.apply(&map("first"));
    let mounted = json!({
        "volumes": [{"name": "m", "configMap": {"name": "m"}}],
        "volumeMounts": [{"name": "m", "mountPath": "/etc/m"}],
    });
    let _ = up.apply(&pod("reader", "sleep 1000", &mounted));
    up.eventually("exec reader -- cat /etc/m/a", |value| value == "first").await;
    let _ = up.apply(&map("second"));
    up.eventually("exec reader -- cat /etc/m/a", |value| value == "second").await;
}

#[tokio::test]
#[ignore = "needs kubectl and busybox: cargo xtask test"]
async fn logs_are_followed_until_the_container_ends() {
    let images = Images::with_busybox("follow");
    let up = start("process-follow", &images, &[]);
    let script = "for i in 1 2 3; do echo line $i; sleep 1; done";
    let manifest =
        pod("lines", script, &json!({})).replace("\"spec\":{", "\"spec\":{\"restartPolicy\":\"Never\",");
    let _ = up.apply(&manifest);
    up.eventually("get pod lines -o jsonpath={.status.phase}", |phase| phase == "Running").await;
    assert_eq!(up.kubectl("logs -f lines"), "line 1\nline 2\nline 3\n");
}

#[tokio::test]
#[ignore = "needs kubectl and busybox: cargo xtask test"]
async fn a_node_that_is_started_again_finds_its_containers_gone() {
    let images = Images::with_busybox("again");
    let mut up = start("process-again", &images, &["--data", "data"]);
    let _ = up.apply(&pod("lasting", "sleep 1000", &json!({})));
    up.eventually("get pod lasting -o jsonpath={.status.phase}", |phase| phase == "Running").await;
    up.kill_and_start_again();
    let status = "get pod lasting -o jsonpath={.status.containerStatuses[0].restartCount}/\
        {.status.containerStatuses[0].lastState.terminated.reason}/{.status.phase}";
    up.eventually(status, |status| status == "1/ContainerStatusUnknown/Running").await;
}
