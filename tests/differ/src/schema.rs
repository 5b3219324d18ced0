//! What the reference serves: its resources by discovery, their schemas by OpenAPI v3.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::side::Side;

/// A resource that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) kind: String,
    pub(crate) namespaced: bool,
    pub(crate) verbs: Vec<String>,
    pub(crate) subresources: Vec<String>,
}

impl Resource {
    /// `v1` or `apps/v1`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The path of its objects in a namespace, or in all of them.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", self.group) };
        match namespace {
            Some(namespace) if self.namespaced => {
                format!("{root}/{}/namespaces/{namespace}/{}", self.version, self.plural)
            }
            _ => format!("{root}/{}/{}", self.version, self.plural),
        }
    }

    /// Whether a name is its kind, its plural, or its plural and group, as definitions are named.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        let definition = name.strip_prefix(&*self.plural).and_then(|rest| rest.strip_prefix('.'));
        name == self.kind || name == self.plural || definition.is_some_and(|group| group == self.group)
    }

    pub(crate) fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|own| own == verb)
    }
}

/// All resources, and the schemas of their kinds.
#[derive(Debug, Default)]
pub(crate) struct Served {
    pub(crate) resources: Vec<Resource>,
    definitions: BTreeMap<String, Value>,
    kinds: BTreeMap<(String, String, String), String>,
}

impl Served {
    /// Asks a server.
    ///
    /// # Errors
    /// Where it does not answer as an API server does.
    pub(crate) async fn of(side: &Side) -> Result<Self> {
        let mut served = Self::default();
        for root in ["/api", "/apis"] {
            let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
            let list = side.json(root, accept).await.with_context(|| format!("discovery at {root}"))?;
            for group in list["items"].as_array().into_iter().flatten() {
                let name = group["metadata"]["name"].as_str().unwrap_or_default();
                if name.ends_with(".example.com") {
                    // Left by an earlier run.
                    continue;
                }
                for version in group["versions"].as_array().into_iter().flatten() {
                    let version_name = version["version"].as_str().unwrap_or_default();
                    for resource in version["resources"].as_array().into_iter().flatten() {
                        served.resources.push(resource_of(name, version_name, resource));
                    }
                    let prefix = if name.is_empty() {
                        format!("api/{version_name}")
                    } else {
                        format!("apis/{name}/{version_name}")
                    };
                    served.read_document(
                        &side.json(&format!("/openapi/v3/{prefix}"), "application/json").await?,
                    );
                }
            }
        }
        Ok(served)
    }

    fn read_document(&mut self, document: &Value) {
        for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
            for kind in schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten() {
                let text = |key: &str| kind[key].as_str().unwrap_or_default().to_owned();
                self.kinds.insert((text("group"), text("version"), text("kind")), name.clone());
            }
            self.definitions.insert(name.clone(), schema.clone());
        }
    }

    /// The schema of a kind.
    pub(crate) fn schema(&self, resource: &Resource) -> Option<&Value> {
        self.schema_of(&resource.group, &resource.version, &resource.kind)
    }

    /// The schema of a kind by its names.
    pub(crate) fn schema_of(&self, group: &str, version: &str, kind: &str) -> Option<&Value> {
        self.definitions.get(self.kinds.get(&(group.to_owned(), version.to_owned(), kind.to_owned()))?)
    }

    /// The schema that a reference leads to, or itself.
    pub(crate) fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let mut at = schema;
        for _ in 0..8 {
            let reference = at["$ref"].as_str().or_else(|| at["allOf"][0]["$ref"].as_str());
            match reference
                .and_then(|text| self.definitions.get(text.trim_start_matches("#/components/schemas/")))
            {
                Some(next) => at = next,
                None => return at,
            }
        }
        at
    }
}

fn resource_of(group: &str, version: &str, resource: &Value) -> Resource {
    let texts = |list: &Value| {
        list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: resource["resource"].as_str().unwrap_or_default().to_owned(),
        kind: resource["responseKind"]["kind"].as_str().unwrap_or_default().to_owned(),
        namespaced: resource["scope"] == "Namespaced",
        verbs: texts(&resource["verbs"]),
        subresources: resource["subresources"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|sub| sub["subresource"].as_str())
            .map(str::to_owned)
            .collect(),
    }
}
