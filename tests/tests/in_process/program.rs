//! An operator as a program against an API server behind a socket.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kubewright_cluster::{Cluster, Endpoint, Secret};
use kubewright_runtime::command::{Installation, Operator, Run, WebhookFlags};
use kubewright_runtime::rbac::{Observed, Verb};
use kubewright_runtime::webhook::{
    Denied, Request, ValidationResult, Validator, Warnings, Webhook, Webhooks,
};
use kubewright_runtime::{
    CancellationToken, Context, Controller, Error, Key, Manager, Outcome, Reconciler, World,
};
use serde_json::json;

/// Labels each ConfigMap.
struct Labels;

impl Reconciler for Labels {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        if ctx.get::<ConfigMap>(key).is_some_and(|map| map.metadata.labels.is_none()) {
            ctx.patch::<ConfigMap>(key, json!({"metadata": {"labels": {"seen": "yes"}}})).await?;
        }
        Ok(Outcome::Done)
    }
}

/// Nothing is called `no`.
struct Names;

impl Validator<ConfigMap> for Names {
    async fn validate_create(&self, _: &Request, map: &ConfigMap) -> ValidationResult {
        match map.metadata.name.as_deref() {
            Some("no") => Err(Denied::forbidden("no")),
            _ => Ok(Warnings::none()),
        }
    }
}

fn operator() -> Operator {
    let controller = || {
        Controller::new("labels", Labels)
            .for_kind::<ConfigMap>()
            .writes::<ConfigMap>([Verb::Patch, Verb::Delete])
    };
    let webhooks = Webhooks::new("labels").add(Webhook::validating::<ConfigMap>(Names));
    Operator::new("labels", "1").controller(controller).webhooks(webhooks)
}

#[tokio::test(start_paused = true)]
async fn an_operator_is_installed_and_runs_in_a_test_with_its_webhooks_under_its_generated_rights() {
    let cluster = Cluster::builder().controllers("").nodes(0).start().await.unwrap();
    let (operator, installation) = (operator(), Installation::default());
    let observed = Observed::new();
    // Twice: the second is a process that started anew.
    for name in ["first", "second"] {
        operator.prepare(&cluster.client(), &installation).await.unwrap();
        let client = cluster.client_of_service_account(&operator.home(&installation), operator.name());
        let manager = Manager::in_process(observed.client(&client), cluster.world().clone());
        let mut manager = operator.manager(manager, &Run::default()).unwrap();
        let (host, server) = operator.webhooks_in_process(&installation).unwrap();
        cluster.mount_webhooks(host, server.service());
        manager.serve(server);
        let stop = CancellationToken::new();
        let running = tokio::spawn(manager.run(stop.clone()));
        let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
        let refused =
            maps.create(&PostParams::default(), &called("no")).await.map_err(Error::from).unwrap_err();
        assert!(refused.to_string().ends_with("denied the request: no"), "{refused}");
        assert_eq!(refused.missing_right(), None, "that is no matter of rights");
        maps.create(&PostParams::default(), &called(name)).await.unwrap();
        cluster.settle().await;
        assert!(maps.get(name).await.unwrap().metadata.labels.is_some());
        stop.cancel();
        running.await.unwrap().unwrap();
    }
    assert_eq!(
        observed.report(&operator.rights()).to_string(),
        "these declared rights were never used:\n  configmaps delete"
    );
    cluster.stop().await;
}

fn called(name: &str) -> ConfigMap {
    kubewright_objects::from_value(json!({"metadata": {"name": name}})).unwrap()
}

/// A folder that is gone in the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is left.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn a_program_serves_its_webhooks_at_a_url_and_writes_the_roles_that_it_worked_with() {
    let folder = Folder(std::env::temp_dir().join(format!("kubewright-program-{}", std::process::id())));
    fs::create_dir_all(&folder.0).unwrap();
    let endpoint = Endpoint::bind((Ipv4Addr::LOCALHOST, 0).into(), &World::real()).await.unwrap();
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": format!("https://{}", endpoint.address()),
            "certificate-authority-data": base64(endpoint.ca_pem().as_bytes())}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "default"}}]});
    let (config, roles) = (folder.0.join("config"), folder.0.join("roles.yaml"));
    fs::write(&config, kubeconfig.to_string()).unwrap();
    let builder = Cluster::builder().world(World::real()).controllers("").nodes(0);
    let cluster = builder.endpoint(endpoint).admin_token(Secret::of("secret")).start().await.unwrap();

    // A port that was free a moment ago.
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let run = Run {
        kubeconfig: Some(config),
        observe_rights: Some(roles.clone()),
        webhooks: WebhookFlags { webhook_bind_address: port.to_string(), ..WebhookFlags::default() },
        ..Run::default()
    };
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let running = tokio::spawn(async move { operator().run(&run, stopped).await });

    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    maps.create(&PostParams::default(), &called("yes")).await.unwrap();
    let worked = async {
        loop {
            let labelled = maps.get("yes").await.unwrap().metadata.labels.is_some();
            let dry = PostParams { dry_run: true, ..PostParams::default() };
            let refused =
                maps.create(&dry, &called("no")).await.err().map(|error| Error::from(error).to_string());
            if labelled && refused.is_some_and(|refused| refused.ends_with("denied the request: no")) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), worked).await.expect("it labels and refuses");
    stop.cancel();
    running.await.unwrap().unwrap();
    let roles = fs::read_to_string(&roles).unwrap();
    for part in
        ["kind: ClusterRole", "name: labels", "- configmaps", "- patch", "- validatingwebhookconfigurations"]
    {
        assert!(roles.contains(part), "{part}: {roles}");
    }
    assert!(!roles.contains("delete"), "what was declared and not used is not in them: {roles}");
    cluster.stop().await;
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
