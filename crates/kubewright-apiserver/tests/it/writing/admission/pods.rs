use kubewright_engine::Settings;
use kubewright_spec::Version;
use serde_json::{Value, json};

use super::{NAMESPACE, PODS, pod, started};
use crate::support::{Answer, Api};

const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";
const RUNTIMES: &str = "/apis/node.k8s.io/v1/runtimeclasses";

#[tokio::test(start_paused = true)]
async fn a_plain_pod_gets_its_priority_and_its_tolerations() {
    let api = started().await;
    let made = api.post(PODS, pod("a", &json!({}))).await.expect(201);
    let spec = &made["spec"];
    assert_eq!((&spec["priority"], &spec["preemptionPolicy"]), (&json!(0), &json!("PreemptLowerPriority")));
    let toleration = |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
    assert_eq!(
        spec["tolerations"],
        json!([toleration("node.kubernetes.io/not-ready"), toleration("node.kubernetes.io/unreachable")])
    );
}

#[tokio::test(start_paused = true)]
async fn a_priority_is_that_of_the_class() {
    let api = started().await;
    let named = |class: &str, more: Value| {
        let mut pod = pod("a", &json!({}));
        pod["spec"]["priorityClassName"] = class.into();
        for (field, value) in more.as_object().expect("fields") {
            pod["spec"][field] = value.clone();
        }
        pod
    };
    assert_eq!(
        api.post(PODS, named("nope", json!({}))).await.refused(403, "Forbidden"),
        "pods \"a\" is forbidden: no PriorityClass with name nope was found"
    );
    assert_eq!(
        api.post(PODS, named("", json!({"priority": 7}))).await.refused(403, "Forbidden"),
        "pods \"a\" is forbidden: the integer value of priority (7) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name"
    );
    let class = |name: &str| json!({"metadata": {"name": name}, "value": 9, "globalDefault": true});
    api.post(CLASSES, class("usual")).await.expect(201);
    assert_eq!(
        api.post(CLASSES, class("second")).await.refused(403, "Forbidden"),
        "priorityclasses.scheduling.k8s.io \"second\" is forbidden: PriorityClass usual is already marked as default. Only one default can exist"
    );
    let made = api.post(PODS, named("", json!({}))).await.expect(201);
    assert_eq!((&made["spec"]["priorityClassName"], &made["spec"]["priority"]), (&json!("usual"), &json!(9)));
}

#[tokio::test(start_paused = true)]
async fn a_runtime_class_brings_its_overhead_and_its_nodes() {
    let api = started().await;
    let class = json!({"metadata": {"name": "sandbox"}, "handler": "h", "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]}});
    api.post(RUNTIMES, class).await.expect(201);
    let mut sandboxed = pod("a", &json!({}));
    sandboxed["spec"]["overhead"] = json!({"cpu": "1"});
    assert_eq!(
        api.post(PODS, sandboxed.clone()).await.refused(403, "Forbidden"),
        "pods \"a\" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
    );
    sandboxed["spec"]["runtimeClassName"] = "sandbox".into();
    assert_eq!(
        api.post(PODS, sandboxed.clone()).await.refused(403, "Forbidden"),
        "pods \"a\" is forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    );
    sandboxed["spec"]["overhead"] = Value::Null;
    let made = api.post(PODS, sandboxed).await.expect(201);
    assert_eq!(
        (&made["spec"]["overhead"], &made["spec"]["nodeSelector"]),
        (&json!({"cpu": "250m"}), &json!({"a": "b"}))
    );
    assert_eq!(made["spec"]["tolerations"][2]["key"], "k");
}

/// `applyAppArmorVersionSkew` warns while a pod is made ready.
#[tokio::test(start_paused = true)]
async fn a_profile_that_only_an_annotation_tells_is_warned_of_first_and_though_the_pod_is_refused() {
    let api = started().await;
    let notes = json!({
        "container.apparmor.security.beta.kubernetes.io/c": "runtime/default",
        "container.seccomp.security.alpha.kubernetes.io/c": "localhost/x",
    });
    let pod = |name: &str| json!({"metadata": {"name": name, "annotations": notes}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let armor = "299 - \"metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: deprecated since v1.30; use the \\\"appArmorProfile\\\" field instead\"";
    let warnings = |answer: &Answer| -> Vec<String> {
        answer.headers.get_all("warning").iter().map(|one| one.to_str().expect("text").to_owned()).collect()
    };
    let answer = api.post(PODS, pod("a")).await;
    let told = warnings(&answer);
    assert_eq!((answer.code.as_u16(), told.len(), told[0].as_str()), (201, 2, armor));
    let refused = api.post(PODS, pod("A")).await;
    assert_eq!((refused.code.as_u16(), warnings(&refused)), (422, vec![armor.to_owned()]));
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    assert!(warnings(&api.patch(&format!("{PODS}/a"), "merge", labels).await).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_says_how_careful_its_pods_have_to_be() {
    let api = started().await;
    let label = |level: &str| json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}});
    let privileged = json!({"metadata": {"name": "old"}, "spec": {"hostNetwork": true, "containers": [
        {"name": "c", "image": "nginx:1", "securityContext": {"privileged": true}}]}});
    api.post(PODS, privileged.clone()).await.expect(201);
    assert_eq!(
        api.patch(NAMESPACE, "merge", label("extreme")).await.refused(422, "Invalid"),
        "Namespace \"default\" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"extreme\": must be one of privileged, baseline, restricted"
    );
    let answer = api.patch(NAMESPACE, "merge", label("baseline")).await;
    let warnings: Vec<_> =
        answer.headers.get_all("warning").iter().map(|one| one.to_str().expect("text")).collect();
    assert_eq!(
        warnings,
        [
            "299 - \"existing pods in namespace \\\"default\\\" violate the new PodSecurity enforce level \\\"baseline:latest\\\"\"",
            "299 - \"old: host namespaces, privileged\"",
        ]
    );
    let mut new = privileged;
    new["metadata"]["name"] = "new".into();
    assert_eq!(
        api.post(PODS, new).await.refused(403, "Forbidden"),
        "pods \"new\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true), privileged (container \"c\" must not set securityContext.privileged=true)"
    );
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    api.patch(&format!("{PODS}/old"), "merge", labels).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn up_to_v1_36_a_pod_that_asks_as_a_whole_asks_for_what_limits_give_to_its_containers() {
    let api = Api::start_with(Settings { kubernetes: Version::V1_36, ..Settings::default() }).await;
    let account = json!({"metadata": {"name": "default"}});
    api.post(&format!("{NAMESPACE}/serviceaccounts"), account).await.expect(201);
    let range = json!({"metadata": {"name": "r"}, "spec": {"limits": [{"type": "Container", "default": {"memory": "10Mi"}}]}});
    api.post(&format!("{NAMESPACE}/limitranges"), range).await.expect(201);
    let mut limited = pod("a", &json!({}));
    limited["spec"]["resources"] = json!({"limits": {"cpu": "1"}});
    let made = api.post(PODS, limited).await.expect(201);
    assert_eq!(made["spec"]["resources"]["requests"], json!({"cpu": "1", "memory": "10Mi"}));
    // Less is stored than is read.
    let version = |pod: &Value| pod["metadata"]["resourceVersion"].clone();
    let nothing = || api.patch("/api/v1/namespaces/default/pods/a", "merge", json!({}));
    let once = nothing().await.expect(200);
    assert_ne!(version(&made), version(&once));
    assert_eq!(version(&once), version(&nothing().await.expect(200)));
}
