//! A thousand of what an operator looks after.

use anyhow::Result;
use serde_json::{Value, json};

use crate::kubectl::Inside;

/// What is created, and how it is seen that all is as it should be.
pub(super) struct Crowd {
    /// What the objects are, for people.
    pub(super) what: &'static str,
    pub(super) resource: &'static str,
    /// The type of the condition that all of them have in the end.
    pub(super) condition: &'static str,
    /// The sample, unchanged, belongs there first.
    pub(super) begins_with_the_sample: bool,
    /// The object of this number.
    pub(super) object: fn(usize) -> Value,
}

impl Crowd {
    /// All of them, as one list.
    pub(super) fn list(&self, number: usize) -> Value {
        let items: Vec<Value> = (0..number).map(self.object).collect();
        json!({"apiVersion": "v1", "kind": "List", "items": items})
    }

    /// How many of them have the condition.
    ///
    /// # Errors
    /// When the API server does not say.
    pub(super) fn converged(&self, inside: &Inside<'_>) -> Result<usize> {
        let said = format!(
            "jsonpath={{range .items[*]}}{{.status.conditions[?(@.type==\"{}\")].status}} {{end}}",
            self.condition
        );
        let said = inside.run(&["get", self.resource, "-o", &said])?;
        Ok(said.split_whitespace().filter(|status| *status == "True").count())
    }
}

fn name(number: usize) -> String {
    format!("x-{number:04}")
}

fn object(api_version: &str, kind: &str, number: usize, spec: &Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name(number)}, "spec": spec})
}

pub(super) fn whitelist(number: usize) -> Value {
    object("sample.foo.bar/v1beta1", "WhiteList", number, &json!({}))
}

/// What the sample of the image police allows.
pub(super) fn judged(number: usize) -> Value {
    let labels = json!({"app": name(number)});
    let containers = json!([{"name": "nginx", "image": "nginx:1.14.2"}]);
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
    object(
        "apps/v1",
        "Deployment",
        number,
        &json!({"selector": {"matchLabels": labels}, "template": template}),
    )
}

/// Due already; its pod runs for a second.
pub(super) fn at(number: usize) -> Value {
    let template = json!({"metadata": {"annotations": {"kubewright.dev/run-for": "1s"}}});
    let spec = json!({"schedule": "2023-07-14T10:12:00Z", "command": "echo YAY", "template": template});
    object("cnat.study.jayground8/v1alpha1", "At", number, &spec)
}

/// Asked to run once now.
pub(super) fn crontab(number: usize) -> Value {
    let containers = json!([{"name": "backup", "image": "mybackupscript:v9"}]);
    let spec =
        json!({"schedule": "@yearly", "jobTemplate": {"containers": containers, "restartPolicy": "Never"}});
    let mut object = object("alpha.ianlewis.org/v1", "CronTab", number, &spec);
    object["metadata"]["annotations"] = json!({"alpha.ianlewis.org/run-now": "please"});
    object
}

pub(super) fn app_service(number: usize) -> Value {
    object("app.example.com/v1alpha1", "AppService", number, &json!({"size": 1}))
}

pub(super) fn memcached(number: usize) -> Value {
    object("cache.example.com/v1alpha1", "Memcached", number, &json!({"size": 1}))
}

/// Each with the one server of a [node].
pub(super) fn security_group(number: usize) -> Value {
    let rules = json!([{"portRangeMin": 8888, "portRangeMax": 8888, "remoteIpPrefix": "127.0.0.1/32"}]);
    let spec = json!({"name": name(number), "nodeSelector": {"pool": (number % SERVERS).to_string()}, "rules": rules});
    object("openstack.repl.info/v1beta1", "SecurityGroup", number, &spec)
}

/// How many servers there are for the groups: a port has ten groups then, and not a thousand.
pub(super) const SERVERS: usize = 100;

/// A node of the cloud.
pub(super) fn node(number: usize, server: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": format!("server-{number}"), "labels": {"pool": number.to_string()}},
        "spec": {"providerID": format!("openstack:///{server}")},
    })
}
