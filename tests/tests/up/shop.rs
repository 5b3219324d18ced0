//! A recording that is the same each time, and the page of it.

use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use kubewright_recording::{Header, Record, Writer};
use kubewright_tests::needed;
use serde_json::{Value, json};

/// When it begins, in seconds since 1970: 2030-01-01.
const BEGIN: i64 = 1_893_456_000;

/// `kubewright view` of a recording; ended when dropped.
pub(crate) struct Viewed {
    process: Child,
    folder: PathBuf,
    link: String,
}

impl Viewed {
    /// Opens the recording of the shop. `test` names its folder.
    pub(crate) fn shop(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("kubewright-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let file = std::fs::File::create(folder.join("shop.kwrec")).expect("a file");
        let mut writer = Writer::create(file, &Header::default()).expect("written");
        for record in records() {
            let record: Record = kubewright_objects::from_value(record).expect("a record");
            writer.push(&record).expect("written");
        }
        writer.finish().expect("written");
        // The page is titled by the file as it is named here.
        let mut process = Command::new(needed("KUBEWRIGHT"))
            .args(["view", "shop.kwrec"])
            .current_dir(&folder)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let word =
            |line: String| line.split_whitespace().find(|word| word.contains("#token=")).map(str::to_owned);
        let link = lines.filter_map(word).next().expect("a link");
        Self { process, folder, link }
    }

    /// What opens its page.
    pub(crate) fn link(&self) -> &str {
        &self.link
    }
}

impl Drop for Viewed {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn time(milliseconds: i64) -> Value {
    let time = jiff::Timestamp::from_millisecond(BEGIN * 1000 + milliseconds).expect("a time");
    json!(time.to_string())
}

/// A shop whose second version has an image that cannot be had, by hand and by the programs that react to it.
fn records() -> Vec<Value> {
    let mut shop = Shop::default();
    let [user, operator, manager, scheduler, node] = [
        ("jane", "kubectl/v1.37.0"),
        ("system:serviceaccount:shop:shop-operator", "shop-operator/1.0"),
        ("system:kube-controller-manager", "kube-controller-manager/v1.37.0"),
        ("system:kube-scheduler", "kube-scheduler/v1.37.0"),
        ("system:node:node-1", "kubelet/v1.37.0"),
    ];
    shop.write(user, "create", "/namespaces", "shop", "", &json!({"status": {"phase": "Active"}}));
    let ready =
        json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}});
    shop.write(node, "create", "/nodes", "node-1", "", &ready);
    shop.write(
        user,
        "create",
        "example.org/shops",
        "shop/books",
        "",
        &json!({"spec": {"image": "books:1", "size": 3}}),
    );
    for version in [1, 2] {
        let image = format!("books:{version}");
        let did = if version == 1 { "create" } else { "update" };
        if version == 2 {
            shop.at += 31_000;
            shop.write(
                user,
                did,
                "example.org/shops",
                "shop/books",
                "",
                &json!({"spec": {"image": image, "size": 3}}),
            );
        }
        shop.reconcile("shops", "shop/books", "Shop shop/books", "done", false);
        let deployment = |ready: u8| {
            json!({
            "spec": {"replicas": 3, "template": {"spec": {"containers": [{"name": "web", "image": image}]}}},
            "status": {"replicas": 3, "readyReplicas": ready, "conditions": [
                {"type": "Available", "status": if ready > 1 { "True" } else { "False" }, "reason": "MinimumReplicasUnavailable"}]}})
        };
        shop.write(
            operator,
            did,
            "apps/deployments",
            "shop/books",
            "shops shop/books",
            &deployment((version - 1) * 3),
        );
        let set = format!("shop/books-{version}");
        shop.write(
            manager,
            "create",
            "apps/replicasets",
            &set,
            "deployments shop/books",
            &json!({"spec": {"replicas": 3}}),
        );
        for number in 0..(4 - version) {
            let pod = format!("shop/books-{version}-{number}");
            let owner = format!("replicasets {set}");
            let spec = json!({"containers": [{"name": "web", "image": image}]});
            shop.write(
                manager,
                "create",
                "/pods",
                &pod,
                &owner,
                &json!({"spec": spec, "status": {"phase": "Pending"}}),
            );
            shop.write(
                scheduler,
                "update",
                "/pods",
                &pod,
                &owner,
                &json!({"spec": spec, "status": {"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "True"}]}}),
            );
            let status = match version {
                1 => json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}),
                _ => json!({"phase": "Pending", "containerStatuses": [{"name": "web", "state": {"waiting": {
                    "reason": "ImagePullBackOff", "message": format!("back-off pulling image \"{image}\"")}}}]}),
            };
            shop.at += 300;
            shop.write(node, "update", "/pods", &pod, &owner, &json!({"spec": spec, "status": status}));
            let failed = version == 2;
            let outcome =
                if failed { "error: books-2 has no pod that is ready" } else { "requeue after 30s" };
            shop.reconcile("shops", "shop/books", &format!("Pod {pod}"), outcome, failed);
            shop.reconcile("prices", "shop/books", "Shop shop/books", "done", false);
        }
        if version == 1 {
            shop.write(
                manager,
                "update",
                "apps/deployments",
                "shop/books",
                "shops shop/books",
                &deployment(3),
            );
            shop.records
                .push(json!({"mark": {"time": time(shop.at + 20_000), "what": "clock", "note": "20s"}}));
        }
    }
    for name in ["books", "prices", "opening-hours"] {
        shop.write(
            operator,
            "create",
            "/configmaps",
            &format!("shop/{name}"),
            "shops shop/books",
            &json!({"data": {"text": name}}),
        );
    }
    shop.write(
        operator,
        "delete",
        "/configmaps",
        "shop/opening-hours",
        "",
        &json!({"data": {"text": "opening-hours"}}),
    );
    shop.write(user, "create", "/secrets", "shop/till", "", &json!({"data": {"key": "a2V5"}}));
    shop.records
}

/// What has been recorded so far.
#[derive(Default)]
struct Shop {
    records: Vec<Value>,
    /// Milliseconds since it began.
    at: i64,
    revision: u64,
}

impl Shop {
    /// A write of who it is by, what it does, of which collection and key, below which owner, and what else the object has.
    fn write(
        &mut self,
        (user, program): (&str, &str),
        did: &str,
        collection: &str,
        key: &str,
        owner: &str,
        more: &Value,
    ) {
        self.at += 170;
        self.revision += 1;
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        let kind = match collection.split_once('/').map_or(collection, |(_, plural)| plural) {
            "namespaces" => "Namespace",
            "nodes" => "Node",
            "shops" => "Shop",
            "deployments" => "Deployment",
            "replicasets" => "ReplicaSet",
            "pods" => "Pod",
            "configmaps" => "ConfigMap",
            _ => "Secret",
        };
        let plural = collection.rsplit('/').next().unwrap_or_default();
        let fields =
            more.as_object().into_iter().flatten().map(|(field, _)| (format!("f:{field}"), json!({})));
        let mut object = json!({
            "apiVersion": "v1", "kind": kind,
            "metadata": {
                "name": name, "uid": format!("{plural} {key}"), "resourceVersion": self.revision.to_string(),
                "creationTimestamp": "2030-01-01T00:00:00Z",
                "managedFields": [{
                    "manager": program.split('/').next(), "operation": "Update", "apiVersion": "v1", "time": "2030-01-01T00:00:00Z",
                    "fieldsType": "FieldsV1", "fieldsV1": fields.collect::<serde_json::Map<_, _>>(),
                }],
            },
        });
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = json!(namespace);
        }
        if let Some((plural, key)) = owner.split_once(' ') {
            let uid = format!("{plural} {key}");
            object["metadata"]["ownerReferences"] =
                json!([{"uid": uid, "kind": plural, "name": key, "controller": true}]);
        }
        for (field, value) in more.as_object().into_iter().flatten() {
            object[field] = value.clone();
        }
        let by = json!({"user": user, "program": program});
        self.records
            .push(json!({"write": {"revision": self.revision, "time": time(self.at), "by": by, "did": did,
            "collection": collection, "key": key, "object": object}}));
        let (group, resource) = collection.split_once('/').unwrap_or_default();
        let code = if self.revision.is_multiple_of(9) { 409 } else { 200 };
        self.records.push(json!({"request": {"time": time(self.at), "by": by, "verb": did,
            "resource": format!("{group}/{resource}"), "key": key, "code": code}}));
    }

    fn reconcile(&mut self, controller: &str, key: &str, reasons: &str, outcome: &str, failed: bool) {
        self.records.push(json!({"reconcile": {"time": time(self.at), "controller": controller, "key": key, "reasons": reasons,
            "by": {"user": "system:serviceaccount:shop:shop-operator", "program": "shop-operator/1.0"},
            "waited": 0.0021, "took": 0.134, "outcome": outcome, "failed": failed, "accesses": accesses(failed)}}));
        self.at += 140;
    }
}

/// What a reconcile of the shop reads and writes.
fn accesses(failed: bool) -> Value {
    let came = if failed { ("refused", json!(409)) } else { ("version", json!("14")) };
    json!([
        {"verb": "get", "resource": "example.org/shops", "key": "shop/books", "cached": true, "times": 2, "version": "2"},
        {"verb": "get", "resource": "/configmaps", "key": "shop/prices", "cached": true, "absent": null},
        {"verb": "list", "resource": "/pods", "key": "shop/", "cached": true, "count": 3},
        {"verb": "patch", "resource": "apps/deployments", "key": "shop/books", came.0: came.1},
    ])
}
