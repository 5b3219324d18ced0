//! The schemas of a document.

use std::collections::BTreeMap;

use kubewright_schema::{Schema, type_meta};
use kubewright_spec::Version;
use serde_json::{Value, json};

use kubewright_kinds::{Kind, Subresource};

const PREFIX: &str = "#/components/schemas/";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// The schemas of a document by name, made as they are referred to.
pub(super) struct Components {
    /// The version of Kubernetes whose types they are.
    version: Version,
    made: BTreeMap<String, Value>,
}

impl Components {
    /// None yet.
    pub(super) fn of(version: Version) -> Self {
        Self { version, made: BTreeMap::new() }
    }

    /// The version of Kubernetes whose types they are.
    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// All schemas.
    pub(super) fn into_schemas(self) -> BTreeMap<String, Value> {
        self.made
    }

    /// A reference to a kind.
    pub(super) fn kind(&mut self, kind: &Kind) -> Value {
        let schema = kind.schema().openapi(self.version, &mut self.made);
        let name = match schema["$ref"].as_str() {
            Some(reference) => reference.trim_start_matches(PREFIX).to_owned(),
            None => {
                let name = custom_name(kind);
                self.made.insert(name.clone(), schema);
                self.select(kind, &name);
                name
            }
        };
        self.mark(&name, &kind.group, &kind.version, &kind.kind)
    }

    /// A reference to the list of a kind, given the reference to the kind.
    pub(super) fn list(&mut self, kind: &Kind, item: &Value) -> Value {
        let name = item["$ref"].as_str().unwrap_or_default().trim_start_matches(PREFIX);
        let name = format!("{}{}", name.trim_end_matches(&kind.kind), kind.list_kind);
        let metadata = self.type_of(&format!("{META}.ListMeta"));
        let mut list = match kind.custom {
            Some(_) => Self::custom_list(kind, item, &metadata),
            None => json!({
                "type": "object",
                "description": format!("{} is a list of {}.", kind.list_kind, kind.kind),
                "required": ["items"],
                "properties": {
                    "metadata": {"allOf": [metadata], "description": "Standard metadata of a list.", "default": {}},
                    "items": {"type": "array", "description": "The objects.", "items": {"allOf": [item], "default": {}}},
                },
            }),
        };
        if let Some(properties) = list["properties"].as_object_mut() {
            properties.extend(type_meta(self.version));
        }
        self.made.insert(name.clone(), list);
        self.select(kind, &name);
        self.mark(&name, &kind.group, &kind.version, &kind.list_kind)
    }

    /// The list of a custom kind (`k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder`, `buildListSchema`).
    fn custom_list(kind: &Kind, item: &Value, metadata: &Value) -> Value {
        const CONVENTIONS: &str =
            "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
        json!({
            "type": "object",
            "description": format!("{} is a list of {}", kind.list_kind, kind.kind),
            "required": ["items"],
            "properties": {
                "items": {
                    "type": "array",
                    "description": format!("List of {}. More info: {CONVENTIONS}", kind.plural),
                    "items": item,
                },
                "metadata": {
                    "allOf": [metadata],
                    "description": format!("Standard list metadata. More info: {CONVENTIONS}#types-kinds"),
                },
            },
        })
    }

    /// Says of a custom kind which fields selectors may name.
    fn select(&mut self, kind: &Kind, name: &str) {
        let fields = kind.custom.as_ref().map_or(&[][..], |custom| &custom.selectable_fields);
        if let Some(Value::Object(schema)) = self.made.get_mut(name).filter(|_| !fields.is_empty()) {
            let fields: Vec<Value> = fields.iter().map(|path| json!({"fieldPath": path})).collect();
            schema.insert("x-kubernetes-selectable-fields".to_owned(), fields.into());
        }
    }

    /// A reference to the body of a subresource, where it is another than the kind's.
    pub(super) fn body(&mut self, subresource: &Subresource) -> Option<Value> {
        Some(match subresource {
            Subresource::Scale | Subresource::CustomScale(_) => {
                self.type_of("io.k8s.api.autoscaling.v1.Scale")
            }
            Subresource::Binding => self.type_of("io.k8s.api.core.v1.Binding"),
            Subresource::Eviction => self.type_of("io.k8s.api.policy.v1.Eviction"),
            Subresource::Token => self.type_of("io.k8s.api.authentication.v1.TokenRequest"),
            Subresource::Status
            | Subresource::EphemeralContainers
            | Subresource::Resize
            | Subresource::Finalize
            | Subresource::Approval
            | Subresource::Log
            | Subresource::Exec
            | Subresource::Attach
            | Subresource::PortForward
            | Subresource::Proxy(_) => return None,
        })
    }

    /// A reference to the options of a deletion.
    pub(super) fn delete_options(&mut self) -> Value {
        self.type_of(&format!("{META}.DeleteOptions"))
    }

    /// A reference to the `Status` that tells how an operation went.
    pub(super) fn status(&mut self) -> Value {
        self.type_of(&format!("{META}.Status"))
    }

    /// A reference to patches of any type.
    pub(super) fn patch(&mut self) -> Value {
        let name = format!("{META}.Patch");
        let description =
            "Patch is provided to give a concrete name and type to the Kubernetes PATCH request body.";
        self.made
            .entry(name.clone())
            .or_insert_with(|| json!({"type": "object", "description": description}));
        reference(&name)
    }

    fn type_of(&mut self, name: &str) -> Value {
        Schema::of_version(self.version, name.to_owned()).openapi(self.version, &mut self.made)
    }

    /// Says of a schema which kind it is of, unless it says so itself. Returns a reference to it.
    fn mark(&mut self, name: &str, group: &str, version: &str, kind: &str) -> Value {
        if let Some(Value::Object(schema)) = self.made.get_mut(name) {
            schema
                .entry("x-kubernetes-group-version-kind")
                .or_insert_with(|| json!([{"group": group, "version": version, "kind": kind}]));
        }
        reference(name)
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("{PREFIX}{name}")})
}

/// The name of a custom kind's schema: its group backwards, as package names are.
pub(super) fn custom_name(kind: &Kind) -> String {
    let group: Vec<&str> = kind.group.rsplit('.').collect();
    format!("{}.{}.{}", group.join("."), kind.version, kind.kind)
}
