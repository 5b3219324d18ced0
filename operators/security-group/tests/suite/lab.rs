//! A cluster with the operator in it, and a cloud for it.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::{core::v1::Node, events::v1::Event};
use kube::api::ObjectMeta;
use kubewright::testing::{Cluster, Deployed};
use kubewright_security_group::{Clouds, SecurityGroup, SecurityGroupStatus, manifests, operator_in};
use serde_json::{Value, json};

use crate::fake::Fake;

/// The name of the sample in the cluster, and that of its group in the cloud.
pub(crate) const SAMPLE: &str = "securitygroup-sample";
pub(crate) const GROUP: &str = "sg-test";

pub(crate) struct Lab {
    pub(crate) cluster: Cluster,
    pub(crate) cloud: Fake,
    pub(crate) operator: Deployed,
}

impl Lab {
    /// The operator with the credentials of demo.
    pub(crate) async fn start(cluster: Cluster) -> Self {
        let cloud = Fake::new(cluster.world());
        let operator = run(&cluster, &cloud, true).await;
        Self { cluster, cloud, operator }
    }

    /// The operator without credentials.
    pub(crate) async fn without_credentials(cluster: Cluster) -> Self {
        let cloud = Fake::new(cluster.world());
        let operator = run(&cluster, &cloud, false).await;
        Self { cluster, cloud, operator }
    }

    /// As [`Lab::start`], with three masters and the sample, once it is ready.
    pub(crate) async fn with_sample(cluster: Cluster) -> Self {
        let lab = Self::start(cluster).await;
        lab.masters().await;
        lab.create(SAMPLE, sample()).await;
        lab.until_ready(SAMPLE).await;
        lab
    }

    /// Three masters; gives their servers.
    pub(crate) async fn masters(&self) -> Vec<String> {
        let mut servers = Vec::new();
        for number in 1..=3 {
            servers.push(self.node(&format!("master-{number}"), &[MASTER]).await);
        }
        servers
    }

    /// A node and its server, which has one port; gives the server.
    pub(crate) async fn node(&self, name: &str, labels: &[(&str, &str)]) -> String {
        let server = self.cloud.with(|cloud| {
            let server = cloud.id();
            cloud.boot(&server);
            server
        });
        self.node_of(name, labels, &server.to_uppercase(), None).await;
        server
    }

    /// A node that says this of the machine that it is.
    pub(crate) async fn node_of(
        &self,
        name: &str,
        labels: &[(&str, &str)],
        uuid: &str,
        provider: Option<&str>,
    ) {
        self.cluster.create(&node(name, labels, uuid, provider)).await;
    }

    pub(crate) async fn create(&self, name: &str, spec: Value) -> SecurityGroup {
        self.cluster.create(&object(name, spec)).await
    }

    pub(crate) async fn until_ready(&self, name: &str) -> SecurityGroupStatus {
        self.until_condition(name, "Ready", "True").await
    }

    pub(crate) async fn until_condition(&self, name: &str, type_: &str, wanted: &str) -> SecurityGroupStatus {
        let holds = |cluster: Cluster| async move {
            let object = cluster.get::<SecurityGroup>(name).await;
            let status = object.status.ok_or("it has no status")?;
            // Of what is there now, not of what was there before.
            let current = status.observed_generation == object.metadata.generation;
            let is = status.conditions.iter().any(|one| one.type_ == type_ && one.status == wanted);
            if is && current { Ok(status) } else { Err(format!("{:?}", status.conditions)) }
        };
        self.cluster.run_until(holds, Duration::from_mins(5)).await
    }

    pub(crate) async fn status(&self, name: &str) -> SecurityGroupStatus {
        self.cluster.get::<SecurityGroup>(name).await.status.unwrap_or_default()
    }

    /// Status, reason and message of a condition.
    pub(crate) async fn condition(&self, name: &str, type_: &str) -> (String, String, String) {
        let status = self.status(name).await;
        let found = status.conditions.into_iter().find(|condition| condition.type_ == type_);
        found.map(|one| (one.status, one.reason, one.message)).unwrap_or_default()
    }

    /// The notes of the Events with this reason, sorted.
    pub(crate) async fn notes(&self, reason: &str) -> Vec<String> {
        let events = self.cluster.list::<Event>().await.into_iter();
        let events = events.filter(|event| event.reason.as_deref() == Some(reason));
        let mut notes: Vec<String> = events.filter_map(|event| event.note).collect();
        notes.sort();
        notes
    }

    /// The only group of this name.
    pub(crate) fn group(&self, name: &str) -> String {
        let ids = self.cloud.with(|cloud| cloud.named(name));
        let [id] = ids.as_slice() else { panic!("one group is called {name}: {ids:?}") };
        id.clone()
    }

    /// The servers in the only group of this name, sorted.
    pub(crate) fn members(&self, name: &str) -> Vec<String> {
        let id = self.group(name);
        self.cloud.with(|cloud| cloud.members(&id)).into_iter().collect()
    }

    pub(crate) async fn relabel(&self, node: &str, labels: Value) {
        self.cluster.patch::<Node>(node, json!({"metadata": {"labels": labels}})).await;
    }

    /// What has to hold at rest, whatever happened: one group for each object, no other one, and who is in it.
    pub(crate) fn expect(&self, name: &str, mut servers: Vec<String>) {
        servers.sort();
        assert_eq!(self.members(name), servers);
        let groups =
            self.cloud.with(|cloud| cloud.groups.values().filter(|group| group["name"] != "default").count());
        assert_eq!(groups, 1, "no group is left behind or made twice");
    }
}

pub(crate) const MASTER: (&str, &str) = ("node-role.kubernetes.io/master", "");

async fn run(cluster: &Cluster, cloud: &Fake, credentials: bool) -> Deployed {
    let cloud = cloud.clone();
    let operator = move || {
        let access = credentials.then(|| cloud.access("demo"));
        operator_in(Clouds::new(Arc::new(cloud.clone()), move || Ok(access.clone())))
    };
    cluster.run(operator).await
}

pub(crate) fn object(name: &str, spec: Value) -> SecurityGroup {
    SecurityGroup::new(name, kubewright::object::from_value(spec).expect("a spec"))
}

/// The spec of the sample.
pub(crate) fn sample() -> Value {
    let sample: Value = serde_saphyr::from_str(manifests::SAMPLE).expect("YAML");
    sample["spec"].clone()
}

/// The sample's spec with other fields.
pub(crate) fn sample_with(more: Value) -> Value {
    let (Value::Object(mut spec), Value::Object(more)) = (sample(), more) else { panic!("fields are a map") };
    spec.extend(more);
    Value::Object(spec)
}

fn node(name: &str, labels: &[(&str, &str)], uuid: &str, provider: Option<&str>) -> Node {
    let text = |text: &str| text.to_owned();
    let labels = labels.iter().map(|(key, value)| (text(key), text(value))).collect();
    let mut node: Node = kubewright::object::from_value(json!({
        "spec": {"providerID": provider},
        "status": {"nodeInfo": {
            "systemUUID": uuid, "architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "",
            "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "", "operatingSystem": "", "osImage": "",
        }},
    }))
    .expect("a node");
    node.metadata = ObjectMeta { name: Some(text(name)), labels: Some(labels), ..ObjectMeta::default() };
    node
}
