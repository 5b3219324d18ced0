//! Requests to what objects have beside themselves: bindings, evictions, tokens, containers added later, sizes, logs.

use rand::RngExt;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use super::Making;
use crate::conversation::Ask;
use crate::edit::{Change, Edit};

impl Making<'_> {
    /// A request to a subresource that has a body of its own kind, where the resource has one.
    pub(super) fn part(&mut self, at: usize) {
        let subresources = self.known[at].place.resource.subresources.clone();
        let own: Vec<&str> = subresources
            .iter()
            .map(String::as_str)
            .filter(|name| {
                ![
                    "status",
                    "scale",
                    "exec",
                    "attach",
                    "portforward",
                    "proxy",
                    "approval",
                    "finalize",
                    "ephemeralcontainers",
                    "resize",
                ]
                .contains(name)
            })
            .collect();
        let Some(name) = own.choose(&mut self.rng).map(|name| (*name).to_owned()) else {
            return self.container(at);
        };
        match name.as_str() {
            "log" => self.log(at),
            "token" | "binding" | "eviction" if self.rng.random_bool(0.8) => self.post_part(at, &name),
            _ => self.container(at),
        }
    }

    fn log(&mut self, at: usize) {
        let place = self.known[at].place.clone();
        let mut ask = Ask::new("get/log", "GET", &place).subresource("log");
        let query = [
            None,
            Some(("container", "x")),
            Some(("tailLines", "-1")),
            Some(("limitBytes", "0")),
            Some(("sinceSeconds", "0")),
            Some(("stream", "Bad")),
            Some(("previous", "maybe")),
        ];
        if let Some(Some((key, value))) = query.choose(&mut self.rng) {
            ask = ask.query(key, *value);
        }
        self.asks.push(ask);
    }

    fn post_part(&mut self, at: usize, name: &str) {
        let place = self.known[at].place.clone();
        let mut body = match name {
            "token" => self.token(),
            "binding" => self.binding(&place.name),
            _ => self.eviction(&place.name),
        };
        if self.rng.random_bool(0.1) {
            super::rename(&mut body, "another");
        }
        if self.rng.random_bool(0.06) {
            body["unknownField"] = json!(1);
        }
        if self.rng.random_bool(0.06) {
            body["kind"] = json!("Other");
        }
        if self.rng.random_bool(0.1)
            && let Some(members) = body.as_object_mut()
        {
            members.remove("kind");
            members.remove("apiVersion");
        }
        let ask = Ask::new(&format!("create/{name}"), "POST", &place).subresource(name).body(body);
        let ask = self.with_options(ask, at);
        self.asks.push(ask);
    }

    fn token(&mut self) -> Value {
        let mut spec = json!({});
        if self.rng.random_bool(0.6) {
            spec["audiences"] = json!(
                [json!(["a"]), json!(["a", "b"]), json!([]), json!([""]), Value::Null].choose(&mut self.rng)
            );
        }
        if self.rng.random_bool(0.6) {
            spec["expirationSeconds"] =
                json!([600, 3600, 599, 0, -1, 4_294_967_296_i64, 4_294_967_297_i64].choose(&mut self.rng));
        }
        if self.rng.random_bool(0.4) {
            spec["boundObjectRef"] = json!([
                json!({"apiVersion": "v1", "kind": "Pod", "name": "a"}),
                json!({"apiVersion": "v1", "kind": "Secret", "name": "c", "uid": "@uid.c@"}),
                json!({"apiVersion": "v1", "kind": "Secret", "name": "b", "uid": "11111111-2222-3333-4444-555555555555"}),
                json!({"apiVersion": "v1", "kind": "Node", "name": "n"}),
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}),
                json!({}),
            ].choose(&mut self.rng));
        }
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
    }

    fn binding(&mut self, name: &str) -> Value {
        let mut body = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}});
        body["target"] = json!(
            [
                json!({"kind": "Node", "name": "n1"}),
                json!({"kind": "Node", "name": "n1"}),
                json!({"apiVersion": "v1", "kind": "Node", "name": "n2"}),
                json!({"kind": "Pod", "name": "n1"}),
                json!({"kind": "", "name": "n1"}),
                json!({"kind": "Node", "name": ""}),
                json!({"kind": "Node", "name": "Bad Name"}),
                json!({}),
            ]
            .choose(&mut self.rng)
        );
        if self.rng.random_bool(0.2) {
            body["metadata"]["annotations"] = json!({"from": "binding"});
        }
        if self.rng.random_bool(0.2) {
            body["metadata"]["labels"] = json!(
                [json!({"a": "bound"}), json!({"topology.kubernetes.io/zone": "z"}), json!({"Bad Key": "z"})]
                    .choose(&mut self.rng)
            );
        }
        if self.rng.random_bool(0.2) {
            body["metadata"]["uid"] =
                json!(["@uid@", "11111111-2222-3333-4444-555555555555"].choose(&mut self.rng));
        }
        if self.rng.random_bool(0.1) {
            body["metadata"]["resourceVersion"] = json!(["@rv@", "1", "abc"].choose(&mut self.rng));
        }
        body
    }

    fn eviction(&mut self, name: &str) -> Value {
        let version = if self.rng.random_bool(0.9) { "policy/v1" } else { "policy/v1beta1" };
        let mut body = json!({"apiVersion": version, "kind": "Eviction", "metadata": {"name": name}});
        if self.rng.random_bool(0.5) {
            body["deleteOptions"] = json!(
                [
                    json!({}),
                    json!({"gracePeriodSeconds": 0}),
                    json!({"gracePeriodSeconds": -1}),
                    json!({"dryRun": ["All"]}),
                    json!({"dryRun": ["Some"]}),
                    json!({"preconditions": {"uid": "@uid@"}}),
                    json!({"preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}}),
                    json!({"preconditions": {"resourceVersion": "1"}}),
                    json!({"preconditions": {"resourceVersion": "@rv@"}}),
                    json!({"propagationPolicy": "Foreground"}),
                    json!({"propagationPolicy": "Bad"}),
                    json!({"orphanDependents": true, "propagationPolicy": "Orphan"}),
                ]
                .choose(&mut self.rng)
            );
        }
        body
    }

    /// A container that is added later, or the size of one.
    fn container(&mut self, at: usize) {
        let has = |name: &str| self.known[at].place.resource.subresources.iter().any(|own| own == name);
        if !has("resize") {
            return self.put(at);
        }
        let containers = self.known[at].object["spec"]["containers"].clone();
        let name = containers[0]["name"].as_str().unwrap_or("c").to_owned();
        let size =
            json!([
            json!({"requests": {"cpu": "100m"}}),
            json!({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}}),
            json!({"limits": {"cpu": "500m"}}),
            json!({"limits": {"cpu": "100m"}, "requests": {"cpu": "1"}}),
            json!({"requests": {"example.com/x": "1"}}),
            json!({"requests": {"ephemeral-storage": "1Gi"}}),
            json!({"requests": null}),
            json!({}),
        ]
        .choose(&mut self.rng));
        let debug = json!([
            json!({"name": "debug", "image": "busybox"}),
            json!({"name": "debug", "image": "busybox", "targetContainerName": name}),
            json!({"name": "debug", "image": "busybox", "targetContainerName": "none"}),
            json!({"name": "debug", "image": "busybox", "ports": [{"containerPort": 80}]}),
            json!({"name": "debug", "image": "busybox", "resources": {"limits": {"cpu": "1"}}}),
            json!({"name": "debug", "image": "busybox", "volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "x"}]}),
            json!({"name": name, "image": "busybox"}),
            json!({"name": "debug2", "image": "other", "command": ["sh"], "stdin": true, "tty": true}),
            json!({"name": "debug"}),
        ].choose(&mut self.rng));
        let place = self.known[at].place.clone();
        let (part, body) = if self.rng.random_bool(0.5) {
            ("resize", json!({"spec": {"containers": [{"name": name, "resources": size}]}}))
        } else {
            ("ephemeralcontainers", json!({"spec": {"ephemeralContainers": [debug]}}))
        };
        let ask = if self.rng.random_bool(0.7) {
            Ask::new(&format!("patch/strategic/{part}"), "PATCH", &place)
                .subresource(part)
                .header("Content-Type", "application/strategic-merge-patch+json")
                .body(body)
        } else {
            let mut ask = Ask::new(&format!("update/{part}"), "PUT", &place).subresource(part);
            let edit = if part == "resize" {
                let mut containers = containers;
                if let Some(container) = containers.get_mut(0).filter(|container| container.is_object()) {
                    container["resources"] = size;
                }
                Edit::at("spec.containers", Change::Set(containers))
            } else {
                Edit::at("spec.ephemeralContainers", Change::Set(body["spec"]["ephemeralContainers"].clone()))
            };
            ask.payload = crate::conversation::Payload::Changed {
                otherwise: self.known[at].object.clone(),
                edits: vec![edit],
            };
            ask
        };
        let ask = self.with_options(ask, at);
        self.asks.push(ask);
    }
}
