//! The operator as a process, on OpenStack's own servers and in the machine's time, killed again and again.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kubewright::{World, command::Installation, testing};
use kubewright_security_group::{
    SecurityGroup,
    cloud::{Internet, Network, Neutron, Session, Transport, Trust},
    operator,
};
use serde_json::{Value, json};

use crate::{fake, lab::object};

/// How long the servers may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often the operator is killed.
const KILLS: usize = 10;
/// How many SecurityGroups and servers there are.
const GROUPS: usize = 3;
const SERVERS: usize = 3;

/// No group twice, none left behind, every selected server in all groups at the end: whenever the operator was killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs OpenStack's servers: cargo xtask test starts them"]
async fn sg_01_killed_ten_times_it_ends_with_one_group_and_all_servers() {
    let run = format!("kill-{}", std::process::id());
    let cloud = Cloud::log_in().await;
    cloud.unlimited().await;
    let kubernetes = Kubernetes::start(&run).await;
    let mut servers = Vec::new();
    for number in 0..SERVERS {
        let server = cloud.boot(&format!("{run}-{number}")).await;
        kubernetes.node(&format!("node-{number}"), &server).await;
        servers.push(server);
    }
    let dice = World::simulated(2026).dice;
    let mut operator = kubernetes.operator();
    for number in 0..GROUPS {
        let name = format!("{run}-{number}");
        let spec =
            json!({"name": name, "nodeSelector": {"role": "master"}, "syncPeriodSeconds": 10, "rules": []});
        kubernetes.groups.create(&PostParams::default(), &object(&name, spec)).await.expect("created");
    }
    for kill in 0..KILLS {
        tokio::time::sleep(Duration::from_millis(400 + dice.below(2_500) as u64)).await;
        operator.kill();
        // Something to do for the next one: other rules, and servers that leave and come back.
        for number in 0..GROUPS {
            let port = 8000 + 10 * kill + number;
            let rules = json!([{"portRangeMin": port, "portRangeMax": port, "remoteIpPrefix": "10.0.0.0/8"}]);
            kubernetes.patch(&format!("{run}-{number}"), json!({"spec": {"rules": rules}})).await;
        }
        kubernetes.label(&format!("node-{}", kill % SERVERS), kill % 2 == 0 || kill + SERVERS >= KILLS).await;
        operator = kubernetes.operator();
    }
    for number in 0..SERVERS {
        kubernetes.label(&format!("node-{number}"), true).await;
    }
    for number in 0..GROUPS {
        let name = format!("{run}-{number}");
        kubernetes.until_ready(&name).await;
        let groups = cloud.neutron.groups_named(&name).await.expect("a list");
        assert_eq!(groups.len(), 1, "no group twice");
        // It was ready before the last nodes were selected, too.
        let wanted: BTreeSet<&str> = servers.iter().map(String::as_str).collect();
        eventually("every selected server", async || {
            let members = cloud.neutron.ports_in_group(&groups[0].id).await.expect("a list");
            members.iter().map(|port| port.device_id.as_str()).collect::<BTreeSet<_>>() == wanted
        })
        .await;
        assert_eq!(groups[0].rules.len(), 1);
    }
    for number in 0..GROUPS {
        let name = format!("{run}-{number}");
        kubernetes.groups.delete(&name, &DeleteParams::default()).await.expect("deleted");
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    operator.kill();
    let _operator = kubernetes.operator();
    for number in 0..GROUPS {
        let name = format!("{run}-{number}");
        eventually(&name, async || kubernetes.groups.get_opt(&name).await.is_ok_and(|found| found.is_none()))
            .await;
        assert_eq!(cloud.neutron.groups_named(&name).await.expect("a list"), [], "no group is left behind");
    }
    for server in servers {
        cloud.nova(Method::DELETE, &format!("/servers/{server}"), Value::Null).await;
    }
}

async fn eventually(what: &str, holds: impl AsyncFn() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// OpenStack, as demo.
struct Cloud {
    neutron: Neutron,
    transport: Arc<dyn Transport>,
    token: String,
    /// The services, by type.
    urls: BTreeMap<String, String>,
    admin: Session,
    project: String,
}

impl Cloud {
    async fn log_in() -> Self {
        let url = std::env::var("OPENSTACK_URL").expect("OPENSTACK_URL says where Keystone is");
        let session = Session::new(fake::access(&url, "demo"), &Internet).expect("a session");
        let project = session.project().await.expect("a login").expect("a project");
        let admin = Session::new(fake::access(&url, "admin"), &Internet).expect("a session");
        let transport = Internet.transport(&Trust::default()).expect("a transport");
        let domain = json!({"id": "default"});
        let login = json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user": {"name": "demo", "password": "secret", "domain": domain}}},
            "scope": {"project": {"name": "demo", "domain": domain}},
        }});
        let (headers, body) =
            ask(&*transport, Method::POST, &format!("{url}/v3/auth/tokens"), "", login).await;
        let token = headers["x-subject-token"].to_str().expect("text").to_owned();
        let services = body["token"]["catalog"].as_array().expect("a catalog");
        let public = |service: &Value| {
            let endpoints = service["endpoints"].as_array().expect("endpoints");
            let endpoint = endpoints.iter().find(|endpoint| endpoint["interface"] == "public")?;
            Some((service["type"].as_str()?.to_owned(), endpoint["url"].as_str()?.to_owned()))
        };
        let urls = services.iter().filter_map(public).collect();
        Self { neutron: Neutron::new(Arc::new(session)), transport, token, urls, admin, project }
    }

    /// The project may have any number of groups.
    async fn unlimited(&self) {
        let body = json!({"quota": {"security_group": -1, "security_group_rule": -1}});
        let path = format!("/quotas/{}", self.project);
        self.admin
            .network(&Method::PUT, &path, Some(&body), &HeaderMap::new())
            .await
            .expect("quotas are set");
    }

    async fn nova(&self, method: Method, path: &str, body: Value) -> Value {
        ask(&*self.transport, method, &format!("{}{path}", self.urls["compute"]), &self.token, body).await.1
    }

    /// A server of Nova's, once it is active.
    async fn boot(&self, name: &str) -> String {
        let flavors = self.nova(Method::GET, "/flavors", Value::Null).await;
        let images = format!("{}/v2/images", self.urls["image"]);
        let images = ask(&*self.transport, Method::GET, &images, &self.token, Value::Null).await.1;
        let networks = format!("{}/v2.0/networks?name=shared", self.urls["network"]);
        let networks = ask(&*self.transport, Method::GET, &networks, &self.token, Value::Null).await.1;
        let server = json!({"server": {
            "name": name, "flavorRef": flavors["flavors"][0]["id"], "imageRef": images["images"][0]["id"],
            "networks": [{"uuid": networks["networks"][0]["id"]}],
        }});
        let made = self.nova(Method::POST, "/servers", server).await;
        let id = made["server"]["id"].as_str().expect("an ID").to_owned();
        let path = format!("/servers/{id}");
        eventually("the server is active", async || {
            self.nova(Method::GET, &path, Value::Null).await["server"]["status"] == "ACTIVE"
        })
        .await;
        id
    }
}

async fn ask(
    transport: &dyn Transport,
    method: Method,
    url: &str,
    token: &str,
    body: Value,
) -> (HeaderMap, Value) {
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let request = Request::builder()
        .method(method)
        .uri(url)
        .header("content-type", "application/json")
        .header("x-auth-token", token)
        .body(body)
        .expect("a request");
    let answer = transport.send(request).await.expect("an answer");
    assert!(answer.status().is_success(), "{url}: {answer:?}");
    (answer.headers().clone(), serde_json::from_slice(answer.body()).unwrap_or_default())
}

/// A control plane in this process, behind a socket for the operator's.
struct Kubernetes {
    _cluster: testing::Cluster,
    groups: Api<SecurityGroup>,
    nodes: Api<Node>,
    kubeconfig: PathBuf,
}

/// The operator's process; killed when dropped.
struct Operator(Child);

impl Operator {
    fn kill(&mut self) {
        let _ = self.0.kill(); // SIGKILL
        let _ = self.0.wait();
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Kubernetes {
    async fn start(run: &str) -> Self {
        let world = World::real();
        let endpoint =
            testing::Endpoint::bind((Ipv4Addr::LOCALHOST, 0).into(), &world).await.expect("a port");
        let (address, ca, token) = (endpoint.address(), endpoint.ca_pem(), world.dice.uid());
        let settings = testing::Builder::default()
            .world(world)
            .nodes(0)
            .controllers("")
            .endpoint(endpoint)
            .admin_token(testing::Secret::of(token.clone()));
        let cluster = testing::Cluster::of(settings).await.expect("the cluster starts");
        let folder = std::env::temp_dir().join(format!("kubewright-{run}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("ca.crt"), ca).expect("a file");
        let kubeconfig = folder.join("kubeconfig");
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "x", "cluster": {"server": format!("https://{address}"), "certificate-authority": folder.join("ca.crt")}}],
            "users": [{"name": "x", "user": {"token": token}}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        });
        std::fs::write(&kubeconfig, config.to_string()).expect("a file");
        let client = cluster.client();
        operator().prepare(&client, &Installation::default()).await.expect("it is installed");
        let (groups, nodes) = (Api::default_namespaced(client.clone()), Api::all(client));
        Self { _cluster: cluster, groups, nodes, kubeconfig }
    }

    fn operator(&self) -> Operator {
        let mut command = Command::new(env!("CARGO_BIN_EXE_security-group"));
        let url = std::env::var("OPENSTACK_URL").expect("OPENSTACK_URL says where Keystone is");
        command
            .env("KUBECONFIG", &self.kubeconfig)
            .env("OS_AUTH_URL", format!("{url}/v3"))
            .env("OS_USERNAME", "demo")
            .env("OS_PASSWORD", "secret")
            .env("OS_PROJECT_NAME", "demo")
            .stdin(Stdio::null());
        Operator(command.spawn().expect("the operator starts"))
    }

    async fn node(&self, name: &str, server: &str) {
        let node = json!({
            "metadata": {"name": name, "labels": {"node-role.kubernetes.io/master": ""}},
            "spec": {"providerID": format!("openstack:///{server}")},
        });
        let node: Node = kubewright::object::from_value(node).expect("a node");
        self.nodes.create(&PostParams::default(), &node).await.expect("created");
    }

    async fn label(&self, node: &str, selected: bool) {
        let labels = json!({"node-role.kubernetes.io/master": if selected { Some("") } else { None }});
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        self.nodes.patch(node, &PatchParams::default(), &patch).await.expect("labelled");
    }

    async fn patch(&self, name: &str, patch: Value) {
        self.groups.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");
    }

    async fn until_ready(&self, name: &str) {
        eventually(name, async || {
            let object = self.groups.get(name).await.expect("it is there");
            let status = object.status.unwrap_or_default();
            let ready = status.conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True");
            ready
                && status.observed_generation == object.metadata.generation
                && status.attached == Some(format!("{SERVERS}/{SERVERS}"))
        })
        .await;
    }
}
