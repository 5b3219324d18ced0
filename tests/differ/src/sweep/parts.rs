//! Parts of objects that have an address of their own, and what is written there to begin with.

use serde_json::{Value, json};

use super::requests::Subject;
use crate::edit::{Change, Edit, Step};

/// A part.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) method: &'static str,
    /// Group, version and kind of its body, where that is no object of the resource itself.
    pub(crate) own: Option<(&'static str, &'static str, &'static str)>,
    /// The only place of the object that is written there.
    pub(crate) way: &'static [&'static str],
    pub(crate) base: fn(&Subject) -> Value,
}

impl Part {
    /// The only place of the object that is written there.
    pub(crate) fn way(&self) -> Vec<Step> {
        self.way.iter().map(|key| Step::Key((*key).to_owned())).collect()
    }

    /// The body to begin with: of a kind of its own, or the object with this part.
    pub(crate) fn object(&self, subject: &Subject) -> Value {
        let Some((group, version, kind)) = self.own else {
            let mut object = subject.object.clone();
            Edit { path: self.way(), change: Change::Set((self.base)(subject)) }.apply(&mut object);
            return object;
        };
        let mut body = (self.base)(subject);
        body["apiVersion"] =
            json!(if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") });
        body["kind"] = json!(kind);
        body["metadata"] = json!({"name": subject.place.name});
        body
    }
}

/// All that are tried.
pub(crate) const PARTS: &[Part] = &[
    Part {
        name: "status",
        method: "PUT",
        own: None,
        way: &["status"],
        base: |subject| subject.status.clone().unwrap_or_else(|| json!({})),
    },
    Part {
        name: "scale",
        method: "PUT",
        own: Some(("autoscaling", "v1", "Scale")),
        way: &[],
        base: |_| json!({"spec": {"replicas": 2}}),
    },
    Part {
        name: "ephemeralcontainers",
        method: "PUT",
        own: None,
        way: &["spec", "ephemeralContainers"],
        base: |_| {
            json!([{"name": "e", "image": "busybox", "command": ["sh"], "targetContainerName": "c", "stdin": true,
                "env": [{"name": "A", "value": "b"}], "imagePullPolicy": "Always",
                "terminationMessagePolicy": "File", "securityContext": {"runAsUser": 1}}])
        },
    },
    Part {
        name: "approval",
        method: "PUT",
        own: None,
        way: &["status"],
        base: |_| json!({"conditions": [{"type": "Approved", "status": "True", "reason": "R", "message": "m"}]}),
    },
    Part {
        name: "finalize",
        method: "PUT",
        own: None,
        way: &["spec"],
        base: |_| json!({"finalizers": ["kubernetes", "example.com/hold"]}),
    },
    Part {
        name: "token",
        method: "POST",
        own: Some(("authentication.k8s.io", "v1", "TokenRequest")),
        way: &[],
        base: |_| {
            json!({"spec": {"audiences": ["a"], "expirationSeconds": 3600,
                "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "none"}}})
        },
    },
    Part {
        name: "eviction",
        method: "POST",
        own: Some(("policy", "v1", "Eviction")),
        way: &[],
        base: |_| json!({"deleteOptions": {"gracePeriodSeconds": 5, "preconditions": {}}}),
    },
    Part {
        name: "binding",
        method: "POST",
        own: Some(("", "v1", "Binding")),
        way: &[],
        base: |_| json!({"target": {"apiVersion": "v1", "kind": "Node", "name": "n"}}),
    },
];
