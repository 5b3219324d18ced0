//! A conversation out of a seed.

mod deletes;
mod directives;
mod odd;
mod parts;
mod policies;
mod reads;
mod themes;
mod users;
mod writes;

use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use self::themes::{READ_LATER, THEMES};
use crate::conversation::{Ask, Conversation, MOMENT, Place};
use crate::custom;
use crate::edit::Edit;
use crate::mutate::{Maker, metadata_edit};
use crate::proto;
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
pub(crate) const LEFT_OUT: &[&str] = &[
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
    seed: u64,
    asks: Vec<Ask>,
    known: Vec<Known>,
    /// Whether a policy is bound to its namespace.
    judged: bool,
}

struct Known {
    place: Place,
    object: Value,
    schema: Option<Value>,
    dry: bool,
}

/// The conversation of a seed.
pub(crate) fn conversation(scope: &Scope<'_>, seed: u64) -> Conversation {
    let mut making = Making {
        scope,
        rng: ChaCha8Rng::seed_from_u64(seed),
        seed,
        asks: Vec::new(),
        known: Vec::new(),
        judged: false,
    };
    let custom = scope.kinds.iter().any(|kind| kind == "custom")
        || (scope.kinds.is_empty() && making.rng.random_bool(0.3));
    if custom {
        making.begin_custom();
    } else if scope.kinds.is_empty() && making.rng.random_bool(0.35) {
        making.begin_theme();
    } else {
        let kinds = making.rng.random_range(1..=2);
        for _ in 0..kinds {
            making.begin_built_in(None);
        }
    }
    let length = making.rng.random_range(5..=30);
    for _ in 0..length {
        making.next();
    }
    making.finish();
    Conversation { seed, asks: making.asks }
}

impl Making<'_> {
    /// Several kinds that speak of each other.
    fn begin_theme(&mut self) {
        let Some(theme) = THEMES.choose(&mut self.rng) else { return };
        for kind in *theme {
            self.begin_built_in(Some(kind));
        }
    }

    /// Gives servers the moment that they need to learn of what they read themselves.
    fn finish(&mut self) {
        let several = self.known.len() > 1;
        for ask in &mut self.asks {
            let later = several && READ_LATER.contains(&ask.place.resource.kind.as_str());
            if later && ask.method != "GET" && !ask.stream {
                ask.pause = ask.pause.max(MOMENT);
            }
        }
    }

    fn begin_built_in(&mut self, only: Option<&str>) {
        let maker = &self.scope.maker;
        let fit: Vec<&Resource> = maker
            .served
            .resources
            .iter()
            .filter(|resource| resource.can("create") && !LEFT_OUT.contains(&resource.kind.as_str()))
            .filter(|resource| only.is_none_or(|kind| kind == resource.kind))
            .filter(|resource| {
                self.scope.kinds.is_empty() || self.scope.kinds.iter().any(|name| resource.is_called(name))
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
            // Addresses are of all conversations.
            "IPAddress" if given.parse::<std::net::Ipv4Addr>().is_ok() => {
                format!("172.{}.{}.{}", 16 + self.known.len(), self.seed / 250 % 250, self.seed % 250)
            }
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
        let others: Vec<(String, String)> = self
            .known
            .iter()
            .map(|known| (known.place.resource.kind.clone(), known.place.name.clone()))
            .collect();
        if let Some(spec) = object.as_object_mut().filter(|_| self.rng.random_bool(0.7)) {
            for (key, value) in spec.iter_mut().filter(|(key, _)| *key != "metadata") {
                let _ = key;
                themes::refer(value, &others);
            }
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
        match self.rng.random_range(0..130) {
            100..105 => self.directive(at),
            105..108 => self.operations(at),
            108..111 => self.managers(at),
            111..114 => self.pages(at),
            114..118 => self.revisions(at),
            118..122 => self.part(at),
            122..124 => self.as_several(at),
            124 => self.policy(at),
            125..127 => self.wrong(at),
            127..130 => self.options(at),
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

    /// Sends the object of a write as protobuf, now and then, where its kind has a message.
    fn in_protobuf(&mut self, ask: Ask, at: usize) -> Ask {
        let resource = &self.known[at].place.resource;
        let can = !resource.group.contains("@run@")
            && ask.subresource.is_none()
            && ask.header_value("Content-Type").is_none()
            && proto::has_message(&resource.group, &resource.version, &resource.kind);
        if can && self.rng.random_bool(0.12) {
            ask.header("Content-Type", "application/vnd.kubernetes.protobuf")
        } else {
            ask
        }
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
}

/// Gives an object another name, unless its metadata is broken.
fn rename(object: &mut Value, name: &str) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.insert("name".into(), name.into());
    }
}
