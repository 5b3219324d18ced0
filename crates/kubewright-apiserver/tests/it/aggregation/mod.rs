//! APIServices: those that the server keeps by itself, and API servers behind them.

mod behind_service;
mod elsewhere;
mod local;

use std::sync::Arc;

use kubewright_apiserver::http::{self, ApiServer, Config};
use kubewright_apiserver::kubelet::Kubelets;
use kubewright_engine::Engine;
use kubewright_engine::bootstrap::bootstrap;
use kubewright_identity::authn::{Authenticator, FrontProxy, User};
use kubewright_identity::trust::Bundle;
use kubewright_identity::webhook::Upstreams;
use kubewright_serve::authority::Authority;
use kubewright_spec::Version;
use kubewright_store::Memory;
use kubewright_world::World;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::Api;

const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A server that shows a certificate of an authority to those behind it; what is behind it is followed.
async fn front(world: World, version: Version, authority: &Authority) -> Api {
    let shown = authority.client_certificate("front", &[], std::time::Duration::MAX).expect("a certificate");
    let upstreams = Upstreams::new(world.clock);
    let upstreams = upstreams.with_certificate(shown.certificate_pem(), shown.key_pem());
    let settings = kubewright_engine::Settings { kubernetes: version, ..Default::default() };
    let engine = Arc::new(Engine::with(world.clone(), Arc::new(Memory::new()), settings));
    bootstrap(&engine).await.expect("the first objects are accepted");
    let shutdown = CancellationToken::new();
    let config = Config {
        engine,
        authenticator: Authenticator::new(&world).expect("there is entropy"),
        shutdown: shutdown.clone(),
        address: "127.0.0.1:6443".to_owned(),
        kubelets: Kubelets::default(),
    };
    let server = ApiServer::in_front_of(config, http::Settings::default(), upstreams.expect("it is good"));
    tokio::spawn(server.follow_api_services());
    Api::of(server, shutdown)
}

/// A server that believes who shows a certificate of the authority.
async fn behind(world: World, authority: &Authority) -> Api {
    let engine = Arc::new(Engine::new(world.clone(), Arc::new(Memory::new())));
    bootstrap(&engine).await.expect("the first objects are accepted");
    let shutdown = CancellationToken::new();
    let ca = Bundle::of_der([authority.ca_der().clone()]).expect("a certificate");
    let proxy = FrontProxy::new(ca).allowed_names(vec!["front".to_owned()]);
    let authenticator = Authenticator::new(&world).expect("there is entropy").with_front_proxy(proxy);
    let config = Config {
        engine,
        authenticator,
        shutdown: shutdown.clone(),
        address: "127.0.0.1:6443".to_owned(),
        kubelets: Kubelets::default(),
    };
    Api::of(ApiServer::new(config), shutdown)
}

/// The APIService of a version of `example.com` behind `default/api`.
fn api_service(version: &str) -> Value {
    json!({
        "metadata": {"name": format!("{version}.example.com")},
        "spec": {
            "group": "example.com",
            "version": version,
            "service": {"namespace": "default", "name": "api"},
            "insecureSkipTLSVerify": true,
            "groupPriorityMinimum": 17_900,
            "versionPriority": 10
        }
    })
}

fn definition() -> Value {
    json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
            }]
        }
    })
}

/// Waits until the condition of an APIService has a reason; gives the condition.
async fn condition(api: &Api, name: &str, reason: &str) -> Value {
    let mut seen = Value::Null;
    for _ in 0..600 {
        let object = api.get(&format!("{API_SERVICES}/{name}")).await.expect(200);
        seen = object["status"]["conditions"][0].clone();
        if seen["reason"] == reason {
            return seen;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("no {reason}: {seen}");
}

fn jane() -> User {
    let mut user = User::new("jane", ["dev"]);
    user.uid = "7".to_owned();
    user.extra.insert("example.com/team".to_owned(), vec!["a".to_owned(), "b".to_owned()]);
    user
}
