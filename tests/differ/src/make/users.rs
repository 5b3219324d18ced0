//! Requests as users with a few rights.

use rand::RngExt;
use rand::seq::IndexedRandom;
use serde_json::json;

use super::Making;
use crate::conversation::{Ask, Place};
use crate::schema::Resource;

impl Making<'_> {
    /// A role, its binding, and requests as who has it.
    pub(super) fn as_somebody(&mut self, at: usize) {
        let role = |kind: &str, plural: &str| of_rbac(kind, plural, "r");
        let resource = self.known[at].place.resource.clone();
        let verbs: Vec<&str> = ["get", "list", "create", "update", "patch", "delete", "watch"]
            .into_iter()
            .filter(|_| self.rng.random_bool(0.4))
            .collect();
        let rule = json!({"apiGroups": [resource.group], "resources": [resource.plural], "verbs": if verbs.is_empty() { vec!["get"] } else { verbs }});
        let group = "rbac.authorization.k8s.io/v1";
        self.asks.push(
            Ask::new("create", "POST", &role("Role", "roles")).collection().body(
                json!({"apiVersion": group, "kind": "Role", "metadata": {"name": "r"}, "rules": [rule]}),
            ),
        );
        self.asks.push(Ask::new("create", "POST", &role("RoleBinding", "rolebindings")).collection().body(json!({"apiVersion": group, "kind": "RoleBinding", "metadata": {"name": "r"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "somebody"}]})));
        if let Some(binding) = self.asks.last_mut() {
            binding.pause = crate::conversation::MOMENT;
        }
        let before = self.asks.len();
        for _ in 0..self.rng.random_range(1..4) {
            match self.rng.random_range(0..5) {
                0 => self.get(at),
                1 => self.list(at),
                2 => self.put(at),
                3 => self.apply(at),
                _ => self.delete(at),
            }
        }
        for ask in &mut self.asks[before..] {
            ask.headers.push(("Impersonate-User".into(), "somebody".into()));
            ask.what.push_str("/as");
        }
    }

    /// Requests as several users, groups and accounts, with their reviews, and rights that somebody gives who has them not.
    pub(super) fn as_several(&mut self, at: usize) {
        let resource = self.known[at].place.resource.clone();
        let group = "rbac.authorization.k8s.io";
        let subject = json!(
            [
                json!({"kind": "User", "apiGroup": group, "name": "ann"}),
                json!({"kind": "Group", "apiGroup": group, "name": "team"}),
                json!({"kind": "ServiceAccount", "name": "default", "namespace": "@ns@"}),
            ]
            .choose(&mut self.rng)
        );
        let mut names = json!([]);
        if self.rng.random_bool(0.3) {
            names = json!(["a"]);
        }
        let resources = json!(
            [
                json!([resource.plural]),
                json!([resource.plural, format!("{}/status", resource.plural)]),
                json!(["*"]),
                json!([format!("{}/*", resource.plural)]),
                json!(["roles", "rolebindings", resource.plural])
            ]
            .choose(&mut self.rng)
        );
        let verbs = json!(
            [
                json!(["get", "list"]),
                json!(["*"]),
                json!(["create", "patch"]),
                json!(["get", "update", "delete", "create"]),
                json!(["deletecollection", "watch"])
            ]
            .choose(&mut self.rng)
        );
        let mut rule = json!({"apiGroups": [if self.rng.random_bool(0.7) { resource.group.clone() } else { "*".into() }], "resources": resources, "verbs": verbs});
        if names != json!([]) {
            rule["resourceNames"] = names;
        }
        let (role, binding) = (of_rbac("Role", "roles", "s"), of_rbac("RoleBinding", "rolebindings", "s"));
        self.asks.push(Ask::new("create", "POST", &role).collection().body(
            json!({"apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": {"name": "s"}, "rules": [rule]})));
        let given = if self.rng.random_bool(0.8) {
            json!({"apiGroup": group, "kind": "Role", "name": "s"})
        } else {
            json!({"apiGroup": group, "kind": "ClusterRole", "name": *["system:kube-scheduler", "system:node", "system:discovery"].choose(&mut self.rng).unwrap_or(&"system:node")})
        };
        let mut ask = Ask::new("create", "POST", &binding).collection().body(
            json!({"apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": {"name": "s"}, "roleRef": given, "subjects": [subject]}));
        ask.pause = crate::conversation::MOMENT;
        self.asks.push(ask);
        for _ in 0..self.rng.random_range(2..6) {
            let before = self.asks.len();
            match self.rng.random_range(0..12) {
                0 => self.get(at),
                1 => self.list(at),
                2 => self.put(at),
                3 => self.apply(at),
                4 => self.delete(at),
                5 => self.patch(at),
                6 => self.delete_collection(at),
                7 => self.create(at, false),
                8 => self.review(at),
                9 => self.part(at),
                10 => self.escalate(),
                _ => self.watch(at),
            }
            let who = self.headers();
            for ask in &mut self.asks[before..] {
                ask.headers.extend(who.clone());
                ask.what.push_str("/as");
            }
        }
    }

    fn headers(&mut self) -> Vec<(String, String)> {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        match self.rng.random_range(0..10) {
            0..3 => vec![header("Impersonate-User", "ann")],
            3 | 4 => vec![header("Impersonate-User", "bob"), header("Impersonate-Group", "team")],
            5 | 6 => vec![header("Impersonate-User", "system:serviceaccount:@ns@:default")],
            7 => vec![
                header("Impersonate-User", "ann"),
                header("Impersonate-Uid", "7"),
                header("Impersonate-Extra-Reason", "why"),
            ],
            8 => vec![header("Impersonate-User", "system:anonymous")],
            _ => vec![header("Impersonate-Group", "team")],
        }
    }

    fn review(&mut self, at: usize) {
        let resource = self.known[at].place.resource.clone();
        let kind = *[
            "SelfSubjectAccessReview",
            "SubjectAccessReview",
            "LocalSubjectAccessReview",
            "SelfSubjectReview",
        ]
        .choose(&mut self.rng)
        .unwrap_or(&"");
        let review = Place {
            resource: Resource {
                group: if kind == "SelfSubjectReview" {
                    "authentication.k8s.io".into()
                } else {
                    "authorization.k8s.io".into()
                },
                version: "v1".into(),
                plural: format!("{}s", kind.to_lowercase()),
                kind: kind.into(),
                namespaced: kind.starts_with("Local"),
                verbs: Vec::new(),
                subresources: Vec::new(),
            },
            name: String::new(),
        };
        let mut body = json!({"apiVersion": review.resource.api_version(), "kind": kind});
        if kind != "SelfSubjectReview" {
            body["spec"]["resourceAttributes"] = json!({"namespace": "@ns@", "group": resource.group, "resource": resource.plural,
                "verb": (["get", "create", "delete", "*", "escalate"].choose(&mut self.rng))});
            if !kind.starts_with("Self") {
                body["spec"]["user"] = json!(["ann", "bob", ""].choose(&mut self.rng));
                body["spec"]["groups"] = json!([json!(["team"]), json!([])].choose(&mut self.rng));
            }
            if self.rng.random_bool(0.15) {
                body["spec"]["nonResourceAttributes"] = json!({"path": "/healthz", "verb": "get"});
            }
        }
        self.asks.push(Ask::new("create/review", "POST", &review).collection().body(body));
    }

    fn escalate(&mut self) {
        let group = "rbac.authorization.k8s.io";
        let body = json!({"apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": {"name": "more"},
            "rules": [{"apiGroups": [""], "resources": ["secrets", "pods"], "verbs": ["get", "list"]}, {"apiGroups": ["apps"], "resources": ["*"], "verbs": ["*"]}]});
        let ask = if self.rng.random_bool(0.6) {
            Ask::new("create/escalate", "POST", &of_rbac("Role", "roles", "more")).collection().body(body)
        } else {
            Ask::new("create/bind", "POST", &of_rbac("RoleBinding", "rolebindings", "more")).collection().body(json!({"apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
                "metadata": {"name": "more"}, "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": *["system:kube-scheduler", "system:basic-user", "none"].choose(&mut self.rng).unwrap_or(&"none")}, "subjects": [{"kind": "User", "apiGroup": group, "name": "ann"}]}))
        };
        self.asks.push(ask);
    }
}

fn of_rbac(kind: &str, plural: &str, name: &str) -> Place {
    Place {
        resource: Resource {
            group: "rbac.authorization.k8s.io".into(),
            version: "v1".into(),
            plural: plural.into(),
            kind: kind.into(),
            namespaced: true,
            verbs: Vec::new(),
            subresources: Vec::new(),
        },
        name: name.into(),
    }
}
