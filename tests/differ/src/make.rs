//! A conversation out of a seed.

use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::conversation::{Ask, Conversation, Payload, Place};
use crate::custom;
use crate::edit::Edit;
use crate::mutate::{Maker, metadata_edit};
use crate::schema::Resource;

/// What would change what other conversations see: only ever tried dry.
const DRY: &[&str] = &[
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicy",
    "MutatingAdmissionPolicy",
    "FlowSchema",
    "PriorityLevelConfiguration",
    "APIService",
    "Namespace",
    "CustomResourceDefinition",
    "ServiceCIDR",
    "Node",
];
/// What a server answers by itself or from elsewhere.
const LEFT_OUT: &[&str] = &[
    "ComponentStatus",
    "Binding",
    "APIService",
    "TokenReview",
    "PodCertificateRequest",
    "StorageVersion",
    "LeaseCandidate",
    "SelfSubjectReview",
    "SelfSubjectRulesReview",
];

/// Which kinds conversations are about: all, or those that are named.
pub(crate) struct Scope<'a> {
    pub(crate) maker: Maker<'a>,
    pub(crate) kinds: Vec<String>,
}

struct Making<'a> {
    scope: &'a Scope<'a>,
    rng: ChaCha8Rng,
    asks: Vec<Ask>,
    known: Vec<Known>,
}

struct Known {
    place: Place,
    object: Value,
    schema: Option<Value>,
    dry: bool,
}

/// The conversation of a seed.
pub(crate) fn conversation(scope: &Scope<'_>, seed: u64) -> Conversation {
    let mut making =
        Making { scope, rng: ChaCha8Rng::seed_from_u64(seed), asks: Vec::new(), known: Vec::new() };
    let custom = scope.kinds.iter().any(|kind| kind == "custom")
        || (scope.kinds.is_empty() && making.rng.random_bool(0.3));
    if custom {
        making.begin_custom();
    } else {
        let kinds = making.rng.random_range(1..=2);
        for _ in 0..kinds {
            making.begin_built_in();
        }
    }
    let length = making.rng.random_range(5..=30);
    for _ in 0..length {
        making.next();
    }
    Conversation { seed, asks: making.asks }
}

impl Making<'_> {
    fn begin_built_in(&mut self) {
        let maker = &self.scope.maker;
        let fit: Vec<&Resource> = maker
            .served
            .resources
            .iter()
            .filter(|resource| resource.can("create") && !LEFT_OUT.contains(&resource.kind.as_str()))
            .filter(|resource| {
                self.scope.kinds.is_empty()
                    || self.scope.kinds.iter().any(|kind| *kind == resource.kind || *kind == resource.plural)
            })
            .collect();
        let Some(resource) = fit.choose(&mut self.rng).map(|resource| (*resource).clone()) else { return };
        let object = match maker.corpus.objects(&resource.api_version(), &resource.kind).choose(&mut self.rng)
        {
            Some(object) if self.rng.random_bool(0.93) => object.clone(),
            _ => {
                let nothing = json!({});
                let mut object =
                    maker.value(&mut self.rng, maker.served.schema(&resource).unwrap_or(&nothing), "?", 4);
                object["metadata"] = json!({"name": "x"});
                object
            }
        };
        self.begin(resource, object, None);
    }

    fn begin_custom(&mut self) {
        let made = custom::definition(&mut self.rng);
        let place = Place { resource: custom::definitions(), name: made.name.clone() };
        self.asks
            .push(Ask::new("create/definition", "POST", &place).collection().body(made.definition.clone()));
        let wait = Place { resource: made.resource.clone(), name: String::new() };
        let mut ask = Ask::new("definition/served", "GET", &wait).collection();
        ask.until_ok = true;
        self.asks.push(ask);
        for _ in 0..self.rng.random_range(1..=2) {
            let mut object = self.scope.maker.value(&mut self.rng, &made.schema, "?", 4);
            if !object.is_object() {
                object = json!({});
            }
            object["metadata"] = json!({"name": "x"});
            self.begin(made.resource.clone(), object, Some(made.schema.clone()));
        }
        if let Some(other) = made.other.clone() {
            let known = self.known.last().map(|known| (known.object.clone(), known.place.name.clone()));
            if let Some((object, name)) = known {
                self.known.push(Known {
                    place: Place { resource: other, name },
                    object,
                    schema: Some(made.schema),
                    dry: false,
                });
            }
        }
    }

    fn begin(&mut self, resource: Resource, mut object: Value, schema: Option<Value>) {
        let letter = ["a", "b", "c", "d"][self.known.len().min(3)];
        let given = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let name = match resource.kind.as_str() {
            "IPAddress" | "CSINode" => given,
            "ClusterTrustBundle" if given.contains(':') => format!("{given}@run@{letter}"),
            _ if resource.namespaced => letter.to_owned(),
            _ => format!("@run@-{letter}"),
        };
        object["apiVersion"] = json!(resource.api_version());
        object["kind"] = json!(resource.kind);
        if !object["metadata"].is_object() {
            object["metadata"] = json!({});
        }
        object["metadata"]["name"] = json!(name);
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("namespace");
            metadata.remove("generateName");
        }
        let dry = DRY.contains(&resource.kind.as_str());
        let schema = schema.or_else(|| self.scope.maker.served.schema(&resource).cloned());
        self.known.push(Known { place: Place { resource, name }, object, schema, dry });
        let last = self.known.len() - 1;
        if self.rng.random_bool(0.2) {
            self.watch(last);
        }
        if self.rng.random_bool(0.15) {
            self.apply(last);
        } else {
            self.create(last, false);
        }
    }

    fn next(&mut self) {
        if self.known.is_empty() {
            return;
        }
        let at = self.rng.random_range(0..self.known.len());
        match self.rng.random_range(0..100) {
            0..10 => {
                let broken = self.rng.random_bool(0.7);
                self.create(at, broken);
            }
            10..32 => self.put(at),
            32..52 => self.patch(at),
            52..66 => self.apply(at),
            66..74 => self.get(at),
            74..83 => self.list(at),
            83..86 => self.watch(at),
            86..92 => self.delete(at),
            92..94 => self.delete_collection(at),
            94..97 => self.as_somebody(at),
            _ => self.odd(at),
        }
    }

    fn edits(&mut self, at: usize, broken: f64) -> Vec<Edit> {
        let known = &self.known[at];
        let count = if self.rng.random_bool(0.25) { 2 } else { 1 };
        (0..count)
            .map(|_| {
                if self.rng.random_bool(0.25) {
                    metadata_edit(&mut self.rng)
                } else {
                    let broken = self.rng.random_bool(broken);
                    self.scope.maker.edit(&mut self.rng, known.schema.as_ref(), &known.object, broken)
                }
            })
            .collect()
    }

    fn with_options(&mut self, mut ask: Ask, at: usize) -> Ask {
        if self.known[at].dry {
            ask = ask.query("dryRun", "All");
        } else if self.rng.random_bool(0.08) {
            ask = ask.query("dryRun", *["All", "", "Some"].choose(&mut self.rng).unwrap_or(&"All"));
        }
        if self.rng.random_bool(0.25) {
            ask = ask.query(
                "fieldValidation",
                *["Strict", "Warn", "Ignore", "Bad"].choose(&mut self.rng).unwrap_or(&"Strict"),
            );
        }
        if self.rng.random_bool(0.2) {
            ask = ask
                .query("fieldManager", *["m1", "m2", "", "bad\u{1}"].choose(&mut self.rng).unwrap_or(&"m1"));
        }
        self.with_accept(ask)
    }

    fn with_accept(&mut self, ask: Ask) -> Ask {
        const FORMS: &[&str] = &[
            "application/json;as=Table;v=v1;g=meta.k8s.io",
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            "application/yaml",
            "application/vnd.kubernetes.protobuf",
            "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
            "text/html",
            "*/*",
            "application/json;pretty=1",
        ];
        if self.rng.random_bool(0.1) {
            let form = *FORMS.choose(&mut self.rng).unwrap_or(&"*/*");
            return ask.header("Accept", form);
        }
        ask
    }

    fn create(&mut self, at: usize, broken: bool) {
        let place = self.known[at].place.clone();
        let mut object = self.known[at].object.clone();
        if broken {
            let edits = self.edits(at, 0.6);
            edits.iter().for_each(|edit| edit.apply(&mut object));
        }
        if self.rng.random_bool(0.05) {
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("name");
            }
            object["metadata"]["generateName"] = json!("gen-");
        }
        let mut ask = Ask::new("create", "POST", &place).collection().body(object.clone());
        if self.rng.random_bool(0.06) {
            ask = ask.header("Content-Type", "application/yaml");
            ask.what = "create/yaml".into();
        }
        let ask = self.with_options(ask, at);
        self.asks.push(ask);
    }

    fn subresource(&mut self, at: usize) -> Option<String> {
        let usable: Vec<&str> = self.known[at]
            .place
            .resource
            .subresources
            .iter()
            .map(String::as_str)
            .filter(|name| {
                ["status", "scale", "approval", "ephemeralcontainers", "resize", "finalize"].contains(name)
            })
            .collect();
        if self.rng.random_bool(0.3) {
            usable.choose(&mut self.rng).map(|name| (*name).to_owned())
        } else {
            None
        }
    }

    /// The edits of a request to the object or a part of it.
    fn edits_of(&mut self, at: usize, subresource: Option<&str>) -> Vec<Edit> {
        match subresource {
            Some("scale") => vec![Edit::at(
                "spec.replicas",
                crate::edit::Change::Set(json!([0, 1, 3, -1].choose(&mut self.rng))),
            )],
            Some("status") if self.rng.random_bool(0.8) => {
                let known = &self.known[at];
                let nothing = Value::Null;
                let schema = known.schema.as_ref().map_or(&nothing, |schema| {
                    &self.scope.maker.served.resolve(schema)["properties"]["status"]
                });
                let mut only = json!({});
                only["status"] = if known.object["status"].is_object() && self.rng.random_bool(0.5) {
                    known.object["status"].clone()
                } else {
                    self.scope.maker.value(&mut self.rng, schema, "status", 4)
                };
                let broken = self.rng.random_bool(0.2);
                let whole = json!({"properties": {"status": schema}});
                let edit = self.scope.maker.edit(&mut self.rng, Some(&whole), &only, broken);
                vec![Edit::at("status", crate::edit::Change::Set(only["status"].clone())), edit]
            }
            _ => self.edits(at, 0.25),
        }
    }

    fn put(&mut self, at: usize) {
        let place = self.known[at].place.clone();
        let subresource = self.subresource(at);
        let edits =
            if self.rng.random_bool(0.1) { Vec::new() } else { self.edits_of(at, subresource.as_deref()) };
        let mut what = "update".to_owned();
        let mut ask = Ask::new("", "PUT", &place);
        if let Some(name) = subresource {
            what = format!("update/{name}");
            ask = ask.subresource(&name);
        }
        ask.what = what;
        ask.payload = Payload::Changed { otherwise: self.known[at].object.clone(), edits: edits.clone() };
        let ask = self.with_options(ask, at);
        self.asks.push(ask);
        self.remember(at, &edits);
    }

    fn remember(&mut self, at: usize, edits: &[Edit]) {
        if self.rng.random_bool(0.5) {
            let object = &mut self.known[at].object;
            edits
                .iter()
                .filter(|edit| edit.path.first() != Some(&crate::edit::Step::Key("metadata".into())))
                .for_each(|edit| edit.apply(object));
        }
    }

    fn patch(&mut self, at: usize) {
        let place = self.known[at].place.clone();
        let object = self.known[at].object.clone();
        let subresource = self.subresource(at);
        let edits = self.edits_of(at, subresource.as_deref());
        let (form, media, body) = match self.rng.random_range(0..3) {
            0 => {
                let mut operations: Vec<Value> =
                    edits.iter().map(|edit| edit.json_patch(self.rng.random_bool(0.5))).collect();
                if self.rng.random_bool(0.15) {
                    operations.insert(
                        0,
                        json!({"op": "test", "path": "/metadata/name", "value": object["metadata"]["name"]}),
                    );
                }
                if self.rng.random_bool(0.05) {
                    operations.push(
                        json!({"op": "copy", "from": "/metadata/name", "path": "/metadata/annotations"}),
                    );
                }
                ("json", "application/json-patch+json", Value::Array(operations))
            }
            1 => (
                "merge",
                "application/merge-patch+json",
                merged(edits.iter().map(|edit| edit.merge_patch(&object))),
            ),
            _ => (
                "strategic",
                "application/strategic-merge-patch+json",
                merged(edits.iter().map(|edit| edit.strategic_patch(&object))),
            ),
        };
        let mut ask =
            Ask::new(&format!("patch/{form}"), "PATCH", &place).body(body).header("Content-Type", media);
        if let Some(name) = subresource {
            ask.what = format!("patch/{form}/{name}");
            ask = ask.subresource(&name);
        }
        let ask = self.with_options(ask, at);
        self.asks.push(ask);
        self.remember(at, &edits);
    }

    fn apply(&mut self, at: usize) {
        let place = self.known[at].place.clone();
        let mut object = self.known[at].object.clone();
        let subresource = self.subresource(at).filter(|name| name == "status");
        for edit in self.edits_of(at, subresource.as_deref()) {
            edit.apply(&mut object);
        }
        if self.rng.random_bool(0.4) {
            drop_some(&mut self.rng, &mut object, true);
        }
        let mut ask = Ask::new("patch/apply", "PATCH", &place)
            .body(object)
            .header("Content-Type", "application/apply-patch+yaml");
        if let Some(name) = subresource {
            ask.what = format!("patch/apply/{name}");
            ask = ask.subresource(&name);
        }
        if self.rng.random_bool(0.97) {
            ask = ask.query("fieldManager", *["m1", "m2"].choose(&mut self.rng).unwrap_or(&"m1"));
        }
        if self.rng.random_bool(0.4) {
            ask = ask.query("force", "true");
        }
        if self.known[at].dry {
            ask = ask.query("dryRun", "All");
        }
        let ask = self.with_accept(ask);
        self.asks.push(ask);
    }

    fn get(&mut self, at: usize) {
        let place = self.known[at].place.clone();
        let mut ask = Ask::new("get", "GET", &place);
        if let Some(name) = self.subresource(at) {
            ask.what = format!("get/{name}");
            ask = ask.subresource(&name);
        }
        if self.rng.random_bool(0.15) {
            ask = ask.query(
                "resourceVersion",
                *["0", "abc", "1", "999999999"].choose(&mut self.rng).unwrap_or(&"0"),
            );
        }
        let ask = self.with_accept(ask);
        self.asks.push(ask);
    }

    fn list(&mut self, at: usize) {
        let place = self.known[at].place.clone();
        let mut ask = Ask::new("list", "GET", &place).collection();
        if !place.resource.namespaced && !place.resource.group.contains("@run@") {
            // Others make objects of this kind meanwhile.
            let ask = self.with_accept(ask.query("fieldSelector", "metadata.name=@run@-a"));
            self.asks.push(ask);
            return;
        }
        if self.rng.random_bool(0.2) {
            ask = ask.query("limit", *["1", "2", "0", "-1", "x"].choose(&mut self.rng).unwrap_or(&"1"));
        }
        if self.rng.random_bool(0.3) {
            ask = ask.query(
                "labelSelector",
                *["a=b", "a", "!a", "a in (b,c)", "a!=b", "app=x", "a==", "=", "a notin (b)"]
                    .choose(&mut self.rng)
                    .unwrap_or(&"a"),
            );
        }
        if self.rng.random_bool(0.3) {
            let name = if place.resource.namespaced { "a" } else { "@run@-a" };
            let selector = [
                "metadata.name=NAME",
                "metadata.name!=NAME",
                "metadata.namespace=@ns@",
                "spec.nodeName=",
                "status.phase=Running",
                "type=Opaque",
                "a=b",
                "metadata.name",
                "spec.unschedulable=false",
                "involvedObject.kind=Pod",
                "spec.replicas=1",
                "metadata.name=NAME,metadata.namespace=x",
            ];
            ask = ask.query(
                "fieldSelector",
                selector.choose(&mut self.rng).unwrap_or(&"a=b").replace("NAME", name),
            );
        }
        if self.rng.random_bool(0.15) {
            ask = ask.query("resourceVersion", *["0", "@list@", "abc"].choose(&mut self.rng).unwrap_or(&"0"));
            if self.rng.random_bool(0.5) {
                ask = ask.query(
                    "resourceVersionMatch",
                    *["NotOlderThan", "Exact", "Bad"].choose(&mut self.rng).unwrap_or(&"Exact"),
                );
            }
        }
        let ask = self.with_accept(ask);
        self.asks.push(ask);
    }

    fn watch(&mut self, at: usize) {
        let place = self.known[at].place.clone();
        let mut ask = Ask::new("watch", "GET", &place).collection().query("watch", "true");
        ask.stream = true;
        if !place.resource.namespaced && !place.resource.group.contains("@run@") {
            ask = ask.query("fieldSelector", "metadata.name=@run@-a");
        } else if self.rng.random_bool(0.2) {
            ask = ask.query("fieldSelector", "metadata.name=a");
        }
        if self.rng.random_bool(0.4) {
            ask = ask.query("resourceVersion", "0");
        }
        if self.rng.random_bool(0.3) {
            ask = ask.query("labelSelector", *["a=b", "!a", "a"].choose(&mut self.rng).unwrap_or(&"a"));
        }
        if self.rng.random_bool(0.2) {
            ask = ask
                .query("sendInitialEvents", "true")
                .query("resourceVersionMatch", "NotOlderThan")
                .query("allowWatchBookmarks", "true");
        }
        if self.rng.random_bool(0.15) {
            ask = ask.header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
        } else if self.rng.random_bool(0.15) {
            ask = ask.header("Accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
        }
        self.asks.push(ask);
    }

    fn delete(&mut self, at: usize) {
        let place = self.known[at].place.clone();
        let mut ask = Ask::new("delete", "DELETE", &place);
        match self.rng.random_range(0..8) {
            0 => ask = ask.query("propagationPolicy", *["Foreground", "Orphan", "Background", "Bad"].choose(&mut self.rng).unwrap_or(&"Bad")),
            1 => ask = ask.query("gracePeriodSeconds", *["0", "5", "-1", "x"].choose(&mut self.rng).unwrap_or(&"0")),
            2 => ask = ask.body(json!({"preconditions": {"uid": *["@uid@", "wrong"].choose(&mut self.rng).unwrap_or(&"wrong")}})),
            3 => ask = ask.body(json!({"preconditions": {"resourceVersion": *["@rv@", "1"].choose(&mut self.rng).unwrap_or(&"1")}})),
            4 => ask = ask.body(json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground", "gracePeriodSeconds": 3})),
            5 => ask = ask.query("orphanDependents", "true"),
            _ => {}
        }
        if self.known[at].dry || self.rng.random_bool(0.1) {
            ask = ask.query("dryRun", "All");
        }
        let ask = self.with_accept(ask);
        self.asks.push(ask);
    }

    fn delete_collection(&mut self, at: usize) {
        if !self.known[at].place.resource.namespaced {
            return;
        }
        let place = self.known[at].place.clone();
        let mut ask = Ask::new("deletecollection", "DELETE", &place).collection();
        if self.rng.random_bool(0.7) {
            ask = ask.query("labelSelector", *["a=b", "a", "app=x"].choose(&mut self.rng).unwrap_or(&"a"));
        }
        if self.rng.random_bool(0.3) {
            ask = ask.query("dryRun", "All");
        }
        self.asks.push(ask);
    }

    /// A role, its binding, and requests as who has it.
    fn as_somebody(&mut self, at: usize) {
        let role = |kind: &str, plural: &str| Place {
            resource: Resource {
                group: "rbac.authorization.k8s.io".into(),
                version: "v1".into(),
                plural: plural.into(),
                kind: kind.into(),
                namespaced: true,
                verbs: Vec::new(),
                subresources: Vec::new(),
            },
            name: "r".into(),
        };
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
            binding.pause = true;
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

    /// What is no proper request.
    fn odd(&mut self, at: usize) {
        let place = self.known[at].place.clone();
        let text = |what: &str, method, named: bool, media: &str, text: &str| {
            let mut ask = Ask::new(what, method, &place).header("Content-Type", media);
            ask.named = named;
            ask.payload = Payload::Text(text.to_owned());
            ask
        };
        let object = self.known[at].object.clone();
        let mut ask = match self.rng.random_range(0..12) {
            0 => text("odd/json", "POST", false, "application/json", "{"),
            1 => text("odd/empty", "POST", false, "application/json", ""),
            2 => text("odd/media", "POST", false, "text/plain", "x"),
            3 => text(
                "odd/kind",
                "POST",
                false,
                "application/json",
                r#"{"apiVersion":"v1","kind":"Other","metadata":{"name":"a"}}"#,
            ),
            4 => text("odd/list", "PUT", true, "application/json", "[]"),
            5 => text("odd/patch", "PATCH", true, "application/json-patch+json", r#"{"op":"add"}"#),
            6 => text("odd/patch", "PATCH", true, "application/merge-patch+json", "[1]"),
            7 => text("odd/patch", "PATCH", true, "application/json", "{}"),
            8 => text("odd/yaml", "POST", false, "application/yaml", "a: [b"),
            9 => text(
                "odd/patch",
                "PATCH",
                true,
                "application/json-patch+json",
                r#"[{"op":"remove","path":"/nowhere"}]"#,
            ),
            10 => {
                let body = object.to_string().replacen(
                    "\"metadata\":{",
                    "\"metadata\":{\"labels\":{\"d\":\"1\"},\"labels\":{\"d\":\"2\"},",
                    1,
                );
                text("odd/twice", "POST", false, "application/json", &body)
            }
            _ => text("odd/post", "POST", true, "application/json", &object.to_string()),
        };
        if self.known[at].dry {
            ask = ask.query("dryRun", "All");
        }
        if self.rng.random_bool(0.4) {
            ask = ask.query("fieldValidation", "Strict");
        }
        self.asks.push(ask);
    }
}

fn merged(patches: impl Iterator<Item = Value>) -> Value {
    patches.fold(json!({}), |mut all, patch| {
        merge(&mut all, patch);
        all
    })
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

/// Leaves out members, but for those that say what object it is.
fn drop_some(rng: &mut ChaCha8Rng, object: &mut Value, top: bool) {
    if let Some(members) = object.as_object_mut() {
        let names: Vec<String> = members.keys().cloned().collect();
        for name in names {
            if top && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
                continue;
            }
            if rng.random_bool(0.12) {
                members.remove(&name);
            } else if let Some(inner) = members.get_mut(&name) {
                drop_some(rng, inner, false);
            }
        }
    }
}
