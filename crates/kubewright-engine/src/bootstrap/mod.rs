//! What is in a cluster before anybody has written to it: the system namespaces, the API server's own service and the
//! networks of services, the priority classes, and the default roles.

mod roles;

use futures::future::{try_join, try_join_all};
use kubewright_codec::body::Decoded;
use kubewright_identity::authn::combined;
use kubewright_kinds::built_in::core::config_map::CONFIG_MAP;
use kubewright_kinds::built_in::networking::service_cidr::SERVICE_CIDR;
use kubewright_kinds::rules::flow::bootstrap as flow;
use kubewright_meta::cidr::Family;
use kubewright_meta::{ApiError, object};
use kubewright_store::Revision;
use serde_json::{Value, json};

use crate::engine::{Engine, MANAGER, SERVER, Settings};
use crate::request::{Call, FieldValidation, WriteOptions};
use crate::verbs::{self, Part, follow_up};

/// The name of the networks that the server was started with.
const CIDR: &str = "kubernetes";

/// Where the parts of the system have their objects.
const SYSTEM: &str = "kube-system";

/// The namespaces of every cluster.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Writes what is missing, and goes on with what a server before this one has left half done. Roles and bindings that are there
/// get what they lack of those of the server's version, and what tells where the server is says where this one is; other objects
/// that are there stay as they are.
///
/// # Errors
/// When one of them is refused, which would be a defect of this table.
pub async fn bootstrap(engine: &Engine) -> Result<(), ApiError> {
    let namespaces = NAMESPACES.iter().map(|name| {
        ("namespaces", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    });
    let is_new = engine.store().revision() == Revision(0);
    let settings = engine.settings();
    let classes = [priority_class("system-cluster-critical"), priority_class("system-node-critical")];
    for (plural, value) in namespaces.chain([service_cidr(settings)]).chain(classes) {
        create(engine, MANAGER, plural, value).await?;
    }
    // Services get their addresses of networks that are ready.
    report_service_cidr(engine).await?;
    for (plural, value) in service(settings) {
        create(engine, MANAGER, plural, value.clone()).await?;
        correct(engine, plural, &value).await?;
    }
    follow_up::repair_addresses(engine).await;
    publish_authentication(engine).await?;
    create(engine, MANAGER, "configmaps", tracking(engine)).await?;
    // Together: a store on a disk syncs them all at once.
    let roles = roles::expected(engine).into_iter().map(async |value| roles::ensure(engine, value).await);
    let flows = flow::objects()
        .into_iter()
        .map(async |(plural, value)| create(engine, flow::MANAGER, plural, value).await);
    // Without tokio's budget for a task, which would let their order depend on what the caller did before.
    let others = try_join(try_join_all(flows), follow_up::api_services::begin(engine));
    tokio::task::unconstrained(try_join(try_join_all(roles), others)).await?;
    follow_up::resume_definitions(engine).await;
    if is_new {
        verbs::keep_origin(engine);
    }
    Ok(())
}

/// Goes on with a store that begins with what [`bootstrap`] has written for an engine of the same settings.
pub async fn adopt(engine: &Engine) {
    follow_up::repair_addresses(engine).await;
    follow_up::resume_definitions(engine).await;
    verbs::keep_origin(engine);
}

async fn create(engine: &Engine, manager: &str, plural: &str, value: Value) -> Result<(), ApiError> {
    let api_version = value["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kinds = engine.kinds();
    // What is not served (`--runtime-config`) is not written either.
    let Some(kind) = kinds.get(group, version, plural) else { return Ok(()) };
    let (namespace, name) = (object::namespace(&value).to_owned(), object::name(&value).to_owned());
    let call = Call { kind, namespace: &namespace, name: "", user: &SERVER };
    if engine.entry(Call { name: &name, ..call }).is_ok() {
        return Ok(());
    }
    verbs::create(engine, call, Decoded::of(value), written_by(manager)).await.map(drop)
}

/// Puts right what an object says that a server before this one has left, which was elsewhere perhaps.
async fn correct(engine: &Engine, plural: &str, wanted: &Value) -> Result<(), ApiError> {
    let api_version = wanted["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kinds = engine.kinds();
    let Some(kind) = kinds.get(group, version, plural) else { return Ok(()) };
    let put = |object: &mut Value| {
        for (member, value) in
            wanted.as_object().into_iter().flatten().filter(|(name, _)| *name != "metadata")
        {
            put(&mut object[member.as_str()], value);
        }
        Ok(())
    };
    let call = Call { kind, namespace: object::namespace(wanted), name: object::name(wanted), user: &SERVER };
    verbs::edit(engine, call, Part::Main, false, &put).await.map(drop)
}

/// Puts a value into another: objects member by member, all else whole.
fn put(into: &mut Value, value: &Value) {
    match (into, value) {
        (Value::Object(into), Value::Object(members)) => {
            for (name, member) in members {
                put(into.entry(name.as_str()).or_insert(Value::Null), member);
            }
        }
        (into, value) => *into = value.clone(),
    }
}

fn written_by(manager: &str) -> WriteOptions {
    WriteOptions {
        validation: FieldValidation::Strict,
        manager: manager.to_owned(),
        ..WriteOptions::default()
    }
}

/// The API server's own service, and where it is, as far as that is known
/// (`k8s.io/kubernetes/pkg/controlplane/controller/kubernetesservice`, `.../reconcilers`).
fn service(settings: &Settings) -> Vec<(&'static str, Value)> {
    let port = settings.api_port();
    let mut objects = vec![(
        "services",
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": "kubernetes",
                "namespace": "default",
                "labels": {"component": "apiserver", "provider": "kubernetes"}
            },
            "spec": {
                "clusterIP": settings.service_cidrs.api_server().to_string(),
                "ipFamilyPolicy": "SingleStack",
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}]
            }
        }),
    )];
    if let Some(address) = settings.advertise {
        let (ip, ports) = (address.ip(), json!([{"name": "https", "port": port, "protocol": "TCP"}]));
        let endpoints = json!({
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {
                "name": "kubernetes",
                "namespace": "default",
                "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}
            },
            "subsets": [{"addresses": [{"ip": ip.to_string()}], "ports": ports}]
        });
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": "kubernetes",
                "namespace": "default",
                "labels": {"kubernetes.io/service-name": "kubernetes"}
            },
            "addressType": Family::of(ip).name(),
            "endpoints": [{"addresses": [ip.to_string()], "conditions": {"ready": true}}],
            "ports": ports
        });
        objects.extend([("endpoints", endpoints), ("endpointslices", slice)]);
    }
    objects
}

/// The networks of service addresses (`k8s.io/kubernetes/pkg/controlplane/controller/defaultservicecidr`).
fn service_cidr(settings: &Settings) -> (&'static str, Value) {
    let cidrs: Vec<String> = settings.service_cidrs.iter().map(|cidr| cidr.to_string()).collect();
    let object = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": CIDR},
        "spec": {"cidrs": cidrs}
    });
    ("servicecidrs", object)
}

/// The networks are usable.
async fn report_service_cidr(engine: &Engine) -> Result<(), ApiError> {
    let kinds = engine.kinds();
    let Some(kind) = kinds.find(&SERVICE_CIDR) else { return Ok(()) };
    let now = object::time(engine.world().clock.now());
    let ready = |cidr: &mut Value| {
        if cidr["status"]["conditions"].is_null() {
            cidr["status"] = json!({"conditions": [{
                "type": "Ready",
                "status": "True",
                "reason": "",
                "message": "Kubernetes default Service CIDR is ready",
                "lastTransitionTime": now
            }]});
        }
        Ok(())
    };
    let call = Call { kind, namespace: "", name: CIDR, user: &SERVER };
    verbs::edit(engine, call, Part::Status, false, &ready).await.map(drop)
}

/// Tells servers behind this one whom to believe
/// (`k8s.io/kubernetes/pkg/controlplane/controller/clusterauthenticationtrust`).
async fn publish_authentication(engine: &Engine) -> Result<(), ApiError> {
    let own = &engine.settings().authentication;
    if own.is_empty() {
        return Ok(());
    }
    let name = "extension-apiserver-authentication";
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": SYSTEM},
        "data": own
    });
    create(engine, MANAGER, "configmaps", object).await?;
    let kinds = engine.kinds();
    let Some(kind) = kinds.find(&CONFIG_MAP) else { return Ok(()) };
    let combine = |object: &mut Value| {
        let said = serde_json::from_value(object["data"].take()).unwrap_or_default();
        object["data"] = json!(combined(&said, own));
        Ok(())
    };
    verbs::edit(engine, Call { kind, namespace: SYSTEM, name, user: &SERVER }, Part::Main, false, &combine)
        .await
        .map(drop)
}

/// Since when it is noted that the token of a Secret is used
/// (`k8s.io/kubernetes/pkg/controlplane/controller/legacytokentracking`).
fn tracking(engine: &Engine) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kube-apiserver-legacy-service-account-token-tracking", "namespace": SYSTEM},
        "data": {"since": engine.world().clock.now().strftime("%Y-%m-%d").to_string()}
    })
}

/// The two classes above all others (`k8s.io/kubernetes/pkg/apis/scheduling/v1/helpers.go`).
fn priority_class(name: &str) -> (&'static str, Value) {
    let (value, description) = match name {
        "system-node-critical" => {
            (2_000_001_000, "Used for system critical pods that must not be moved from their current node.")
        }
        _ => (
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
    };
    let object = json!({
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "description": description
    });
    ("priorityclasses", object)
}
