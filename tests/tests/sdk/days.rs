//! Bad days that begin in the cluster: kinds that are not there, rights that are missing, webhooks that hang.

use std::{panic::panic_any, time::Duration};

use k8s_openapi::{
    api::core::v1::ConfigMap, apiextensions_apiserver::pkg::apis::apiextensions::v1 as extensions,
};
use kube::{
    Api, CustomResource,
    api::{DeleteParams, PostParams},
};
use kubewright_runtime::{Context, Controller, Error, Key, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::{net::TcpListener, runtime::Handle};

use crate::{
    harness::{Log, does, logging, run},
    lab::{Lab, OURS, Only},
    lines::Lines,
    link::Cut,
};

const MINUTE: Duration = Duration::from_secs(60);

#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize)]
#[kube(
    group = "sdk.kubewright.dev",
    version = "v1",
    kind = "Gauge",
    plural = "gauges",
    namespaced,
    schema = "disabled"
)]
struct GaugeSpec {}

/// The definition of the kind, which is one of the whole cluster.
struct Definition(Api<extensions::CustomResourceDefinition>);

impl Definition {
    const NAME: &str = "gauges.sdk.kubewright.dev";

    /// Not there, whatever a run before this one left.
    async fn absent(lab: &Lab) -> Self {
        let this = Self(Api::all(lab.admin()));
        this.remove().await;
        this
    }

    async fn remove(&self) {
        let _ = self.0.delete(Self::NAME, &DeleteParams::default()).await;
        while self.0.get_opt(Self::NAME).await.expect("an answer").is_some() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn install(&self) {
        let definition = json!({
            "metadata": {"name": Self::NAME},
            "spec": {
                "group": "sdk.kubewright.dev", "scope": "Namespaced",
                "names": {"kind": "Gauge", "plural": "gauges", "singular": "gauge"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
            },
        });
        let definition = kubewright_objects::from_value(definition).expect("a definition");
        self.0.create(&PostParams::default(), &definition).await.expect("it is created");
    }
}

/// As soon as the kind is served. (Of a group that it does not know at all, kube-apiserver says so in plain text.)
async fn create_gauge(lab: &Lab, name: &str) {
    let gauges = Api::<Gauge>::namespaced(lab.admin(), lab.namespace());
    while let Err(error) = gauges.create(&PostParams::default(), &Gauge::new(name, GaugeSpec {})).await {
        assert!(matches!(&error, kube::Error::Api(status) if status.code == 404), "{error}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_comes_goes_and_comes_again_is_followed() {
    let (lab, log, lines) = (Lab::new().await, Log::new(), Lines::listen());
    let definition = Definition::absent(&lab).await;
    lab.put("configmaps", "other", json!({})).await;
    let gauges = {
        let log: Log<String> = log.clone();
        let reconciler = does(move |ctx: &Context, key: &Key| {
            log.push(format!("{} {}", key.name, ctx.get::<Gauge>(key).is_some()));
            Box::pin(async { Ok(Outcome::Done) })
        });
        Controller::new("gauges", reconciler).for_kind::<Gauge>()
    };
    let running = run(&lab, [gauges, logging(&log).for_kind::<ConfigMap>().selecting(OURS)]);
    lab.until(MINUTE, || !log.entries().is_empty()).await;
    lab.pass(60 * MINUTE).await;
    assert_eq!(log.take(), ["other"], "the other controller works meanwhile");
    assert_eq!(running.cache.unsynced(), ["gauges.sdk.kubewright.dev"]);
    let told = lines.take();
    let of_it = told.iter().filter(|line| line.contains("is its CustomResourceDefinition installed?"));
    assert!((1..=13).contains(&of_it.count()), "at once, and every five minutes: {told:#?}");

    for name in ["a", "b"] {
        definition.install().await;
        create_gauge(&lab, name).await;
        lab.until(MINUTE, || !log.entries().is_empty()).await;
        assert_eq!(log.take(), [format!("{name} true")]);
        definition.remove().await;
        lab.until(MINUTE, || !log.entries().is_empty()).await;
        lab.settle().await;
        assert_eq!(log.take(), [format!("{name} false")], "its objects end with it");
    }
    assert!(!running.end.is_finished());
}

/// Gives the service account `operator` the right to do this with ConfigMaps.
async fn grant(lab: &Lab, name: &str, verbs: &[&str]) {
    use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
    let metadata = json!({"name": name});
    let role = json!({"metadata": metadata, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs},
    ]});
    let binding = json!({
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": lab.namespace()}],
    });
    let post = PostParams::default();
    let (role, binding): (Role, RoleBinding) = (
        kubewright_objects::from_value(role).expect("a role"),
        kubewright_objects::from_value(binding).expect("a binding"),
    );
    Api::namespaced(lab.admin(), lab.namespace()).create(&post, &role).await.expect("a role");
    Api::namespaced(lab.admin(), lab.namespace()).create(&post, &binding).await.expect("a binding");
}

#[tokio::test(start_paused = true)]
async fn rights_that_are_granted_later_are_used_without_a_restart() {
    let (lab, log, lines) = (Lab::new().await, Log::new(), Lines::listen());
    lab.put("configmaps", "a", json!({})).await;
    let results = log.clone();
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let results = results.clone();
        Box::pin(async move {
            let written = ctx.patch::<ConfigMap>(key, json!({"data": {"n": "1"}})).await;
            results.push(written.as_ref().err().map_or("written".to_owned(), ToString::to_string));
            written.map(|_| Outcome::Done)
        })
    });
    let link = lab.link_as_service_account("operator");
    let mut manager = lab.manager_by(&link, 1);
    manager.add(Controller::new("test", reconciler).for_kind::<ConfigMap>().selecting(OURS));
    let (cache, counters) = (manager.cache().clone(), manager.counters().clone());
    let running = tokio::spawn(manager.run(kubewright_runtime::CancellationToken::new()));

    lab.settle().await;
    lab.pass(30 * MINUTE).await;
    assert_eq!(cache.unsynced(), ["configmaps"]);
    let told = lines.take();
    assert!(
        (1..=14).contains(&told.len()),
        "watch and controller, at once and every five minutes: {told:#?}"
    );
    assert!(told[0].contains("list") && told[0].contains("configmaps"), "{told:#?}");

    grant(&lab, "reads", &["get", "list", "watch"]).await;
    lab.until(MINUTE, || !log.entries().is_empty()).await;
    assert!(log.take()[0].contains("configmaps"), "it says what it may not");
    assert!(counters.of("test").errors > 0);

    grant(&lab, "writes", &["patch"]).await;
    let is_written = || log.entries().iter().any(|line| line == "written");
    lab.until(60 * MINUTE, is_written).await;
    assert_eq!(lab.stored("configmaps", "a").await.expect("it is there")["data"]["n"], "1");
    assert!(!running.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_hangs_fails_writes_until_it_is_gone() {
    use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
    let (lab, log, lines) = (Lab::new().await, Log::new(), Lines::listen());
    // Takes connections and never says a word.
    let silence = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let address = silence.local_addr().expect("an address");
    let configurations = Api::<ValidatingWebhookConfiguration>::all(lab.admin());
    let configuration = json!({
        "metadata": {"name": lab.namespace()},
        "webhooks": [{
            "name": "hangs.sdk.kubewright.dev", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Fail", "timeoutSeconds": 1,
            "clientConfig": {"url": format!("https://{address}/validate")},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": lab.namespace()}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"], "operations": ["*"]}],
        }],
    });
    let configuration = kubewright_objects::from_value(configuration).expect("a configuration");
    configurations.create(&PostParams::default(), &configuration).await.expect("it is created");

    lab.put("configmaps", "a", json!({})).await;
    let results = log.clone();
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let results = results.clone();
        Box::pin(async move {
            let mut child = k8s_openapi::api::core::v1::Secret::default();
            child.metadata.name = Some("child".to_owned());
            child.metadata.namespace.clone_from(&key.namespace);
            let written = ctx.ensure(&child, None).await;
            results.push(written.as_ref().err().map_or("written".to_owned(), ToString::to_string));
            written.map(|_| Outcome::Done)
        })
    });
    let controller = Controller::new("test", reconciler).for_kind::<ConfigMap>().selecting(OURS);
    let running = run(&lab, [controller.reads::<k8s_openapi::api::core::v1::Secret>()]);
    // A webhook is in force when the API server has heard of it.
    lab.until(10 * MINUTE, || log.entries().len() >= 3 || log.entries().iter().any(|line| line == "written"))
        .await;
    let seen = log.take();
    configurations.delete(lab.namespace(), &DeleteParams::default()).await.expect("it is deleted");
    assert!(seen.iter().all(|line| line.contains("failed calling webhook")), "{seen:?}");
    assert!(running.counters.of("test").errors >= 3);
    let told = lines.take();
    assert!(told.len() <= seen.len() + 2, "a line for each try: {told:#?}");
    lab.until(20 * MINUTE, || log.entries().iter().any(|line| line == "written")).await;
    assert!(lab.stored("secrets", "child").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn days_of_trouble_leave_no_task_and_no_object_behind() {
    let Some(lab) = Lab::only_embedded(Only::Tasks).await else { return };
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let is_there = ctx.get::<ConfigMap>(key).is_some();
        let name = key.name.clone();
        Box::pin(async move {
            match (is_there, name.as_str()) {
                (true, "panics") => panic_any("this panic belongs to a test"),
                (true, "hangs") => std::future::pending().await,
                (true, "fails") => Err(Error::new("never")),
                _ => Ok(Outcome::Done),
            }
        })
    });
    let controller = Controller::new("test", reconciler).for_kind::<ConfigMap>().selecting(OURS);
    let mut manager = lab.manager();
    manager.add(controller.timeout(Duration::from_secs(30)).concurrency(4));
    let (cache, metrics) = (manager.cache().clone(), manager.metrics().clone());
    let running = tokio::spawn(manager.run(kubewright_runtime::CancellationToken::new()));
    lab.settle().await;
    let (tasks, usage) = (Handle::current().metrics().num_alive_tasks(), format!("{:?}", cache.usage()));
    for round in 0..100 {
        for name in ["fails", "hangs", "panics", "works"] {
            lab.put("configmaps", name, json!({})).await;
        }
        lab.link().cut_watches(if round % 3 == 0 { Cut::History } else { Cut::Connection });
        if round % 10 == 0 {
            lab.link().refuse(500, "InternalError", None);
        }
        lab.pass(MINUTE).await;
        lab.link().accept();
        for name in ["fails", "hangs", "panics", "works"] {
            lab.remove("configmaps", name).await;
        }
        lab.pass(10 * MINUTE).await;
    }
    lab.pass(60 * MINUTE).await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks);
    assert_eq!(format!("{:?}", cache.usage()), usage);
    let text = metrics.text();
    let depths = text.lines().filter(|line| line.starts_with("workqueue_depth{"));
    assert!(depths.clone().count() > 0 && depths.clone().all(|line| line.ends_with(" 0")), "{text}");
    assert!(text.contains("controller_runtime_active_workers{controller=\"test\"} 0"), "{text}");
    assert!(!running.is_finished());
}
