//! A cluster in which causes are made, and how they are asked for.

use std::time::Duration;

use jiff::Timestamp;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, PropagationPolicy,
    TypeMeta,
};
use kube::{Api, Client, ResourceExt};
use kubewright_cluster::{Builder, Cluster};
use kubewright_why::{Cause, Finding, Node, Report, Target, explain, gather};
use serde_json::{Value, json};

/// A cluster at rest.
pub(crate) struct Lab {
    pub(crate) cluster: Cluster,
    pub(crate) client: Client,
}

impl Lab {
    /// With all controllers and so many nodes.
    pub(crate) async fn start(nodes: usize) -> Self {
        Self::of(Cluster::builder().nodes(nodes)).await
    }

    /// With these controllers and a node.
    pub(crate) async fn with(controllers: &str) -> Self {
        Self::of(Cluster::builder().controllers(controllers).nodes(1)).await
    }

    pub(crate) async fn of(builder: Builder) -> Self {
        let cluster = builder.start().await.expect("a cluster");
        let lab = Self { client: cluster.client(), cluster };
        lab.cluster.settle().await;
        lab
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.cluster.world().clock.now()
    }

    /// Lets time pass, and what falls due happen.
    pub(crate) async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        self.cluster.settle().await;
    }

    fn api(&self, api_version: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&kube::api::GroupVersionKind::gvk(group, version, kind));
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    fn api_of(&self, object: &DynamicObject) -> Api<DynamicObject> {
        let types = object.types.as_ref().expect("a kind");
        self.api(&types.api_version, &types.kind, object.metadata.namespace.as_deref())
    }

    /// Creates an object; kinds of namespaces say theirs.
    pub(crate) async fn create(&self, object: Value) -> DynamicObject {
        let object: DynamicObject = serde_json::from_str(&object.to_string()).expect("an object");
        let made = self.api_of(&object).create(&PostParams::default(), &object).await.expect("created");
        self.cluster.settle().await;
        DynamicObject { types: object.types, ..made }
    }

    pub(crate) async fn patch(&self, object: &DynamicObject, patch: Value) {
        let api = self.api_of(object);
        api.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");
        self.cluster.settle().await;
    }

    pub(crate) async fn set_status(&self, object: &DynamicObject, status: Value) {
        let patch = Patch::Merge(json!({"status": status}));
        let api = self.api_of(object);
        api.patch_status(&object.name_any(), &PatchParams::default(), &patch).await.expect("patched");
        self.cluster.settle().await;
    }

    pub(crate) async fn delete(&self, object: &DynamicObject, policy: PropagationPolicy) {
        let params = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
        self.api_of(object).delete(&object.name_any(), &params).await.expect("deleted");
        self.cluster.settle().await;
    }

    /// The objects of a kind in the namespace `default`.
    pub(crate) async fn api_list(&self, api_version: &str, kind: &str) -> Vec<DynamicObject> {
        let all =
            self.api(api_version, kind, Some("default")).list(&ListParams::default()).await.expect("a list");
        let types = TypeMeta { api_version: api_version.to_owned(), kind: kind.to_owned() };
        all.items.into_iter().map(|object| DynamicObject { types: Some(types.clone()), ..object }).collect()
    }

    /// Approves or denies a request for a certificate.
    pub(crate) async fn decide(&self, request: &DynamicObject, kind: &str) {
        let condition = json!({"type": kind, "status": "True", "reason": "Test", "message": "not today"});
        let patch = Patch::Merge(json!({"status": {"conditions": [condition]}}));
        let api = self.api_of(request);
        let params = PatchParams::default();
        api.patch_subresource("approval", &request.name_any(), &params, &patch).await.expect("decided");
    }

    pub(crate) async fn why(&self, object: &str) -> Report {
        self.why_in(object, "default").await
    }

    pub(crate) async fn why_in(&self, object: &str, namespace: &str) -> Report {
        let target = Target::parse(&[object.to_owned()], namespace).expect("an object");
        explain(&gather(&self.client, &target, self.now()).await.expect("a picture"))
    }

    /// That a cause is found from an object on, with its evidence.
    pub(crate) async fn finds(&self, object: &str, cause: Cause) -> Finding {
        self.finds_in(object, "default", cause).await
    }

    pub(crate) async fn finds_in(&self, object: &str, namespace: &str, cause: Cause) -> Finding {
        let report = self.why_in(object, namespace).await;
        found(&report.object, cause).cloned().unwrap_or_else(|| panic!("{cause:?} is not in {report:#?}"))
    }
}

/// The finding of a cause in a tree.
pub(crate) fn found(node: &Node, cause: Cause) -> Option<&Finding> {
    let own = node.findings.iter().find(|finding| finding.cause == cause);
    own.or_else(|| node.children.iter().find_map(|child| found(child, cause)))
}

/// That a line says all of this.
#[track_caller]
pub(crate) fn says(finding: &Finding, words: &[&str]) {
    let all = format!("{} | {} | {}", finding.message, finding.evidence.join(" | "), finding.next);
    for word in words {
        assert!(all.contains(word), "{word:?} is not in {all}");
    }
}

/// A pod `p` with a container `c`; `more` is merged into its spec.
pub(crate) fn pod(more: Value) -> Value {
    annotated(json!({}), more)
}

/// The same, with annotations that say what happens to it.
pub(crate) fn annotated(annotations: Value, more: Value) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "labels": {"app": "web"}, "annotations": annotations},
        "spec": {"containers": [{"name": "c", "image": "web:1"}]}});
    for (key, value) in more.as_object().into_iter().flatten() {
        pod["spec"][key] = value.clone();
    }
    pod
}

/// A Deployment `web`; `more` is merged into its spec, `template` into that of its pods.
pub(crate) fn deployment(annotations: Value, more: Value, template: Value) -> Value {
    workload("Deployment", annotations, more, template)
}

pub(crate) fn workload(kind: &str, annotations: Value, more: Value, template: Value) -> Value {
    let of = annotated(annotations, template);
    let mut object = json!({"apiVersion": "apps/v1", "kind": kind,
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}, "annotations": of["metadata"]["annotations"]}, "spec": of["spec"]}}});
    for (key, value) in more.as_object().into_iter().flatten() {
        object["spec"][key] = value.clone();
    }
    object
}
