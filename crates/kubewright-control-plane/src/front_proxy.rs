//! How API servers behind this one know it: it shows them a certificate, and says in a ConfigMap whose that is
//! (`kube-system/extension-apiserver-authentication`).

use std::time::Duration;

use kubewright_identity::authn::FrontProxy;
use kubewright_identity::trust::Bundle;
use kubewright_serve::authority::{Authority, AuthorityError, Keys, Profile};
use kubewright_world::World;

/// The common name of the certificate, as kubeadm has it.
const NAME: &str = "front-proxy-client";

/// What is shown to API servers behind this one.
#[derive(Clone, Debug, Default)]
pub(crate) enum ProxyClient {
    /// A certificate of an authority of the cluster's own.
    #[default]
    Own,
    /// This one, and its key.
    Given(String, String),
    /// Nothing.
    Nothing,
}

/// The authority of the certificate that a cluster shows.
pub(crate) fn profile() -> Profile {
    Profile { name: "front-proxy-ca", keys: Keys::World, ..Profile::default() }
}

/// An authority of a cluster's own, and what it vouches for.
#[derive(Clone)]
pub(crate) struct OwnProxy {
    pub(crate) trust: FrontProxy,
    pub(crate) chain: String,
    pub(crate) key: String,
}

impl OwnProxy {
    /// With a new authority.
    ///
    /// # Errors
    /// When the machine gives no entropy.
    pub(crate) fn new(world: &World) -> Result<Self, AuthorityError> {
        Self::of(&Authority::with_profile(world, profile())?)
    }

    /// With an authority that was kept.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn of(authority: &Authority) -> Result<Self, AuthorityError> {
        let shown = authority.client_certificate(NAME, &[], Duration::MAX)?;
        let bundle = Bundle::of_der([authority.ca_der().clone()]);
        let bundle = bundle.map_err(|error| AuthorityError::Unreadable(error.to_string()))?;
        Ok(Self {
            trust: FrontProxy::new(bundle).allowed_names(vec![NAME.to_owned()]),
            chain: shown.certificate_pem(),
            key: shown.key_pem(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use http::{Method, Request};
    use kube::Client;
    use kubewright_identity::authn::User;
    use serde_json::{Value, json};

    use super::*;
    use crate::{ControlPlane, Endpoint};

    async fn send(client: &Client, method: Method, path: &str, body: &Value) -> Result<Value, kube::Error> {
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let told = client.request_text(request.body(body).expect("a good request")).await?;
        Ok(serde_json::from_str(&told).expect("JSON"))
    }

    async fn create(client: &Client, path: &str, body: &Value) {
        send(client, Method::POST, path, body).await.expect("it is created");
    }

    async fn get(client: &Client, path: &str) -> Value {
        send(client, Method::GET, path, &Value::Null).await.expect("it is there")
    }

    /// What the first cluster says of the certificate that it shows.
    async fn trusted(client: &Client) -> FrontProxy {
        let map =
            get(client, "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication").await;
        let data = |key: &str| map["data"][key].as_str().unwrap_or_default().to_owned();
        let ca = Bundle::of_pem(data("requestheader-client-ca-file").as_bytes()).expect("certificates");
        let names: Vec<String> = serde_json::from_str(&data("requestheader-allowed-names")).expect("a list");
        assert_eq!(data("requestheader-username-headers"), r#"["X-Remote-User"]"#);
        FrontProxy::new(ca).allowed_names(names)
    }

    #[tokio::test]
    async fn a_second_cluster_behind_a_service_of_the_first_knows_who_asks() {
        let world = World::real();
        let first = ControlPlane::builder().world(world.clone()).start().await.expect("it starts");
        let admin = first.client();
        let address = SocketAddr::from(([127, 64, 0, 88], 0));
        let endpoint = Endpoint::bind(address, &world).await.expect("a free port");
        let port = endpoint.address().port();
        let second =
            ControlPlane::builder().world(world).endpoint(endpoint).front_proxy(trusted(&admin).await);
        let second = second.start().await.expect("it starts");
        let behind = second.client();
        let group = "example.com";
        let definition = json!({
            "metadata": {"name": "things.example.com"},
            "spec": {
                "group": group, "scope": "Cluster",
                "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}}]
            }
        });
        create(&behind, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
        let service =
            json!({"metadata": {"name": "api"}, "spec": {"ports": [{"name": "https", "port": 443}]}});
        create(&admin, "/api/v1/namespaces/default/services", &service).await;
        let slice = json!({
            "metadata": {"name": "api", "labels": {"kubernetes.io/service-name": "api"}},
            "addressType": "IPv4", "ports": [{"name": "https", "port": port}],
            "endpoints": [{"addresses": ["127.64.0.88"]}]
        });
        create(&admin, "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", &slice).await;
        let service = json!({
            "metadata": {"name": "v1.example.com"},
            "spec": {
                "group": group, "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 10,
                "service": {"namespace": "default", "name": "api"}, "insecureSkipTLSVerify": true
            }
        });
        let services = "/apis/apiregistration.k8s.io/v1/apiservices";
        create(&admin, services, &service).await;
        let mut condition = Value::Null;
        for _ in 0..600 {
            let object = get(&admin, &format!("{services}/v1.example.com")).await;
            condition = object["status"]["conditions"][0].clone();
            if condition["status"] == "True" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(condition["reason"], "Passed", "{condition}");
        let things = "/apis/example.com/v1/things";
        let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}});
        create(&admin, things, &thing).await;
        assert_eq!(get(&behind, &format!("{things}/a")).await["metadata"]["name"], "a");
        // Rights of the first let a request through, and the second has its own.
        let rule = json!({"metadata": {"name": "all"}, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
        create(&admin, "/apis/rbac.authorization.k8s.io/v1/clusterroles", &rule).await;
        let binding = json!({
            "metadata": {"name": "all"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "all"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}]
        });
        create(&admin, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await;
        let jane = first.client_as(User::new("jane", [""; 0]));
        let refused =
            send(&jane, Method::GET, things, &Value::Null).await.expect_err("she has no rights there");
        assert!(refused.to_string().contains("User \"jane\" cannot list resource \"things\""), "{refused}");
        first.stop().await;
        second.stop().await;
    }
}
