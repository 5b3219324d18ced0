//! What a write of a reconcile costs beside the same request by a bare client, and what a read of the cache costs.
//!
//! `cargo bench -p kubewright-runtime --bench own_writes`: CPU time of one thread, the least of some rounds. The API server is a function
//! that has its answers ready: a Deployment of 4 KB, a third of it managed fields. Each write comes back from the watch too.

use std::{
    convert::Infallible,
    fs,
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture, stream};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, Client, api::PostParams, client::Body};
use kubewright_runtime::{Context, Controller, Error, Key, Manager, Outcome, Reconciler};
use kubewright_world::World;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 7;
const WRITES: u32 = 2000;
const READS: u32 = 1_000_000;

/// A Deployment as an API server has it, which says `NOTE` and has the resource version `VERSION`.
fn stored() -> Value {
    let container = |name: &str| {
        json!({"name": name, "image": format!("registry.example/{name}:1.2.3"), "imagePullPolicy": "IfNotPresent",
            "args": ["--listen", ":8080", "--log-format", "json"],
            "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "b"}}}],
            "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"}, "periodSeconds": 10,
                "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3},
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"})
    };
    let labels = json!({"app.kubernetes.io/name": "web", "app.kubernetes.io/managed-by": "bench"});
    let owned = |operation: &str, fields: Value| {
        json!({"manager": "bench", "operation": operation, "apiVersion": "apps/v1", "time": "2024-01-01T00:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": fields})
    };
    let containers: serde_json::Map<_, _> = ["web", "proxy"]
        .iter()
        .map(|name| {
            let fields = ["image", "args", "env", "ports", "resources", "livenessProbe", "volumeMounts"];
            let fields: serde_json::Map<_, _> =
                fields.iter().map(|field| (format!("f:{field}"), json!({".": {}}))).collect();
            (format!("k:{{\"name\":\"{name}\"}}"), Value::Object(fields))
        })
        .collect();
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "default", "uid": "6f2a1a52-9e0a-4f58-8f9c-0c8f5a1c6a11", "resourceVersion": "VERSION",
            "generation": 3, "creationTimestamp": "2024-01-01T00:00:00Z", "labels": labels, "annotations": {"note": "NOTE"},
            "managedFields": [
                owned("Update", json!({"f:metadata": {"f:annotations": {".": {}, "f:note": {}}, "f:labels": {".": {}}}})),
                owned("Apply", json!({"f:spec": {"f:replicas": {}, "f:selector": {}, "f:template": {"f:spec": {"f:containers": containers}}}})),
                owned("Update", json!({"f:status": {"f:replicas": {}, "f:readyReplicas": {}, "f:conditions": {".": {}}}})),
            ],
        },
        "spec": {
            "replicas": 3, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [container("web"), container("proxy")],
                    "volumes": [{"name": "data", "emptyDir": {}}],
                    "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler",
                    "securityContext": {}, "terminationGracePeriodSeconds": 30,
                },
            },
        },
        "status": {
            "observedGeneration": 3, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
            "conditions": [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable",
                "message": "Deployment has minimum availability.",
                "lastTransitionTime": "2024-01-01T00:00:00Z", "lastUpdateTime": "2024-01-01T00:00:00Z"}],
        },
    })
}

fn deployment() -> Deployment {
    kubewright_objects::from_value(stored()).expect("a Deployment")
}

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// An API server that has one object.
struct Server {
    text: String,
    version: AtomicU64,
    watch: parking_lot::Mutex<Option<mpsc::UnboundedSender<Bytes>>>,
}

impl Server {
    fn object(&self) -> String {
        let version = self.version.load(Ordering::SeqCst);
        // Each write turns the note.
        let note = if version.is_multiple_of(2) { "even" } else { "odd" };
        self.text.replacen("VERSION", &version.to_string(), 1).replacen("NOTE", note, 1)
    }

    fn answer(&self, request: &Request<Body>) -> Answer {
        let query = request.uri().query().unwrap_or_default();
        let text = if request.method() != Method::GET {
            self.version.fetch_add(1, Ordering::SeqCst);
            let object = self.object();
            if let Some(watch) = &*self.watch.lock() {
                // Nobody may watch any more.
                let _ = watch.send(format!("{{\"type\":\"MODIFIED\",\"object\":{object}}}\n").into());
            }
            object
        } else if query.contains("watch=true") {
            let (sender, mut receiver) = mpsc::unbounded_channel();
            *self.watch.lock() = Some(sender);
            let frames = stream::poll_fn(move |context| {
                receiver
                    .poll_recv(context)
                    .map(|next| next.map(|bytes| Ok::<_, Infallible>(Frame::data(bytes))))
            });
            return Response::new(StreamBody::new(frames).boxed_unsync());
        } else {
            format!(
                r#"{{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{{"resourceVersion":"2"}},"items":[{}]}}"#,
                self.object()
            )
        };
        Response::new(Full::new(Bytes::from(text)).boxed_unsync())
    }
}

fn client() -> Client {
    let server = Arc::new(Server {
        text: stored().to_string(),
        version: AtomicU64::new(2),
        watch: parking_lot::Mutex::new(None),
    });
    let service = tower::service_fn(move |request: Request<Body>| {
        let answer = server.answer(&request);
        async move { Ok::<_, Infallible>(answer) }
    });
    Client::new(service, "default")
}

/// The time that this thread has had a CPU, in nanoseconds.
fn cpu() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells");
    text.split_whitespace().next().and_then(|first| first.parse().ok()).expect("nanoseconds")
}

/// What is done `times` often in each round.
type Work = for<'a> fn(&'a Context, &'a Key, u32) -> BoxFuture<'a, Result<(), Error>>;

/// The other note than the object has, in an object that is otherwise the same.
fn changed(current: &Deployment) -> Deployment {
    let mut changed = current.clone();
    let annotations = changed.metadata.annotations.get_or_insert_default();
    let note = if annotations.get("note").is_some_and(|note| note == "even") { "odd" } else { "even" };
    annotations.insert("note".into(), note.into());
    changed
}

/// What an operator would desire: what it says itself, without what the server has added.
fn desired(current: &Deployment) -> Deployment {
    let mut desired = changed(current);
    desired.metadata.uid = None;
    desired.metadata.resource_version = None;
    desired.metadata.creation_timestamp = None;
    desired.metadata.generation = None;
    desired.status = None;
    desired
}

const WORK: [(&str, u32, Work); 6] = [
    ("a bare client's PUT", WRITES, |ctx, key, times| {
        async move {
            let api = Api::<Deployment>::default_namespaced(ctx.client().clone());
            for _ in 0..times {
                let Some(current) = ctx.get::<Deployment>(key) else { return Err(Error::new("not there")) };
                api.replace(&key.name, &PostParams::default(), &changed(&current)).await?;
            }
            Ok(())
        }
        .boxed()
    }),
    ("ctx.update", WRITES, |ctx, key, times| {
        async move {
            for _ in 0..times {
                let Some(current) = ctx.get::<Deployment>(key) else { return Err(Error::new("not there")) };
                ctx.update(&changed(&current)).await?;
            }
            Ok(())
        }
        .boxed()
    }),
    ("ctx.apply that writes", WRITES, |ctx, key, times| {
        async move {
            for _ in 0..times {
                let Some(current) = ctx.get::<Deployment>(key) else { return Err(Error::new("not there")) };
                assert!(ctx.apply(&desired(&current)).await?.is_changed());
            }
            Ok(())
        }
        .boxed()
    }),
    ("ctx.apply that finds it done", WRITES, |ctx, key, times| {
        async move {
            let Some(current) = ctx.get::<Deployment>(key) else { return Err(Error::new("not there")) };
            let done = desired(&changed(&current));
            ctx.apply(&done).await?;
            for _ in 0..times {
                assert!(!ctx.apply(&done).await?.is_changed());
            }
            Ok(())
        }
        .boxed()
    }),
    ("ctx.patch_status", WRITES, |ctx, key, times| {
        async move {
            for _ in 0..times {
                let status = json!({"status": {"readyReplicas": 3, "observedGeneration": 3}});
                ctx.patch_status::<Deployment>(key, status).await?;
            }
            Ok(())
        }
        .boxed()
    }),
    ("ctx.get", READS, |ctx, key, times| {
        async move {
            for _ in 0..times {
                black_box(ctx.get::<Deployment>(key));
            }
            Ok(())
        }
        .boxed()
    }),
];

struct Bench(CancellationToken);

impl Reconciler for Bench {
    #[expect(clippy::print_stdout, reason = "a benchmark tells its result")]
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        if self.0.is_cancelled() {
            return Ok(Outcome::Done);
        }
        for (name, times, work) in WORK {
            let mut least = u64::MAX;
            for _ in 0..ROUNDS {
                let before = cpu();
                work(ctx, key, times).await?;
                least = least.min(cpu() - before);
            }
            println!("{name}: {} ns", least / u64::from(times));
        }
        self.0.cancel();
        Ok(Outcome::Done)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    assert_eq!(deployment().metadata.name.as_deref(), Some("web"));
    let done = CancellationToken::new();
    let mut manager = Manager::in_process(client(), World::real());
    manager.add(Controller::new("bench", Bench(done.clone())).for_kind::<Deployment>());
    manager.run(done).await
}
